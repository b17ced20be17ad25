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
	"reprise/interpreter/queue"
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
		require.NoError(w.t, testenv.WaitOutcome(w.t, run, &outputs))
		return outputs
	}
}

// claimOf and moveOf are those of a call.
func claimOf(group, name, holder string) interpreter.StateInput {
	return interpreter.StateInput{Group: group, Claim: &incremental.Claim{
		Name: name, Holder: holder, Run: "run of " + holder, Source: incremental.SourceIdentity{CursorPath: "id", Type: incremental.Integer, Fingerprint: "here"},
	}}
}

func writeOf(t *testing.T, name, holder string, number, to int) incremental.StateWrite {
	t.Helper()
	cursor, err := incremental.Parse(incremental.Integer, to)
	require.NoError(t, err)
	return incremental.StateWrite{Name: name, Holder: holder, Number: number, Move: &incremental.Move{To: cursor}}
}

func movesOf(group string, writes ...incremental.StateWrite) interpreter.StateInput {
	return interpreter.StateInput{Moves: []incremental.Moves{{Group: group, Writes: writes}}}
}

// watermark asks the workflow of a group for the watermark of a state.
func (w *world) watermark(group, name string) string {
	w.t.Helper()
	answer, err := w.env.Client().QueryWorkflow(w.t.Context(), incremental.WorkflowID(group), "", incremental.StatesQuery, incremental.NameRange{Prefix: name})
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
		movesOf(group, writeOf(t, "s", "a", 1, 10)),
		claimOf(group, "s", "a"),
	)
	require.True(t, out[0].Claimed.Watermark.IsZero())
	require.True(t, out[2].Claimed.Watermark.IsZero(), "the same call again")
	first.Kill()
	second := w.spawn()
	out = call(
		claimOf(group, "s", "b"),
		movesOf(group, writeOf(t, "s", "b", 1, 20)),
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
	require.ErrorContains(t, testenv.WaitOutcome(t, run, nil), "the input of the workflow was refused")
	testenv.ReplayAll(t, w.env.Client(), incremental.WorkflowID(group), "", func(r worker.WorkflowReplayer) { workflows.Register(r) }, 1)
}

// TestMovesAreUndone: a move that a run does not know of is undone, also where it arrives again, and what others have moved
// stays.
func TestMovesAreUndone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	group := "shop/" + w.queue
	w.work()
	call := stateCaller(w)
	undo := func(write incremental.StateWrite) {
		require.NoError(t, w.env.Client().SignalWorkflow(t.Context(), incremental.WorkflowID(group), "", incremental.UndoSignal, []incremental.StateWrite{write}))
	}
	call(claimOf(group, "s", "a"), movesOf(group, writeOf(t, "s", "a", 1, 10)), claimOf(group, "s", "b"))
	moved := writeOf(t, "s", "b", 1, 20)
	call(movesOf(group, moved))
	undo(moved)
	require.Equal(t, "10", w.watermark(group, "s"))
	call(movesOf(group, moved))
	require.Equal(t, "10", w.watermark(group, "s"))
	undo(writeOf(t, "s", "a", 1, 10))
	require.Equal(t, "10", w.watermark(group, "s"))
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
			var writes []incremental.StateWrite
			for i := first; i < first+atOnce; i++ {
				writes = append(writes, writeOf(t, name(i), "a", round, 1000*round+i))
			}
			inputs = append(inputs, movesOf(group, writes...))
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

