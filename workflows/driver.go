package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/meter"
	"reprise/interpreter"
)

// waiter is told when a call begins and, with nil, ends a wait, for progress.
type waiter func(call *interpreter.Call, wait *interpreter.Wait, until time.Time)

// going says where a call goes on.
type going int

const (
	here      going = iota
	elsewhere       // in another history
)

// driver takes a call to its end, or to where it goes on elsewhere: it runs what
// the call asks for and tells it what came of it.
type driver struct {
	call    *interpreter.Call
	waiting waiter // nil where nobody asks
	// carry has activities fetch pages of the call; nil where all of it stays in the
	// workflow.
	carry *carrier
	// leaves says where the call goes on, before each wait and, with nil, before
	// everything else that it does once it has begun; nil is here.
	leaves func(wait *interpreter.Wait) going
	// place is that of the call's child in the window of its loop; nil where the call
	// keeps what it has.
	place *place
	// apart says that activities may fetch pages, alone that the next one is fetched
	// by an attempt of its own.
	apart, alone bool
	// until is when a wait ends that goes on in another history.
	until time.Time
}

// drive takes a call to its end within the workflow.
func drive(ctx workflow.Context, call *interpreter.Call, waiting waiter) interpreter.CallResult {
	d := &driver{call: call, waiting: waiting}
	d.run(ctx)
	return *call.Result()
}

// run drives the call until it has ended, here, or goes on elsewhere; then left is
// what it takes along.
func (d *driver) run(ctx workflow.Context) (where going, left interpreter.Carried) {
	ended := d.call.Finished() // and counted
	where, left = d.goOn(ctx)
	if !ended && d.call.Finished() {
		countCall(ctx, d.call)
	}
	return where, left
}

func (d *driver) goOn(ctx workflow.Context) (where going, left interpreter.Carried) {
	d.apart = d.carry != nil && d.call.Detachable()
	for !d.call.Finished() {
		if ctx.Err() != nil {
			d.cancel(ctx)
			break
		}
		if wait := d.call.Waits(workflow.Now(ctx)); wait != nil {
			countWait(ctx, d.call, *wait)
		}
		if where, left = d.left(ctx); where != here {
			return where, left
		}
		d.next(ctx)
	}
	return here, left
}

// next does what the call asks for next.
func (d *driver) next(ctx workflow.Context) {
	alone, held := d.alone, controlsOf(ctx).Holds(d.call.Step())
	if d.alone = false; d.apart && !alone && !held && d.call.TurnsPage() {
		d.pages(ctx)
		return
	}
	switch command := d.call.Next(workflow.Now(ctx)); command.Kind {
	case interpreter.DoAttempt:
		d.attempt(ctx, command.Input)
	case interpreter.DoWait:
		d.wait(ctx, command.Wait)
	case interpreter.DoHold:
		d.hold(ctx, command.Hold)
	case interpreter.DoSink:
		d.sink(ctx, command.Sink)
	case interpreter.DoFinish:
	}
}

// left asks where the call goes on, and what it takes along there.
func (d *driver) left(ctx workflow.Context) (where going, left interpreter.Carried) {
	if d.leaves == nil || !d.call.Begun() {
		return here, left
	}
	now := workflow.Now(ctx)
	wait := d.call.Waits(now)
	if where = d.leaves(wait); where == here {
		return here, left
	}
	left = d.carry.carried
	state := d.call.State
	left.State, left.Until = &state, time.Time{}
	switch {
	case !d.until.IsZero():
		left.Until = d.until
	case wait != nil:
		left.Until = now.Add(wait.Delay)
	}
	return where, left
}

// pages has an activity fetch pages of the call. One that it cannot hand over is
// fetched alone.
func (d *driver) pages(ctx workflow.Context) {
	further, err := d.carry.turnPages(ctx, d.call)
	if d.alone = !further; err != nil {
		d.cancel(ctx)
	}
}

// attempt makes one attempt, unless people hold its step.
func (d *driver) attempt(ctx workflow.Context, input interpreter.ToolInput) {
	if controls := controlsOf(ctx); controls.Holds(d.call.Step()) {
		d.call.Hold(interpreter.Hold{Version: controls.Version})
		return
	}
	outcome := attempt(ctx, input)
	if outcome.Err != nil && outcome.Err.Kind == interpreter.KindCancelled {
		d.cancel(ctx)
		return
	}
	d.call.Attempted(outcome, workflow.Now(ctx))
	logVerdict(ctx, d.call)
}

// sink takes the call of a sink to its end.
func (d *driver) sink(ctx workflow.Context, sink *interpreter.Call) {
	within := &driver{call: sink, waiting: d.waiting, place: d.place}
	within.run(ctx)
	d.call.SinkDone(*sink.Result(), workflow.Now(ctx))
}

// wait waits as long as the call has to, or until people end that. The page after
// it is usually followed by another wait.
func (d *driver) wait(ctx workflow.Context, wait interpreter.Wait) {
	defer d.rested()
	until, long := longWait(ctx, wait)
	settlement, err := d.rest(ctx, &wait, until, long, func() (*Settlement, error) {
		return controlsOf(ctx).sleep(ctx, d.call, wait)
	})
	switch {
	case errors.Is(err, errMoves):
		d.until = until
		return
	case err != nil:
		d.cancel(ctx)
	case settlement != nil:
		d.call.Settle(settlement.Settlement, workflow.Now(ctx))
	default:
		d.call.Waited()
	}
	d.alone = true
}

// hold waits until people let the call go on, or decide about it.
func (d *driver) hold(ctx workflow.Context, hold interpreter.Hold) {
	defer d.rested()
	wait := hold.Wait(d.call.State.Last.Error)
	settlement, err := d.rest(ctx, &wait, time.Time{}, true, func() (*Settlement, error) {
		return controlsOf(ctx).release(ctx, d.call, hold)
	})
	switch {
	case errors.Is(err, errMoves):
	case err != nil:
		d.cancel(ctx)
	case settlement != nil:
		d.call.Settle(settlement.Settlement, workflow.Now(ctx))
	default:
		d.call.Released()
	}
}

// rest tells who asks that the call waits, until a time or, where that is zero,
// until people say so, and leaves its place for a long wait.
func (d *driver) rest(
	ctx workflow.Context, wait *interpreter.Wait, until time.Time, long bool, waits func() (*Settlement, error),
) (*Settlement, error) {
	if d.waiting != nil {
		d.waiting(d.call, wait, until)
	}
	if d.place == nil || !long {
		return waits()
	}
	back := d.place.rest(ctx, resting{until: until, why: wait.Summary})
	settlement, err := waits()
	switch {
	case errors.Is(err, errMoves):
		d.place.stays()
	case err == nil:
		err = back()
	}
	return settlement, err
}

// rested tells that the call no longer waits.
func (d *driver) rested() {
	if d.waiting != nil {
		d.waiting(d.call, nil, time.Time{})
	}
}

func (d *driver) cancel(ctx workflow.Context) { d.call.Cancel(workflow.Now(ctx)) }

// logVerdict tells the worker's log what was decided about an attempt that failed.
func logVerdict(ctx workflow.Context, call *interpreter.Call) {
	verdict := call.Verdict()
	if verdict == nil {
		return
	}
	meter.Verdict(counter{ctx}, call.Facts(), verdict)
	if verdict.Ended {
		logger(ctx).Warn(verdict.Message(), verdict.Fields()...)
	} else {
		logger(ctx).Info(verdict.Message(), verdict.Fields()...)
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
