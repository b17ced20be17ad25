package render

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/workflows/protocol"
)

// RowsText summarizes row counts, such as "3 read, 2 written (1 inserted, 1 updated), 1 rejected"; "" for no rows.
func RowsText(totals interpreter.RowTotals) string {
	var parts []string
	for _, part := range []struct {
		n    int64
		what string
	}{
		{totals.Read, "read"},
		{totals.Written, "written" + insertedText(totals)},
		{totals.Deleted, "deleted"},
		{totals.Rejected, "rejected"},
		{totals.Discarded, "discarded"},
	} {
		if part.n > 0 {
			parts = append(parts, humanize.Comma(part.n)+" "+part.what)
		}
	}
	return strings.Join(parts, ", ")
}

// insertedText describes how many written rows were inserted and updated. It is "" if no updates were counted: then
// it is only known that they were written.
func insertedText(totals interpreter.RowTotals) string {
	if totals.Updated == 0 {
		return ""
	}
	either := ""
	if rest := totals.Written - totals.Inserted - totals.Updated; rest > 0 {
		either = ", " + humanize.Comma(rest) + " either"
	}
	return fmt.Sprintf(" (%s inserted, %s updated%s)", humanize.Comma(totals.Inserted), humanize.Comma(totals.Updated), either)
}

// CountText formats a number for a column; 0 becomes "".
func CountText(n int64) string {
	if n == 0 {
		return ""
	}
	return humanize.Comma(n)
}

// TableLabel returns the name of a table and its connection.
func TableLabel(table interpreter.TableRows) string {
	if table.Connection == "" {
		return terminal.OneLine(table.Table)
	}
	return terminal.OneLine(table.Table) + " of " + terminal.OneLine(table.Connection)
}

// OtherTables is the label for the tables that are not listed by name.
const OtherTables = "other tables"

// tablesText describes what was done to each table. It lists at most `most` tables by name.
func tablesText(rows *interpreter.Rows, most int) []string {
	if rows == nil {
		return nil
	}
	var said []string
	left := interpreter.RowTotals{}
	if rows.Others != nil {
		left = *rows.Others
	}
	for i, table := range rows.Tables {
		if i >= most {
			left = left.Plus(table.RowTotals)
			continue
		}
		said = append(said, TableLabel(table)+": "+RowsText(table.RowTotals))
	}
	if text := RowsText(left); text != "" {
		said = append(said, OtherTables+": "+text)
	}
	return said
}

// shownTables is how many tables of a step are listed on a terminal.
const shownTables = 10

// rowsOfStep describes what a step did to data, by table. For a step with a state, the read rows are shown with the
// state instead.
func rowsOfStep(step runs.Step) []string {
	totals := step.Rows.Totals()
	if step.Incremental != nil {
		totals.Read = 0
	}
	return rowLines(step.Rows, totals)
}

// rowLines describes what was done to data, by table, with the totals.
func rowLines(rows *interpreter.Rows, totals interpreter.RowTotals) []string {
	tables := tablesText(rows, shownTables)
	if len(tables) > 1 {
		return append([]string{RowsText(totals)}, tables...)
	}
	said := tables
	if totals.Read > 0 {
		said = append([]string{RowsText(interpreter.RowTotals{Read: totals.Read})}, tables...)
	}
	if len(said) == 0 {
		return nil
	}
	return []string{strings.Join(said, "; ")}
}

// WatermarkText describes where the watermark of a step was and is, in a run with the given status. warned says that
// the run has warnings: one may be that the watermark was not moved.
func WatermarkText(read interpreter.StateRecord, run interpreter.Status, warned bool) string {
	return watermarkText(read.BeginValue(), read.Watermark, endMove{read.MovesTo, run, warned}, read.States, read.State)
}

// endMove describes where the end of a run moves the watermark of a step that writes nothing. If to has no value, it
// does not move.
type endMove struct {
	to     expression.Value
	run    interpreter.Status // "" where it is not known
	warned bool
}

// hasMoved reports whether the watermark has moved.
func (m endMove) hasMoved() bool {
	return m.to.Data != nil && m.run == interpreter.Completed && !m.warned
}

// describeOutcome describes what becomes of the move; "" if it is done or there is none. moves is the verb phrase to use,
// such as "which move".
func (m endMove) describeOutcome(moves string) string {
	switch {
	case m.to.Data == nil, m.hasMoved():
		return ""
	case m.run == interpreter.Completed:
		return moves + " unless a warning of the run says otherwise"
	case m.run.Ended():
		return "not moved, because the run has not completed"
	}
	return moves + " when the run has completed"
}

func watermarkText(before, after expression.Value, end endMove, states int, state string) string {
	if end.hasMoved() && states <= 1 {
		after = end.to
	}
	was, is := cursorText(before), cursorText(after)
	switch outcome := end.describeOutcome("which move"); {
	case states > 1 && outcome != "":
		return fmt.Sprintf("%d watermarks, %s", states, outcome)
	case states > 1 && end.hasMoved():
		return fmt.Sprintf("%d watermarks; the lowest moved to %s, of %s", states, cursorText(end.to), terminal.OneLine(state))
	case states > 1:
		return fmt.Sprintf("%d watermarks; the lowest is %s, of %s", states, is, terminal.OneLine(state))
	case outcome != "":
		return fmt.Sprintf("watermark %s, %s", is, end.describeOutcome("moves to "+cursorText(end.to)))
	case was == is:
		return "watermark " + is
	}
	return fmt.Sprintf("watermark from %s to %s", was, is)
}

// shownCursor bounds a shown watermark, in characters.
const shownCursor = 100

// cursorText formats a watermark; "the beginning" if it has no value yet.
func cursorText(value expression.Value) string {
	if value.Data == nil {
		return "the beginning"
	}
	return terminal.Shorten(expression.Text(value.Data), shownCursor)
}

// rowsOfRun describes what all steps did to data; "" if at most one step did anything.
func rowsOfRun(status *runs.Status) string {
	steps := lists.Filter(status.Steps, func(step runs.Step) bool { return !step.Rows.IsEmpty() })
	if len(steps) < 2 {
		return ""
	}
	return RowsText(status.Rows.Totals())
}

// ShortRows returns how many rows a run wrote, or else read, for a narrow column; "" if nothing was counted.
func ShortRows(totals *interpreter.RowTotals) string {
	switch {
	case totals == nil:
		return ""
	case totals.ChangedRows() > 0:
		return humanize.Comma(totals.ChangedRows())
	case totals.Read > 0:
		return humanize.Comma(totals.Read) + " read"
	}
	return "0"
}

// writeRows prints what the steps of an ended run did to data, and what became of their watermarks.
func writeRows(b *strings.Builder, result protocol.Result, paper terminal.Paper) {
	counted := 0
	line := func(format string, args ...any) {
		for _, line := range paper.WrapLines(fmt.Sprintf(format, args...)) {
			b.WriteString(line + "\n")
		}
	}
	for _, record := range result.Steps {
		said := rowLines(record.Rows, record.Rows.Totals())
		if len(said) > 0 {
			counted++
		}
		if record.Incremental != nil {
			said = append(said, WatermarkText(*record.Incremental, result.Status, len(result.Warnings) > 0))
		}
		for _, text := range said {
			line("%s: %s", StepName(record), text)
		}
	}
	if total := RowsText(result.Rows.Totals()); counted != 1 && total != "" {
		line("rows: %s", total)
	}
}
