// Package drive makes one call: it lets package interpreter/call decide, waits durably, sends attempts to
// activities and child runs, and continues the call in another history when the current one is full.
package drive

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/meter"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
	"reprise/workflows/control"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// WaitRecorder is notified when a call begins a wait and, with nil, when the wait ends, to show the progress.
type WaitRecorder func(call *call.Call, wait *interpreter.Wait, until time.Time)

// RecordNoWait is a WaitRecorder that does nothing.
func RecordNoWait(*call.Call, *interpreter.Wait, time.Time) {}

// Driver drives a call until it has ended or continues as new: it carries out the commands of the call and reports
// the outcomes to it.
type Driver struct {
	Call    *call.Call
	Waiting WaitRecorder
	// Host lets activities fetch pages of the call; nil to do everything in the workflow.
	Host *ActivityHost
	// Renews is asked before each step of a call that has begun whether the call continues as new; nil means never.
	Renews func() bool
	// Slot is the slot of the call's child workflow in the window of its loop; nil if the call never releases one.
	Slot *control.Slot
	// apart says that activities may fetch several pages, alone that the next page must be fetched by a single
	// attempt.
	apart, alone bool
	// Plays is called with the workflow IDs of runs of other playbooks that attempts start; may be nil.
	Plays func(child string)
	// Allowance has admissions that were granted and not used; nil for none.
	Allowance *Allowance
	// until is the end of a wait that continues in the next history.
	until time.Time
	// awaited and answerTimer are set for a call whose attempts are answered from outside.
	awaited      *control.AwaitedCall
	closeAwaited func()
	answerTimer  *answerTimer
}

// Drive drives a call to its end within the workflow. slot is the slot of its child workflow, nil if it never
// releases one.
func Drive(ctx workflow.Context, call *call.Call, waiting WaitRecorder, slot *control.Slot) interpreter.CallResult {
	d := &Driver{Call: call, Waiting: waiting, Slot: slot}
	d.Run(ctx)
	return *call.Result()
}

// Run drives the call until it has ended, and returns nil, or until it continues as new, and returns the snapshot
// to continue from.
func (d *Driver) Run(ctx workflow.Context) (snapshot *call.Snapshot) {
	ended := d.Call.Finished() // and counted
	if !ended && d.awaited == nil && d.Call.View().ToolTraits().Awaits {
		d.awaited = &control.AwaitedCall{Call: d.Call}
		d.closeAwaited = control.ControlsOf(ctx).AwaitAnswer(d.awaited)
	}
	snapshot = d.advanceCall(ctx)
	if snapshot == nil {
		d.CloseAnswers()
	}
	if !ended && d.Call.Finished() {
		CountCall(ctx, d.Call)
		if d.Host != nil && (!d.Call.View().Stopped || !d.Host.lost) {
			ForgetNotes(ctx, d.Host.Task, d.Call.View().Noted, d.Host.Snapshot.WithoutState(d.Call))
		}
	}
	return snapshot
}

// CloseAnswers ends the acceptance of answers to the call. A call that continues as new accepts answers until then,
// because they become part of its state.
func (d *Driver) CloseAnswers() {
	if d.awaited != nil {
		d.closeAwaited()
		d.awaited = nil
	}
}

func (d *Driver) advanceCall(ctx workflow.Context) *call.Snapshot {
	if d.Host != nil && d.Call.View().Recalls && !d.Call.Finished() {
		d.Host.recallLedgers(ctx, d.Call)
	}
	d.apart = d.Host != nil && d.Call.View().CanDetachPages()
	for !d.Call.Finished() {
		if ctx.Err() != nil {
			if d.Call.View().Awaited != nil {
				d.notifyCancel(ctx)
			}
			d.cancelCall(ctx)
			break
		}
		wait := d.Call.View().DueWait(workflow.Now(ctx))
		if wait != nil {
			countWait(ctx, d.Call, *wait)
		}
		if d.Renews != nil && d.Call.View().Begun && d.Renews() {
			d.stopAnswerTimer()
			return d.continueInput(ctx, wait)
		}
		d.carryOutNext(ctx)
	}
	return nil
}

