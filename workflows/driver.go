package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/meter"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
)

// waitRecorder records when a call begins and, with nil, ends a wait, for progress.
type waitRecorder func(call *call.Call, wait *interpreter.Wait, until time.Time)

// unshown is the waiter of a call whose waits nothing shows.
func unshown(*call.Call, *interpreter.Wait, time.Time) {}

// driver drives a call until it has ended, or continues as new: it runs what the call
// requests and applies the outcome to it.
type driver struct {
	call    *call.Call
	waiting waitRecorder
	// host has activities fetch pages of the call; nil where all of it stays in the
	// workflow.
	host *activityHost
	// renews reports whether the call continues as new, before everything that it does
	// once it has begun; nil is never.
	renews func() bool
	// slot is that of the call's child in the window of its loop; nil where the call
	// keeps what it has.
	slot *slot
	// apart says that activities may fetch pages, alone that the next page is fetched
	// by an attempt of its own.
	apart, alone bool
	// plays records the runs of other playbooks that attempts start, by their workflow
	// IDs; nil for none.
	plays func(child string)
	// allowance is what has been granted and not used; nil is none.
	allowance *allowance
	// until is when a wait ends that continues in the next history.
	until time.Time
	// awaited and bell are of a call whose attempts are answered from outside.
	awaited      *awaitedCall
	closeAwaited func()
	bell         *bell
}

// drive drives a call to its end within the workflow. slot is that of its child, nil
// where it keeps what it has.
func drive(ctx workflow.Context, call *call.Call, waiting waitRecorder, slot *slot) interpreter.CallResult {
	d := &driver{call: call, waiting: waiting, slot: slot}
	d.run(ctx)
	return *call.Result()
}

// run drives the call until it has ended, or continues as new; then snapshot is its
// input there, else nil.
func (d *driver) run(ctx workflow.Context) (snapshot *call.Snapshot) {
	ended := d.call.Finished() // and counted
	if !ended && d.awaited == nil && d.call.View().Traits().Awaits {
		d.awaited = &awaitedCall{call: d.call}
		d.closeAwaited = controlsOf(ctx).await(d.awaited)
	}
	snapshot = d.advance(ctx)
	if snapshot == nil {
		d.closeAnswers()
	}
	if !ended && d.call.Finished() {
		countCall(ctx, d.call)
		if d.host != nil && (!d.call.View().Stopped || !d.host.lost) {
			forget(ctx, d.host.task, d.call.View().Noted, d.host.snapshot.Bare(d.call))
		}
	}
	return snapshot
}

// closeAnswers has answers to the call refused. A call that continues as new accepts
// answers until then: they are in its state.
func (d *driver) closeAnswers() {
	if d.awaited != nil {
		d.closeAwaited()
		d.awaited = nil
	}
}

func (d *driver) advance(ctx workflow.Context) *call.Snapshot {
	if d.host != nil && d.call.View().Recalls && !d.call.Finished() {
		d.host.recallLedgers(ctx, d.call)
	}
	d.apart = d.host != nil && d.call.View().Detachable()
	for !d.call.Finished() {
		if ctx.Err() != nil {
			if d.call.View().Awaited != nil {
				d.notifyCancel(ctx)
			}
			d.cancel(ctx)
			break
		}
		wait := d.call.View().DueWait(workflow.Now(ctx))
		if wait != nil {
			countWait(ctx, d.call, *wait)
		}
		if d.renews != nil && d.call.View().Begun && d.renews() {
			d.silence()
			return d.snapshot(ctx, wait)
		}
		d.next(ctx)
	}
	return nil
}

