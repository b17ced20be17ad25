package deadletter_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/observe/deadletter"
	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const oneLoop = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: test}
workflow:
  - step: fetch
    tool: http
    url: http://127.0.0.1:1
    loop: {collection: [a, b, c, d]}
`

// registerSlow registers workflows of a run whose iterations end when they are
// told to, also after the end of their loop. The last element never begins.
func registerSlow(w worker.Worker) {
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ protocol.Input) error {
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID + "/fetch#1",
		})
		return workflow.ExecuteChildWorkflow(ctx, protocol.LoopWorkflowName, protocol.LoopInput{
			Elements: []expression.Value{expression.Of("a"), expression.Of("b"), expression.Of("c"), expression.Of("d")},
		}).Get(ctx, nil)
	}, workflow.RegisterOptions{Name: protocol.PlaybookWorkflowName})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, input protocol.LoopInput) error {
		for i, element := range input.Elements[:3] {
			child := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
				WorkflowID:        workflow.GetInfo(ctx).WorkflowExecution.ID + "/" + string(rune('0'+i)),
				ParentClosePolicy: enums.PARENT_CLOSE_POLICY_ABANDON,
			})
			workflow.ExecuteChildWorkflow(child, protocol.CallsWorkflowName, protocol.CallsInput{
				Calls: []call.Snapshot{{Index: &i, Size: 4, Element: element}},
			})
		}
		return workflow.Await(ctx, func() bool { return false })
	}, workflow.RegisterOptions{Name: protocol.LoopWorkflowName})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, input protocol.CallsInput) (*protocol.CallsOutput, error) {
		var problem string
		workflow.GetSignalChannel(ctx, "end").Receive(ctx, &problem)
		result := interpreter.CallResult{Status: interpreter.StatusSuccess}
		if problem != "" {
			result.Status, result.Error = interpreter.StatusError, &interpreter.ErrorObject{Kind: interpreter.KindHTTP, Message: problem}
		}
		output := &protocol.CallsOutput{Iterations: []interpreter.IterationResult{{Index: *input.Calls[0].Index, Result: result}}}
		if problem != "" {
			return nil, temporal.NewApplicationErrorWithOptions(problem, string(interpreter.KindHTTP),
				temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{output}})
		}
		return output, nil
	}, workflow.RegisterOptions{Name: protocol.CallsWorkflowName})
}

// TestIterationsThatOutliveTheirLoop: how they ended is in no history of a
// parent, and is waited for.
func TestIterationsThatOutliveTheirLoop(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	c, id := env.Client(), env.NewTaskQueue()
	w := worker.New(c, id, worker.Options{})
	registerSlow(w)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: id},
		protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: oneLoop})
	require.NoError(t, err)
	loop := id + "/fetch#1"
	status := func(id string) enums.WorkflowExecutionStatus {
		described, err := c.DescribeWorkflowExecution(t.Context(), id, "")
		if err != nil {
			return enums.WORKFLOW_EXECUTION_STATUS_UNSPECIFIED
		}
		return described.GetWorkflowExecutionInfo().GetStatus()
	}
	require.Eventually(t, func() bool {
		return status(loop+"/0") == enums.WORKFLOW_EXECUTION_STATUS_RUNNING &&
			status(loop+"/1") == enums.WORKFLOW_EXECUTION_STATUS_RUNNING &&
			status(loop+"/2") == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	}, testenv.Within(time.Minute), 10*time.Millisecond)
	require.NoError(t, c.TerminateWorkflow(t.Context(), id, "", "for the test"))

	ended := make(chan error, 1)
	go func() {
		for status(loop) == enums.WORKFLOW_EXECUTION_STATUS_RUNNING && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		ended <- errors.Join(
			c.SignalWorkflow(t.Context(), loop+"/0", "", "end", ""),
			c.SignalWorkflow(t.Context(), loop+"/1", "", "end", "HTTP 404"),
			c.TerminateWorkflow(t.Context(), loop+"/2", "", "for the test"),
		)
	}()
	reader := &deadletter.Reader{Reader: runs.Reader{Client: c}}
	chain, err := reader.Chain(t.Context(), id, "")
	require.NoError(t, err)
	require.NoError(t, testenv.Receive(t, ended, "the end of the children"))
	require.Len(t, chain.Letters, 1)
	require.Equal(t, 1, chain.Letters[0].Index)
	require.Equal(t, "b", chain.Letters[0].Element.Data)
	require.Equal(t, "HTTP 404", chain.Letters[0].Error.Message)
	var cancelled []any
	for _, letter := range chain.Cancelled {
		require.Equal(t, chain.Origin.EndedAt, letter.LastAttemptAt)
		cancelled = append(cancelled, letter.Element.Data)
	}
	require.Equal(t, []any{"c", "d"}, cancelled)
}

// TestFailuresThatOnlyTheLoopReports: an iteration that failed without a child is in
// the loop's result alone; one that is left out there is counted.
func TestFailuresThatOnlyTheLoopReports(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	c, id := env.Client(), env.NewTaskQueue()
	w := worker.New(c, id, worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ protocol.Input) error {
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
			WorkflowID: workflow.GetInfo(ctx).WorkflowExecution.ID + "/fetch#1",
		})
		return workflow.ExecuteChildWorkflow(ctx, protocol.LoopWorkflowName, protocol.LoopInput{
			Elements: []expression.Value{expression.Of("a"), expression.Of("b"), expression.Of("c")},
		}).Get(ctx, nil)
	}, workflow.RegisterOptions{Name: protocol.PlaybookWorkflowName})
	w.RegisterWorkflowWithOptions(func(workflow.Context, protocol.LoopInput) (*interpreter.LoopResult, error) {
		result := interpreter.NewLoopResult(3)
		result.AddIteration(1, "b", interpreter.IterationResult{Index: 1, Result: interpreter.CallResult{
			Status: interpreter.StatusError, Error: &interpreter.ErrorObject{Kind: interpreter.KindTool, Message: "too large"},
		}})
		result.Stats.Failed, result.Stats.Cancelled = 2, 1
		return result, nil
	}, workflow.RegisterOptions{Name: protocol.LoopWorkflowName})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: id},
		protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: oneLoop})
	require.NoError(t, err)
	require.NoError(t, testenv.WaitOutcome(t, run, nil))
	chain, err := (&deadletter.Reader{Reader: runs.Reader{Client: c}}).Chain(t.Context(), id, "")
	require.NoError(t, err)
	require.Equal(t, 1, chain.Lost)
	require.Len(t, chain.Letters, 1)
	require.Equal(t, "too large", chain.Letters[0].Error.Message)
	require.Len(t, chain.Cancelled, 2, "the one that is lost can be taken up with those that were cancelled")
}
