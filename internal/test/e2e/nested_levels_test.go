package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/ending"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// threeLevels has runs below runs below runs, through a loop at each step down. The
// deepest wait for a retry.
const threeLevels = `
  - step: outer
    tool: playbook
    loop: {in: [1, 2], iterator: n, mode: parallel}
    workload: {url: "{{ workload.url }}"}
    workflow:
      - step: middle
        tool: playbook
        loop: {in: [1, 2], iterator: m, mode: parallel, batch: 2}
        workload: {url: "{{ url }}"}
        workflow:
          - step: fetch
            tool: http
            url: "{{ url }}/"
            retry: [{when: "{{ error is defined }}", then: {max_attempts: 1000, delay: 1h, jitter: none}}]
`

// fetches has one of the deepest runs try again, as soon as it may, and end.
func (w *world) fetches(run client.WorkflowRun) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		_, err := w.steer(run, protocol.RetryNowUpdate, protocol.CommandInput{Step: "fetch"})
		return err == nil
	}, patience, tick)
	result, err := ending.WaitForResult(w.t.Context(), run)
	require.NoError(w.t, err)
	require.Equal(w.t, interpreter.Completed, result.Status)
}

// awaitHeld waits until a run makes no attempts because it is paused, or one above it:
// an attempt that people ask for is not made then.
func (w *world) awaitHeld(run client.WorkflowRun) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		_, _ = w.steer(run, protocol.RetryNowUpdate, protocol.CommandInput{Step: "fetch"}) // refused while one is under way
		progress, told := w.progress(run)
		return told && len(progress.Steps) == 1 && progress.Steps[0].Status == interpreter.Paused
	}, patience, tick)
}

// TestNestedLevels: pause, resume and cancel go through three levels and their loops,
// from the top and from between, and leave alone what is not below.
func TestNestedLevels(t *testing.T) {
	t.Parallel()
	w, api := newWorking(t), newGauge(t)
	api.set(true)
	run := w.start(book(threeLevels), map[string]any{"url": api.url})
	middle, deep := map[string]client.WorkflowRun{}, map[string]client.WorkflowRun{}
	for _, n := range []string{"0", "1"} {
		middle[n] = w.env.Client().GetWorkflow(t.Context(), run.GetID()+"/outer#1/"+n+"!1", "")
		for _, m := range []string{"0", "1"} {
			deep[n+m] = w.waiting(middle[n].GetID() + "/middle#1/" + m + "!1")
		}
	}
	require.True(t, w.steers(run, protocol.PauseUpdate, protocol.CommandInput{}).Changed)
	for _, one := range deep {
		w.awaitHeld(one)
	}
	require.True(t, w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{}).Changed)
	for _, one := range deep { // tries again at once, and fails
		w.waiting(one.GetID())
	}
	require.True(t, w.steers(middle["1"], protocol.PauseUpdate, protocol.CommandInput{}).Changed)
	w.awaitHeld(deep["10"])
	w.awaitHeld(deep["11"])
	api.set(false)
	w.fetches(deep["00"])
	w.fetches(deep["01"])
	first, err := ending.WaitForResult(t.Context(), middle["0"])
	require.NoError(t, err)
	require.Equal(t, interpreter.Completed, first.Status)
	api.set(true)
	require.True(t, w.steers(middle["1"], protocol.ResumeUpdate, protocol.CommandInput{}).Changed)
	w.waiting(deep["10"].GetID())
	w.waiting(deep["11"].GetID())

	result := w.cancel(run)
	require.Equal(t, interpreter.Cancelled, step(t, result, "outer").Status)
	for _, below := range []client.WorkflowRun{middle["1"], deep["10"], deep["11"]} {
		ended, _ := ending.WaitForResult(t.Context(), below)
		require.Equal(t, interpreter.Cancelled, ended.Status, below.GetID())
	}
}

// TestNestedEndless: playbooks that run each other without an end fail where they are
// too deep, and no policy on the way up begins that anew.
func TestNestedEndless(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := func(name string) string {
		return book("  - step: other\n    tool: playbook\n    name: " + name + "\n" +
			"    retry: [{when: \"{{ error is defined }}\", then: {max_attempts: 3, delay: 10ms}}]\n")
	}
	w.folder(map[string]string{"ping.yaml": other("pong"), "pong.yaml": other("ping")})
	w.work()
	result, err := w.run(other("ping"), nil)
	require.NoError(t, err)
	require.Equal(t, interpreter.Failed, result.Status)
	require.Equal(t, interpreter.KindPlaybook, result.Error.Kind)
	require.Contains(t, result.Error.Message, "playbooks may run each other at most 16 levels deep, and this one is already at that level")
	runs := 0
	for _, history := range w.histories {
		if history.Type == protocol.PlaybookWorkflowName {
			runs++
		}
	}
	require.Equal(t, 1+playbook.MaxNesting, runs)
}
