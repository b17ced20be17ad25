package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// said is something that happens to a run from outside.
type said struct {
	at time.Duration
	do func(o *outside)
}

// outside is a run whose webhooks are answered from outside, in skipped time.
type outside struct {
	*stage

	events  []string
	seconds []string // what the run says of its first step, halfway through each second
	keys    []string // Idempotency-Key of each request
	status  int      // with which requests are answered, 0 for success
	n       int
	deaf    bool // it does not ask what the run says
}

func newOutside(t *testing.T, happens ...said) *outside {
	t.Helper()
	o := &outside{stage: newStage(t, always(nil))}
	o.register("webhook", func(_ context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		if in.Step == "import" {
			o.keys = append(o.keys, in.IdempotencyKey)
		}
		if o.status != 0 {
			o.note("%s of attempt %d: HTTP %d", in.Sends, in.Attempt, o.status)
			return interpreter.ToolResult{}, failure(interpreter.ErrorObject{
				Kind: interpreter.KindWebhookFailure, Class: interpreter.ClassRetryable, Status: o.status,
			})
		}
		o.note("%s of attempt %d", in.Sends, in.Attempt)
		return interpreter.ToolResult{}, nil
	})
	o.register("python", func(_ context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		o.note("step %s", in.Step)
		return interpreter.ToolResult{Data: expression.Of("after")}, nil
	})
	o.env.SetOnTimerScheduledListener(func(_ string, wait time.Duration) { o.note("timer %s", wait) })
	begun := false
	o.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name != "webhook" || begun {
			return
		}
		begun = true
		// Not before: the clock would run to them while the check at the door does.
		for _, happens := range happens {
			o.env.RegisterDelayedCallback(func() { happens.do(o) }, happens.at)
		}
		for second := range 150 {
			if o.deaf {
				break
			}
			o.env.RegisterDelayedCallback(func() { o.seconds = append(o.seconds, o.stands()) },
				time.Duration(second)*time.Second+500*time.Millisecond)
		}
	})
	return o
}

func (o *outside) note(format string, args ...any) {
	o.events = append(o.events, fmt.Sprintf("T+%s ", o.env.Now().Sub(began))+fmt.Sprintf(format, args...))
}

// stands is what the run says of its first step, in short.
func (o *outside) stands() string {
	answer, err := o.env.QueryWorkflow(protocol.ProgressQuery)
	require.NoError(o.t, err)
	var progress protocol.Progress
	require.NoError(o.t, answer.Get(&progress))
	require.NotEmpty(o.t, progress.Steps)
	record := progress.Steps[0]
	stands := fmt.Sprintf("%s %d", record.Status, record.Attempts)
	if !record.NextRetryAt.IsZero() {
		stands += fmt.Sprintf(" until T+%s", record.NextRetryAt.Sub(began))
	}
	if reported, found := strings.CutPrefix(record.Waiting, "awaits an answer until "); found {
		_, reported, found = strings.Cut(reported, ": ")
		if found {
			stands += " (" + reported + ")"
		}
	}
	return stands
}

// update sends an update and notes what comes of it.
func (o *outside) update(name, what string, arg any) {
	o.n++
	o.env.UpdateWorkflow(name, fmt.Sprint(o.n), &updated{o: o, what: what}, arg)
}

// updated notes what becomes of an update.
type updated struct {
	o    *outside
	what string
}

func (u *updated) Accept() {}

func (u *updated) Reject(err error) { u.o.note("%s: refused: %s", u.what, err) }

func (u *updated) Complete(_ any, err error) {
	if err != nil {
		u.o.note("%s: refused: %s", u.what, err)
		return
	}
	u.o.note("%s: taken", u.what)
}

// answers is an answer at a time.
func answers(at time.Duration, answer interpreter.Answer) said {
	return said{at, func(o *outside) {
		o.update(protocol.AnswerUpdate, strings.TrimSpace(fmt.Sprintf("%s %d", answer.Verb, answer.Attempt)), answer)
	}}
}

