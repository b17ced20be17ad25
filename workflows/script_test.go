package workflows_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/protocol"
)

// TestScriptsTravelApart: a batch that continues as new has its playbook in an argument
// of its own.
func TestScriptsTravelApart(t *testing.T) {
	t.Parallel()
	before, after := longOnceFailed(t, failing), newStage(t, fine)
	input := batchOfFive("sequential")
	before.runBatch(input)
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, before.env.GetWorkflowError(), &next)
	require.Len(t, next.Input.Payloads, 2)
	require.NotContains(t, string(next.Input.Payloads[0].Data), "apiVersion")
	rest := nextBatch(t, next)
	require.Equal(t, input.Task.Source, rest.Task.Source)

	after.env.SetStartTime(began.Add(20 * time.Minute))
	after.runBatch(rest)
	var output protocol.CallsOutput
	require.NoError(t, after.env.GetWorkflowResult(&output))
	require.Equal(t, []int{0, 1, 2, 3, 4}, indexes(t, output))
}

// TestTasksTravelWithTheirFiles: the playbooks that a step runs are a part of the
// script.
func TestTasksTravelWithTheirFiles(t *testing.T) {
	t.Parallel()
	whole := call.Task{
		Name: "a.yaml", Source: "source of a", Step: "each",
		Nesting: &call.Nesting{Depth: 2, Files: map[string]string{"b.yaml": "source of b"}},
	}
	task, script := whole.SplitScript()
	require.Equal(t, call.Nesting{Depth: 2}, *task.Nesting)
	require.Empty(t, task.Source)
	require.Equal(t, call.Script{Source: "source of a", Files: map[string]string{"b.yaml": "source of b"}}, script)
	require.Equal(t, whole, task.WithScript(script))
	require.Len(t, whole.Nesting.Files, 1, "what was taken apart stays whole")
}

// TestScriptsCount: the playbook counts towards what may be taken along, also in an
// argument of its own.
func TestScriptsCount(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		padding int
		stays   bool
	}{
		"goes on": {0, false},
		"stays":   {350_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := longAfter(t, 2)
			task := call.Task{Name: "test.yaml", Step: "fetch", Visit: 1, Limits: interpreter.RunLimits{MaxPayload: 400_000}}
			s.env.ExecuteWorkflow(alone, protocol.CallsInput{Task: task, Calls: []call.Snapshot{{}}}, call.Script{
				Source: largePages + "#" + strings.Repeat("x", test.padding) + "\n",
			})
			require.True(t, s.env.IsWorkflowCompleted())
			if test.stays {
				require.NoError(t, s.env.GetWorkflowError())
				require.Len(t, s.attempts, 6)
				return
			}
			var next *workflow.ContinueAsNewError
			require.ErrorAs(t, s.env.GetWorkflowError(), &next)
			require.Len(t, s.attempts, 2)
		})
	}
}
