package loop

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/workflows/control"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
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

// TestShardLeavesTheRest: a shard leaves its other elements to the next one as soon as children have released their slots
// and its history has no room for another one that may. One that may not linger goes on, with children that keep their
// slots, until there is no room for these either.
func TestShardLeavesTheRest(t *testing.T) {
	t.Parallel()
	const width, elements, released = 5, 400, 22 // events of a child that has released its slot: its start, its report, its return and its end
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	check := func(ctx workflow.Context, length, parked int, lingers bool) (leaves, parks, starts bool) {
		env.SetCurrentHistoryLength(length)
		l := &Loop{controls: &control.Controls{}, loop: &playbook.Loop{Mode: playbook.Parallel, Batch: 1}, window: &window{size: func() int { return width }, open: parked}}
		l.Input.Reserves, l.Input.Elements = true, make([]expression.Value, elements)
		l.Input.Shard = &protocol.Shard{MayLinger: lingers}
		l.Shard, l.next = *l.Input.Shard, parked
		for range parked {
			l.batches = append(l.batches, &openBatch{})
		}
		return room{l}.leavesRest(ctx, 0), room{l}.mayPark(ctx, childEvents), room{l}.mayStart(ctx)
	}
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		for _, c := range []struct {
			length, parked        int
			lingers               bool
			leaves, parks, starts bool
		}{
			{length: 100, parked: 10, lingers: true, parks: true, starts: true},
			{length: 3400, parked: 0, lingers: true, parks: true, starts: true},
			{length: 3400, parked: 50, lingers: true, leaves: true, starts: true},
			{length: 2750, parked: 50, lingers: false, starts: true},
			{length: 3200, parked: (fullEvents-3200)/released + 1, lingers: false},
			{length: 3600, parked: 50, lingers: false, starts: true}, // to find that the history is long
		} {
			leaves, parks, starts := check(ctx, c.length, c.parked, c.lingers)
			require.Equal(t, []bool{c.leaves, c.parks, c.starts}, []bool{leaves, parks, starts}, "%+v", c)
		}
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
}
