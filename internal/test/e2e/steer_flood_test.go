package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// TestCommandsAtOnce: commands that come faster than children are told are told
// together, and whoever they mean hears them.
func TestCommandsAtOnce(t *testing.T) {
	t.Parallel()
	const children, hour = 10, "{max_attempts: 3, delay: 1h}"
	retry, pause, resume := saying{protocol.RetryNowUpdate, protocol.CommandInput{}},
		saying{protocol.PauseUpdate, protocol.CommandInput{}}, saying{protocol.ResumeUpdate, protocol.CommandInput{}}
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
				{protocol.RetryNowUpdate, protocol.CommandInput{Step: "fetch", Index: &first}},
				{protocol.SkipUpdate, protocol.CommandInput{Step: "fetch", Index: &third}},
				retry, retry,
				{protocol.SkipUpdate, protocol.CommandInput{Step: "fetch", Index: &third}},
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
				w.steers(run, protocol.PauseUpdate, protocol.CommandInput{})
				require.Eventually(t, func() bool { return w.heldIterations(run.GetID()+"/fetch#1") == children }, patience, tick)
			} else {
				require.Equal(t, children, w.awaitWaiting(run))
			}
			tried := api.began(time.Time{})
			api.set(false)
			stop()
			w.saysAtOnce(run, c.says)
			if c.skipped > 0 {
				w.recordAs("commands_at_once")
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
	command protocol.CommandInput
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
		require.NoError(w.t, testenv.Receive(w.t, answer, "the answer to a command").err, "%+v", says[i])
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

// TestCommandsStaySmall: what people say of many steps does not travel to every child
// of a loop, whose server ends a run that sends too much at once, and has a bound.
func TestCommandsStaySmall(t *testing.T) {
	t.Parallel()
	const steps, most = 60, 2000
	w, api := newWorking(t), newGauge(t)
	loop := `
    loop: {collection: "{{ 1..10 }}", element: n, mode: parallel, batch: 1, max_concurrency: 10}
    tool: http
    url: "{{ api }}/"
    params: {n: "{{ n }}"}
`
	source := book("  - step: fetch\n    next: again\n    retry: [{when: \"{{ error is defined }}\", then: {max_attempts: 2, delay: 1h}}]" + loop +
		"  - step: again\n    next: s0" + loop)
	for i := range steps {
		source += fmt.Sprintf("  - {step: s%d, tool: http, url: \"{{ api }}/\", next: s%d}\n", i, i+1)
	}
	api.set(true)
	run := w.start(source+fmt.Sprintf("  - step: s%d\n", steps), map[string]any{"api": api.url})
	w.awaitWaiting(run)
	api.set(false)
	said := protocol.CommandInput{Reason: strings.Repeat("r", 500), By: strings.Repeat("b", 500)}
	var full error
	for i := 0; full == nil; i++ {
		require.Less(t, i, steps, "there is a bound")
		said.Step = fmt.Sprintf("s%d", i)
		_, full = w.steer(run, protocol.PauseUpdate, said)
	}
	require.ErrorContains(t, full, "and a run can keep 50000; pause the whole run, resume steps first, or give a shorter reason")
	w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{Step: "s0"})
	w.steers(run, protocol.SetUpdate, protocol.CommandInput{Step: "again", Tuning: &interpreter.Tuning{MaxConcurrency: 3}})
	w.steers(run, protocol.RetryNowUpdate, protocol.CommandInput{Step: "fetch"})
	w.await(run, "s1", interpreter.Paused)
	said.Step = ""
	w.steers(run, protocol.PauseUpdate, said)
	w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{})
	result := w.endsAs(run, interpreter.Completed)
	require.Equal(t, 10, step(t, result, "again").Loop.Stats.Success)
	for _, history := range w.histories {
		for _, event := range history.History.GetEvents() {
			signalled := event.GetSignalExternalWorkflowExecutionInitiatedEventAttributes().GetInput()
			started := event.GetStartChildWorkflowExecutionInitiatedEventAttributes()
			require.Less(t, proto.Size(signalled), most, "%s tells %s", history.WorkflowID, signalled)
			if started.GetWorkflowType().GetName() == protocol.CallsWorkflowName {
				require.Less(t, proto.Size(started.GetInput().GetPayloads()[0]), most, "%s starts %s", history.WorkflowID, started)
			}
		}
	}
}

// TestRetryNowLeavesWhatIsPaused: who has all that waits tried now does not end the
// waits of a step that is paused by itself: after it is resumed they go on as they were.
func TestRetryNowLeavesWhatIsPaused(t *testing.T) {
	t.Parallel()
	w, api := newWorking(t), newGauge(t)
	const request = `tool: http, url: "{{ api }}/", retry: [{when: "{{ error is defined }}", then: {max_attempts: 5, delay: 1h}}]`
	loop := `loop: {collection: [1, 2], element: n, mode: parallel}, ` + request + `, params: {n: `
	api.set(true)
	run := w.start(book(`
  - {step: start, next: [a, b, c, d, nest]}
  - {step: a, params: {n: a}, `+request+`}
  - {step: b, params: {n: b}, `+request+`}
  - {step: c, `+loop+`c}}
  - {step: d, `+loop+`d}}
  - {step: nest, tool: playbook, workflow: [{step: inner, tool: http, url: "http://127.0.0.1:1/"}], retry: [{when: "{{ error is defined }}", then: {max_attempts: 5, delay: 1h}}]}
`), map[string]any{"api": api.url})
	require.Eventually(t, func() bool { return api.began(time.Time{}) == 6 }, patience, tick)
	for _, step := range []string{"a", "b", "nest"} {
		w.await(run, step, interpreter.RetryPending)
	}
	for _, step := range []string{"c", "d"} {
		require.Eventually(t, func() bool { return len(w.openIterations(run.GetID()+"/"+step+"#1")) == 2 }, patience, tick)
	}
	_, err := w.steer(run, protocol.SetUpdate, protocol.CommandInput{Step: "nest", Tuning: &interpreter.Tuning{Rate: &interpreter.Rate{Requests: 1, PerSeconds: 1}}})
	require.ErrorContains(t, err, "step nest runs another playbook, whose steps have their own limits; set their rate limits")
	for _, step := range []string{"a", "c"} {
		w.steers(run, protocol.PauseUpdate, protocol.CommandInput{Step: step})
	}
	w.steers(run, protocol.RetryNowUpdate, protocol.CommandInput{})
	require.Eventually(t, func() bool { return api.began(time.Time{}) == 9 }, patience, tick)
	w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{})
	w.await(run, "a", interpreter.RetryPending)
	w.steers(run, protocol.RetryNowUpdate, protocol.CommandInput{Step: "b"})
	require.Eventually(t, func() bool { return api.began(time.Time{}) == 10 }, patience, tick)
	require.Equal(t, map[string]int{"a": 1, "b": 3, "c": 2, "d": 4}, api.attempts())
	w.cancel(run)
}

// attempts is how many attempts were made, by their n.
func (g *gauge) attempts() map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.of)
}
