package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"reprise/internal/test/testenv"
)

// TestLongCallContinuesAsNew: a poll that takes more attempts than one history should hold
// goes on in another, and is the same call all the while.
func TestLongCallContinuesAsNew(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	run := w.start(book(`
  - step: poll
    tool: http
    url: "{{ api }}/api/v1/jobs/long"
    params: {ready_after: 800}
    headers: {X-Scenario: "{{ execution_id }}"}
    retry:
      - when: "{{ response.status == 'pending' }}"
        then: {max_attempts: 900, backoff: none}
    vars: {polls: "{{ result.polls }}"}
output: {polls: "{{ vars.polls }}", attempts: "{{ steps.poll.meta.attempts }}"}
`), nil)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, map[string]any{"polls": 800, "attempts": 800}, result.Result.Data)
	require.Equal(t, 800, w.api.CountRequests(run.GetID(), "/api/v1/jobs"))
	w.requireRuns(run.GetID(), run.GetRunID(), "CallsWorkflow")
}

// TestLargeAnswersContinueAsNew: a poll whose answers are large leaves the history of its
// run before that is too large.
func TestLargeAnswersContinueAsNew(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	run := w.start(book(`
  - step: poll
    tool: http
    url: "{{ api }}/body"
    params: {bytes: 100000}
    retry:
      - when: "{{ error is not defined and _retry.count < 80 }}"
        then: {max_attempts: 100, backoff: none}
output: "{{ steps.poll.meta.attempts }}"
`), nil)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, 80, result.Result.Data)
	types := map[string]int{}
	for _, history := range testenv.Histories(t, w.env.Client(), run.GetID(), run.GetRunID()) {
		types[history.Type]++
		require.LessOrEqual(t, proto.Size(history.History), maxBytes, "%s", history)
	}
	require.GreaterOrEqual(t, types["CallsWorkflow"], 2)
}

// TestLongCycleContinuesAsNew: a cycle of more visits than one history should hold goes on in
// another, and the visits stay numbered.
func TestLongCycleContinuesAsNew(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	run := w.start(book(`
  - step: begin
    vars: {n: 0}
    next: turn
  - step: turn
    tool: http
    url: "{{ api }}/status/200"
    vars: {n: "{{ vars.n + 1 }}"}
    next:
      - {when: "{{ vars.n < 640 }}", step: turn}
output: "{{ vars.n }}"
`), nil)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, 640, result.Result.Data)
	require.Equal(t, 640, result.Steps[len(result.Steps)-1].Visit)
	require.Equal(t, 640, w.api.CountRequests("", "/status/200"))
	w.requireRuns(run.GetID(), run.GetRunID(), "PlaybookWorkflow")
}

// requireRuns checks that a workflow of the run went on in a second history, and
// that none became too long.
func (w *world) requireRuns(workflowID, runID, name string) {
	w.t.Helper()
	histories := 0
	for _, history := range testenv.Histories(w.t, w.env.Client(), workflowID, runID) {
		require.LessOrEqual(w.t, len(history.History.Events), maxEvents, history.WorkflowID)
		if history.Type == name {
			histories++
		}
	}
	require.Greater(w.t, histories, 1, "histories of %s", name)
}
