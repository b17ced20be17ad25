package gate

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// Rehearsal observes the runs of `starter test`, which play on skipped time: what their calls decide, and what they send. Waits have no
// jitter then, so that tests can name them. Runs on a server have none.
type Rehearsal interface {
	// Observer is shown what the calls of a workflow decide, whose ID is given.
	Observer(workflowID string) call.Observer
	// Followed is shown where a branch goes after a step.
	Followed(book *playbook.Playbook, step *playbook.Step, arrivals []interpreter.Arrival)
	// StepBegan and StepEnded are shown the visits of steps, IterationEnded the iterations of a workflow.
	StepBegan(book *playbook.Playbook, record protocol.StepRecord)
	StepEnded(book *playbook.Playbook, record protocol.StepRecord)
	IterationEnded(workflowID string, task call.Task, iteration interpreter.IterationResult)
}

type rehearsalKey struct{}

// WithRehearsal makes the context of a workflow that is rehearsed. Its children are not,
// unless they get such a context too.
func WithRehearsal(ctx workflow.Context, rehearsal Rehearsal) workflow.Context {
	return workflow.WithValue(ctx, rehearsalKey{}, rehearsal)
}

// RehearsalOf is nil on a server.
func RehearsalOf(ctx workflow.Context) Rehearsal {
	rehearsal, _ := ctx.Value(rehearsalKey{}).(Rehearsal)
	return rehearsal
}

// CallObserver is shown what calls of this workflow decide; nil on a server.
func CallObserver(ctx workflow.Context) call.Observer {
	if rehearsal := RehearsalOf(ctx); rehearsal != nil {
		return rehearsal.Observer(workflow.GetInfo(ctx).WorkflowExecution.ID)
	}
	return nil
}
