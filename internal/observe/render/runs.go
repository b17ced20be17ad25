package render

import (
	"cmp"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

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
	return terminal.FitColumns(paper.Width, ids, [][]string{
		{"run", "playbook", "status", "rows", "started", "time", "failed"},
		{"run", "playbook", "status", "started", "time", "failed"},
		{"run", "status", "started", "time", "failed"},
		{"run", "status", "time", "failed"},
		{"run", "status"},
	}, func(columns, ids []string) string {
		var rows []table.Row
		for i, run := range list {
			end := cmp.Or(run.EndedAt, now)
			rows = append(rows, terminal.TableRow(columns, map[string]string{
				"run": ids[i], "playbook": paper.Shorten(run.Playbook, shownPlaybook), "status": paper.Paint(styleOf(run.Status), statusCell(run)),
				"started": terminal.Ago(run.StartedAt, now), "time": terminal.Duration(end.Sub(run.StartedAt)), "failed": terminal.NumberText(run.DeadLetters),
				"rows": ShortRows(run.Rows),
			}))
		}
		return filledTable(terminal.HeadRow(columns), rows).Render()
	})
}

// statusCell is the status of a run, with its place where it waits for its turn.
func statusCell(run runs.Found) string {
	if run.Queue == nil || run.Queue.Position == 0 || run.Status != interpreter.Queued {
		return string(run.Status)
	}
	return fmt.Sprintf("%s %d", run.Status, run.Queue.Position)
}
