package drive

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/tree"
	"reprise/workflows/control"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// A step may run another playbook. The child run is a run like any other, and a child of the workflow that makes
// the step's attempts: it is validated separately, and people find, pause and cancel it by its own ID. Of its
// parent it knows only whether the parent is paused.

// playRun makes an attempt by running another playbook to its end.
func (d *Driver) playRun(ctx workflow.Context, in interpreter.ToolInput) interpreter.Outcome {
	if d.Host == nil {
		return protocol.FailedOutcome(interpreter.ClassFinal, "step %s: a sink cannot run a playbook", in.Step)
	}
	task := control.ControlsOf(ctx).WithControls(d.Host.Task)
	nesting := cmp.Or(task.Nesting, &call.Nesting{})
	if nesting.Depth >= playbook.MaxNesting {
		outcome := protocol.FailedOutcome(interpreter.ClassFinal, "step %s: playbooks may run each other at most %d levels deep, and this one is already at that level", in.Step, playbook.MaxNesting)
		outcome.Err.Final = true
		return outcome
	}
	callee, failure := d.Call.Config().FindCallee(in, nesting.Files)
	if failure != nil {
		return interpreter.Outcome{Err: failure}
	}
	if refused := d.admitRun(ctx, nesting.Tree, in.Step); refused != nil {
		return *refused
	}
	id := protocol.PlayID(task, in)
	if d.Plays != nil {
		d.Plays(id)
	}
	input := protocol.Input{
		Name: callee.Name, Source: callee.Source, Workload: callee.Workload, Strict: nesting.Strict,
		SearchAttributes: nesting.SearchAttributes, DeadLetters: nesting.DeadLetters, NextRetry: nesting.NextRetry,
		Files: nesting.Files, Partition: callee.Partition, FullRefresh: playbook.StripStepPrefix(in.Step, task.Run.FullRefresh),
		Called: &protocol.ParentAttempt{
			Step: in.Step, Visit: in.Visit, Index: in.Index, Page: in.Page, Attempt: in.Attempt, Depth: nesting.Depth + 1,
			Tree: nesting.Tree, ScheduledAt: nesting.ScheduledAt,
			Key: in.OperationKey, Lap: task.Run.ChildLap(in.Attempt), HasSiblings: d.Host.HasSiblings, Recall: d.earlierRuns(task, nesting, in),
		},
	}
	if !callee.Wait {
		return playDetached(ctx, id, input, in)
	}
	input.Called.Parents = control.ControlsOf(ctx).ParentsOfChild(in.Step, nesting.Queue)
	return playChild(ctx, id, input, in)
}

// playChild runs a playbook as a child and waits for its end, at most for the timeout of the attempt.
func playChild(ctx workflow.Context, id string, input protocol.Input, in interpreter.ToolInput) interpreter.Outcome {
	scope, cancel := workflow.WithCancel(ctx)
	late, limit := false, in.Timeout()
	if limit > 0 {
		mark := interpreter.TimerMark{Call: in.Step, Index: in.Index, Limits: in.Attempt}
		gate.AfterWait(scope, limit, mark.MarkSummary("timeout of "+attemptSummary(in)), func(ctx workflow.Context) {
			late = true
			cancel()
			ctx, _ = workflow.NewDisconnectedContext(ctx)
			CancelTree(ctx, tree.CancelRequest{Tree: input.Called.Tree, Run: id})
		})
	}
	to := gate.ToChild(protocol.PlaybookWorkflowName, id, in.Step, attemptSummary(in), actsOnResumes)
	to.Attributes, to.Memo = input.InitialAttributes(), input.InitialMemo()
	result, err := gate.Send[protocol.Result](scope, to, input, "what step "+in.Step+" passes to the playbook that it runs")
	cancel()
	outcome, ended := protocol.EndOf(id, result, err)
	outcome.Partition = input.Partition
	switch {
	case ctx.Err() != nil:
		return interpreter.Outcome{Err: protocol.CancelledError()}
	case late && !ended:
		return failedTimeout(id, limit)
	default:
		return outcome
	}
}

// playDetached starts a playbook whose end is not awaited.
func playDetached(ctx workflow.Context, id string, input protocol.Input, in interpreter.ToolInput) interpreter.Outcome {
	to := gate.ToDetached(protocol.PlaybookWorkflowName, id, attemptSummary(in))
	to.Attributes, to.Memo = input.InitialAttributes(), input.InitialMemo()
	started, err := gate.Send[workflow.Execution](ctx, to, input, "what step "+in.Step+" passes to the playbook that it starts")
	switch {
	case err == nil:
		return interpreter.Outcome{Data: map[string]any{"workflow_id": started.ID, "run_id": started.RunID}}
	case protocol.IsOwnCancel(ctx, err):
		return interpreter.Outcome{Err: protocol.CancelledError()}
	}
	outcome, _ := protocol.EndOf(id, protocol.Result{}, err)
	return outcome
}

func failedTimeout(id string, limit time.Duration) interpreter.Outcome {
	return interpreter.Outcome{Err: &interpreter.ErrorObject{
		Kind: interpreter.KindTimeout, Class: interpreter.ClassRetryable,
		Message: fmt.Sprintf("the run %s did not end within %s and was cancelled", id, limit),
		Body:    expression.Of(map[string]any{"workflow_id": id, "status": string(interpreter.Cancelled)}),
	}}
}

