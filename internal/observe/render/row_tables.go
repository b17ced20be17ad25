package render

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/stats"
	"reprise/interpreter"
)

// RowLine is a line in a table of row counts: what was done to the data by a step, or in a table.
type RowLine struct {
	Step, Table string // "" for all of them
	interpreter.RowTotals
}

// RowLines returns a line for each table. Read rows are on the line of the only table, or on their own line if there
// are several.
func RowLines(step string, rows *interpreter.Rows) []RowLine {
	if rows.IsEmpty() {
		return nil
	}
	var lines []RowLine
	for _, of := range rows.Tables {
		lines = append(lines, RowLine{step, TableLabel(of), of.RowTotals})
	}
	if rows.Others != nil {
		lines = append(lines, RowLine{step, OtherTables, *rows.Others})
	}
	switch {
	case len(lines) == 0:
		return []RowLine{{Step: step, RowTotals: rows.RowTotals}}
	case len(lines) == 1:
		lines[0].Read = rows.Read
	case rows.Read > 0:
		lines = append([]RowLine{{Step: step, RowTotals: interpreter.RowTotals{Read: rows.Read}}}, lines...)
	}
	return lines
}

// statsRows writes what runs did to data: in total, by step and table, and the watermarks of steps.
func statsRows(w io.Writer, s stats.Stats, width int) {
	steps := map[bool][]RowLine{}
	several := severalPlaybooks(s)
	for _, of := range s.Steps {
		steps[of.InChildRuns] = append(steps[of.InChildRuns], RowLines(terminal.OneLine(stepOf(of.Playbook, of.Step, several)), of.Rows)...)
	}
	if all := RowLines("", s.Rows); len(all) > 1 || len(steps[false]) != len(all) {
		rowSection(w, "Rows by table", all, width)
	}
	rowSection(w, "Rows by step", steps[false], width)
	rowSection(w, "Rows by step of child runs (which the steps that run them include)", steps[true], width)
	if len(s.Watermarks) == 0 {
		return
	}
	_, _ = io.WriteString(w, "\nWatermarks\n")
	for _, mark := range s.Watermarks {
		named := several || mark.InChildRuns
		_, _ = io.WriteString(w, terminal.HangingLine("", stepOf(mark.Playbook, mark.Step, named)+": "+MarkText(mark), width))
	}
	if s.WatermarksLeft > 0 {
		_, _ = fmt.Fprintf(w, "and %d more\n", s.WatermarksLeft)
	}
}

// MarkText describes where a watermark was before the runs and where it was after them.
func MarkText(mark stats.WatermarkMove) string {
	return watermarkText(mark.Before, mark.After, endMove{to: mark.Pending}, mark.States, mark.State)
}

// rowSection writes row counts as a table, or as lines if the terminal is too narrow: no count is left out.
func rowSection(w io.Writer, title string, lines []RowLine, width int) {
	if len(lines) == 0 {
		return
	}
	var rows []table.Row
	for _, line := range lines {
		row := table.Row{line.Step, line.Table}
		for _, n := range []int64{line.Read, line.Written, line.Inserted, line.Updated, line.Deleted, line.Rejected, line.Discarded} {
			row = append(row, CountText(n))
		}
		rows = append(rows, row)
	}
	header, right := table.Row{"step", "table"}, []table.ColumnConfig{}
	for _, name := range []string{"read", "written", "inserted", "updated", "deleted", "rejected", "discarded"} {
		header = append(header, name)
		right = append(right, table.ColumnConfig{Name: name, Align: text.AlignRight})
	}
	drawn := filledTable(header, rows)
	drawn.SetColumnConfigs(right)
	shown := drawn.Render()
	_, _ = io.WriteString(w, "\n")
	for _, line := range terminal.WrapText(title, width) {
		_, _ = io.WriteString(w, line+"\n")
	}
	if text.LongestLineLen(shown) <= width {
		_, _ = io.WriteString(w, shown+"\n")
		return
	}
	for _, line := range lines {
		_, _ = io.WriteString(w, terminal.HangingLine("", line.stepAndTable()+": "+RowsText(line.RowTotals), width))
	}
}

// stepAndTable returns the step and table of the line, or "all".
func (l RowLine) stepAndTable() string {
	switch {
	case l.Step == "" && l.Table == "":
		return "all"
	case l.Step == "":
		return l.Table
	case l.Table == "":
		return l.Step
	}
	return l.Step + ", " + l.Table
}