// loading is a playbook whose step keeps a state without a sink, and stays in its visit until the
// door is open.
func (w *world) loading(words string) string {
	return fmt.Sprintf(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: %s}
workflow:
  - step: orders
    tool: http
    url: "{{ api }}/door"
    params: {run: "{{ execution_id }}", since: "{{ incremental.value }}"}
    incremental: {cursor_path: id, initial_value: 0, on_missing: include, state: "%s/orders"%s}
    retry: [{when: "{{ response.open == false }}", then: {max_attempts: 1000, delay: 200ms}}]
    next: [{when: "{{ error.type == 'conflict' }}", then: [{step: end}]}]
  - {step: end}
`, w.queue, w.queue, words)
}

// TestOneRunHoldsAState: of two runs at once one waits for the other, or fails; a holder that was
// terminated keeps nobody waiting.
func TestOneRunHoldsAState(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	door, open := newLobby(t)
	first := w.enter("first", w.loading(""), door.url)
	require.Eventually(t, func() bool { return len(door.present()) == 1 }, patience, tick)
	second := w.enter("second", w.loading(""), door.url)
	record := w.await(second, "orders", interpreter.Pending)
	require.Equal(t, fmt.Sprintf("waits for the state %s/orders, which run %s holds", w.queue, first.GetID()), record.Waiting)
	refused := w.endsAs(w.enter("third", w.loading(", on_conflict: fail"), door.url), interpreter.Completed)
	require.Equal(t, incremental.TypeConflict, step(t, refused, "orders").Error.Type)
	require.Contains(t, step(t, refused, "orders").Error.Message, first.GetID())
	cancelled := w.enter("fourth", w.loading(""), door.url)
	w.await(cancelled, "orders", interpreter.Pending)
	w.cancel(cancelled)
	require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), first.GetID(), "", "by hand"))
	w.await(second, "orders", interpreter.Running)
	require.Eventually(t, func() bool { return len(door.present()) == 2 }, patience, tick)
	require.NoError(t, w.env.Client().TerminateWorkflow(t.Context(), second.GetID(), "", "by hand"))
	fifth := w.enter("fifth", w.loading(", on_conflict: fail"), door.url)
	require.Eventually(t, func() bool { return len(door.present()) == 3 }, patience, tick, "who was terminated holds nothing")
	open()
	w.endsAs(fifth, interpreter.Completed)
	w.endsAs(w.enter("sixth", w.loading(", on_conflict: fail"), door.url), interpreter.Completed)
	require.Len(t, door.present(), 2, "those that were terminated")
}

// TestStateCommands: what a person wants to know and change of states is done by a worker, and
// no change while a run holds the state.
func TestStateCommands(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	command := func(command interpreter.StateCommand) (answer interpreter.StateAnswer, err error) {
		command.Group = w.queue + "/orders"
		run, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: w.queue}, interpreter.StateCommandWorkflow, command)
		require.NoError(t, err)
		return answer, run.Get(t.Context(), &answer)
	}
	answer, err := command(interpreter.StateCommand{})
	require.NoError(t, err)
	require.Empty(t, answer.States, "nothing is kept yet, and nothing is made")
	name := w.queue + "/orders"
	held := queue.Name{Key: name, State: true}.WorkflowID()
	to, err := incremental.Parse(incremental.Integer, 7)
	require.NoError(t, err)
	set := interpreter.StateCommand{Change: &incremental.StateChange{Name: name, By: "ana@desk", Note: "again", To: to}, Queue: held}
	door, open := newLobby(t)
	run := w.enter("first", w.loading(""), door.url)
	require.Eventually(t, func() bool { return len(door.present()) == 1 }, patience, tick)
	answer, err = command(set)
	require.NoError(t, err)
	require.Equal(t, []string{run.GetID()}, answer.Holders)
	open()
	w.endsAs(run, interpreter.Completed)
	answer, err = command(set)
	require.NoError(t, err)
	require.Empty(t, answer.Holders)
	answer, err = command(interpreter.StateCommand{Prefix: w.queue})
	require.NoError(t, err)
	require.Len(t, answer.States, 1)
	require.Equal(t, "7", answer.States[0].Watermark.Text())
	answer, err = command(interpreter.StateCommand{History: name})
	require.NoError(t, err)
	require.Len(t, answer.Changes, 1)
	require.Equal(t, []string{"ana@desk", "again", "7"}, []string{answer.Changes[0].By, answer.Changes[0].Note, answer.Changes[0].To.Text()})
	set.Queue = w.queue
	_, err = command(set)
	require.ErrorContains(t, err, "is not the queue of a state")
}
