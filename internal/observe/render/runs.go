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

// shownPlaybook is how much of the name of a playbook a list has, in characters: the ID of a run begins with it.
const shownPlaybook = 30

// Runs returns a table of runs that fits the terminal.
func Runs(list []runs.Found, now time.Time, paper terminal.Paper) string {
	ids := lists.Map(list, func(run runs.Found) string { return terminal.Visible(run.WorkflowID) })
	rendered, _ := itemTable[runs.Found]{title: "run", columns: runColumns(now, paper)}.fitTable(list, ids, paper)
	return rendered
}

// runColumns returns the columns of a list of runs, behind the ID of the run.
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

// statusCell returns the status of a run, with its place where it waits for its turn.
func statusCell(run runs.Found) string {
	if run.Queue == nil || run.Queue.Position == 0 || run.Status != interpreter.Queued {
		return string(run.Status)
	}
	return fmt.Sprintf("%s %d", run.Status, run.Queue.Position)
}