// carryOutNext carries out the next command of the call.
func (d *Driver) carryOutNext(ctx workflow.Context) {
	alone, held := d.alone, control.ControlsOf(ctx).IsPaused(d.Call.Config().Step.Name)
	if d.alone = false; d.apart && !alone && !held && d.Call.View().FetchesPage() {
		d.fetchPages(ctx)
		return
	}
	switch command := d.Call.Next(workflow.Now(ctx)); command.Kind {
	case call.DoAttempt:
		d.makeAttempt(ctx, command.Input)
	case call.DoAwait:
		d.awaitAnswer(ctx, command.Await)
		d.recordRuled(ctx, nil)
	case call.DoWait:
		d.awaitTime(ctx, command.Wait)
	case call.DoHold:
		d.awaitResume(ctx, command.Hold)
	case call.DoSink:
		d.Call.SinkDone(Drive(ctx, command.Sink, d.Waiting, d.Slot), workflow.Now(ctx))
	case call.DoState:
		d.changeState(ctx, command.State)
	case call.DoFinish:
	}
}

// changeState claims or moves the state that the step keeps between runs.
func (d *Driver) changeState(ctx workflow.Context, input interpreter.StateInput) {
	output, err := ReachState(ctx, input, d.Call.Config().StepOrSink(), func() *control.OpenWait { return control.NewOpenWait(d.Call) }, func(wait *interpreter.Wait) {
		d.Waiting(d.Call, wait, time.Time{})
	})
	switch {
	case errors.Is(err, control.ErrRenews): // and requests the state again
	case ctx.Err() != nil:
		d.cancelCall(ctx)
	case err != nil:
		d.Call.StateFailed(*protocol.AttemptError(err), workflow.Now(ctx))
	default:
		d.Call.StateAnswered(output, workflow.Now(ctx))
	}
}

// continueInput returns the snapshot with which the call continues in another history. wait is the wait that is
// due, nil for none.
func (d *Driver) continueInput(ctx workflow.Context, wait *interpreter.Wait) *call.Snapshot {
	var snapshot call.Snapshot
	if d.Host != nil {
		snapshot = d.Host.Snapshot
	}
	state := d.Call.View().Snapshot()
	snapshot.State, snapshot.Until = &state, time.Time{}
	switch {
	case !d.until.IsZero():
		snapshot.Until = d.until
	case wait != nil:
		snapshot.Until = workflow.Now(ctx).Add(wait.Delay)
	}
	return &snapshot
}

// fetchPages lets an activity fetch pages of the call until something else is due. A page that is too large to be
// returned with others is fetched by a single attempt.
func (d *Driver) fetchPages(ctx workflow.Context) {
	host := d.Host
	input := call.DriveInput{Task: host.Task, Calls: []call.Snapshot{host.Snapshot}, Width: 1, Pages: true}
	if host.MostPages != nil {
		input.MostPages = host.MostPages()
	}
	output, further := HostCalls(ctx, input, []*call.Call{d.Call},
		fmt.Sprintf("%s from page %d", gate.WithIndex(host.Task.Step, host.Snapshot.Index), d.Call.View().Pages+1))
	host.lost = len(output.Calls) == 0 || output.Calls[0].State == nil
	if d.alone = !further; ctx.Err() != nil { // a cancelled activity has returned its pages too
		d.cancelCall(ctx)
	}
}

// makeAttempt makes one attempt, unless the step is paused.
func (d *Driver) makeAttempt(ctx workflow.Context, input interpreter.ToolInput) {
	if controls := control.ControlsOf(ctx); controls.IsPaused(d.Call.Config().Step.Name) {
		d.Call.Hold(interpreter.Hold{Version: controls.Version})
		return
	}
	if d.awaited != nil {
		d.beginAwaited(ctx, input)
		return
	}
	outcome := d.runAttempt(ctx, input)
	if outcome.Err != nil && outcome.Err.Kind == interpreter.KindCancelled {
		d.cancelCall(ctx)
		return
	}
	d.Call.ApplyOutcome(outcome, workflow.Now(ctx))
	d.recordRuled(ctx, &input)
	d.recordIgnored(ctx, outcome.Err)
	logFailed(ctx, d.Call)
}

