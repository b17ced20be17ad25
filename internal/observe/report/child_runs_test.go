package report_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/report"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// TestBelow lists a hundred runs of other playbooks, with how they have ended.
func TestBelow(t *testing.T) {
	t.Parallel()
	var children report.ChildRunTable
	for i := range 150 {
		id := fmt.Sprintf("run/each#1/%d!1", i)
		started := runs.Event{Event: runs.ActionStarted, Step: "each", Index: &i, Attempt: 1, Child: id}
		children.AddEvent(started)
		ended := started
		ended.Event, ended.Duration = runs.ActionCompleted, 2
		switch i {
		case 1:
			ended.Event, ended.Error = runs.ActionError, &interpreter.ErrorObject{Kind: interpreter.KindPlaybook, Message: "no"}
		case 2:
			ended.Event, ended.Error = runs.ActionError, &interpreter.ErrorObject{Kind: interpreter.KindCancelled, Message: "cancelled"}
		case 3:
			continue
		}
		children.AddEvent(ended)
	}
	children.AddEvent(runs.Event{Event: runs.ActionStarted, Step: "other"})
	require.Len(t, children.Rows, 100)
	require.Equal(t, 50, children.Left)
	drawn := func(i int) string {
		row := children.Rows[i]
		return fmt.Sprint(row.WorkflowID, " ", row.Step, " ", row.Status, " ", row.DurationText(), " ", row.Error)
	}
	require.Equal(t, "run/each#1/0!1 each[0] completed 2s ", drawn(0))
	require.Equal(t, "run/each#1/1!1 each[1] failed 2s no", drawn(1))
	require.Equal(t, "run/each#1/2!1 each[2] cancelled 2s cancelled", drawn(2))
	require.Equal(t, "run/each#1/3!1 each[3] running  ", drawn(3))
}
