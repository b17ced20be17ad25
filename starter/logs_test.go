package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/exitcode"
	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
	"reprise/starter/cli"
	"reprise/workflows/protocol"
)

// TestLogsOfARunThatTheServerKnows are found by the beginning of its ID, and by
// none that is unknown.
func TestLogsOfARunThatTheServerKnows(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	id := env.NewTaskQueue()
	started, err := env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id + "-logs", TaskQueue: id},
		protocol.PlaybookWorkflowName, protocol.Input{Name: "x.yaml", Source: "no playbook"})
	require.NoError(t, err)
	log := `{"run":"` + id + `-logs","msg":"found"}` + "\n" + `{"run":"forgotten-` + id + `","msg":"kept"}` + "\n"
	logs := func(wanted int, id string) string {
		t.Helper()
		var out bytes.Buffer
		got := Main(t.Context(), []string{"logs", id, "--file", "-", "--address", env.Address, "--namespace", env.Namespace, "--payload-store", ""},
			cli.Streams{In: strings.NewReader(log), Out: &out, Err: &out})
		require.Equal(t, wanted, got, out.String())
		return out.String()
	}
	require.Eventually(t, func() bool { // the list of runs is a little late
		_, err := (&runs.Reader{Client: env.Client(), Namespace: env.Namespace}).Find(t.Context(), id, "")
		return err == nil
	}, patience, 50*time.Millisecond)
	require.Contains(t, logs(exitcode.OK, id), " found\n")
	require.Contains(t, logs(exitcode.OK, "forgotten-"+id), " kept\n", "the server may have forgotten a run")
	require.Contains(t, logs(exitcode.Usage, "unknown-"+id), "no run has the ID")
	require.NoError(t, env.Client().TerminateWorkflow(t.Context(), started.GetID(), "", "the end of a test"))
}
