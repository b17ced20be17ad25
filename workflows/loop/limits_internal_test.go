package loop

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/gate"
)

// TestListedIterations passes gate.MostListed: the answer says how many it leaves out.
func TestListedIterations(t *testing.T) {
	t.Parallel()
	l := &Loop{Result: &interpreter.LoopResult{Stats: interpreter.LoopStats{Failed: gate.MostListed + 7}}}
	for i := range gate.MostListed + 7 {
		l.Result.Errors = append(l.Result.Errors, interpreter.LoopError{Index: i, Error: &interpreter.ErrorObject{Message: "HTTP 500"}})
	}
	answer, err := l.iterationRecords()
	require.NoError(t, err)
	require.Len(t, answer.Iterations, gate.MostListed)
	require.Equal(t, 7, answer.Left)
}

// TestRunsAreRequestedTogether passes mostAdmitted: runs that one loop has requested are not there for others.
func TestRunsAreRequestedTogether(t *testing.T) {
	t.Parallel()
	require.Equal(t, 3, runsToRequest(1, 3))
	require.Equal(t, mostAdmitted, runsToRequest(1, mostAdmitted+1))
	require.Equal(t, mostAdmitted+5, runsToRequest(mostAdmitted+5, 1000), "as many as begin now")
}

// TestFewChildrenAreStarting passes maxStarting: of later children, so many may be sent and not yet started.
func TestFewChildrenAreStarting(t *testing.T) {
	t.Parallel()
	require.True(t, leavesRoom(firstStarting, maxStarting-1))
	require.False(t, leavesRoom(firstStarting, maxStarting))
	require.True(t, leavesRoom(firstStarting-1, firstStarting-1), "the first ones do not wait for each other")
}

// TestTablesOfDetailsAreShort passes gate.MostRows: details say how many failures they leave out.
func TestTablesOfDetailsAreShort(t *testing.T) {
	t.Parallel()
	l := &Loop{Result: &interpreter.LoopResult{Stats: interpreter.LoopStats{Failed: gate.MostRows + 3}}}
	l.Shard.Open = true
	for i := range gate.MostRows + 3 {
		l.Result.Errors = append(l.Result.Errors, interpreter.LoopError{Index: i, Error: &interpreter.ErrorObject{Message: "HTTP 500"}})
	}
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) (string, error) { return l.failureLines(ctx), nil })
	var text string
	require.NoError(t, env.GetWorkflowResult(&text))
	require.Equal(t, gate.MostRows, strings.Count(text, "/workflows/"), text)
	require.Contains(t, text, "and 3 more")
}
