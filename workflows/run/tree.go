package run

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/drive"
)

// watchCancel cancels all child runs, of any depth, at once when the run is cancelled: passed
// on level by level, the cancel would wait for the work of the runs between, which would start
// more runs in that time.
func (r *run) watchCancel(ctx, branches workflow.Context) {
	if len(r.book.Callers()) == 0 {
		return
	}
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	workflow.Go(disconnected, func(ctx workflow.Context) {
		branches.Done().Receive(ctx, nil)
		if len(r.controls.Parents) == 0 || r.Failure != nil { // else the run does that was cancelled first
			drive.CancelTree(ctx, interpreter.CancelTree{Tree: r.runTree(), Run: r.id})
		}
	})
}
