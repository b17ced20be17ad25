package ui

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
)

// rowsView is what a run or a step did to data.
type rowsView struct {
	Text    string
	Columns []string // those in which some table has a number
	Tables  []tableView
	Marks   []string // watermarks of steps, before and after
}

// tableView is a table with a text for each column; "" for zero.
type tableView struct {
	Name, Connection string
	Cells            []tableCell
}

type tableCell struct{ Column, Text string }

// rowColumns are the columns of a table of row counts. The first one is always shown.
var rowColumns = []struct {
	name  string
	count func(interpreter.RowTotals) int64
}{
	{"Written", func(of interpreter.RowTotals) int64 { return of.Written }},
	{"Inserted", func(of interpreter.RowTotals) int64 { return of.Inserted }},
	{"Updated", func(of interpreter.RowTotals) int64 { return of.Updated }},
	{"Deleted", func(of interpreter.RowTotals) int64 { return of.Deleted }},
	{"Rejected", func(of interpreter.RowTotals) int64 { return of.Rejected }},
	{"Discarded", func(of interpreter.RowTotals) int64 { return of.Discarded }},
}

// newRowsView returns what was done to data; nil if nothing was counted and no step keeps a state.
func newRowsView(rows *interpreter.Rows, status *runs.Status, steps []runs.Step) *rowsView {
	view := &rowsView{Text: render.RowsText(rows.Totals()), Marks: marksOf(status, steps)}
	if rows != nil {
		view.addTables(rows)
	}
	if view.Text == "" && len(view.Marks) == 0 {
		return nil
	}
	return view
}

// addTables adds the tables, with the columns that are not empty in all of them.
func (v *rowsView) addTables(rows *interpreter.Rows) {
	tables := rows.Tables
	if rows.Others != nil {
		tables = append(slices.Clone(tables), interpreter.TableRows{Table: render.OtherTables, RowTotals: *rows.Others})
	}
	for _, table := range tables {
		v.Tables = append(v.Tables, tableView{Name: terminal.OneLine(table.Table), Connection: terminal.OneLine(table.Connection)})
	}
	for i, column := range rowColumns {
		if i > 0 && !slices.ContainsFunc(tables, func(table interpreter.TableRows) bool { return column.count(table.RowTotals) > 0 }) {
			continue
		}
		v.Columns = append(v.Columns, column.name)
		for j, table := range tables {
			v.Tables[j].Cells = append(v.Tables[j].Cells, tableCell{column.name, render.CountText(column.count(table.RowTotals))})
		}
	}
}

// broughtText describes which rows a run wrote where, and how new they are, to follow how it ended; "" if it wrote none.
func broughtText(status *runs.Status) string {
	if status.Rows == nil || status.Rows.Written == 0 {
		return ""
	}
	tables := slices.DeleteFunc(slices.Clone(status.Rows.Tables), func(table interpreter.TableRows) bool { return table.Written == 0 })
	text := ": " + render.CountText(status.Rows.Written) + " rows written"
	if status.Rows.Written == 1 {
		text = ": 1 row written"
	}
	switch {
	case status.Rows.Others != nil || len(tables) > 1:
		text += " to several tables"
	case len(tables) == 1 && tables[0].Connection != "":
		text += " to " + terminal.OneLine(tables[0].Connection) + "/" + terminal.OneLine(tables[0].Table)
	case len(tables) == 1:
		text += " to " + terminal.OneLine(tables[0].Table)
	}
	if newest := newestText(status); newest != "" {
		text += ", newest " + newest
	}
	return text
}