func steers(at time.Duration, update string) said {
	return said{at, func(o *outside) { o.update(update, update, protocol.CommandInput{By: "ada"}) }}
}

func cancels(at time.Duration) said {
	return said{at, func(o *outside) {
		o.note("cancel")
		o.env.CancelWorkflow()
	}}
}

func respond(at time.Duration, status int) said {
	return said{at, func(o *outside) { o.status = status }}
}

const (
	legacy = "retry: {max_retries: 3, initial_delay_secs: 10, backoff_multiplier: 2.0, max_delay_secs: 120}"
	listed = `retry:
      - when: error.kind in ['timeout', 'webhook_failure', 'explicit']
        then: {max_attempts: 4, initial_delay: 10s, backoff_multiplier: 2, max_delay: 120s, jitter: none}`
)

func importing(retry string) string {
	return `
  - step: import
    tool: webhook
    timeout: 30
    on_start: {url: "https://etl/import", method: POST}
    on_cancel: {url: "https://etl/cancel"}
    ` + retry + `
    next: load
  - {step: load, tool: python, code: "def main(): return 1"}
`
}

var (
	done   = interpreter.Answer{Verb: interpreter.AnswerComplete, Result: expression.Of(map[string]any{"rows": 7})}
	failed = interpreter.Answer{Verb: interpreter.AnswerFail, Message: "the file is locked"}
	third  = interpreter.Answer{Verb: interpreter.AnswerComplete, AnswerTo: interpreter.AnswerTo{Attempt: 3}}
	second = interpreter.Answer{Verb: interpreter.AnswerProgress, Done: 1, AnswerTo: interpreter.AnswerTo{Attempt: 2}}
	first  = interpreter.Answer{Verb: interpreter.AnswerComplete, AnswerTo: interpreter.AnswerTo{Attempt: 1}}
)

func reports(n int64) interpreter.Answer {
	return interpreter.Answer{Verb: interpreter.AnswerProgress, Done: n, Total: 10}
}