// next does what the call requests next.
func (d *driver) next(ctx workflow.Context) {
	alone, held := d.alone, controlsOf(ctx).IsPaused(d.call.Config().Step.Name)
	if d.alone = false; d.apart && !alone && !held && d.call.View().TurnsPage() {
		d.fetchPages(ctx)
		return
	}
	switch command := d.call.Next(workflow.Now(ctx)); command.Kind {
	case call.DoAttempt:
		d.attempt(ctx, command.Input)
	case call.DoAwait:
		d.await(ctx, command.Await)
		d.ruled(ctx, nil)
	case call.DoWait:
		d.wait(ctx, command.Wait)
	case call.DoHold:
		d.hold(ctx, command.Hold)
	case call.DoSink:
		d.call.SinkDone(drive(ctx, command.Sink, d.waiting, d.slot), workflow.Now(ctx))
	case call.DoState:
		d.state(ctx, command.State)
	case call.DoFinish:
	}
}

// state has the state that the step keeps between runs claimed or moved.
func (d *driver) state(ctx workflow.Context, input interpreter.StateInput) {
	output, err := reachState(ctx, input, d.call.Config().Place(), func() *openWait { return waitOf(d.call) }, func(wait *interpreter.Wait) {
		d.waiting(d.call, wait, time.Time{})
	})
	switch {
	case errors.Is(err, errRenews): // and requests the state again
	case ctx.Err() != nil:
		d.cancel(ctx)
	case err != nil:
		d.call.StateFailed(*AttemptError(err), workflow.Now(ctx))
	default:
		d.call.StateAnswered(output, workflow.Now(ctx))
	}
}

// snapshot is the input with which the call continues in another history. wait is the
// one that is due, nil for none.
func (d *driver) snapshot(ctx workflow.Context, wait *interpreter.Wait) *call.Snapshot {
	var snapshot call.Snapshot
	if d.host != nil {
		snapshot = d.host.snapshot
	}
	state := d.call.View().Snapshot()
	snapshot.State, snapshot.Until = &state, time.Time{}
	switch {
	case !d.until.IsZero():
		snapshot.Until = d.until
	case wait != nil:
		snapshot.Until = workflow.Now(ctx).Add(wait.Delay)
	}
	return &snapshot
}

// fetchPages has an activity fetch pages of the call until something else is due. A page that
// it cannot return with others is fetched alone.
func (d *driver) fetchPages(ctx workflow.Context) {
	host := d.host
	input := call.DriveInput{Task: host.task, Calls: []call.Snapshot{host.snapshot}, Width: 1, Pages: true}
	output, further := hostCalls(ctx, input, []*call.Call{d.call},
		fmt.Sprintf("%s from page %d", indexed(host.task.Step, host.snapshot.Index), d.call.View().Pages+1))
	host.lost = len(output.Calls) == 0 || output.Calls[0].State == nil
	if d.alone = !further; ctx.Err() != nil { // a cancelled activity has given its pages too
		d.cancel(ctx)
	}
}

// attempt makes one attempt, unless its step is held.
func (d *driver) attempt(ctx workflow.Context, input interpreter.ToolInput) {
	if controls := controlsOf(ctx); controls.IsPaused(d.call.Config().Step.Name) {
		d.call.Hold(interpreter.Hold{Version: controls.Version})
		return
	}
	if d.awaited != nil {
		d.beginAwaited(ctx, input)
		return
	}
	outcome := d.make(ctx, input)
	if outcome.Err != nil && outcome.Err.Kind == interpreter.KindCancelled {
		d.cancel(ctx)
		return
	}
	d.call.Attempted(outcome, workflow.Now(ctx))
	d.ruled(ctx, &input)
	d.ignored(ctx, outcome.Err)
	logFailed(ctx, d.call)
}

// make makes an attempt: an activity does, or a run of another playbook.
func (d *driver) make(ctx workflow.Context, input interpreter.ToolInput) interpreter.Outcome {
	if playbook.TraitsOf(input.Tool).Plays {
		began := workflow.Now(ctx)
		outcome := d.play(ctx, input)
		if outcome.PutOff == nil && (outcome.Err == nil || outcome.Err.Kind != interpreter.KindCancelled) {
			countAttempt(ctx, d.call, began, outcome.Err)
		}
		return outcome
	}
	return attempt(ctx, input)
}

