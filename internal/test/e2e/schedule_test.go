package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// TestScheduledAtContinuesAsNew: the time that a schedule started a run for is the same in all
// of its histories.
func TestScheduledAtContinuesAsNew(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	at := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	scheduled := temporal.NewSearchAttributeKeyTime(protocol.ScheduledAttribute)
	run, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "scheduled-" + w.queue, TaskQueue: w.queue,
		TypedSearchAttributes: temporal.NewSearchAttributes(scheduled.ValueSet(at)), // as the server's schedules do
	}, protocol.PlaybookWorkflowName, protocol.Input{
		Name: "test.yaml", Workload: expression.Of(map[string]any{"api": w.api.URL()}), Source: book(`
  - step: begin
    vars: {n: 0}
    next: visit
  - step: visit
    tool: http
    url: "{{ api }}/body"
    params: {bytes: 100000, n: "{{ vars.n }}"}
    vars: {n: "{{ vars.n + 1 }}"}
    next:
      - {when: "{{ vars.n < 35 }}", step: visit}
output: {at: "{{ run.scheduled_at }}", n: "{{ vars.n }}"}
`),
	})
	require.NoError(t, err)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"at": "2026-03-29T01:00:00Z", "n": 35}, result.Result.Data)
	w.requireRuns(run.GetID(), run.GetRunID(), "PlaybookWorkflow")
}
