package loop

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/drive"
	"reprise/workflows/gate"
)

const (
	// mostAdmitted is how many runs a loop requests at once from the census of its tree: runs
	// it does not start are not available to others.
	mostAdmitted = 100
)

// requestsRuns reports whether the loop requests the runs of its iterations.
func (l *Loop) requestsRuns() bool {
	nesting := l.Input.Task.Nesting
	return nesting != nil && nesting.Tree.Most > 0 && l.playsRuns()
}

// admitRuns gives how many of the runs of n iterations may start without a request: each
// gets one, and requests what follows itself. It requests many at once, and never more
// than the rest of the loop needs.
func (l *Loop) admitRuns(ctx workflow.Context, n, rest int) int {
	if !l.requestsRuns() {
		return 0
	}
	if a := &l.allowance; !a.None && a.Left < n {
		count := max(n, min(rest, mostAdmitted)) - a.Left
		admitted, err := drive.RequestAdmission(ctx, interpreter.RunStart{Admission: l.controls.Admission(l.Input.Task.Nesting.Tree, count)}, l.step.Name)
		a.Left += admitted.Count
		a.None = err == nil && ctx.Err() == nil && admitted.Count < count
	}
	return l.allowance.Consume(n)
}

// returnAllowance returns what the loop's iterations have not been given.
func (l *Loop) returnAllowance(ctx workflow.Context) {
	if l.allowance.Left == 0 || ctx.Err() != nil {
		return
	}
	back := l.controls.Admission(l.Input.Task.Nesting.Tree, -l.allowance.Left)
	if _, err := drive.RequestAdmission(ctx, interpreter.RunStart{Admission: back}, l.step.Name); err != nil {
		gate.Logger(ctx).Warn("cannot give runs back that did not start", "error", err)
	}
	l.allowance.Left = 0
}

// cancelRuns has the runs of iterations, and their child runs of any depth, cancelled at
// once, as the failure budget of the loop is spent.
func (l *Loop) cancelRuns(ctx workflow.Context) {
	if !l.playsRuns() || len(l.batches) == 0 {
		return
	}
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	workflow.Go(disconnected, func(ctx workflow.Context) {
		drive.CancelTree(ctx, interpreter.CancelTree{Run: workflow.GetInfo(ctx).WorkflowExecution.ID})
	})
}
