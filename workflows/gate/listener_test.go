package gate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// TestListener: signals are handled in the order in which they arrive, what cannot be decoded
// is dropped, and a workflow that was cancelled handles signals too. What arrives while a
// handler waits is handled afterwards.
func TestListener(t *testing.T) {
	t.Parallel()
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	var handled []string
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow("word", "b1")
		env.SignalWorkflow("number", "no number")
		env.SignalWorkflow("number", 1)
		env.SignalWorkflow("word", "b2")
	}, time.Second)
	env.RegisterDelayedCallback(env.CancelWorkflow, 2*time.Second)
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow("number", 2)
		env.SignalWorkflow("word", "end")
	}, 3*time.Second)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = WithOutbox(ctx, interpreter.RunLimits{})
		over := false
		HandleSignal(ctx, "number", func(ctx workflow.Context, n int) {
			for range n {
				handled = append(handled, "n")
			}
			waiting, _ := workflow.NewDisconnectedContext(ctx)
			_ = workflow.Sleep(waiting, time.Millisecond)
		})
		HandleSignal(ctx, "word", func(_ workflow.Context, word string) {
			handled = append(handled, word)
			over = word == "end"
		})
		waiting, _ := workflow.NewDisconnectedContext(ctx)
		return workflow.Await(waiting, func() bool { return over })
	})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []string{"b1", "n", "b2", "n", "n", "end"}, handled)
}
