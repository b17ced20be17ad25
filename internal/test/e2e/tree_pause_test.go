package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// TestPauseReachesAllChildRuns pauses a run below which others start: no more start,
// however deep, until it is resumed.
func TestPauseReachesAllChildRuns(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 10_000} {
		t.Run(fmt.Sprintf("limit %d", limit), func(t *testing.T) {
			t.Parallel()
			w := bounded(t, limit, again)
			w.replays, w.patience = 1, 2*patience
			run := w.start(again, nil)
			below := fmt.Sprintf("RootWorkflowId = '%s' AND WorkflowType = 'PlaybookWorkflow'", run.GetID())
			require.Eventually(t, func() bool { return w.count(below) > 20 }, patience, tick)
			require.True(t, w.steers(run, protocol.PauseUpdate, protocol.CommandInput{}).Changed)
			held := w.settles(below)
			t.Logf("%d runs while the first one is paused", held)
			require.True(t, w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{}).Changed)
			require.Eventually(t, func() bool { return w.count(below) > held+10 }, patience, tick)
			require.NoError(t, w.env.Client().CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()))
			result, err := w.outcome(run)
			require.NoError(t, err)
			require.Equal(t, interpreter.Cancelled, result.Status)
		})
	}
}

// TestPauseHoldsRunsOfAChildRun pauses a run whose child run starts one run after the
// other: the next one does not start until the first is resumed, and then all end well.
func TestPauseHoldsRunsOfAChildRun(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	run := w.start(book(`
  - step: outer
    tool: playbook
    workflow:
      - step: each
        tool: playbook
        loop: {in: "{{ 1..40 }}", iterator: i}
        workload: {i: "{{ i }}"}
        workflow: [{step: nothing}]
`), nil)
	below := fmt.Sprintf("RootWorkflowId = '%s' AND WorkflowType = 'PlaybookWorkflow'", run.GetID())
	require.Eventually(t, func() bool { return w.count(below) > 3 }, patience, tick)
	require.True(t, w.steers(run, protocol.PauseUpdate, protocol.CommandInput{}).Changed)
	held := w.settles(below)
	require.Less(t, held, 42, "it was paused in the midst")
	require.True(t, w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{}).Changed)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Error)
	require.Equal(t, 41, w.countRuns(run))
}

// settles waits until the number of workflows that a query finds stays as it is.
func (w *world) settles(query string) (n int) {
	w.t.Helper()
	const quiet = 5 * time.Second
	since := time.Now()
	require.Eventually(w.t, func() bool {
		if now := w.count(query); now != n {
			n, since = now, time.Now()
		}
		return time.Since(since) > quiet
	}, patience, tick, "workflows go on to start")
	return n
}