// newestText returns the time to which the only step with a watermark has read; "" if no time is known.
func newestText(status *runs.Status) string {
	reads := lists.Filter(status.Steps, func(step runs.Step) bool { return step.Incremental != nil })
	if len(reads) != 1 {
		return ""
	}
	read := reads[0].Incremental
	mark := read.Watermark
	if read.MovesTo.Data != nil && len(status.Warnings) == 0 {
		mark = read.MovesTo
	}
	text, isText := mark.Data.(string)
	at, err := time.Parse(time.RFC3339, text)
	if read.Type != incremental.Time || !isText || err != nil || read.States > 1 {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04 UTC")
}

// rowsCell is what a run did to data, for a column in a list.
type rowsCell struct{ Short, Title string }

func newRowsCell(totals *interpreter.RowTotals) rowsCell {
	if totals == nil {
		return rowsCell{}
	}
	return rowsCell{Short: render.ShortRows(totals), Title: render.RowsText(*totals)}
}

// marksOf describes where the watermarks of steps were and are, and how old they are.
func marksOf(status *runs.Status, steps []runs.Step) (marks []string) {
	for _, step := range steps {
		read := step.Incremental
		if read == nil {
			continue
		}
		mark := step.Step + ": " + render.WatermarkText(read.StateRecord, status.Status, len(status.Warnings) > 0)
		if read.Behind != nil && read.MovesTo.Data == nil {
			mark += ", " + render.BehindText(read.Type, *read.Behind) + " behind"
		}
		marks = append(marks, mark)
	}
	return marks
}

// barsView draws the last runs of a playbook as bars, oldest first.
type barsView struct {
	Bars    []runBar
	Width   int
	HasRows bool
}

// runBar is a run in the drawing: its duration and the number of rows it wrote, each relative to the largest.
type runBar struct {
	Path, Title    string
	Status         interpreter.Status
	X              int
	TimeY, Time    int
	RowsY, Written int
}

// Sizes of bars, in units of the drawing.
const (
	barStep   = 10
	barHigh   = 40
	shownBars = 30
)

// newBars draws runs, given newest first, in the colours of their rows; nil for fewer than two.
func newBars(rows []*runRow, now time.Time) *barsView {
	rows = rows[:min(len(rows), shownBars)]
	if len(rows) < 2 {
		return nil
	}
	list := lists.Map(rows, func(row *runRow) runs.Found { return row.Run })
	took := func(run runs.Found) time.Duration { return cmp.Or(run.EndedAt, now).Sub(run.StartedAt) }
	wrote := func(run runs.Found) int64 {
		if run.Rows == nil {
			return 0
		}
		return run.Rows.ChangedRows()
	}
	var longest time.Duration
	var largest int64
	for _, run := range list {
		longest, largest = max(longest, took(run)), max(largest, wrote(run))
	}
	view := &barsView{Width: barStep * len(list), HasRows: largest > 0}
	for i := len(list) - 1; i >= 0; i-- {
		run := list[i]
		bar := runBar{Path: runPath(run.WorkflowID), Status: rows[i].colour(), X: barStep * (len(list) - 1 - i)}
		bar.Time = heightOf(took(run).Seconds(), longest.Seconds())
		bar.TimeY = barHigh - bar.Time
		if n := wrote(run); n > 0 {
			bar.Written = heightOf(float64(n), float64(largest))
		}
		bar.RowsY = 2*barHigh - bar.Written
		parts := []string{run.StartedAt.UTC().Format("2006-01-02 15:04 UTC"), rows[i].Word(), terminal.Duration(took(run))}
		if run.Rows != nil {
			parts = append(parts, render.RowsText(*run.Rows))
		}
		bar.Title = strings.Join(parts, ", ")
		view.Bars = append(view.Bars, bar)
	}
	return view
}

// heightOf returns the height of a bar, at least 2 units.
func heightOf(value, largest float64) int {
	if largest <= 0 {
		return 2
	}
	return max(2, int(value/largest*(barHigh-2)))
}

// lastRows returns what the last ended run with counts did to data; nil if unknown.
func (s *Server) lastRows(ctx context.Context, list []runs.Found, now time.Time) (*rowsView, string) {
	for _, run := range list {
		if !run.Ended() || run.Rows == nil {
			continue
		}
		status, err := s.readStatus(ctx, run, now)
		if err != nil {
			return nil, ""
		}
		return newRowsView(status.Rows, status, status.Steps), runPath(run.WorkflowID)
	}
	return nil, ""
}
