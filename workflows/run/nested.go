package run

import (
	"strings"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// nestingOf returns what the tasks of a step know of parent and child runs.
func (r *run) nestingOf(step *playbook.Step) *call.Nesting {
	nesting := call.Nesting{Parents: r.controls.Parents}
	if called := r.input.Called; called != nil {
		nesting.Depth = called.Depth
	}
	action := r.book.ResolveAction(step.Action)
	if action.ToolTraits().Plays {
		nesting.Files = interpreter.NeededFiles(r.book, action, r.knownFiles())
		nesting.Strict = r.input.Strict || r.book.Strict
		nesting.SearchAttributes, nesting.DeadLetters, nesting.NextRetry = r.input.SearchAttributes, r.input.DeadLetters, r.input.NextRetry
		nesting.ScheduledAt, nesting.Before, nesting.Tree = r.Run.ScheduledAt, r.earlier.replacedRuns(), r.runTree()
		if r.queues.Ticket != nil {
			nesting.Queue = r.queues.Ticket.Queue
		}
	} else if len(nesting.Parents) == 0 {
		return nil
	}
	return &nesting
}

// checkCalled returns an error for input that only a parent run can write, if the run has no parent.
func checkCalled(ctx workflow.Context, input protocol.Input) error {
	if workflow.GetInfo(ctx).ParentWorkflowExecution != nil {
		return nil
	}
	if input.Called != nil {
		return errNotCalled
	}
	for _, name := range playbook.SortedKeys(input.Files) {
		if strings.HasPrefix(name, playbook.NamedScheme) {
			return errNotCalled
		}
	}
	return nil
}
