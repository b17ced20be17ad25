package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// A first run and all its child runs, of any depth, are a tree, and how many may start
// in it is bounded. One workflow per tree counts. A workflow that starts a run requests
// its admission first, with an activity whose answer is in history; a loop requests
// many at once, and gives what it was granted to its iterations.

const (
	// treeIdle is how long the workflow of a tree stays without a request. The next
	// request starts it again, with the count of the last one.
	treeIdle = 10 * time.Minute
	// admitTimeout bounds one request, which may wait behind many others.
	admitTimeout = 10 * time.Minute
	// mayStartTimeout bounds the look whether a parent run was cancelled.
	mayStartTimeout = 10 * time.Second
	// cancelTreeTimeout bounds a cancel of all child runs of one.
	cancelTreeTimeout = 10 * time.Minute
	// mostAdmitted is how many runs a loop requests at once.
	mostAdmitted = 100
)

// TreeWorkflow counts the child runs that start in the tree of a first run.
func TreeWorkflow(ctx workflow.Context, census interpreter.Census) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a cancel would make it forget
	ctx = withOutbox(ctx, interpreter.RunLimits{})
	if err := census.Check(); err != nil {
		return unfit(err)
	}
	requests := 0
	err := errors.Join(
		workflow.SetUpdateHandlerWithOptions(ctx, interpreter.TreeUpdate,
			func(ctx workflow.Context, admission interpreter.Admission) (interpreter.Admitted, error) {
				requests++
				admitted := census.Admit(admission)
				workflow.SetCurrentDetails(ctx, fmt.Sprintf("%d runs of %d were admitted", census.Admitted, admission.Tree.Most))
				return admitted, nil
			},
			workflow.UpdateHandlerOptions{Validator: interpreter.Admission.Check}),
		workflow.SetQueryHandler(ctx, interpreter.TreeQuery, func() (interpreter.Census, error) { return census, nil }),
	)
	if err != nil {
		return err
	}
	for seen := -1; seen != requests; {
		seen = requests
		idle := workflow.NewTimerWithOptions(ctx, treeIdle, workflow.TimerOptions{Summary: "idle"})
		if err := workflow.Await(ctx, func() bool {
			return idle.IsReady() || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
		}); err != nil {
			return err
		}
		if !workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			continue
		}
		if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
			return err
		}
		return orFailure(continueAsNew(ctx, interpreter.TreeWorkflow, census, "the count of a tree's runs"))
	}
	return workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// tree is that of the run.
func (r *run) tree() interpreter.Tree {
	if called := r.input.Called; called != nil {
		return called.Tree
	}
	return interpreter.Tree{Root: r.First, Most: r.Limits.MaxRuns}
}

// allowance is how many runs of other playbooks a workflow may start without a request.
type allowance struct {
	left int
	none bool // no run is granted any more
}

// consume uses up to n of it.
func (a *allowance) consume(n int) int {
	consumed := min(n, a.left)
	a.left -= consumed
	return consumed
}

// unused is how many runs may start without a request.
func (a *allowance) unused() int {
	if a == nil {
		return 0
	}
	return a.left
}

// admit has a run that the call starts wait for its admission; nil where it may start
// now. One that is held keeps its admission.
func (d *driver) admit(ctx workflow.Context, tree interpreter.Tree, step string) *interpreter.Outcome {
	d.allowance = cmp.Or(d.allowance, &allowance{})
	var admitted interpreter.Admitted
	var err error
	switch {
	case tree.Most == 0, d.allowance.consume(1) == 1:
		admitted = mayStart(ctx, tree, step)
	case d.allowance.none:
		return &interpreter.Outcome{Err: tree.TooManyRuns(step)}
	default:
		controls := controlsOf(ctx)
		start := interpreter.RunStart{Admission: controls.admission(tree, 1), Attempt: controls.pausedBy(step)}
		if admitted, err = requestAdmission(ctx, start, step); err == nil && ctx.Err() == nil && admitted.Count == 0 {
			return &interpreter.Outcome{Err: tree.TooManyRuns(step)}
		}
	}
	switch {
	case ctx.Err() != nil:
		return &interpreter.Outcome{Err: cancelledError()}
	case err != nil:
		return &interpreter.Outcome{Err: AttemptError(err)}
	case admitted.Hold == nil:
		return nil
	}
	if tree.Most > 0 {
		d.allowance.left++
	}
	return &interpreter.Outcome{PutOff: &interpreter.PutOff{Hold: admitted.Hold}}
}

// mayStart reports whether a run may start now that needs no admission any more: not where
// a parent run was cancelled meanwhile, and then it returns once ctx is cancelled too. A run
// that does not answer does not hold it.
func mayStart(ctx workflow.Context, tree interpreter.Tree, step string) interpreter.Admitted {
	controls := controlsOf(ctx)
	start := interpreter.RunStart{Admission: controls.admission(tree, 0), Attempt: controls.pausedBy(step)}
	to := toLocal(interpreter.MayStartActivity, mayStartTimeout, "checks whether step "+step+" may start a run now")
	answer, err := send[interpreter.Admitted](ctx, to, start, "the question whether a run may start now")
	if answer.Closed {
		ctx.Done().Receive(ctx, nil) // its own cancel is on its way
	}
	if err != nil && ctx.Err() == nil {
		logger(ctx).Warn("cannot check whether a parent run was cancelled or paused", "error", err)
	}
	return answer
}

