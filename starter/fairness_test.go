package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"reprise/internal/program/start"
	"reprise/internal/test/testenv"
)

func TestFairnessFlags(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		flags fairnessFlags
		want  temporal.Priority
	}{
		{fairnessFlags{priority: 3, weight: 1}, temporal.Priority{FairnessKey: "run"}},
		{fairnessFlags{priority: 1, weight: 1}, temporal.Priority{PriorityKey: 1, FairnessKey: "run"}},
		{fairnessFlags{priority: 3, weight: 0.5}, temporal.Priority{FairnessKey: "run", FairnessWeight: 0.5}},
		{fairnessFlags{priority: 5, key: "night", weight: 2}, temporal.Priority{PriorityKey: 5, FairnessKey: "night", FairnessWeight: 2}},
	} {
		require.NoError(t, row.flags.check())
		require.Equal(t, row.want, (&start.Plan{WorkflowID: "run", Fairness: row.flags.settings()}).Priority())
	}
}

const nothingBook = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: nothing}
workflow:
  - step: nothing
`

// TestARunStartsWithItsTurns reads what starter run has told the server.
func TestARunStartsWithItsTurns(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	file := filepath.Join(t.TempDir(), "nothing.yaml")
	require.NoError(t, os.WriteFile(file, []byte(nothingBook), 0o600))
	for name, row := range map[string]struct {
		flags []string
		want  func(id string) *commonpb.Priority
	}{
		"by default": {nil, func(id string) *commonpb.Priority {
			return &commonpb.Priority{FairnessKey: id}
		}},
		"as the flags say": {
			[]string{"--priority", "1", "--fairness-key", "night", "--fairness-weight", "0.25"},
			func(string) *commonpb.Priority {
				return &commonpb.Priority{PriorityKey: 1, FairnessKey: "night", FairnessWeight: 0.25}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := env.NewTaskQueue()
			args := append([]string{
				"run", file, "--detach", "--address", env.Address, "--namespace", env.Namespace, "--task-queue", id, "--workflow-id", id,
			}, row.flags...)
			var out, errs bytes.Buffer
			require.Equal(t, exitOK, Main(t.Context(), args, Streams{In: strings.NewReader(""), Out: &out, Err: &errs}), "%s", &errs)
			run, err := env.Client().DescribeWorkflowExecution(t.Context(), id, "")
			require.NoError(t, err)
			got := run.GetWorkflowExecutionInfo().GetPriority()
			require.True(t, proto.Equal(row.want(id), got), "%v", got)
		})
	}
}
