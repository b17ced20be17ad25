package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/activities"
	"reprise/internal/base/callback"
	"reprise/internal/base/seal"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// answering is a run with one webhook, of which an answer is to find the attempt in
// a certain state.
type answering struct {
	*world

	keys   *seal.Keys
	other  *etl
	run    client.WorkflowRun
	answer interpreter.Answer
	// halt stops the worker.
	halt func()
}

// byVerb is what an answer does, by its verb.
type byVerb map[interpreter.AnswerVerb]string

func each(complete, fail, progress string) byVerb {
	return byVerb{interpreter.AnswerComplete: complete, interpreter.AnswerFail: fail, interpreter.AnswerProgress: progress}
}

// always is the same for each verb.
func always(then string) byVerb { return each(then, then, then) }

// callbackMatrix says what an answer does, by when it comes: what who gives it is
// told, and how the run ends if its last attempt is completed afterwards.
var callbackMatrix = []struct {
	when    string
	happens func(a *answering) string
	then    byVerb
}{
	{
		"before the wait began: the request is still open", (*answering).whileSent,
		each("taken for 1; completed after 1", "taken for 1; completed after 2", "taken for 1; completed after 1"),
	},
	{
		"during the wait", (*answering).during,
		each("taken for 1; completed after 1", "taken for 1; completed after 2", "taken for 1; completed after 1"),
	},
	{
		"twice the same", (*answering).twice,
		each("taken for 1, the same is known; completed after 1", "taken for 1, the same is known; completed after 2",
			"taken for 1, taken for 1; completed after 1"),
	},
	{
		"after another answer", (*answering).differs,
		always("answer_late; completed after 2"),
	},
	{
		"to an attempt that timed out, while the next one waits", (*answering).timedOut,
		always("answer_late; completed after 2"),
	},
	{
		"after the step has ended, while the run goes on", (*answering).stepOver,
		always("answer_late; completed after 1"),
	},
	{
		"after a cancel", (*answering).cancelled,
		always("nobody is there; cancelled after 0"),
	},
	{
		"while the run is paused", (*answering).paused,
		each("taken for 1; completed after 1", "taken for 1; completed after 2", "taken for 1; completed after 1"),
	},
	{
		"by signal, while no worker runs", (*answering).workerDown,
		each("sent; completed after 1", "sent; completed after 2", "sent; completed after 1"),
	},
	{
		"under the key of an attempt that is not made yet", (*answering).tooEarly,
		always("answer_late; completed after 1"),
	},
	{
		"with the token of another run", (*answering).otherRun,
		always("answer_late; completed after 1"),
	},
	{
		"with a step, a visit or an index that is not there", (*answering).nowhere,
		always("answer_unknown, answer_unknown, answer_unknown; completed after 1"),
	},
}

func TestCallbackMatrix(t *testing.T) {
	t.Parallel()
	verbs := map[interpreter.AnswerVerb]interpreter.Answer{
		interpreter.AnswerComplete: {Verb: interpreter.AnswerComplete, Result: expression.Of("this")},
		interpreter.AnswerFail:     {Verb: interpreter.AnswerFail, Message: "this"},
		interpreter.AnswerProgress: {Verb: interpreter.AnswerProgress, Done: 5, Message: "this"},
	}
	for _, row := range callbackMatrix {
		for verb, want := range row.then {
			t.Run(fmt.Sprintf("%s %s", verb, row.when), func(t *testing.T) {
				t.Parallel()
				a := newMatrixRun(t, verbs[verb])
				became := row.happens(a)
				require.Equal(t, want, became+"; "+a.ends())
			})
		}
	}
}

func newMatrixRun(t *testing.T, answer interpreter.Answer) *answering {
	t.Helper()
	w := newWorld(t)
	a := &answering{world: w, keys: w.makeKeys(), other: newETL(t), answer: answer}
	a.work()
	return a
}

