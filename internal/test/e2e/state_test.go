package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/workflows"
)

// stateCaller has the activity for states run on the worker of a world, one input after the
// other.
func stateCaller(w *world) func(inputs ...interpreter.StateInput) []interpreter.StateOutput {
	w.t.Helper()
	calls := func(ctx workflow.Context, inputs []interpreter.StateInput) (outputs []interpreter.StateOutput, err error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			TaskQueue: w.queue, StartToCloseTimeout: time.Minute, HeartbeatTimeout: 10 * time.Second,
		})
		for _, input := range inputs {
			var output interpreter.StateOutput
			if err := workflow.ExecuteActivity(ctx, interpreter.StateActivity, input).Get(ctx, &output); err != nil {
				return nil, err
			}
			outputs = append(outputs, output)
		}
		return outputs, nil
	}
	c, queue := w.env.Dial(w.t, client.Options{Logger: quiet{}}), w.env.NewTaskQueue()
	own := worker.New(c, queue, worker.Options{})
	own.RegisterWorkflowWithOptions(calls, workflow.RegisterOptions{Name: "calls-of-states"})
	require.NoError(w.t, own.Start())
	w.t.Cleanup(own.Stop)
	return func(inputs ...interpreter.StateInput) (outputs []interpreter.StateOutput) {
		w.t.Helper()
		run, err := c.ExecuteWorkflow(w.t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, "calls-of-states", inputs)
		require.NoError(w.t, err)
		require.NoError(w.t, run.Get(w.t.Context(), &outputs))
		return outputs
	}
}

// claimOf and moveOf are those of a call.
func claimOf(group, name, holder string) interpreter.StateInput {
	return interpreter.StateInput{Group: group, Claim: &incremental.Claim{
		Name: name, Holder: holder, Run: "run of " + holder, Source: incremental.Source{CursorPath: "id", Type: incremental.Integer, Fingerprint: "here"},
	}}
}

func writeOf(t *testing.T, name, holder string, number, to int) incremental.Write {
	t.Helper()
	cursor, err := incremental.Parse(incremental.Integer, to)
	require.NoError(t, err)
	return incremental.Write{Name: name, Holder: holder, Number: number, Move: &incremental.Move{To: cursor}}
}

// watermark asks the workflow of a group for the watermark of a state.
func (w *world) watermark(group, name string) string {
	w.t.Helper()
	answer, err := w.env.Client().QueryWorkflow(w.t.Context(), incremental.WorkflowID(group), "", incremental.StatesQuery, incremental.Range{Prefix: name})
	require.NoError(w.t, err)
	var states []incremental.State
	require.NoError(w.t, answer.Get(&states))
	require.NotEmpty(w.t, states)
	return states[0].Watermark.Text()
}

// TestStateSurvives: what Temporal keeps is there after its worker was killed, and after its
// workflow was terminated; an old call moves it no more.
func TestStateSurvives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	group := "shop/" + w.queue
	call := stateCaller(w)
	first := w.spawn()
	out := call(
		claimOf(group, "s", "a"),
		interpreter.StateInput{Group: group, Moves: []incremental.Write{writeOf(t, "s", "a", 1, 10)}},
		claimOf(group, "s", "a"),
	)
	require.True(t, out[0].Claimed.Watermark.IsZero())
	require.True(t, out[2].Claimed.Watermark.IsZero(), "the same call again")
	first.Kill()
	second := w.spawn()
	out = call(
		claimOf(group, "s", "b"),
		interpreter.StateInput{Group: group, Moves: []incremental.Write{writeOf(t, "s", "b", 1, 20)}},
	)
	require.Equal(t, "10", out[0].Claimed.Watermark.Text())
	require.NoError(t, w.env.Client().CancelWorkflow(t.Context(), incremental.WorkflowID(group), ""))
	out = call(claimOf(group, "s", "b"))
	require.Equal(t, "10", out[0].Claimed.Watermark.Text(), "a cancel changes nothing")
	require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), incremental.WorkflowID(group), "", "by hand"))
	out = call(claimOf(group, "s", "b"), claimOf(group, "s", "c"))
	require.Equal(t, "10", out[0].Claimed.Watermark.Text())
	require.Equal(t, "20", out[1].Claimed.Watermark.Text())
	second.Stop()
	w.work()
	require.Equal(t, "20", w.watermark(group, "s"))
	run, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: w.queue}, incremental.WorkflowName, []byte("forged"))
	require.NoError(t, err)
	require.ErrorContains(t, run.Get(t.Context(), nil), "the input of the workflow was refused")
	testenv.ReplayAll(t, w.env.Client(), incremental.WorkflowID(group), "", func(r worker.WorkflowReplayer) { workflows.Register(r) }, 1)
}

// TestStateContinuesAsNew: thousands of states, claimed and moved again and again, need more than
// one history, and nothing is lost between two.
func TestStateContinuesAsNew(t *testing.T) {
	t.Parallel()
	const states, rounds, atOnce = 2000, 10, 500
	w := newWorld(t)
	group, c := "shop/"+w.queue, w.env.Client()
	w.work()
	call := stateCaller(w)
	name := func(i int) string { return fmt.Sprintf("orders/tenant-%05d%s", i, strings.Repeat("x", 100)) }
	var inputs []interpreter.StateInput
	for i := range 50 { // the others are known from a workflow before
		inputs = append(inputs, claimOf(group, name(i), "a"))
	}
	call(inputs...)
	keeper := &incremental.Keeper{}
	for i := range states {
		require.Nil(t, keeper.Claim(*claimOf(group, name(i), "a").Claim, time.Now()).Refused)
	}
	require.NoError(t, c.TerminateWorkflow(t.Context(), incremental.WorkflowID(group), "", "the test knows of more"))
	snapshot, err := keeper.Snapshot()
	require.NoError(t, err)
	_, err = c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: incremental.WorkflowID(group), TaskQueue: w.queue}, incremental.WorkflowName, snapshot)
	require.NoError(t, err)
	inputs = nil
	for round := 1; round <= rounds; round++ {
		for first := 0; first < states; first += atOnce {
			var writes []incremental.Write
			for i := first; i < first+atOnce; i++ {
				writes = append(writes, writeOf(t, name(i), "a", round, 1000*round+i))
			}
			inputs = append(inputs, interpreter.StateInput{Group: group, Moves: writes})
		}
	}
	for _, input := range inputs {
		call(input)
	}
	described, err := c.DescribeWorkflowExecution(t.Context(), incremental.WorkflowID(group), "")
	require.NoError(t, err)
	info := described.GetWorkflowExecutionInfo()
	require.NotEqual(t, info.GetFirstRunId(), info.GetExecution().GetRunId(), "it has %d bytes", info.GetHistorySizeBytes())
	for _, i := range []int{0, 1, 777, states - 1} {
		require.Equal(t, fmt.Sprint(1000*rounds+i), w.watermark(group, name(i)))
	}
	histories := testenv.Histories(t, c, incremental.WorkflowID(group), info.GetFirstRunId())
	require.Greater(t, len(histories), 1)
	require.NoError(t, testenv.Replay(histories, func(r worker.WorkflowReplayer) { workflows.Register(r) }, 1))
}
