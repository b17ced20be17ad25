package control

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// TestAnswersArePassedOnAfterACancel: a cancel while an answer waits for its workflow keeps
// neither this answer nor later ones from it.
func TestAnswersArePassedOnAfterACancel(t *testing.T) {
	t.Parallel()
	const child = "run/fetch#1"
	var passed []int
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.OnSignalExternalWorkflow(mock.Anything, child, "", protocol.AnswerSignal, mock.Anything).Return(
		func(_, _, _, _ string, answer any) error {
			passed = append(passed, answer.(interpreter.Answer).Attempt)
			return nil
		})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx, c := WithControls(ctx, "run", interpreter.Control{}, nil)
		cancelled, cancel := workflow.WithCancel(ctx)
		answer := func(attempt int) interpreter.Answer {
			return interpreter.Answer{AnswerTo: interpreter.AnswerTo{Step: "fetch", Attempt: attempt}, Verb: interpreter.AnswerComplete}
		}
		c.ChildCalls[child] = true // and has not begun
		c.forwardAnswer(cancelled, child, answer(1))
		if err := workflow.Sleep(ctx, time.Second); err != nil {
			return err
		}
		cancel()
		if err := workflow.Sleep(ctx, time.Second); err != nil {
			return err
		}
		delete(c.ChildCalls, child)
		c.forwardAnswer(cancelled, child, answer(2))
		return workflow.Sleep(ctx, time.Second)
	})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []int{1, 2}, passed)
}

// TestForwardedAnswersAreBounded passes maxForwardedTo and maxForwarded: what waits beyond them is dropped.
func TestForwardedAnswersAreBounded(t *testing.T) {
	t.Parallel()
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	to, all := 0, 0
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx, c := WithControls(ctx, "run", interpreter.Control{}, nil)
		forward := func(child string) {
			c.ChildCalls[child] = true // and has not begun
			for attempt := range maxForwardedTo + 10 {
				c.forwardAnswer(ctx, child, interpreter.Answer{AnswerTo: interpreter.AnswerTo{Step: "fetch", Attempt: attempt}, Verb: interpreter.AnswerComplete})
			}
		}
		forward("run/fetch#0")
		to = len(c.forwards)
		for child := range maxForwarded/maxForwardedTo + 1 {
			forward(fmt.Sprint("run/fetch#", child+1))
		}
		all = len(c.forwards)
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, maxForwardedTo, to)
	require.Equal(t, maxForwarded, all)
}
