package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/ending"
	"reprise/internal/test/testenv"
)

// TestIterationTerminatedByHand: the loop accounts for it and goes on.
func TestIterationTerminatedByHand(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.terminates = true
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}{{ '/status/503' if item == 1 else '/echo' }}"
    loop: {collection: [0, 1, 2]}
`+endlessRetry), nil)
	w.awaitRequests("/status/503", 1)
	child := run.GetID() + "/fetch#1/1"
	require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), child, "", "by hand"))
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "partial_success", result.Status)
	failures := step(t, result, "fetch").Loop.Errors
	require.Len(t, failures, 1)
	require.Equal(t, 1, failures[0].Index)
	require.Contains(t, failures[0].Error.Message, "terminated")
}

func TestRunTerminatedByHand(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.terminates = true
	run := w.start(book("  - step: fetch\n    tool: http\n    url: \"{{ api }}/status/503\"\n"+endlessRetry), nil)
	w.await(run, "fetch", "retry_pending")
	require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), run.GetID(), "", "by hand"))
	_, err := w.outcome(run)
	require.ErrorIs(t, err, ending.ErrNoResult)
}

// TestCancelBeforeTheValidation: no worker has seen the run yet.
func TestCancelBeforeTheValidation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.start(book("  - step: fetch\n    tool: http\n    url: \"{{ api }}/echo\"\n"), nil)
	require.NoError(t, w.env.Client().CancelWorkflow(t.Context(), run.GetID(), ""))
	w.work()
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "cancelled", result.Status)
	require.Zero(t, w.api.CountRequests("", "/"))
}

// TestLoopInACycle: each visit has children of its own.
func TestLoopInACycle(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/writes"
    method: POST
    body: {item: "{{ item }}"}
    loop: {collection: [1, 2]}
    vars: {rounds: "{{ (vars.rounds | default(0)) + 1 }}"}
    next:
      - when: "{{ vars.rounds < 2 }}"
        then: [{step: fetch}]
`), nil)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Len(t, w.bodies(), 4, "keys differ between visits")
	ids := map[string]bool{}
	for _, history := range testenv.Histories(t, w.env.Client(), run.GetID(), run.GetRunID()) {
		ids[strings.TrimPrefix(history.WorkflowID, run.GetID())] = true
	}
	require.Equal(t, map[string]bool{
		"": true, "/fetch#1": true, "/fetch#1/0": true, "/fetch#1/1": true,
		"/fetch#2": true, "/fetch#2/0": true, "/fetch#2/1": true,
	}, ids)
}

// TestCancelWithLargeResults: what a loop had travels in the details of its
// cancellation.
func TestCancelWithLargeResults(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}{{ '/status/503' if item == 3 else '/body?bytes=800000' }}"
    loop: {collection: [0, 1, 2, 3]}
`+endlessRetry), nil)
	w.awaitRequests("/status/503", 1)
	result := w.cancel(run)
	stats := step(t, result, "fetch").Loop.Stats
	require.Equal(t, [4]int{4, 3, 0, 1}, [4]int{stats.Total, stats.Success, stats.Failed, stats.Cancelled})
}

// TestLargePlaybook: near the limits of steps and bytes.
func TestLargePlaybook(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	const steps = 450
	text := &strings.Builder{}
	for i := range steps {
		fmt.Fprintf(text, "  - step: s%d\n    desc: %s\n", i, strings.Repeat("x", 1500))
		fmt.Fprintf(text, "    vars: {n: \"{{ (vars.n | default(0)) + 1 }}\", even: \"{{ %d %% 2 == 0 }}\"}\n", i)
		if i+1 < steps {
			fmt.Fprintf(text, "    next: s%d\n", i+1)
		}
	}
	require.Equal(t, steps, w.completes(book(text.String()+"output: \"{{ vars.n }}\"\n"), nil))
}

// TestDatabaseGoesAway: it comes back while the sink's policy waits, and every
// row is there once.
func TestDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := testenv.PostgresServer(t)
	w.connected["pg"] = db.URL
	db.Exec(t, "CREATE TABLE rows (n bigint)")
	w.work()
	db.Stop(t)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/echo"
    loop:
      collection: [1, 2, 3]
      mode: parallel
      sink:
        tool: postgres
        auth: pg
        table: rows
        args: {n: "{{ item }}"}
        retry:
          - when: "{{ error.class == 'retryable' }}"
            then: {max_attempts: 60, delay: 0.2}
`), nil)
	w.awaitRequests("/echo", 3)
	require.Eventually(t, func() bool { return w.waits(run.GetID() + "/fetch#1/0") }, patience, tick)
	db.Start(t)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.ElementsMatch(t, []any{map[string]any{"n": 1}, map[string]any{"n": 2}, map[string]any{"n": 3}},
		w.rows(db, "SELECT * FROM rows"))
}

// waits reports whether a workflow has started a timer.
func (w *world) waits(id string) bool {
	ctx := w.t.Context()
	events := w.env.Client().GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return false
		}
		if event.GetTimerStartedEventAttributes() != nil {
			return true
		}
	}
	return false
}

// TestTwoRunsShareNothing: the same playbook at the same time.
func TestTwoRunsShareNothing(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	source := book(`
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/writes"
    method: POST
    body: {run: "{{ n }}"}
    loop: {collection: [1, 2, 3], mode: parallel}
output: "{{ n }}"
`)
	first := w.start(source, map[string]any{"n": 1})
	second := w.start(source, map[string]any{"n": 2})
	for want, run := range map[int]client.WorkflowRun{1: first, 2: second} {
		result, err := w.outcome(run)
		require.NoError(t, err)
		require.Equal(t, want, result.Result.Data)
	}
	require.Len(t, w.bodies(), 6, "keys differ between runs")
}