// pausedBy is what may hold an attempt of a step.
func (c *controls) pausedBy(step string) *interpreter.PausedBy {
	return &interpreter.PausedBy{
		Run: c.run, Step: step, Version: c.Version, Parents: (&call.Nesting{Parents: c.parents}).Brief(),
	}
}

// admission is the request for runs that this one waits for.
func (c *controls) admission(tree interpreter.Tree, count int) interpreter.Admission {
	admission := interpreter.Admission{Tree: tree, Count: count}
	for _, parent := range c.parents {
		admission.Runs = append(admission.Runs, parent.Run)
	}
	admission.Runs = append(admission.Runs, c.run)
	return admission
}

// requestAdmission requests the admission of runs. Where a parent run was cancelled it
// returns once ctx is cancelled too: who ended before that would be a failure to a
// parent that does not know of the cancel yet.
func requestAdmission(ctx workflow.Context, start interpreter.RunStart, step string) (interpreter.Admitted, error) {
	summary := fmt.Sprintf("asks whether step %s may start a run", step)
	switch {
	case start.Count > 1:
		summary = fmt.Sprintf("asks whether step %s may start %d runs", step, start.Count)
	case start.Count < 0:
		summary = fmt.Sprintf("gives %d runs back that step %s has not started", -start.Count, step)
	}
	to := toTool(interpreter.AdmitActivity, admitTimeout, summary)
	admitted, err := send[interpreter.Admitted](ctx, to, start, "the question whether a run may start")
	if admitted.Closed {
		ctx.Done().Receive(ctx, nil) // its own cancel is on its way
	}
	return admitted, err
}

// admits reports whether the loop requests the runs of its iterations.
func (l *loop) admits() bool {
	nesting := l.input.Task.Nesting
	return nesting != nil && nesting.Tree.Most > 0 && l.plays()
}

// admit gives how many of the runs of n iterations may start without a request: each
// gets one, and requests what follows itself. It requests many at once, and never more
// than the rest of the loop needs.
func (l *loop) admit(ctx workflow.Context, n, rest int) int {
	if !l.admits() {
		return 0
	}
	if a := &l.allowance; !a.none && a.left < n {
		count := max(n, min(rest, mostAdmitted)) - a.left
		admitted, err := requestAdmission(ctx, interpreter.RunStart{Admission: l.controls.admission(l.input.Task.Nesting.Tree, count)}, l.step.Name)
		a.left += admitted.Count
		a.none = err == nil && ctx.Err() == nil && admitted.Count < count
	}
	return l.allowance.consume(n)
}

// returnAllowance returns what the loop's iterations have not been given.
func (l *loop) returnAllowance(ctx workflow.Context) {
	if l.allowance.left == 0 || ctx.Err() != nil {
		return
	}
	back := l.controls.admission(l.input.Task.Nesting.Tree, -l.allowance.left)
	if _, err := requestAdmission(ctx, interpreter.RunStart{Admission: back}, l.step.Name); err != nil {
		logger(ctx).Warn("cannot give runs back that did not start", "error", err)
	}
	l.allowance.left = 0
}

// watchCancel has all child runs, of any depth, cancelled at once when the run is:
// level by level the cancel would wait for what the runs between have to do, and they
// would start others meanwhile.
func (r *run) watchCancel(ctx, branches workflow.Context) {
	if len(r.book.Callers()) == 0 {
		return
	}
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	workflow.Go(disconnected, func(ctx workflow.Context) {
		branches.Done().Receive(ctx, nil)
		if len(r.controls.parents) == 0 || r.Failure != nil { // else the run does that was cancelled first
			cancelTree(ctx, interpreter.CancelTree{Tree: r.tree(), Run: r.id})
		}
	})
}

// cancelRuns has the runs of iterations, and their child runs of any depth, cancelled at
// once, as the failure budget of the loop is spent.
func (l *loop) cancelRuns(ctx workflow.Context) {
	if !l.plays() || len(l.batches) == 0 {
		return
	}
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	workflow.Go(disconnected, func(ctx workflow.Context) {
		cancelTree(ctx, interpreter.CancelTree{Run: workflow.GetInfo(ctx).WorkflowExecution.ID})
	})
}

// cancelTree has the child runs of a run, of any depth, cancelled. Their ends show the
// outcome.
func cancelTree(ctx workflow.Context, tree interpreter.CancelTree) {
	tree.First = tree.Run
	if root := workflow.GetInfo(ctx).RootWorkflowExecution; root != nil {
		tree.First = root.ID
	}
	to := toTool(interpreter.CancelTreeActivity, cancelTreeTimeout, "cancels the child runs")
	to.urgent = true
	if _, err := send[struct{}](ctx, to, tree, "the names of runs"); err != nil {
		logger(ctx).Warn("cannot cancel the child runs at once", "error", err)
	}
}
