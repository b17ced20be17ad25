package ui

import (
	"cmp"
	"context"
	"strings"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// rowsView is what a run, or a step, did to data.
type rowsView struct {
	Text   string
	Tables []tableView
	Marks  []string // watermarks of steps, before and after
}

// tableView is a table, with its numbers as texts; "" for zero.
type tableView struct {
	Name, Connection                                    string
	Written, Inserted, Updated, Deleted, Rejected, Left string
}

// newRowsView is nil where nothing was counted and no step keeps a state.
func newRowsView(rows *interpreter.Rows, steps []runs.Step) *rowsView {
	view := &rowsView{Text: render.RowsText(rows.Totals()), Marks: marksOf(steps)}
	if rows != nil {
		for _, table := range rows.Tables {
			view.Tables = append(view.Tables, newTableView(table))
		}
		if rows.Others != nil {
			view.Tables = append(view.Tables, newTableView(interpreter.TableRows{Table: render.OtherTables, RowTotals: *rows.Others}))
		}
	}
	if view.Text == "" && len(view.Marks) == 0 {
		return nil
	}
	return view
}

func newTableView(table interpreter.TableRows) tableView {
	number := render.CountText
	return tableView{
		Name: terminal.OneLine(table.Table), Connection: terminal.OneLine(table.Connection), Written: number(table.Written), Inserted: number(table.Inserted),
		Updated: number(table.Updated), Deleted: number(table.Deleted), Rejected: number(table.Rejected), Left: number(table.Discarded),
	}
}

// rowsCell is what a run did to data, for a column of a list.
type rowsCell struct{ Short, Title string }

func newRowsCell(totals *interpreter.RowTotals) rowsCell {
	if totals == nil {
		return rowsCell{}
	}
	return rowsCell{Short: render.ShortRows(totals), Title: render.RowsText(*totals)}
}

// marksOf says where the watermarks of steps were, where they are, and how old that is.
func marksOf(steps []runs.Step) (marks []string) {
	for _, step := range steps {
		read := step.Incremental
		if read == nil {
			continue
		}
		mark := step.Step + ": " + render.WatermarkText(read.StateRecord)
		if read.Behind != nil {
			mark += ", " + render.BehindText(read.Type, *read.Behind) + " behind"
		}
		marks = append(marks, mark)
	}
	return marks
}

// barsView are the last runs of a playbook as bars, the oldest one first.
type barsView struct {
	Bars    []runBar
	Width   int
	HasRows bool
}

// runBar is a run: how long it took, and how many rows it wrote, each as a share of the largest.
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

// newBars draws runs, of which the first is the newest; nil for fewer than two.
func newBars(list []runs.Found, now time.Time) *barsView {
	list = list[:min(len(list), shownBars)]
	if len(list) < 2 {
		return nil
	}
	took := func(run runs.Found) time.Duration { return cmp.Or(run.EndedAt, now).Sub(run.StartedAt) }
	wrote := func(run runs.Found) int64 {
		if run.Rows == nil {
			return 0
		}
		return run.Rows.Changes()
	}
	var longest time.Duration
	var largest int64
	for _, run := range list {
		longest, largest = max(longest, took(run)), max(largest, wrote(run))
	}
	view := &barsView{Width: barStep * len(list), HasRows: largest > 0}
	for i := len(list) - 1; i >= 0; i-- {
		run := list[i]
		bar := runBar{Path: runPath(run.WorkflowID), Status: run.Status, X: barStep * (len(list) - 1 - i)}
		bar.Time = heightOf(took(run).Seconds(), longest.Seconds())
		bar.TimeY = barHigh - bar.Time
		if n := wrote(run); n > 0 {
			bar.Written = heightOf(float64(n), float64(largest))
		}
		bar.RowsY = 2*barHigh - bar.Written
		parts := []string{run.StartedAt.UTC().Format("2006-01-02 15:04 UTC"), run.Status.Word(), terminal.Duration(took(run))}
		if run.Rows != nil {
			parts = append(parts, render.RowsText(*run.Rows))
		}
		bar.Title = strings.Join(parts, ", ")
		view.Bars = append(view.Bars, bar)
	}
	return view
}

// heightOf is the height of a bar, at least 2 units.
func heightOf(value, largest float64) int {
	if largest <= 0 {
		return 2
	}
	return max(2, int(value/largest*(barHigh-2)))
}

// lastRows is what the last run of some that has ended with a result did to data, nil where none has said it.
func (s *Server) lastRows(ctx context.Context, list []runs.Found, now time.Time) (*rowsView, string) {
	for _, run := range list {
		if !run.Ended() || run.Rows == nil {
			continue
		}
		status, err := s.status(ctx, run, now)
		if err != nil {
			return nil, ""
		}
		return newRowsView(status.Rows, status.Steps), runPath(run.WorkflowID)
	}
	return nil, ""
}