// wait waits as long as the call has to, or until people end that. The page after
// it is usually followed by another wait.
func (d *driver) wait(ctx workflow.Context, wait interpreter.Wait) {
	defer d.rested()
	until, long := longWait(ctx, wait)
	settlement, err := d.park(ctx, &wait, until, long, func() (*ItemSettlement, error) {
		return controlsOf(ctx).sleep(ctx, d.call, wait)
	})
	if errors.Is(err, errRenews) {
		d.until = until
		return
	}
	d.over(ctx, settlement, err, d.call.Waited)
	d.alone = true
}

// hold waits until people resume the call, or decide about it.
func (d *driver) hold(ctx workflow.Context, hold interpreter.Hold) {
	defer d.rested()
	d.markHold(ctx, hold)
	wait := hold.Wait(d.call.View().Failure)
	settlement, err := d.park(ctx, &wait, time.Time{}, true, func() (*ItemSettlement, error) {
		return controlsOf(ctx).release(ctx, d.call, hold)
	})
	if !errors.Is(err, errRenews) {
		d.over(ctx, settlement, err, d.call.Waited)
	}
}

// HoldMark marks in the history where a call began to wait for a person, which no other
// event shows. Kept in workflow history.
type HoldMark struct {
	Held  string `json:"held"` // the step, or the place of a sink
	Index *int   `json:"index,omitempty"`
}

// markHold records in the history, once, that the call waits for a person.
func (d *driver) markHold(ctx workflow.Context, hold interpreter.Hold) {
	if !hold.Exhausted || hold.Recorded {
		return
	}
	recordMarker(ctx, HoldMark{Held: d.call.Config().Place(), Index: d.call.Config().Index})
	d.call.HoldRecorded()
}

// over applies the end of a wait or a hold to the call: with what people decided, with
// a cancel, or by itself.
func (d *driver) over(ctx workflow.Context, settlement *ItemSettlement, err error, byItself func()) {
	switch {
	case err != nil:
		d.cancel(ctx)
	case settlement != nil:
		d.call.Settle(settlement.Settlement, workflow.Now(ctx))
	default:
		byItself()
	}
}

// park records that the call waits, until a time or, where that is zero, until people
// end that, and parks it in its slot for a long wait.
func (d *driver) park(
	ctx workflow.Context, wait *interpreter.Wait, until time.Time, long bool, waits func() (*ItemSettlement, error),
) (*ItemSettlement, error) {
	d.waiting(d.call, wait, until)
	if d.slot == nil || !long {
		return waits()
	}
	back := d.slot.park(ctx, parkedCall{until: until, why: wait.Summary})
	settlement, err := waits()
	switch {
	case errors.Is(err, errRenews):
		d.slot.stayParked()
	case err == nil:
		d.waiting(d.call, &interpreter.Wait{Reason: interpreter.ReasonSlot, Summary: interpreter.WaitsForSlot}, time.Time{})
		err = back()
	}
	return settlement, err
}

// rested records that the call no longer waits.
func (d *driver) rested() {
	d.waiting(d.call, nil, time.Time{})
}

func (d *driver) cancel(ctx workflow.Context) { d.call.Cancel(workflow.Now(ctx)) }

// logFailed logs the decision about an attempt that failed.
func logFailed(ctx workflow.Context, call *call.Call) {
	failed := call.View().FailedAttempt()
	if failed == nil {
		return
	}
	meter.FailedAttempt(counter{ctx}, call.View().Facts(), failed)
	if failed.Ended {
		logger(ctx).Warn(failed.Message(), failed.Fields()...)
	} else {
		logger(ctx).Info(failed.Message(), failed.Fields()...)
	}
}

// logger is the worker's, for records about the run that a workflow belongs to.
func logger(ctx workflow.Context) log.Logger {
	info := workflow.GetInfo(ctx)
	run := info.WorkflowExecution.ID
	if info.RootWorkflowExecution != nil {
		run = info.RootWorkflowExecution.ID
	}
	return log.With(workflow.GetLogger(ctx), "run", run)
}