// TestWebhookTimelines are the sequences of tasks that are tried again with a
// backoff: what happens when, and what the run says of the step in each second.
func TestWebhookTimelines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		retry           string
		happens         []said
		events, seconds []string
		status          string
		err             string // kind/class attempt, exhausted
	}{
		"two timeouts, then success": {
			retry: legacy, status: "completed",
			happens: []said{answers(100*time.Second, third)},
			events: []string{
				"T+0s on_start of attempt 1",
				"T+0s timer 30s",
				"T+30s timer 10s",
				"T+40s on_start of attempt 2",
				"T+40s timer 30s",
				"T+1m10s timer 20s",
				"T+1m30s on_start of attempt 3",
				"T+1m30s timer 30s",
				"T+1m40s complete 3: taken",
				"T+1m40s step load",
			},
			seconds: []string{
				"0-29 awaiting 1", "30-39 retry_pending 1 until T+40s", "40-69 awaiting 2",
				"70-89 retry_pending 2 until T+1m30s", "90-99 awaiting 3",
			},
		},
		"a request that fails, then success": {
			retry: listed, status: "completed",
			happens: []said{respond(0, 502), respond(5*time.Second, 0), answers(12*time.Second, done)},
			events: []string{
				"T+0s on_start of attempt 1: HTTP 502",
				"T+0s timer 10s",
				"T+10s on_start of attempt 2",
				"T+10s timer 30s",
				"T+12s complete 0: taken",
				"T+12s step load",
			},
			seconds: []string{"0-9 retry_pending 1 until T+10s", "10-11 awaiting 2"},
		},
		"failed each time, until it is exhausted": {
			retry: legacy, status: "failed", err: "explicit/retryable 4 exhausted",
			happens: []said{
				answers(1*time.Second, failed), answers(12*time.Second, failed), answers(33*time.Second, failed), answers(74*time.Second, failed),
			},
			events: []string{
				"T+0s on_start of attempt 1",
				"T+0s timer 30s",
				"T+1s fail 0: taken",
				"T+1s timer 10s",
				"T+11s on_start of attempt 2",
				"T+11s timer 30s",
				"T+12s fail 0: taken",
				"T+12s timer 20s",
				"T+32s on_start of attempt 3",
				"T+32s timer 30s",
				"T+33s fail 0: taken",
				"T+33s timer 40s",
				"T+1m13s on_start of attempt 4",
				"T+1m13s timer 30s",
				"T+1m14s fail 0: taken",
			},
			seconds: []string{
				"0-0 awaiting 1", "1-10 retry_pending 1 until T+11s", "11-11 awaiting 2", "12-31 retry_pending 2 until T+32s",
				"32-32 awaiting 3", "33-72 retry_pending 3 until T+1m13s", "73-73 awaiting 4",
			},
		},
		"only timeouts are tried again": {
			retry: "retry: {max_retries: 3, initial_delay_secs: 10, retry_on: [timeout]}", status: "failed", err: "explicit/retryable 2",
			happens: []said{answers(41*time.Second, failed)},
			events: []string{
				"T+0s on_start of attempt 1", "T+0s timer 30s", "T+30s timer 10s", "T+40s on_start of attempt 2", "T+40s timer 30s",
				"T+41s fail 0: taken",
			},
			seconds: []string{"0-29 awaiting 1", "30-39 retry_pending 1 until T+40s", "40-40 awaiting 2"},
		},
		"cancelled while it waits to be tried again": {
			retry: legacy, status: "cancelled", err: "cancelled/final 1",
			happens: []said{answers(time.Second, failed), cancels(5 * time.Second)},
			events: []string{
				"T+0s on_start of attempt 1", "T+0s timer 30s", "T+1s fail 0: taken", "T+1s timer 10s", "T+5s cancel",
			},
			seconds: []string{"0-0 awaiting 1", "1-4 retry_pending 1 until T+11s"},
		},
		"cancelled while its answer is awaited": {
			retry: legacy, status: "cancelled", err: "cancelled/final 0",
			happens: []said{cancels(5 * time.Second)},
			events: []string{
				"T+0s on_start of attempt 1", "T+0s timer 30s", "T+5s cancel", "T+5s on_cancel of attempt 1",
			},
			seconds: []string{"0-4 awaiting 1"},
		},
		"paused while it waits, resumed before that is over": {
			retry: legacy, status: "completed",
			happens: []said{
				answers(time.Second, failed), steers(2*time.Second, protocol.PauseUpdate), steers(6*time.Second, protocol.ResumeUpdate),
				answers(12*time.Second, done),
			},
			events: []string{
				"T+0s on_start of attempt 1", "T+0s timer 30s", "T+1s fail 0: taken", "T+1s timer 10s", "T+2s pause: taken",
				"T+6s resume: taken", "T+11s on_start of attempt 2", "T+11s timer 30s", "T+12s complete 0: taken", "T+12s step load",
			},
			seconds: []string{"0-0 awaiting 1", "1-10 retry_pending 1 until T+11s", "11-11 awaiting 2"},
		},
		"paused while it waits, resumed after that is over": {
			retry: legacy, status: "completed",
			happens: []said{
				answers(time.Second, failed), steers(2*time.Second, protocol.PauseUpdate), steers(20*time.Second, protocol.ResumeUpdate),
				answers(22*time.Second, done),
			},
			events: []string{
				"T+0s on_start of attempt 1", "T+0s timer 30s", "T+1s fail 0: taken", "T+1s timer 10s", "T+2s pause: taken",
				"T+20s resume: taken", "T+20s on_start of attempt 2", "T+20s timer 30s", "T+22s complete 0: taken", "T+22s step load",
			},
			seconds: []string{"0-0 awaiting 1", "1-10 retry_pending 1 until T+11s", "11-19 paused 1", "20-21 awaiting 2"},
		},
		"paused while its answer is awaited: that is taken, and what follows is held": {
			retry: legacy, status: "completed",
			happens: []said{
				steers(2*time.Second, protocol.PauseUpdate), answers(5*time.Second, failed), steers(30*time.Second, protocol.ResumeUpdate),
				answers(31*time.Second, done),
			},
			events: []string{
				"T+0s on_start of attempt 1", "T+0s timer 30s", "T+2s pause: taken", "T+5s fail 0: taken", "T+5s timer 10s",
				"T+30s resume: taken", "T+30s on_start of attempt 2", "T+30s timer 30s", "T+31s complete 0: taken", "T+31s step load",
			},
			seconds: []string{"0-4 awaiting 1", "5-14 retry_pending 1 until T+15s", "15-29 paused 1", "30-30 awaiting 2"},
		},
		"paused while its answer is awaited: its time goes on": {
			retry: "", status: "failed", err: "timeout/retryable 1",
			happens: []said{steers(2*time.Second, protocol.PauseUpdate)},
			events: []string{
				"T+0s on_start of attempt 1", "T+0s timer 30s", "T+2s pause: taken",
			},
			seconds: []string{"0-29 awaiting 1"},
		},
		"progress makes the time begin anew, and its figures survive the retry": {
			retry: legacy, status: "completed",
			happens: []said{answers(20*time.Second, reports(3)), answers(105*time.Second, second), answers(115*time.Second, done)},
			events: []string{
				"T+0s on_start of attempt 1",
				"T+0s timer 30s",
				"T+20s progress 0: taken",
				"T+30s timer 20s", // the timer is set again when it has rung, not at each report
				"T+50s timer 10s",
				"T+1m0s on_start of attempt 2",
				"T+1m0s timer 30s",
				"T+1m30s timer 20s",
				"T+1m45s progress 2: refused: the attempt is over, or has not started: step import is at attempt 3 (type: answer_late, retryable: false)",
				"T+1m50s on_start of attempt 3",
				"T+1m50s timer 30s",
				"T+1m55s complete 0: taken",
				"T+1m55s step load",
			},
			seconds: []string{
				"0-19 awaiting 1", "20-49 awaiting 1 (3 of 10)", "50-59 retry_pending 1 until T+1m0s", "60-89 awaiting 2 (3 of 10)",
				"90-109 retry_pending 2 until T+1m50s", "110-114 awaiting 3 (3 of 10)",
			},
		},
		"an answer to an attempt that is over is refused": {
			retry: legacy, status: "completed",
			happens: []said{answers(35*time.Second, first), answers(45*time.Second, first), answers(46*time.Second, done)},
			events: []string{
				"T+0s on_start of attempt 1",
				"T+0s timer 30s",
				"T+30s timer 10s",
				"T+35s complete 1: refused: the attempt is over, or has not started: step import is at attempt 2 (type: answer_late, retryable: false)",
				"T+40s on_start of attempt 2",
				"T+40s timer 30s",
				"T+45s complete 1: refused: the attempt is over, or has not started: step import is at attempt 2 (type: answer_late, retryable: false)",
				"T+46s complete 0: taken",
				"T+46s step load",
			},
			seconds: []string{"0-29 awaiting 1", "30-39 retry_pending 1 until T+40s", "40-45 awaiting 2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOutside(t, c.happens...)
			for _, happens := range c.happens {
				if happens.at == 0 { // before the first request
					happens.do(o)
				}
			}
			result, _ := o.run(importing(c.retry))
			require.Equal(t, c.events, o.events)
			if c.seconds != nil {
				require.Equal(t, c.seconds, spans(o.seconds))
			}
			require.EqualValues(t, c.status, result.Status)
			kind := ""
			if failure := result.Steps[0].Error; failure != nil {
				kind = fmt.Sprintf("%s/%s %d", failure.Kind, failure.Class, failure.Attempt)
				if failure.Exhausted {
					kind += " exhausted"
				}
			}
			require.Equal(t, c.err, kind)
			distinct := map[string]bool{}
			for _, key := range o.keys {
				distinct[key] = true
			}
			require.Len(t, distinct, len(o.keys), "every request has a key of its own: %v", o.keys)
		})
	}
}

