package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/testenv"
	"reprise/interpreter"
	"reprise/workflows"
)

// TestCommandsAtOnce: commands that come faster than children are told are told
// together, and whoever they mean hears them.
func TestCommandsAtOnce(t *testing.T) {
	t.Parallel()
	const children, hour = 10, "{max_attempts: 3, delay: 1h}"
	retry, pause, resume := saying{workflows.RetryNowUpdate, workflows.Command{}},
		saying{workflows.PauseUpdate, workflows.Command{}}, saying{workflows.ResumeUpdate, workflows.Command{}}
	first, third := 0, 3
	for _, c := range []struct {
		name    string
		then    string // what the policy says
		held    bool   // the children are
		says    []saying
		skipped int
		toLoop  int // signals, at most
		signals int // to a child
	}{
		{name: "what waits is tried now", then: hour, says: slices.Repeat([]saying{retry}, 10), toLoop: 2, signals: 2},
		{
			name: "what is held goes on", then: "{max_attempts: 1000, delay: 200ms}", held: true, toLoop: 3, signals: 2,
			says: []saying{resume, pause, resume, pause, resume, pause, resume, pause, resume},
		},
		{
			name: "one is skipped before all others are tried", then: hour, skipped: 1, toLoop: 2, signals: 2,
			says: []saying{
				{workflows.RetryNowUpdate, workflows.Command{Step: "fetch", Index: &first}},
				{workflows.SkipUpdate, workflows.Command{Step: "fetch", Index: &third}},
				retry, retry,
				{workflows.SkipUpdate, workflows.Command{Step: "fetch", Index: &third}},
				retry,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, api := newWorld(t), newGauge(t)
			stop := w.workUntil(w.env.Dial(t, client.Options{Logger: quiet{}}))
			api.set(true)
			run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {n: "{{ n }}"}
    loop: {collection: "{{ 1..10 }}", element: n, mode: parallel, batch: 1, max_concurrency: 10}
    retry: [{when: "{{ error is defined }}", then: `+c.then+`}]
`), map[string]any{"api": api.url})
			if c.held {
				require.Eventually(t, func() bool { return api.began(time.Time{}) >= children }, patience, tick)
				w.steers(run, workflows.PauseUpdate, workflows.Command{})
				require.Eventually(t, func() bool { return w.heldIterations(run.GetID()+"/fetch#1") == children }, patience, tick)
			} else {
				require.Equal(t, children, w.awaitWaiting(run))
			}
			tried := api.began(time.Time{})
			api.set(false)
			stop()
			w.saysAtOnce(run, c.says)
			if c.skipped > 0 {
				w.keep("commands_at_once")
			}
			result := w.endsAs(run, map[bool]interpreter.Status{true: interpreter.Completed, false: interpreter.Partial}[c.skipped == 0])
			stats := step(t, result, "fetch").Loop.Stats
			require.Equal(t, [2]int{children - c.skipped, c.skipped}, [2]int{stats.Success, stats.Failed})
			require.Equal(t, tried+children-c.skipped, api.began(time.Time{}), "who was skipped was not tried again")
			require.LessOrEqual(t, w.signalled(run.GetID()), c.toLoop, "the loop is told the first, and then the rest")
			require.LessOrEqual(t, w.signalled(run.GetID()+"/fetch#1"), c.signals*children)
		})
	}
}

// heldIterations counts the iterations of a loop that are held.
func (w *world) heldIterations(loop string) (held int) {
	for _, iteration := range w.openIterations(loop) {
		if iteration.Status == interpreter.Paused {
			held++
		}
	}
	return held
}

// saying is a command, with the update that takes it.
type saying struct {
	update  string
	command workflows.Command
}

// saysAtOnce gives a run that no worker looks after several commands, and begins to
// work: one workflow task takes them all, in their order.
func (w *world) saysAtOnce(run client.WorkflowRun, says []saying) {
	w.t.Helper()
	told := make([]<-chan heeded, len(says))
	for i, said := range says {
		told[i] = w.saysEarly(run, said.update, said.command)
	}
	w.work()
	for i, answer := range told {
		require.NoError(w.t, (<-answer).err, "%+v", says[i])
	}
}

// signalled is how many signals a workflow of the last run has sent to its children,
// places in the window left out.
func (w *world) signalled(workflowID string) (signals int) {
	w.t.Helper()
	at := slices.IndexFunc(w.histories, func(h testenv.RunHistory) bool { return h.WorkflowID == workflowID })
	require.GreaterOrEqual(w.t, at, 0)
	for _, event := range w.histories[at].History.GetEvents() {
		if event.GetSignalExternalWorkflowExecutionInitiatedEventAttributes().GetChildWorkflowOnly() {
			signals++
		}
	}
	return signals
}
