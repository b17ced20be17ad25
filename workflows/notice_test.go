package workflows_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// places are where the sinks and notices stand that have written.
func (s *stage) places() []string {
	all := make([]string, len(s.written))
	for i, in := range s.written {
		all[i] = in.Place
	}
	return all
}

// said are what they have written.
func (s *stage) said() []any {
	all := make([]any, len(s.written))
	for i, in := range s.written {
		if body, found := in.Fields["body"]; found {
			all[i] = body.Data
		} else if in.Result != nil {
			all[i] = in.Result.Data
		}
	}
	return all
}

// everyEvent tells of all events. It begins with a word that stage.run knows.
const everyEvent = `timeout: 1000h
notify:
  on: [completed, partial_success, failed, cancelled, paused, exhausted, late]
  url: http://team
  body: "{{ event.name }} {{ event.step }} {{ event.status }} {{ event.error.message }} {{ event.reason }} {{ event.by }} {{ status }}"
`

// TestStepNotices: they come once per visit, after the sinks and before the routes,
// and what they say of themselves has no results.
func TestStepNotices(t *testing.T) {
	t.Parallel()
	const hooks = `
    on_success: {url: http://well}
    on_failure: [{url: http://ill}, {url: http://worse, body: "{{ error.message }} {{ this.status }} {{ fetch }}"}]
`
	sent := func(status string, attempts int, failure any) map[string]any {
		body := map[string]any{
			"run": "default-test-workflow-id", "playbook": "test", "step": "fetch", "visit": 1, "status": status, "attempts": attempts,
		}
		if failure != nil {
			body["error"] = failure
		}
		return body
	}
	http503 := map[string]any{"kind": "http", "class": "retryable", "message": "HTTP 503", "status": 503}
	const retried = `
  - step: fetch
    tool: http
    url: http://x
    retry: [{when: error is defined, then: {max_attempts: 2, delay: 1h}}]
`
	for name, test := range map[string]struct {
		steps  string
		answer play
		status string
		places []string
		said   []any
	}{
		"after a retry": {
			retried + "    sink: {tool: http, url: http://sink}" + hooks + "    next: after\n  - {step: after, sink: {tool: http, url: http://late}, tool: http, url: http://x}\n",
			until(1, unavailable()), "completed",
			[]string{"fetch.sink", "fetch.on_success", "after.sink"},
			[]any{map[string]any{"ok": true}, sent("completed", 2, nil), map[string]any{"ok": true}},
		},
		"a failure": {
			retried + hooks, always(unavailable()), "failed",
			[]string{"fetch.on_failure.1", "fetch.on_failure.2"},
			[]any{sent("failed", 2, http503), "HTTP 503 error "},
		},
		"a failure that a route takes on": {
			retried + hooks + "    next: [{when: \"{{ error is defined }}\", step: after}]\n  - {step: after, on_success: {url: http://router}}\n",
			always(unavailable()), "completed",
			[]string{"fetch.on_failure.1", "fetch.on_failure.2", "after.on_success"},
			[]any{sent("failed", 2, http503), "HTTP 503 error ", map[string]any{
				"run": "default-test-workflow-id", "playbook": "test", "step": "after", "visit": 1, "status": "completed", "attempts": 0,
			}},
		},
		"a loop, once and with its aggregate": {
			someFail + "    on_success: {url: http://well, body: \"{{ result.stats.failed }} {{ fetch.stats.total }} {{ this.status }}\"}\n" + "    on_failure: {url: http://ill}\n",
			failsFor("7"), "completed",
			[]string{"fetch.on_success"},
			[]any{"1 20 success"},
		},
		"a loop that is a partial success": {
			"  - {step: fetch, tool: http, url: \"http://x/{{ item }}\", loop: {collection: [1, 2]}, on_success: {url: http://well}, on_failure: {url: http://ill}}\n",
			failsFor("1"), "partial_success",
			[]string{"fetch.on_success"},
			[]any{sent("partial_success", 2, nil)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, test.answer)
			result, _ := s.run(test.steps)
			require.EqualValues(t, test.status, result.Status, "%+v", result.Error)
			require.Equal(t, test.places, s.places())
			require.Equal(t, test.said, s.said())
			for _, in := range s.written {
				require.NotEmpty(t, in.IdempotencyKey)
			}
		})
	}
}