// actsOnResumes reports whether a steering resumes a child run that was paused.
func actsOnResumes(steering protocol.Steering) bool {
	return steering.Resumes && steering.Settle == nil
}

const (
	// admitTimeout bounds a request for admission, which may queue behind many others.
	admitTimeout = 10 * time.Minute
	// mayStartTimeout bounds the check whether a parent run was cancelled.
	mayStartTimeout = 10 * time.Second
	// cancelTreeTimeout bounds the cancel of all descendants of a run.
	cancelTreeTimeout = 10 * time.Minute
)

// Allowance is the number of child runs that a workflow may start without requesting admission.
type Allowance struct {
	Left int
	None bool // no further runs are admitted
}

// Consume uses up to n of the allowance, and returns how many.
func (a *Allowance) Consume(n int) int {
	consumed := min(n, a.Left)
	a.Left -= consumed
	return consumed
}

// Unused returns the number of runs that may start without a request; 0 for nil.
func (a *Allowance) Unused() int {
	if a == nil {
		return 0
	}
	return a.Left
}

// admitRun requests admission for a run that the call starts. It returns nil if the run may start now, else the
// outcome of the attempt. An attempt that is held by a pause keeps its admission.
func (d *Driver) admitRun(ctx workflow.Context, of tree.Tree, step string) *interpreter.Outcome {
	d.Allowance = cmp.Or(d.Allowance, &Allowance{})
	var admitted tree.AdmissionAnswer
	var err error
	switch {
	case of.Most == 0, d.Allowance.Consume(1) == 1:
		admitted = mayStart(ctx, of, step)
	case d.Allowance.None:
		return &interpreter.Outcome{Err: of.TooManyRuns(step)}
	default:
		controls := control.ControlsOf(ctx)
		start := tree.RunStart{Admission: controls.AdmissionRequest(of, 1), Attempt: controls.HoldFor(step)}
		if admitted, err = RequestAdmission(ctx, start, step); err == nil && ctx.Err() == nil && admitted.Count == 0 {
			return &interpreter.Outcome{Err: of.TooManyRuns(step)}
		}
	}
	switch {
	case ctx.Err() != nil:
		return &interpreter.Outcome{Err: protocol.CancelledError()}
	case err != nil:
		return &interpreter.Outcome{Err: protocol.AttemptError(err)}
	case admitted.Hold == nil:
		return nil
	}
	if of.Most > 0 {
		d.Allowance.Left++
	}
	return &interpreter.Outcome{PutOff: &interpreter.PutOff{Hold: admitted.Hold}}
}

// mayStart reports whether an admitted run may start now. If a parent run was cancelled in the meantime, it returns
// false, after ctx has been cancelled too. Runs that do not respond cause no delay.
func mayStart(ctx workflow.Context, of tree.Tree, step string) tree.AdmissionAnswer {
	controls := control.ControlsOf(ctx)
	start := tree.RunStart{Admission: controls.AdmissionRequest(of, 0), Attempt: controls.HoldFor(step)}
	to := gate.ToLocal(tree.MayStartActivity, mayStartTimeout, "checks whether step "+step+" may start a run now")
	answer, err := gate.Send[tree.AdmissionAnswer](ctx, to, start, "the question whether a run may start now")
	if answer.Closed {
		ctx.Done().Receive(ctx, nil) // the cancel of this run will arrive
	}
	if err != nil && ctx.Err() == nil {
		gate.Logger(ctx).Warn("cannot check whether a parent run was cancelled or paused", "error", err)
	}
	return answer
}

// RequestAdmission requests the admission of runs. If a parent run was cancelled, it waits for the cancel of ctx:
// if this run ended earlier, a parent that does not know of the cancel yet would see a failure.
func RequestAdmission(ctx workflow.Context, start tree.RunStart, step string) (tree.AdmissionAnswer, error) {
	summary := fmt.Sprintf("asks whether step %s may start a run", step)
	switch {
	case start.Count > 1:
		summary = fmt.Sprintf("asks whether step %s may start %d runs", step, start.Count)
	case start.Count < 0:
		summary = fmt.Sprintf("returns %d runs that step %s did not start", -start.Count, step)
	}
	to := gate.ToTool(tree.AdmitActivity, admitTimeout, summary)
	admitted, err := gate.Send[tree.AdmissionAnswer](ctx, to, start, "the question whether a run may start")
	if admitted.Closed {
		ctx.Done().Receive(ctx, nil) // the cancel of this run will arrive
	}
	return admitted, err
}

// CancelTree cancels all descendants of a run. Whether that succeeded shows in their ends.
func CancelTree(ctx workflow.Context, request tree.CancelRequest) {
	request.First = request.Run
	if root := workflow.GetInfo(ctx).RootWorkflowExecution; root != nil {
		request.First = root.ID
	}
	to := gate.ToTool(tree.CancelActivity, cancelTreeTimeout, "cancels the child runs")
	to.Urgent = true
	if _, err := gate.Send[struct{}](ctx, to, request, "the names of runs"); err != nil {
		gate.Logger(ctx).Warn("cannot cancel the child runs immediately", "error", err)
	}
}
