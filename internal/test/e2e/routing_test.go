package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/observe/ending"
	"reprise/internal/test/testenv"
	"reprise/workflows/protocol"
)

// TestFanOutAndJoin: both branches run at the same time, and the step after
// them runs once with the args of both.
func TestFanOutAndJoin(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("fan_out")
	result := w.ends("completed", book(`
  - step: start
    next: [left, right]
  - step: left
    tool: http
    url: "{{ api }}/slow?ms=300"
    next: [{step: both, args: {left: 1, last: left}}]
  - step: right
    tool: http
    url: "{{ api }}/slow?ms=200"
    next: [{step: both, args: {right: 2, last: right}}]
  - step: both
    tool: http
    url: "{{ api }}/echo"
    params: {sum: "{{ args.left + args.right }}", last: "{{ args.last }}"}
output: "{{ both.query }}"
`), nil)
	require.Equal(t, map[string]any{"sum": []any{"3"}, "last": []any{"right"}}, result.Result.Data)
	require.Equal(t, 2, w.api.MaxConcurrent(""))
	require.Len(t, result.Steps, 4)
}

func TestCycleNumbersItsVisits(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("completed", book(`
  - step: visit
    tool: http
    url: "{{ api }}/api/v1/writes"
    method: POST
    body: {n: "{{ (vars.n | default(0)) + 1 }}"}
    vars: {n: "{{ (vars.n | default(0)) + 1 }}"}
    next:
      - when: "{{ vars.n < 3 }}"
        then: [{step: visit}]
output: "{{ vars.n }}"
`), nil)
	require.Equal(t, 3, result.Result.Data)
	require.Len(t, w.bodies(), 3, "every visit has a key of its own")
	require.Len(t, result.Steps, 3)
	for i, record := range result.Steps {
		require.Equal(t, i+1, record.Visit)
	}
}

func TestErrorRouteHandlesAFailure(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("error_route")
	result := w.ends("completed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/404"
    next:
      - when: "{{ true }}"
        then: [{step: fine}]
      - when: "{{ error.status == 404 }}"
        then: [{step: fallback, args: {why: "{{ error.message }}"}}]
  - step: fine
    tool: http
    url: "{{ api }}/echo?fine"
  - step: fallback
    tool: http
    url: "{{ api }}/echo?fallback"
`), nil)
	fetch := step(t, result, "fetch")
	require.EqualValues(t, "failed", fetch.Status)
	require.True(t, fetch.Handled)
	require.EqualValues(t, "skipped", step(t, result, "fine").Status)
	require.Len(t, result.Warnings, 1)
}

// TestFailedLoopHasErrorAndResult: a route sees both.
func TestFailedLoopHasErrorAndResult(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	data := w.completes(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ item }}"
    loop: {collection: [200, 404, 404]}
    next:
      - when: "{{ error.kind == 'loop' and result.stats.failed == 2 }}"
        then: [{step: look}]
  - step: look
    tool: http
    url: "{{ api }}/echo"
    params: {failed: "{{ fetch.stats.failed }}"}
output: "{{ look.query.failed[0] }}"
`), nil)
	require.Equal(t, "2", data)
}