// TestNoticesThatFail: they are made again as their own policies say, and are a
// warning of the run, which ends as it would have.
func TestNoticesThatFail(t *testing.T) {
	t.Parallel()
	const patient = "retry: [{when: error is defined, then: {max_attempts: 3, delay: 1m, jitter: none}}]"
	const down = "the notice fetch.on_success was not sent: HTTP 503"
	for name, test := range map[string]struct {
		head, fetch string
		answer      play
		refuses     int // writes, before one is taken
		status      string
		at          []time.Duration
		took        time.Duration
		warnings    []string
	}{
		"a step's, and works in the end": {
			fetch:  "on_success: {url: http://well, " + patient + "}",
			answer: until(0, nil), refuses: 2, status: "completed", at: minutes(0, 1, 2), took: 2 * time.Minute,
		},
		"a step's": {
			fetch:  "on_success: {url: http://well, " + patient + "}",
			answer: until(0, nil), refuses: 9, status: "completed", at: minutes(0, 1, 2), took: 2 * time.Minute, warnings: []string{down},
		},
		"without a retry": {
			fetch:  "on_failure: {url: http://ill}",
			answer: always(unavailable()), refuses: 9, status: "failed", at: minutes(0),
			warnings: []string{"the notice fetch.on_failure was not sent: HTTP 503"},
		},
		"the playbook's": {
			head:   "on_success: {url: http://well, " + patient + "}",
			answer: until(0, nil), refuses: 9, status: "completed", at: minutes(0, 1, 2), took: 2 * time.Minute,
			warnings: []string{"the notice run.on_success was not sent: HTTP 503"},
		},
		"notify": {
			head:   "notify: {on: failed, url: http://ill, " + patient + "}",
			answer: always(unavailable()), refuses: 2, status: "failed", at: minutes(0, 1, 2), took: 2 * time.Minute,
		},
		"longer than the run waits": {
			head:   "notify: {on: failed, url: http://ill, retry: [{when: error is defined, then: {max_attempts: 50, delay: 2m, jitter: none}}]}",
			answer: always(unavailable()), refuses: 99, status: "failed", at: minutes(0, 2, 4), took: 5 * time.Minute,
			warnings: []string{"the notice run.notify.failed was not sent: the run waits at most 5m0s for its notices"},
		},
		"an expression": {
			fetch:  "on_success: {url: http://well, body: \"{{ int(result.ok) + nil }}\"}",
			answer: until(0, nil), status: "completed", at: minutes(),
			warnings: []string{"the notice fetch.on_success was not sent: sink fetch.on_success: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, test.answer)
			s.refuses = func(n int, _ interpreter.ToolInput) error {
				if n <= test.refuses {
					return unavailable()
				}
				return nil
			}
			result, took := s.run("timeout: 1000h\n" + test.head + "\nworkflow:\n  - {step: fetch, tool: http, url: http://x, " + test.fetch + "}\n")
			require.EqualValues(t, test.status, result.Status, "%+v", result.Error)
			require.Equal(t, test.at, s.writtenAt)
			require.Equal(t, test.took, took)
			require.Len(t, result.Warnings, len(test.warnings))
			for i, warning := range test.warnings {
				require.Contains(t, result.Warnings[i], warning)
			}
			require.Equal(t, 1, result.Steps[0].Attempts, "of the step, not of its notice")
			keys := map[string]bool{}
			for _, in := range s.written {
				keys[in.OperationKey] = true
			}
			require.LessOrEqual(t, len(keys), 1, "every attempt of a notice has one key")
		})
	}
}

func minutes(all ...float64) []time.Duration {
	var durations []time.Duration
	for _, m := range all {
		durations = append(durations, time.Duration(m*float64(time.Minute)))
	}
	return durations
}

