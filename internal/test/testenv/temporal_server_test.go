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
	comesBack(t, testenv.TemporalServer(t))
}

// TestTemporalServerOnPostgresComesBack: also where its database was killed with it.
func TestTemporalServerOnPostgresComesBack(t *testing.T) {
	t.Parallel()
	server, database := testenv.TemporalOnPostgres(t)
	require.NotZero(t, database.Query(t, "SELECT count(*) AS n FROM namespaces")[0]["n"])
	comesBack(t, server, func() { database.Kill(t); database.Start(t) })
}

// comesBack kills a server that knows a workflow, and whatever else is killed meanwhile, and waits until it knows it again.
func comesBack(t *testing.T, server *testenv.Server, meanwhile ...func()) {
	t.Helper()
	run, err := server.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "kept", TaskQueue: "none"}, "Any")
	require.NoError(t, err)
	server.Kill()
	for _, kill := range meanwhile {
		kill()
	}
	server.Start(t)
	require.Eventually(t, func() bool { // the client has to notice
		described, err := server.Client().DescribeWorkflowExecution(t.Context(), "kept", "")
		return err == nil && described.GetWorkflowExecutionInfo().GetExecution().GetRunId() == run.GetRunID()
	}, testenv.Within(30*time.Second), 20*time.Millisecond)
}
