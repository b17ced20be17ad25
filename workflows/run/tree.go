package run

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter/tree"
	"reprise/workflows/drive"
)

// watchCancel cancels all descendants of the run at once when it is cancelled. Passed on level by level, the cancel
// would be delayed by the work of the runs in between, which would start further runs.
func (r *run) watchCancel(ctx, branches workflow.Context) {
	if len(r.book.PlaybookCalls()) == 0 {
		return
	}
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	workflow.Go(disconnected, func(ctx workflow.Context) {
		branches.Done().Receive(ctx, nil)
		if len(r.controls.Parents) == 0 || r.Failure != nil { // otherwise the run that was cancelled first does it
			drive.CancelTree(ctx, tree.CancelRequest{Tree: r.runTree(), Run: r.id})
		}
	})
}
