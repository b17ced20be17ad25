package render

import (
	"cmp"
	"fmt"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/lists"
)

// shownPlaybook bounds the playbook's name in a list, in characters: the run's ID begins with it anyway.
const shownPlaybook = 30

// Runs returns a table of runs that fits the terminal.
func Runs(list []runs.Found, now time.Time, paper terminal.Paper) string {
	ids := lists.Map(list, func(run runs.Found) string { return terminal.Visible(run.WorkflowID) })
	rendered, _ := itemTable[runs.Found]{title: "run", columns: runColumns(now, paper)}.fitTable(list, ids, paper)
	return rendered
}

// runColumns returns the columns of a list of runs, after the ID.
func runColumns(now time.Time, paper terminal.Paper) []itemColumn[runs.Found] {
	return []itemColumn[runs.Found]{
		{"playbook", 2, func(run runs.Found) string { return paper.Shorten(run.Playbook, shownPlaybook) }},
		{"status", 0, func(run runs.Found) string { return paper.Paint(styleOf(run.Status), statusCell(run)) }},
		{"rows", 1, func(run runs.Found) string { return ShortRows(run.Rows) }},
		{"started", 3, func(run runs.Found) string { return terminal.Ago(run.StartedAt, now) }},
		{"time", 4, func(run runs.Found) string {
			return terminal.Duration(cmp.Or(run.EndedAt, now).Sub(run.StartedAt))
		}},
		{"failed", 4, func(run runs.Found) string { return terminal.NumberText(run.DeadLetters) }},
	}
}

// statusCell returns the status of a run, with its queue position if it is queued.
func statusCell(run runs.Found) string {
	if run.Queue == nil || run.Queue.Position == 0 || run.Status != interpreter.Queued {
		return string(run.Status)
	}
	return fmt.Sprintf("%s %d", run.Status, run.Queue.Position)
}
