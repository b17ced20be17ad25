package render

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/lists"
)

// Runs fits a terminal. The ID is what other commands want, so other columns
// go first, and it is cut last, in its middle: runs of a playbook differ by its end.
func Runs(list []runs.Found, now time.Time, paper terminal.Paper) string {
	rendered := ""
	for _, columns := range [][]string{
		{"run", "playbook", "status", "started", "time", "failed"},
		{"run", "status", "started", "time", "failed"},
		{"run", "status", "time", "failed"},
		{"run", "status"},
	} {
		if rendered = runsWith(list, columns, now, paper, 0); text.LongestLineLen(rendered) <= paper.Width {
			return rendered
		}
	}
	over := text.LongestLineLen(rendered) - paper.Width
	longest := 0
	for _, run := range list {
		longest = max(longest, text.StringWidth(terminal.Visible(run.WorkflowID)))
	}
	return runsWith(list, []string{"run", "status"}, now, paper, max(longest-over, 1))
}

// runsWith is the table with some columns, and with IDs cut to a width unless
// that is 0.
func runsWith(list []runs.Found, columns []string, now time.Time, paper terminal.Paper, idWidth int) string {
	head := lists.Map(columns, func(name string) any { return name })
	ids := lists.Map(list, func(run runs.Found) string { return terminal.Visible(run.WorkflowID) })
	if idWidth > 0 {
		ids = terminal.MiddleAll(ids, idWidth)
	}
	var rows []table.Row
	for i, run := range list {
		end := run.EndedAt
		if end.IsZero() {
			end = now
		}
		cells := map[string]string{
			"run": ids[i], "playbook": text.Snip(terminal.Visible(run.Playbook), 30, "…"), "status": paper.Paint(styleOf(run.Status), statusCell(run)),
			"started": terminal.Ago(run.StartedAt, now), "time": terminal.Duration(end.Sub(run.StartedAt)), "failed": terminal.Number(run.DeadLetters),
		}
		row := make(table.Row, len(columns))
		for i, name := range columns {
			row[i] = cells[name]
		}
		rows = append(rows, row)
	}
	return filled(head, rows).Render()
}

// statusCell is the status of a run, with its place where it waits for its turn.
func statusCell(run runs.Found) string {
	if run.Queue == nil || run.Queue.Position == 0 || run.Status != interpreter.Queued {
		return string(run.Status)
	}
	return fmt.Sprintf("%s %d", run.Status, run.Queue.Position)
}