// work starts a worker that can be stopped.
func (a *answering) work() {
	a.t.Helper()
	catalogue := activities.NewCatalogue(a.resources)
	worker := host.NewWorker(a.env.Dial(a.t, client.Options{Logger: quiet{}}), catalogue, host.Options{TaskQueue: a.queue, StopTimeout: time.Second})
	require.NoError(a.t, worker.Start())
	stopped := false
	a.halt = func() {
		if !stopped {
			stopped = true
			worker.Stop()
			require.NoError(a.t, catalogue.Close())
		}
	}
	a.t.Cleanup(a.halt)
}

func (a *answering) begin(timeout string) {
	a.t.Helper()
	a.run = a.start(book(`
  - step: import
    tool: webhook
    timeout: `+timeout+`
    on_start: {url: "{{ workload.etl }}", body: {token: "{{ callback.token }}"}}
    retry:
      - when: error is defined
        then: {max_attempts: 3, delay: 100ms}
    next: finish
  - {step: finish, tool: webhook, on_start: {url: "{{ workload.etl }}/last", body: {token: "{{ callback.token }}"}}}
`), map[string]any{"etl": a.other.URL})
	a.secrets = append(a.secrets, a.other.nth(a.t, 1).token)
}

// awaited waits until an attempt awaits its answer.
func (a *answering) awaited(attempt int) {
	a.t.Helper()
	require.Eventually(a.t, func() bool {
		progress, known := a.progress(a.run)
		if !known || len(progress.Steps) == 0 {
			return false
		}
		record := progress.Steps[0]
		return record.Attempts == attempt && strings.HasPrefix(record.Waiting, "awaits an answer")
	}, patience, tick)
}

// beginAwaited begins a run, whose first attempt awaits its answer.
func (a *answering) beginAwaited() {
	a.t.Helper()
	a.begin("30s")
	a.awaited(1)
}

// say gives an answer with a token and says what becomes of it.
func (a *answering) say(token string, answer interpreter.Answer) string {
	a.t.Helper()
	taken, err := a.world.answer(a.keys, token, answer)
	return became(a.t, answer, taken, err)
}

func became(t *testing.T, answer interpreter.Answer, taken interpreter.AnswerReceipt, err error) string {
	t.Helper()
	var refused *temporal.ApplicationError
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &refused):
		return refused.Type()
	case errors.As(err, &gone):
		return "nobody is there"
	}
	require.NoError(t, err)
	if taken.ID != answer.ID {
		return "the same is known"
	}
	return fmt.Sprintf("taken for %d", taken.Attempt)
}

func (a *answering) whileSent() string {
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	a.t.Cleanup(release)
	a.other.held = held
	a.begin("30s")
	told := a.say(a.other.nth(a.t, 1).token, a.answer)
	a.other.mu.Lock()
	a.other.held = nil
	a.other.mu.Unlock()
	release()
	return told
}

func (a *answering) during() string {
	a.beginAwaited()
	return a.say(a.other.nth(a.t, 1).token, a.answer)
}

func (a *answering) twice() string {
	told, again := a.during(), a.answer
	again.ID = "again"
	return told + ", " + a.say(a.other.nth(a.t, 1).token, again)
}

func (a *answering) differs() string {
	a.beginAwaited()
	first := interpreter.Answer{Verb: interpreter.AnswerFail, Message: "another"}
	require.Equal(a.t, "taken for 1", a.say(a.other.nth(a.t, 1).token, first))
	return a.say(a.other.nth(a.t, 1).token, a.answer)
}

func (a *answering) timedOut() string {
	a.begin("10s")
	a.awaited(2)
	return a.say(a.other.nth(a.t, 1).token, a.answer)
}

func (a *answering) stepOver() string {
	a.beginAwaited()
	first := interpreter.Answer{Verb: interpreter.AnswerComplete, Result: expression.Of("another")}
	require.Equal(a.t, "taken for 1", a.say(a.other.nth(a.t, 1).token, first))
	a.other.nth(a.t, 2)
	return a.say(a.other.nth(a.t, 1).token, a.answer)
}

func (a *answering) cancelled() string {
	a.beginAwaited()
	a.cancel(a.run)
	_ = testenv.WaitOutcome(a.t, a.run, nil)
	return a.say(a.other.nth(a.t, 1).token, a.answer)
}

