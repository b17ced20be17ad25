package gate

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// Rehearsal observes the runs of `starter test`: the decisions of their calls, and what they send. Their time is
// skipped and their waits have no jitter, so that tests can state exact times. Runs on a server have no Rehearsal.
type Rehearsal interface {
	// Observer returns the observer of the calls of the workflow with this ID.
	Observer(workflowID string) call.Observer
	// RecordRoute is called when a branch continues after a step.
	RecordRoute(book *playbook.Playbook, step *playbook.Step, arrivals []interpreter.Arrival)
	// StepBegan and StepEnded are called for each visit of a step, IterationEnded for each
	// iteration.
	StepBegan(book *playbook.Playbook, record protocol.StepRecord)
	StepEnded(book *playbook.Playbook, record protocol.StepRecord)
	IterationEnded(workflowID string, task call.Task, iteration interpreter.IterationResult)
}

type rehearsalKey struct{}

// WithRehearsal adds a rehearsal to the context of a workflow. Contexts of its children do not inherit it.
func WithRehearsal(ctx workflow.Context, rehearsal Rehearsal) workflow.Context {
	return workflow.WithValue(ctx, rehearsalKey{}, rehearsal)
}

// RehearsalOf returns the rehearsal of a workflow; nil on a server.
func RehearsalOf(ctx workflow.Context) Rehearsal {
	rehearsal, _ := ctx.Value(rehearsalKey{}).(Rehearsal)
	return rehearsal
}

// CallObserver returns the observer of this workflow's calls; nil on a server.
func CallObserver(ctx workflow.Context) call.Observer {
	if rehearsal := RehearsalOf(ctx); rehearsal != nil {
		return rehearsal.Observer(workflow.GetInfo(ctx).WorkflowExecution.ID)
	}
	return nil
}