// TestNotify: every event is told once, when it happens.
func TestNotify(t *testing.T) {
	t.Parallel()
	const waits = "retry: [{when: error is defined, then: {max_attempts: 2, delay: 1h, jitter: none}}]"
	const asks = "retry: [{when: error is defined, then: {max_attempts: 1, on_exhausted: pause}}]"
	const pages = "retry: [{when: response.more, then: {max_attempts: 2, next_call: {params: {page: \"{{ _retry.page }}\"}}}}]"
	endless := func(i int, _ interpreter.ToolInput) (any, error) { return map[string]any{"more": true, "n": i}, nil }
	for name, test := range map[string]struct {
		steps  string
		answer play
		during map[time.Duration]func(*testing.T, *stage)
		status string
		said   []any
		at     []time.Duration
	}{
		"completed": {
			"  - {step: fetch, tool: http, url: http://x}", until(0, nil), nil, "completed",
			[]any{"completed  completed    completed"},
			hours(0),
		},
		"failed": {
			"  - {step: fetch, tool: http, url: http://x}", always(unavailable()), nil, "failed",
			[]any{"failed  failed HTTP 503   failed"},
			hours(0),
		},
		"exhausted": {
			"  - {step: fetch, tool: http, url: http://x, " + waits + "}", always(unavailable()), nil, "failed",
			[]any{"exhausted fetch failed HTTP 503   failed", "failed  failed HTTP 503   failed"},
			hours(1, 1),
		},
		"partial_success, and a loop in which two are exhausted": {
			"  - {step: fetch, tool: http, url: \"http://x/{{ item }}\", loop: {collection: [1, 2, 3, 4]}, " + waits + "}",
			func(_ int, in interpreter.ToolInput) (any, error) {
				if *in.Index < 2 {
					return nil, unavailable()
				}
				return 1, nil
			}, nil, "partial_success",
			[]any{"exhausted fetch failed HTTP 503   failed", "partial_success  partial_success    partial_success"},
			hours(1, 2),
		},
		"pages that are cut": {
			"  - {step: fetch, tool: http, url: http://x, " + pages + "}", endless, nil, "partial_success",
			[]any{"exhausted fetch partial_success " + "step fetch: policy 1 stopped the call after 2 pages (max_attempts reached); the result may be incomplete" + "   partial_success", "partial_success  partial_success    partial_success"},
			hours(0, 0),
		},
		"pages that are cut, and are enough": {
			"  - {step: fetch, tool: http, url: http://x, " + strings.Replace(pages, "2,", "2, on_exhausted: succeed,", 1) + "}", endless, nil, "completed",
			[]any{"completed  completed    completed"},
			hours(0),
		},
		"a loop in which pages are cut": {
			"  - {step: fetch, tool: http, url: http://x, loop: {collection: [1, 2, 3]}, " + pages + "}", endless, nil, "partial_success",
			[]any{"exhausted fetch partial_success " + "step fetch: policy 1 stopped the call after 2 pages (max_attempts reached); the result may be incomplete" + "   partial_success", "partial_success  partial_success    partial_success"},
			hours(0, 0),
		},
		"cancelled": {
			"  - {step: fetch, tool: http, url: http://x, " + waits + "}", always(unavailable()),
			map[time.Duration]func(*testing.T, *stage){30 * time.Minute: func(_ *testing.T, s *stage) { s.env.CancelWorkflow() }},
			"cancelled",
			[]any{"cancelled  cancelled    cancelled"},
			hours(0.5),
		},
		"late": {
			"  - {step: fetch, tool: http, url: http://x, " + waits + "}\nexpect: {within: 15m}", until(1, unavailable()), nil, "completed",
			[]any{"late  running    running", "completed  completed    completed"},
			hours(0.25, 1),
		},
		"not late": {
			"  - {step: fetch, tool: http, url: http://x, " + waits + "}\nexpect: {within: 90m}", until(1, unavailable()), nil, "completed",
			[]any{"completed  completed    completed"},
			hours(1),
		},
		"paused by command": {
			"  - {step: fetch, tool: http, url: http://x, " + waits + "}", until(1, unavailable()),
			map[time.Duration]func(*testing.T, *stage){
				30 * time.Minute:  steering(protocol.PauseUpdate, protocol.CommandInput{By: "ann", Reason: "the API is down"}),
				31 * time.Minute:  steering(protocol.PauseUpdate, protocol.CommandInput{By: "bob"}),
				120 * time.Minute: steering(protocol.ResumeUpdate, protocol.CommandInput{}),
			},
			"completed",
			[]any{"paused  paused  the API is down ann paused", "completed  completed    completed"},
			hours(0.5, 2),
		},
		"paused by a policy, twice": {
			"  - {step: fetch, tool: http, url: http://x, " + asks + "}", until(2, unavailable()),
			map[time.Duration]func(*testing.T, *stage){
				1 * time.Hour: steering(protocol.RetryNowUpdate, protocol.CommandInput{}),
				2 * time.Hour: steering(protocol.RetryNowUpdate, protocol.CommandInput{}),
			},
			"completed",
			[]any{
				"paused fetch retry_pending HTTP 503 needs a person: HTTP 503  retry_pending",
				"paused fetch retry_pending HTTP 503 needs a person: HTTP 503  retry_pending",
				"completed  completed    completed",
			},
			hours(0, 1, 2),
		},
		"paused in a loop, by each of its iterations": {
			"  - {step: fetch, tool: http, url: \"http://x/{{ item }}\", loop: {collection: [1, 2, 3], mode: parallel}, " + asks + "}",
			until(3, unavailable()),
			map[time.Duration]func(*testing.T, *stage){1 * time.Hour: steering(protocol.RetryNowUpdate, protocol.CommandInput{})},
			"completed",
			[]any{
				"paused fetch retry_pending HTTP 503 needs a person: HTTP 503  retry_pending", "completed  completed    completed",
			},
			hours(0, 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, test.answer)
			for at, act := range test.during {
				s.env.RegisterDelayedCallback(func() { act(t, s) }, at)
			}
			result, _ := s.run(everyEvent + "workflow:\n" + test.steps + "\n")
			require.EqualValues(t, test.status, result.Status, "%+v", result.Error)
			require.Equal(t, timed(test.at, test.said), timed(s.writtenAt, s.said()))
			keys := map[string]bool{}
			for _, in := range s.written {
				keys[in.OperationKey] = true
				require.Empty(t, in.ControlID, "no pause holds it")
			}
			require.Len(t, keys, len(s.written), "each has a key of its own")
			require.Equal(t, name == "late", result.Late)
		})
	}
}