func (a *answering) paused() string {
	a.beginAwaited()
	a.steer(protocol.PauseUpdate)
	told := a.say(a.other.nth(a.t, 1).token, a.answer)
	a.steer(protocol.ResumeUpdate)
	return told
}

func (a *answering) steer(update string) {
	a.t.Helper()
	handle, err := a.env.Client().UpdateWorkflow(a.t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: a.run.GetID(), UpdateName: update, Args: []any{protocol.CommandInput{}}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	require.NoError(a.t, err)
	require.NoError(a.t, testenv.WaitOutcome(a.t, handle, nil))
}

func (a *answering) workerDown() string {
	a.beginAwaited()
	a.halt()
	require.NoError(a.t, a.env.Client().SignalWorkflow(a.t.Context(), a.run.GetID(), "", protocol.AnswerSignal, a.answer))
	a.work()
	require.Eventually(a.t, func() bool { // a later update may overtake a signal
		progress, known := a.progress(a.run)
		return known && (progress.Steps[0].Attempts == 2 || progress.Steps[0].Status == "completed" ||
			strings.Contains(progress.Steps[0].Waiting, "5 done"))
	}, patience, tick)
	return "sent"
}

func (a *answering) tooEarly() string {
	a.beginAwaited()
	a.answer.AnswerTo = interpreter.AnswerTo{Step: "import", Attempt: 2}
	taken, err := a.answerTo(a.run.GetID(), a.answer)
	return became(a.t, a.answer, taken, err)
}

func (a *answering) otherRun() string {
	a.beginAwaited()
	mine := a.run
	a.begin("30s")
	theirs := a.other.nth(a.t, 2)
	address, err := callback.OpenToken(a.keys, theirs.token)
	require.NoError(a.t, err)
	a.answer.AnswerTo = address.To
	taken, err := a.answerTo(mine.GetID(), a.answer)
	told := became(a.t, a.answer, taken, err)
	require.Equal(a.t, "taken for 1", a.say(theirs.token, interpreter.Answer{Verb: interpreter.AnswerComplete}))
	a.other.nth(a.t, 3)
	require.Equal(a.t, "taken for 1", a.say(a.other.nth(a.t, 3).token, interpreter.Answer{Verb: interpreter.AnswerComplete}))
	require.Equal(a.t, "completed", a.status(a.run))
	a.run = mine
	require.Equal(a.t, "taken for 1", a.say(a.other.nth(a.t, 1).token, interpreter.Answer{Verb: interpreter.AnswerComplete}))
	a.other.nth(a.t, 4)
	return told
}

func (a *answering) nowhere() string {
	a.beginAwaited()
	index, all := 7, []string{}
	for _, to := range []interpreter.AnswerTo{{Step: "other"}, {Step: "import", Visit: 2}, {Step: "import", Index: &index}} {
		a.answer.AnswerTo = to
		taken, err := a.answerTo(a.run.GetID(), a.answer)
		all = append(all, became(a.t, a.answer, taken, err))
	}
	return strings.Join(all, ", ")
}

func (a *answering) status(run client.WorkflowRun) string {
	a.t.Helper()
	result, err := a.outcome(run)
	if err != nil && result.Status == "" {
		require.NoError(a.t, err)
	}
	return string(result.Status)
}

// ends completes each attempt that still asks, and says how the run ended and after
// how many attempts of its first step.
func (a *answering) ends() string {
	a.t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = testenv.WaitOutcome(a.t, a.run, nil)
	}()
	require.Eventually(a.t, func() bool {
		a.other.mu.Lock()
		last := a.other.starts[len(a.other.starts)-1]
		a.other.mu.Unlock()
		_, _ = a.world.answer(a.keys, last.token, interpreter.Answer{Verb: interpreter.AnswerComplete, Result: expression.Of("last")})
		select {
		case <-over:
			return true
		default:
			return false
		}
	}, patience, 10*tick)
	result, _ := a.outcome(a.run)
	return fmt.Sprintf("%s after %d", result.Status, step(a.t, result, "import").Attempts)
}
