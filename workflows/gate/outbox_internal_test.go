package gate

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// TestTasksAreBounded passes maxTaskBytes: what does not fit into a task waits for the next one, and what fits into none is
// sent by itself.
func TestTasksAreBounded(t *testing.T) {
	t.Parallel()
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		o := &Outbox{}
		require.True(t, o.hasRoom(ctx, 2*maxTaskBytes))
		o.bytes = maxTaskBytes - 1
		require.True(t, o.hasRoom(ctx, 1))
		require.False(t, o.hasRoom(ctx, 2))
		o.taskEnded(o.task)
		require.True(t, o.hasRoom(ctx, 2))
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
}
