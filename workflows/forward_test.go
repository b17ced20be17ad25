package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// TestAnswersArePassedOnAfterACancel: a cancel while an answer waits for its workflow keeps
// neither this answer nor later ones from it.
func TestAnswersArePassedOnAfterACancel(t *testing.T) {
	t.Parallel()
	const child = "run/fetch#1"
	var passed []int
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.OnSignalExternalWorkflow(mock.Anything, child, "", AnswerSignal, mock.Anything).Return(
		func(_, _, _, _ string, answer any) error {
			passed = append(passed, answer.(interpreter.Answer).Attempt)
			return nil
		})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx, c := withControls(ctx, "run", interpreter.Control{}, nil)
		cancelled, cancel := workflow.WithCancel(ctx)
		answer := func(attempt int) interpreter.Answer {
			return interpreter.Answer{AnswerTo: interpreter.AnswerTo{Step: "fetch", Attempt: attempt}, Verb: interpreter.AnswerComplete}
		}
		c.childCalls[child] = true // and has not begun
		c.forward(cancelled, child, answer(1))
		if err := workflow.Sleep(ctx, time.Second); err != nil {
			return err
		}
		cancel()
		if err := workflow.Sleep(ctx, time.Second); err != nil {
			return err
		}
		delete(c.childCalls, child)
		c.forward(cancelled, child, answer(2))
		return workflow.Sleep(ctx, time.Second)
	})
	require.NoError(t, env.GetWorkflowError())
	require.Equal(t, []int{1, 2}, passed)
}

// TestUpdatesFinishBeforeTheHistoryEnds: an answer that waits to learn which workflow accepts it does
// so before this one ends.
func TestUpdatesFinishBeforeTheHistoryEnds(t *testing.T) {
	t.Parallel()
	const child = "run/fetch#1"
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	var outcome error
	env.RegisterDelayedCallback(func() {
		env.UpdateWorkflow(AnswerUpdate, "", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { outcome = err }, OnComplete: func(_ any, err error) { outcome = err },
		}, interpreter.Answer{AnswerTo: interpreter.AnswerTo{Step: "fetch"}, Verb: interpreter.AnswerComplete})
	}, time.Second)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx, c := withControls(withOutbox(ctx, interpreter.RunLimits{}), "run", interpreter.Control{}, nil)
		c.childCalls[child] = true // and has not begun
		c.elsewhere = func(interpreter.AnswerTo) error { return answeredAt(child) }
		if err := c.serveAnswers(ctx); err != nil {
			return err
		}
		c.awaitAnswers(ctx)
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return err
		}
		delete(c.childCalls, child)
		c.finishUpdates(ctx)
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
	require.ErrorContains(t, outcome, "workflow run/fetch#1 takes this answer; send it there")
}