// timed are what was said and when; what was said at once has no order.
func timed(at []time.Duration, said []any) []string {
	all := make([]string, len(said))
	for i := range said {
		all[i] = fmt.Sprintf("%04dm %s", int(at[i].Minutes()), said[i])
	}
	slices.Sort(all)
	return all
}

// steering sends an update to the run.
func steering(update string, command protocol.CommandInput) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) {
		t.Helper()
		s.env.UpdateWorkflow(update, "", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { require.NoError(t, err) }, OnComplete: func(any, error) {},
		}, command)
	}
}

// longTelling is late and says so, while its history is long.
const longTelling = "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: test}\n" + everyEvent + `  retry: [{when: error is defined, then: {max_attempts: 3, delay: 1m, jitter: none}}]
expect: {within: 15m}
workflow:
  - {step: fetch, tool: http, url: http://x, retry: [{when: error is defined, then: {max_attempts: 2, delay: 15m, jitter: none}}], next: after}
  - {step: after, tool: http, url: http://x, retry: [{when: error is defined, then: {max_attempts: 2, delay: 1h, jitter: none}}]}
`

// TestNotifyContinuesAsNew: a run that goes on in another history tells nothing twice, and
// takes along what it is telling: the next attempt comes when it would have.
func TestNotifyContinuesAsNew(t *testing.T) {
	t.Parallel()
	before := longOnceFailed(t, until(1, unavailable()))
	before.refuses = func(n int, _ interpreter.ToolInput) error {
		if n == 1 {
			return unavailable()
		}
		return nil
	}
	before.env.ExecuteWorkflow(protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: longTelling})
	require.Equal(t, []any{"late  running    running"}, before.said())
	require.Equal(t, minutes(15), before.writtenAt)

	var continued *workflow.ContinueAsNewError
	require.ErrorAs(t, before.env.GetWorkflowError(), &continued)
	var input protocol.Input
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(continued.Input, &input))
	require.True(t, input.State.Late)
	require.Equal(t, 1, input.State.Notified)
	require.Len(t, input.State.Unsent, 1)

	after := newStage(t, until(1, unavailable()))
	after.refuses = func(n int, _ interpreter.ToolInput) error {
		if n == 1 {
			return unavailable()
		}
		return nil
	}
	after.env.SetContinuedExecutionRunID("before")
	after.env.SetStartTime(began.Add(15 * time.Minute))
	after.env.ExecuteWorkflow(protocol.PlaybookWorkflowName, input)
	var result protocol.Result
	require.NoError(t, after.env.GetWorkflowResult(&result))
	require.EqualValues(t, "completed", result.Status)
	require.True(t, result.Late)
	require.Equal(t, []any{"late  running    running", "late  running    running", "completed  completed    completed"}, after.said())
	require.Equal(t, minutes(16, 17, 75), after.writtenAt)
	for _, in := range after.written[:2] {
		require.Equal(t, before.written[0].OperationKey, in.OperationKey)
	}
	require.NotEqual(t, before.written[0].OperationKey, after.written[2].OperationKey)
}

