package workflows

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
)

// Rehearsal is shown what the runs of a test decide. Their waits have no jitter, so that
// they are those of the policies. On a server there is none.
type Rehearsal interface {
	// Observer is shown what the calls of a workflow decide, whose ID is given.
	Observer(workflowID string) call.Observer
	// Followed is shown where a branch goes after a step.
	Followed(book *playbook.Playbook, step *playbook.Step, arrivals []interpreter.Arrival)
}

type rehearsalKey struct{}

// WithRehearsal makes the context of a workflow that is rehearsed. Its children are not,
// unless they get such a context too.
func WithRehearsal(ctx workflow.Context, rehearsal Rehearsal) workflow.Context {
	return workflow.WithValue(ctx, rehearsalKey{}, rehearsal)
}

// rehearsalOf is nil on a server.
func rehearsalOf(ctx workflow.Context) Rehearsal {
	rehearsal, _ := ctx.Value(rehearsalKey{}).(Rehearsal)
	return rehearsal
}

// observer is shown what calls of this workflow decide; nil on a server.
func observer(ctx workflow.Context) call.Observer {
	if rehearsal := rehearsalOf(ctx); rehearsal != nil {
		return rehearsal.Observer(workflow.GetInfo(ctx).WorkflowExecution.ID)
	}
	return nil
}