// runAttempt makes an attempt, in an activity or as a run of another playbook.
func (d *Driver) runAttempt(ctx workflow.Context, input interpreter.ToolInput) interpreter.Outcome {
	if playbook.TraitsOf(input.Tool).Plays {
		began := workflow.Now(ctx)
		outcome := d.playRun(ctx, input)
		if outcome.PutOff == nil && (outcome.Err == nil || outcome.Err.Kind != interpreter.KindCancelled) {
			countAttempt(ctx, d.Call, began, outcome.Err)
		}
		return outcome
	}
	return runTool(ctx, input)
}

// awaitTime waits for the duration of wait, or until people end it. For a call that pages, the next page is usually
// followed by another wait.
func (d *Driver) awaitTime(ctx workflow.Context, wait interpreter.Wait) {
	defer d.endRest()
	until, long := control.IsLongWait(ctx, wait)
	settlement, err := d.parkCall(ctx, &wait, until, long, func() (*protocol.ItemSettlement, error) {
		return control.ControlsOf(ctx).SleepFor(ctx, d.Call, wait)
	})
	if errors.Is(err, control.ErrRenews) {
		d.until = until
		return
	}
	d.endWait(ctx, settlement, err, d.Call.EndWait)
	d.alone = true
}

// awaitResume waits until people resume the call or decide about it.
func (d *Driver) awaitResume(ctx workflow.Context, hold interpreter.Hold) {
	defer d.endRest()
	d.markHold(ctx, hold)
	wait := hold.DescribeWait(d.Call.View().Failure)
	settlement, err := d.parkCall(ctx, &wait, time.Time{}, true, func() (*protocol.ItemSettlement, error) {
		return control.ControlsOf(ctx).AwaitRelease(ctx, d.Call, hold)
	})
	if !errors.Is(err, control.ErrRenews) {
		d.endWait(ctx, settlement, err, d.Call.EndWait)
	}
}

// markHold records in the history, once, that the call waits for a person to decide after its attempts were used
// up.
func (d *Driver) markHold(ctx workflow.Context, hold interpreter.Hold) {
	if !hold.Exhausted || hold.Recorded {
		return
	}
	gate.RecordMarker(ctx, protocol.HoldMark{Held: d.Call.Config().StepOrSink(), Index: d.Call.Config().Index})
	d.Call.HoldRecorded()
}

// endWait applies the end of a wait or hold to the call: a cancel if err is set, a person's decision if settlement
// is, otherwise byItself.
func (d *Driver) endWait(ctx workflow.Context, settlement *protocol.ItemSettlement, err error, byItself func()) {
	switch {
	case err != nil:
		d.cancelCall(ctx)
	case settlement != nil:
		d.Call.Settle(settlement.Settlement, workflow.Now(ctx))
	default:
		byItself()
	}
}

// parkCall records that the call waits, until a time or, if that is zero, until people end the wait, and parks it
// in its slot during a long wait.
func (d *Driver) parkCall(
	ctx workflow.Context, wait *interpreter.Wait, until time.Time, long bool, waits func() (*protocol.ItemSettlement, error),
) (*protocol.ItemSettlement, error) {
	d.Waiting(d.Call, wait, until)
	if d.Slot == nil || !long {
		return waits()
	}
	back := d.Slot.ParkCall(ctx, control.ParkedCall{Until: until, Why: wait.Summary})
	settlement, err := waits()
	switch {
	case errors.Is(err, control.ErrRenews):
		d.Slot.StayParked()
	case err == nil:
		d.Waiting(d.Call, &interpreter.Wait{Reason: interpreter.ReasonSlot, Summary: interpreter.WaitsForSlot}, time.Time{})
		err = back()
	}
	return settlement, err
}

// endRest records that the call no longer waits.
func (d *Driver) endRest() {
	d.Waiting(d.Call, nil, time.Time{})
}

func (d *Driver) cancelCall(ctx workflow.Context) { d.Call.Cancel(workflow.Now(ctx)) }

// logFailed logs and counts the last attempt if it failed.
func logFailed(ctx workflow.Context, call *call.Call) {
	failed := call.View().FailedAttempt()
	if failed == nil {
		return
	}
	meter.FailedAttempt(gate.MetricsOf(ctx), call.View().TelemetryFacts(), failed)
	if failed.Ended {
		gate.Logger(ctx).Warn(failed.Message(), failed.Fields()...)
	} else {
		gate.Logger(ctx).Info(failed.Message(), failed.Fields()...)
	}
}
