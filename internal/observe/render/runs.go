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

// RunTitle returns by what people know a run: the run of a partition by its playbook and partition, another by its workflow ID.
func RunTitle(run runs.Found) string {
	if run.Partition == "" || run.Playbook == "" {
		return run.WorkflowID
	}
	return PartitionTitle(run.Playbook, run.Partition)
}

// PartitionTitle returns by what people know the run of a partition.
func PartitionTitle(playbook, partition string) string { return playbook + " " + partition }

// RunsTable returns a table of runs that fits the terminal.
func RunsTable(list []runs.Found, now time.Time, paper terminal.Paper) string {
	ids := lists.Map(list, func(run runs.Found) string { return terminal.EscapeInvisible(run.WorkflowID) })
	rendered, _ := itemTable[runs.Found]{title: "run", columns: runColumns(now, paper)}.fitTable(list, ids, paper)
	return rendered
}

// runColumns returns the columns of a list of runs, after the ID.
func runColumns(now time.Time, paper terminal.Paper) []itemColumn[runs.Found] {
	return []itemColumn[runs.Found]{
		{"playbook", 2, func(run runs.Found) string { return paper.Shorten(run.Playbook, shownPlaybook) }},
		{"partition", 6, func(run runs.Found) string { return terminal.EscapeInvisible(run.Partition) }},
		{"status", 0, func(run runs.Found) string { return statusCell(run, paper) }},
		{"rows", 3, func(run runs.Found) string { return ShortRows(run.Rows) }},
		{"started", 4, func(run runs.Found) string { return terminal.Ago(run.StartedAt, now) }},
		{"time", 5, func(run runs.Found) string {
			return terminal.Duration(cmp.Or(run.EndedAt, now).Sub(run.StartedAt))
		}},
		{"build", 1, buildCell},
		{"failed", 6, func(run runs.Found) string { return terminal.NumberText(run.DeadLetters) }},
	}
}

// statusCell is the status of a run: of one that continues by itself, by how much it is late, and its place where it waits for
// its turn.
func statusCell(run runs.Found, paper terminal.Paper) string {
	late := latenessText(run)
	switch {
	case late != "" && run.HeldBy != runs.HeldByNoWorker && !run.NeedsPerson():
		return paper.PaintWarning(late)
	case run.Queue != nil && run.Queue.Position != 0 && run.Status == interpreter.Queued:
		return paper.Paint(styleOf(run.Status), fmt.Sprintf("%s %d", run.Status, run.Queue.Position))
	}
	return stateText(run, paper)
}

// stateText is the status of a run in its colour, or what holds it if it does not continue by itself.
func stateText(run runs.Found, paper terminal.Paper) string {
	return stateCell(run.Status, run.HeldBy, paper)
}

// latenessText returns how late an open run is; "" if it is not late or the delay is not known.
func latenessText(run runs.Found) string {
	if run.LateSeconds == 0 || run.Ended() {
		return ""
	}
	return "late by " + terminal.Duration(time.Duration(run.LateSeconds)*time.Second)
}

// buildCell is the build that a run is on, "" for none.
func buildCell(run runs.Found) string {
	if run.Build == nil {
		return ""
	}
	return terminal.EscapeInvisible(run.Build.ID)
}