// TestNoticesWhilePausedAndCancelled: a pause holds the notices of a step, and none
// of the run; a cancel ends those of a step, and none of the run.
func TestNoticesWhilePausedAndCancelled(t *testing.T) {
	t.Parallel()
	const source = `timeout: 1000h
notify: {on: [paused, cancelled, completed, late], url: http://team, retry: [{when: error is defined, then: {max_attempts: 2, delay: 2m, jitter: none}}]}
expect: {within: 90s}
workflow:
  - step: fetch
    tool: http
    url: http://x
    on_success: {url: http://well, retry: [{when: error is defined, then: {max_attempts: 2, delay: 1m, jitter: none}}]}
    next: after
  - {step: after, tool: http, url: http://x}
`
	for name, test := range map[string]struct {
		during   map[time.Duration]func(*testing.T, *stage)
		status   string
		sent     []string
		at       []time.Duration
		attempts int // of steps
		warnings []string
	}{
		"paused": {
			during: map[time.Duration]func(*testing.T, *stage){
				30 * time.Second: steering(protocol.PauseUpdate, protocol.CommandInput{}),
				10 * time.Minute: steering(protocol.ResumeUpdate, protocol.CommandInput{}),
			},
			status: "completed", attempts: 2,
			sent: []string{
				"fetch.on_success", "run.notify.paused", "run.notify.late", "run.notify.paused", "run.notify.late",
				"fetch.on_success", "run.notify.completed", "run.notify.completed",
			},
			at:       minutes(0, 0.5, 1.5, 2.5, 3.5, 10, 10, 12),
			warnings: []string{"the run was late: it took longer than 1m30s"},
		},
		"cancelled": {
			during: map[time.Duration]func(*testing.T, *stage){
				30 * time.Second: func(_ *testing.T, s *stage) { s.env.CancelWorkflow() },
			},
			status: "cancelled", attempts: 1,
			sent:     []string{"fetch.on_success", "run.notify.cancelled", "run.notify.cancelled"},
			at:       minutes(0, 0.5, 2.5),
			warnings: []string{"the notice fetch.on_success was not sent: sink fetch.on_success: cancelled"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, first := newStage(t, until(0, nil)), map[string]bool{}
			s.refuses = func(_ int, in interpreter.ToolInput) error {
				if first[in.OperationKey] {
					return nil
				}
				first[in.OperationKey] = true
				return unavailable()
			}
			for at, act := range test.during {
				s.env.RegisterDelayedCallback(func() { act(t, s) }, at)
			}
			result, _ := s.run(source)
			require.EqualValues(t, test.status, result.Status, "%+v", result.Error)
			require.Equal(t, test.sent, s.places())
			require.Equal(t, test.at, s.writtenAt)
			require.Len(t, s.attempts, test.attempts)
			require.Equal(t, test.warnings, result.Warnings)
			require.EqualValues(t, "completed", result.Steps[0].Status, "whatever becomes of its notice")
		})
	}
}

// TestNoticesOfSecretSteps: what a notice says of itself has no results, so a step
// whose result is secret may have notices.
func TestNoticesOfSecretSteps(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(int, interpreter.ToolInput) (any, error) { return map[string]any{"$sealed": "v1.x"}, nil })
	result, _ := s.run("timeout: 1h\n" + `on_success: {url: http://done, body: {at: "{{ steps.login.status }}"}}
workflow:
  - {step: login, tool: http, url: http://x, secret: true, on_success: {url: http://well}}
`)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Empty(t, result.Warnings)
	require.Equal(t, []string{"login.on_success", "run.on_success"}, s.places())
	require.Equal(t, map[string]any{"at": "success"}, s.said()[1])
	require.NotContains(t, s.said()[0], "result")
}
