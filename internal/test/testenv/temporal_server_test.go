package testenv_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/test/testenv"
)

// TestTemporalServerComesBack: on the same address, with what it had.
func TestTemporalServerComesBack(t *testing.T) {
	t.Parallel()
	server := testenv.TemporalServer(t)
	run, err := server.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "kept", TaskQueue: "none"}, "Any")
	require.NoError(t, err)
	server.Kill()
	server.Start(t)
	require.Eventually(t, func() bool { // the client has to notice
		described, err := server.Client().DescribeWorkflowExecution(t.Context(), "kept", "")
		return err == nil && described.GetWorkflowExecutionInfo().GetExecution().GetRunId() == run.GetRunID()
	}, testenv.Within(30*time.Second), 20*time.Millisecond)
}
