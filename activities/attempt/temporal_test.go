package attempt_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"reprise/activities/tool"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// probeOnce calls the probe with the options a worker lost in the middle needs.
func probeOnce(ctx workflow.Context) (interpreter.ToolResult, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, HeartbeatTimeout: 2 * time.Second, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, MaximumAttempts: 3},
	})

	var result interpreter.ToolResult

	err := workflow.ExecuteActivity(ctx, "probe", tooltest.CompleteInput(interpreter.ToolInput{TimeoutSeconds: 50}, "probe")).Get(ctx, &result)
	return result, err
}

// startProbe runs a worker with the probe and one workflow that calls it.
func startProbe(t *testing.T, f toolFunc) (client.WorkflowRun, client.Client, func() worker.Worker) {
	t.Helper()

	env := testenv.Temporal(t)
	queue := env.NewTaskQueue()
	start := func() worker.Worker {
		w := worker.New(env.Client(), queue, worker.Options{})
		w.RegisterActivityWithOptions(probeActivity(t, f), activity.RegisterOptions{Name: "probe"})
		w.RegisterWorkflowWithOptions(probeOnce, workflow.RegisterOptions{Name: "ProbeOnce"})
		require.NoError(t, w.Start())
		return w
	}

	run, err := env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, "ProbeOnce")
	require.NoError(t, err)
	return run, env.Client(), start
}

// A cancel travels with the answer to a heartbeat; the attempt ends as
// canceled and not as failed.
func TestACancelReachesTheTool(t *testing.T) {
	t.Parallel()

	started, stopped := make(chan struct{}, 3), make(chan error, 3)
	run, c, start := startProbe(t, func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		started <- struct{}{}

		result, err := untilDone(ctx, in)
		stopped <- context.Cause(ctx)
		return result, err
	})
	w := start()
	t.Cleanup(w.Stop)

	testenv.Receive(t, started, "the attempt")
	require.NoError(t, c.CancelWorkflow(t.Context(), run.GetID(), run.GetRunID()))
	require.True(t, temporal.IsCanceledError(testenv.Receive(t, stopped, "the cancel")), "the tool sees the cancel")

	err := testenv.WaitOutcome(t, run, nil)

	var canceled *temporal.CanceledError

	require.ErrorAs(t, err, &canceled)
}

// A worker that is told to stop gives its attempt back, and the next worker
// makes it again.
func TestTheNextWorkerMakesTheAttemptAgain(t *testing.T) {
	t.Parallel()

	started := make(chan struct{}, 3)
	attempts := 0
	run, _, start := startProbe(t, func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		attempts++ // one attempt at a time
		if attempts > 1 {
			return interpreter.ToolResult{Data: expression.Of(in.AttemptKey)}, nil
		}

		started <- struct{}{}
		return untilDone(ctx, in)
	})

	first := start()

	testenv.Receive(t, started, "the attempt")
	first.Stop()

	second := start()
	t.Cleanup(second.Stop)

	var result interpreter.ToolResult

	require.NoError(t, testenv.WaitOutcome(t, run, &result))
	require.Equal(t, "op-1:1", result.Data.Data)
	require.Equal(t, 2, attempts)
}

// An error of a tool is never repeated by Temporal.
func TestTemporalDoesNotRepeatToolErrors(t *testing.T) {
	t.Parallel()

	attempts := 0
	run, _, start := startProbe(t, func(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error) {
		attempts++
		return interpreter.ToolResult{}, &tool.Error{Kind: "http", Class: "retryable", Status: 503, Message: "HTTP 503"}
	})
	w := start()
	t.Cleanup(w.Stop)

	err := testenv.WaitOutcome(t, run, nil)

	var (
		application *temporal.ApplicationError
		object      interpreter.ErrorObject
	)

	for next := err; next != nil; next = errors.Unwrap(next) {
		if found, ok := next.(*temporal.ApplicationError); ok { //nolint:errorlint // the innermost one is wanted
			application = found
		}
	}

	require.NotNil(t, application)
	require.Equal(t, "http", application.Type())
	require.NoError(t, application.Details(&object))
	require.Equal(t, interpreter.ErrorObject{Kind: "http", Class: "retryable", Status: 503, Message: "HTTP 503", Attempt: 1, Page: 1}, object)
	require.Equal(t, 1, attempts)
}
