package look

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/exitcode"
	"reprise/interpreter"
	"reprise/starter/cli"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// named is a run by its IDs.
type named struct{ client.WorkflowRun }

func (named) GetID() string    { return "orders.backfill-x7k2" }
func (named) GetRunID() string { return "b7c2" }

// TestSkippedRunsEnd: a run that is skipped as its playbook requires is fine, and a backfill that is skipped has run none of its partitions.
func TestSkippedRunsEnd(t *testing.T) {
	t.Parallel()
	for fails, status := range map[bool]int{false: exitcode.OK, true: exitcode.Failed} {
		var out bytes.Buffer
		app := &cli.App{Streams: cli.Streams{Out: &out, Err: &out}}
		err := reportEnd(app, &session.Session{Ends: true}, named{}, outcome{result: protocol.Result{Status: interpreter.Skipped}}, FollowOptions{Output: "json", SkipFails: fails})
		if status == exitcode.OK {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, cli.ErrSaid)
			require.Equal(t, status, cli.StatusOf(err))
		}
		require.Contains(t, out.String(), `"status": "skipped"`)
	}
}
