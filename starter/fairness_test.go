package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/proto"

	"reprise/internal/base/exitcode"
	"reprise/internal/test/testenv"
	"reprise/starter/cli"
)

const nothingBook = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: nothing}
workflow:
  - step: nothing
`

// TestARunStartsWithItsPriority reads what starter run has told the server.
func TestARunStartsWithItsPriority(t *testing.T) {
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
			require.Equal(t, exitcode.OK, Main(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}), "%s", &errs)
			run, err := env.Client().DescribeWorkflowExecution(t.Context(), id, "")
			require.NoError(t, err)
			got := run.GetWorkflowExecutionInfo().GetPriority()
			require.True(t, proto.Equal(row.want(id), got), "%v", got)
		})
	}
}
