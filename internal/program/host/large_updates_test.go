package host_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/activities"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// TestLargeUpdates of foreign programs are refused at once, with a reason, and fail no
// workflow task.
func TestLargeUpdates(t *testing.T) {
	t.Parallel()
	patience := testenv.Within(time.Minute)
	env := testenv.Temporal(t)
	c, err := client.Dial(host.ClientOptions(nil, client.Options{HostPort: env.Address, Namespace: env.Namespace}, nil))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	queue := env.NewTaskQueue()
	startWorker(t, c, queue, activities.Resources{})
	const book = "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: large}\nworkflow: [{step: ask, tool: webhook}]\noutput: \"{{ ask }}\"\n"
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, protocol.PlaybookWorkflowName,
		protocol.Input{Name: "large.yaml", Source: book, Workload: expression.Of(map[string]any{})})
	require.NoError(t, err)
	update := func(update string, args any) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		handle, err := env.Client().UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: queue, UpdateName: update, Args: []any{args}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = handle.Get(ctx, nil)
		}
		return err
	}
	require.Eventually(t, func() bool { // the attempt has begun
		return update(protocol.AnswerUpdate, map[string]any{"verb": "progress", "step": "ask", "done": 1}) == nil
	}, patience, 50*time.Millisecond)
	for _, size := range []int{1_950_000, 2_050_000, 2_500_000, 3_900_000} {
		err := update(protocol.AnswerUpdate, map[string]any{"verb": "complete", "step": "ask", "result": strings.Repeat("x", size)})
		require.ErrorContains(t, err, "an answer may have 1900000 bytes", "%d", size)
		require.ErrorContains(t, err, interpreter.AnswerRefused)
	}
	require.Error(t, update(protocol.PauseUpdate, map[string]any{"reason": strings.Repeat("x", 2_500_000)}))
	require.NoError(t, update(protocol.AnswerUpdate, map[string]any{"verb": "complete", "step": "ask", "result": 1}))
	var result protocol.Result
	require.NoError(t, testenv.WaitOutcome(t, run, &result))
	require.Equal(t, 1, result.Result.Data)
	for _, history := range testenv.Histories(t, env.Client(), run.GetID(), run.GetRunID()) {
		for _, event := range history.History.GetEvents() {
			require.NotEqual(t, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED, event.GetEventType())
		}
	}
}