// TestAnswersWhileABatchLeaves: an iteration that is about to go on in another
// history takes its answer until then, and takes it along; what was answered before
// is known there.
func TestAnswersWhileABatchLeaves(t *testing.T) {
	t.Parallel()
	input := protocol.CallsInput{Task: call.Task{Name: "test.yaml", Step: "import", Visit: 1, Source: `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: test}
workflow:
  - step: import
    tool: webhook
    timeout: 10m
    on_start: {url: http://x}
    loop: {collection: [a, b, c], batch: 3, mode: parallel}
    retry: [{when: error is defined, then: {max_attempts: 3, delay: 1h, jitter: none}}]
`}}
	for index, element := range []string{"a", "b", "c"} {
		input.Calls = append(input.Calls, call.Snapshot{Index: &index, Size: 3, Element: expression.Of(element)})
	}
	to := func(index int, answer interpreter.Answer) interpreter.Answer {
		answer.Step, answer.Index = "import", &index
		return answer
	}
	no := to(0, failed)
	no.Attempt = 1
	asked := []protocol.AskedQuestion{{Key: "before", Message: "Load?"}}
	input.Asked = asked
	before := newOutside(t, said{10 * time.Second, func(o *outside) {
		o.env.SetCurrentHistoryLength(5000)
		o.update(protocol.AnswerUpdate, "fail of 0", no)
	}}, said{20 * time.Second, func(o *outside) {
		o.update(protocol.AnswerUpdate, "complete of 1", to(1, done))
	}}, said{30 * time.Second, func(o *outside) {
		o.update(protocol.AnswerUpdate, "another of 1", to(1, failed))
		o.env.SignalWorkflow(protocol.AnswerSignal, to(1, done))
	}})
	before.deaf = true
	before.env.OnActivity("webhook", mock.Anything, mock.MatchedBy(func(in interpreter.ToolInput) bool { return *in.Index == 2 })).
		After(time.Minute).Return(interpreter.ToolResult{}, nil)
	before.env.OnActivity("webhook", mock.Anything, mock.Anything).Return(interpreter.ToolResult{}, nil)
	before.runBatch(input)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, before.env.GetWorkflowError(), &next)
	input = nextBatch(t, next)
	require.Equal(t, asked, input.Asked, "questions are remembered")
	text := strings.Join(before.events, "\n")
	require.Contains(t, text, "T+10s fail of 0: taken")
	require.Contains(t, text, "T+20s complete of 1: taken")
	require.Contains(t, text, "T+30s another of 1: refused: attempt 1 of import[1] has already been answered")

	after := newOutside(t)
	after.deaf = true
	after.env.SetStartTime(began.Add(time.Minute))
	after.env.RegisterDelayedCallback(func() {
		after.update(protocol.AnswerUpdate, "fail of 0 again", no)
		after.update(protocol.AnswerUpdate, "complete of 1 again", to(1, done))
		late := to(1, failed)
		late.Attempt = 1
		after.update(protocol.AnswerUpdate, "another of 1", late)
		after.update(protocol.AnswerUpdate, "another of 1, whichever", to(1, reports(1)))
		after.update(protocol.AnswerUpdate, "complete of 2", to(2, done))
	}, time.Second)
	after.env.RegisterDelayedCallback(func() { after.update(protocol.AnswerUpdate, "complete of 0", to(0, done)) }, 65*time.Minute)
	after.runBatch(input)
	var output protocol.CallsOutput
	require.NoError(t, after.env.GetWorkflowResult(&output))
	text = strings.Join(after.events, "\n")
	require.Contains(t, text, "fail of 0 again: taken")
	require.Contains(t, text, "complete of 1 again: taken")
	require.Contains(t, text, "another of 1: refused: the attempt already has another answer, or is over")
	require.Contains(t, text, "another of 1, whichever: refused: the attempt is over: step import[1] has ended")
	for _, iteration := range output.Iterations {
		require.EqualValues(t, "success", iteration.Result.Status, "%d", iteration.Index)
		attempts := 1
		if iteration.Index == 0 {
			attempts = 2
		}
		require.Equal(t, attempts, iteration.Result.Meta.Attempts, "%d", iteration.Index)
	}
}