// TestErrorInVarsIsAFailureOfTheStep: it is asked of the step's routes like one in
// a field, and so is one in the routes themselves.
func TestErrorInVarsIsAFailureOfTheStep(t *testing.T) {
	t.Parallel()
	const handled = `
      - when: "{{ error.kind == 'expression' }}"
        then: [{step: caught, args: {why: "{{ error.message }}"}}]
      - never
`
	for name, test := range map[string]struct{ step string }{
		"vars":           {"    vars: {n: \"{{ result.args + 1 }}\"}\n    next:" + handled},
		"a field":        {"    params: {n: \"{{ 'a' + 1 }}\"}\n    next:" + handled},
		"vars of a loop": {"    loop: {collection: [1, 2]}\n    vars: {n: \"{{ result.stats + 1 }}\"}\n    next:" + handled},
		"a route's when": {"    next:\n      - {when: \"{{ result.args + 1 > 2 }}\", step: never}" + handled},
		"a route's args": {"    next:\n      - {when: \"{{ error is not defined }}\", then: [{step: never, args: {n: \"{{ 'a' + 1 }}\"}}]}" + handled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			result := w.ends("completed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/echo"
`+test.step+`
  - {step: caught, tool: http, url: "{{ api }}/echo", params: {why: "{{ args.why }}"}}
  - {step: never, tool: http, url: "{{ api }}/echo"}
output: {why: "{{ caught.query.why[0] }}", status: "{{ steps.fetch.status }}", kind: "{{ steps.fetch.error.kind }}"}
`), nil)
			record := step(t, result, "fetch")
			require.EqualValues(t, "failed", record.Status)
			require.True(t, record.Handled)
			require.EqualValues(t, "expression", record.Error.Kind)
			require.Len(t, result.Warnings, 1)
			out := result.Result.Data.(map[string]any)
			require.Equal(t, record.Error.Message, out["why"])
			require.Equal(t, []any{"error", "expression"}, []any{out["status"], out["kind"]})
			require.EqualValues(t, "skipped", step(t, result, "never").Status)
		})
	}
}

// TestUnhandledFailure: the other branch is cancelled, the workflow fails, and
// its result travels in the failure.
func TestUnhandledFailure(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("failure")
	began := time.Now()
	run := w.start(book(`
  - step: start
    next: [slow, broken]
  - step: slow
    tool: http
    url: "{{ api }}/slow?ms=300000"
    timeout: 20m
    next: never
  - step: broken
    tool: http
    url: "{{ api }}/status/410"
  - step: never
    tool: http
    url: "{{ api }}/echo"
`), nil)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Less(t, time.Since(began), testenv.Within(20*time.Second))
	require.EqualValues(t, "failed", result.Status)
	require.Equal(t, 410, result.Error.Status)
	require.EqualValues(t, "cancelled", step(t, result, "slow").Status)
	require.EqualValues(t, "failed", step(t, result, "broken").Status)
	require.EqualValues(t, "skipped", step(t, result, "never").Status)

	var application *temporal.ApplicationError
	require.ErrorAs(t, testenv.WaitOutcome(t, run, nil), &application)
	require.Equal(t, "http", application.Type())
	var details protocol.Result
	require.NoError(t, application.Details(&details))
	require.EqualValues(t, "failed", details.Status)
	described, err := w.env.Client().DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
	require.NoError(t, err)
	require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_FAILED, described.GetWorkflowExecutionInfo().GetStatus())
}

// TestExpressionErrors: never a silent false.
func TestExpressionErrors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ rest, want string }{
		"field":     {"    params: {n: \"{{ nothing + 1 }}\"}\n", "step fetch"},
		"condition": {"    retry:\n      - when: \"{{ response.query + 1 }}\"\n        then: {max_attempts: 3}\n", "retry[1].when"},
		"route":     {"    next:\n      - when: \"{{ result.query + 1 }}\"\n        then: [{step: end}]\n  - step: end\n", "step fetch"},
		"vars":      {"    vars: {n: \"{{ result.query + 1 }}\"}\n", "step fetch"},
		"sink":      {"    sink: {tool: http, url: \"{{ api }}/x\", args: {n: \"{{ result.query + 1 }}\"}}\n", "sink"},
		"output":    {"output: \"{{ fetch.query + 1 }}\"\n", "output"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			result := w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/echo"
`+test.rest), map[string]any{"nothing": nil})
			require.Contains(t, result.Error.Message, test.want)
			require.Regexp(t, `test\.yaml:\d+:\d+`, result.Error.Message, "the position")
			require.LessOrEqual(t, w.api.CountRequests("", "/"), 1)
			if name != "sink" { // a sink's failure has its own kind
				require.EqualValues(t, "expression", result.Error.Kind)
			}
		})
	}
}

// TestInvalidPlaybook: all problems are told at once, and nothing is executed.
func TestInvalidPlaybook(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("invalid_playbook")
	run := w.start(book(`
  - step: fetch
    tool: http
    retry:
      - when: "{{ error is defined }}"
        then: {max_attempts: 0}
    next: nowhere
  - step: fetch
    tool: htpt
`), nil)
	_, err := w.outcome(run)
	require.ErrorIs(t, err, ending.ErrRefused)
	message := err.Error()
	for _, part := range []string{"url", "max_attempts", "nowhere", "htpt", "duplicate"} {
		require.Contains(t, message, part)
	}
	require.GreaterOrEqual(t, strings.Count(message, "test.yaml:"), 5)
	var application *temporal.ApplicationError
	require.ErrorAs(t, testenv.WaitOutcome(t, run, nil), &application)
	require.Equal(t, protocol.InvalidPlaybook, application.Type())
	histories := testenv.Histories(t, w.env.Client(), run.GetID(), run.GetRunID())
	require.Len(t, histories, 1, "no child")
	for _, event := range histories[0].History.GetEvents() {
		require.NotEqual(t, enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, event.GetEventType())
		require.NotEqual(t, enums.EVENT_TYPE_TIMER_STARTED, event.GetEventType())
	}
	require.Zero(t, w.api.CountRequests("", "/"))
}

func TestTextThatIsNoPlaybook(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	for _, text := range []string{"", "workflow: [", "just text", "\x00", "[1, 2]"} {
		require.NotEmpty(t, w.refused(text), "%q", text)
	}
}

// TestCycleThatNeverEnds: nothing in it takes time, so only a bound ends it.
func TestCycleThatNeverEnds(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(`
  - step: here
    next: there
  - step: there
    next: here
`), nil)
	require.EqualValues(t, "repeat", result.Error.Kind)
	require.Contains(t, result.Error.Message, "without an attempt")
}

// TestLongCycle counts to 1,500 without a tool.
func TestLongCycle(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("completed", book(`
  - step: visit
    vars: {n: "{{ (vars.n | default(0)) + 1 }}"}
    next:
      - when: "{{ vars.n < 1500 }}"
        then: [{step: visit}]
output: "{{ vars.n }}"
`), nil)
	require.Equal(t, 1500, result.Result.Data)
	require.Len(t, result.Steps, 1500)
}
