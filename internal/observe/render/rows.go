package render

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/lists"
)

// RowsText says what was done to rows, as in "3 read, 2 written (1 new), 1 rejected"; "" for nothing.
func RowsText(totals interpreter.RowTotals) string {
	var parts []string
	for _, part := range []struct {
		n    int64
		what string
	}{
		{totals.Read, "read"},
		{totals.Written, "written" + parted(totals)},
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

// parted says how many of the written rows are new and changed, where both are known.
func parted(totals interpreter.RowTotals) string {
	if totals.Updated == 0 || totals.Inserted == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s new, %s changed)", humanize.Comma(totals.Inserted), humanize.Comma(totals.Updated))
}

// TableLabel is a table with the connection that it is of.
func TableLabel(table interpreter.TableRows) string {
	if table.Connection == "" {
		return terminal.OneLine(table.Table)
	}
	return terminal.OneLine(table.Table) + " of " + terminal.OneLine(table.Connection)
}

// OtherTables is the label of what is not shown by tables.
const OtherTables = "other tables"

// tablesText is what was done to each table; most bounds them.
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

// mostTables is how many tables of a step are shown at a terminal.
const mostTables = 10

// rowsOfStep says what a step did to data, by tables. What it has read is said with its state, where it keeps one.
func rowsOfStep(step runs.Step) []string {
	totals := step.Rows.Totals()
	if step.Incremental != nil {
		totals.Read = 0
	}
	tables := tablesText(step.Rows, mostTables)
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

// rowsOfRun says what all steps did to data, "" where that is what one of them did.
func rowsOfRun(status *runs.Status) string {
	steps := lists.Filter(status.Steps, func(step runs.Step) bool { return !step.Rows.IsEmpty() })
	if len(steps) < 2 {
		return ""
	}
	return RowsText(status.Rows.Totals())
}

// ShortRows is how many rows a run has written, or else read, for a narrow column; "" where nothing was counted.
func ShortRows(totals *interpreter.RowTotals) string {
	switch {
	case totals == nil:
		return ""
	case totals.Changes() > 0:
		return humanize.Comma(totals.Changes())
	case totals.Read > 0:
		return humanize.Comma(totals.Read) + " read"
	}
	return "0"
}
