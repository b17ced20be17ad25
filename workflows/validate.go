package workflows

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter/call"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

var errNoParent = errors.New("it is part of a run, and no run has started it; start " + protocol.PlaybookWorkflowName)

// refuseTopLevel returns the workflow function run, except that it fails if the workflow is not a child.
func refuseTopLevel[In, Out any](
	run func(workflow.Context, In, call.Script) (Out, error),
) func(workflow.Context, In, call.Script) (Out, error) {
	return func(ctx workflow.Context, input In, script call.Script) (Out, error) {
		if workflow.GetInfo(ctx).ParentWorkflowExecution == nil {
			var none Out
			return none, gate.UnfitError(errNoParent)
		}
		return run(ctx, input, script)
	}
}
