package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows"
)

// batchOfFive runs a batch from its beginning or from where it went on, at a time.
func batchOfFive(s *stage, input workflows.IterationInput, at time.Time) {
	s.t.Helper()
	s.env.SetStartTime(at)
	s.env.ExecuteWorkflow(workflows.IterationWorkflowName, input)
	require.True(s.t, s.env.IsWorkflowCompleted())
}

// TestBatchGoesOnInAnotherHistory: the element under way waits for what is left,
// those that have ended keep their results, and those after it have their turn.
func TestBatchGoesOnInAnotherHistory(t *testing.T) {
	t.Parallel()
	const waits = 2 // the element that fails at first
	answer := func(_ int, in interpreter.ToolInput) (any, error) {
		if *in.Index == waits && in.Attempt == 1 {
			return nil, unavailable()
		}
		return *in.Index, nil
	}
	input := workflows.IterationInput{Task: interpreter.Task{Name: "test.yaml", Step: "fetch", Visit: 1, Source: `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: test}
workflow:
  - step: fetch
    tool: http
    url: http://x
    loop: {collection: [a, b, c, d, e], batch: 5}
    retry:
      - {when: error is defined, then: {max_attempts: 3, delay: 1h, jitter: none}}
`}}
	for index, element := range []string{"a", "b", "c", "d", "e"} {
		input.Calls = append(input.Calls, interpreter.Carried{Index: &index, Size: 5, Element: expression.Of(element)})
	}

	before := newStage(t, answer)
	before.env.SetOnActivityCompletedListener(func(info *activity.Info, _ converter.EncodedValue, err error) {
		if info.ActivityType.Name == "http" && err != nil {
			before.env.SetCurrentHistoryLength(5000)
		}
	})
	batchOfFive(before, input, began)
	var goesOn *workflow.ContinueAsNewError
	require.ErrorAs(t, before.env.GetWorkflowError(), &goesOn)
	require.Empty(t, before.timers)
	require.Len(t, before.attempts, 3)
	require.Equal(t, began, before.env.Now().UTC())

	var next workflows.IterationInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(goesOn.Input, &next))
	after := newStage(t, answer)
	batchOfFive(after, next, began.Add(20*time.Minute))
	var output workflows.IterationOutput
	require.NoError(t, after.env.GetWorkflowResult(&output))
	require.Equal(t, []time.Duration{40 * time.Minute}, after.timers)
	require.Len(t, after.attempts, 3)
	require.Len(t, output.Iterations, 5)
	for index, iteration := range output.Iterations {
		require.Equal(t, index, iteration.Index)
		require.Equal(t, index, iteration.Result.Data.Data)
	}
}

// TestAttemptIsHandedOutAgain: what a worker hands back, or is lost with, is the
// same attempt when it comes again.
func TestAttemptIsHandedOutAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, always(nil))
	var keys []string
	s.env.OnActivity("http", mock.Anything, mock.Anything).Return(func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		keys = append(keys, in.AttemptKey)
		if activity.GetInfo(ctx).Attempt < 10 {
			return interpreter.ToolResult{}, errors.New("the worker stops")
		}
		return interpreter.ToolResult{Data: expression.Of("here")}, nil
	})
	result, _ := s.run(`
  - step: fetch
    tool: http
    url: http://x
`)
	require.Equal(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, "here", result.Result.Data)
	require.Equal(t, 1, result.Steps[0].Attempts)
	require.Len(t, keys, 10)
	for _, key := range keys {
		require.Equal(t, keys[0], key)
	}
}
