package loop

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter/tree"
	"reprise/workflows/drive"
	"reprise/workflows/gate"
)

const (
	// mostAdmitted bounds the runs that a loop requests at once from its tree: while it has not started them, they
	// are not available to others.
	mostAdmitted = 100
)

// requestsRuns reports whether the loop requests admission for the runs of its iterations.
func (l *Loop) requestsRuns() bool {
	nesting := l.Input.Task.Nesting
	return nesting != nil && nesting.Tree.Most > 0 && l.runsPlaybooks()
}

// admitRuns returns how many of n iterations may start a run without a request of their own. Each gets at most one,
// and requests further ones itself. The loop requests many at once, but not more than its remaining iterations
// (rest) need.
func (l *Loop) admitRuns(ctx workflow.Context, n, rest int) int {
	if !l.requestsRuns() {
		return 0
	}
	if a := &l.allowance; !a.None && a.Left < n {
		count := runsToRequest(n, rest) - a.Left
		admitted, err := drive.RequestAdmission(ctx, tree.RunStart{Admission: l.controls.AdmissionRequest(l.Input.Task.Nesting.Tree, count)}, l.step.Name)
		a.Left += admitted.Count
		a.None = err == nil && ctx.Err() == nil && admitted.Count < count
	}
	return l.allowance.Consume(n)
}

// runsToRequest returns how many runs a loop requests when n iterations begin: also some of the rest of its
// iterations, up to mostAdmitted.
func runsToRequest(n, rest int) int { return max(n, min(rest, mostAdmitted)) }

// returnAllowance returns the admissions that no iteration has used.
func (l *Loop) returnAllowance(ctx workflow.Context) {
	if l.allowance.Left == 0 || ctx.Err() != nil {
		return
	}
	back := l.controls.AdmissionRequest(l.Input.Task.Nesting.Tree, -l.allowance.Left)
	if _, err := drive.RequestAdmission(ctx, tree.RunStart{Admission: back}, l.step.Name); err != nil {
		gate.Logger(ctx).Warn("cannot return runs that did not start", "error", err)
	}
	l.allowance.Left = 0
}

// cancelRuns cancels the runs of iterations, with all their descendants, at once, because the failure budget of the
// loop is spent.
func (l *Loop) cancelRuns(ctx workflow.Context) {
	if !l.runsPlaybooks() || len(l.batches) == 0 {
		return
	}
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	workflow.Go(disconnected, func(ctx workflow.Context) {
		drive.CancelTree(ctx, tree.CancelRequest{Run: workflow.GetInfo(ctx).WorkflowExecution.ID})
	})
}
