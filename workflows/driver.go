package workflows

import (
	"time"

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
	later           // in a place of its own, when its wait is over
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
	// apart says that activities may fetch pages, alone that the next one is fetched
	// by an attempt of its own.
	apart, alone bool
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
	alone := d.alone
	if d.alone = false; d.apart && !alone && d.call.TurnsPage() {
		d.pages(ctx)
		return
	}
	switch command := d.call.Next(workflow.Now(ctx)); command.Kind {
	case interpreter.DoAttempt:
		d.attempt(ctx, command.Input)
	case interpreter.DoWait:
		d.wait(ctx, command.Wait)
	case interpreter.DoSink:
		d.call.SinkDone(drive(ctx, command.Sink, d.waiting), workflow.Now(ctx))
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
	if wait != nil {
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

// attempt makes one attempt.
func (d *driver) attempt(ctx workflow.Context, input interpreter.ToolInput) {
	outcome := attempt(ctx, input)
	if outcome.Err != nil && outcome.Err.Kind == interpreter.KindCancelled {
		d.cancel(ctx)
		return
	}
	d.call.Attempted(outcome, workflow.Now(ctx))
	logVerdict(ctx, d.call)
}

// wait is a durable timer whose summary says what it waits for. The page after it
// is usually followed by another wait.
func (d *driver) wait(ctx workflow.Context, wait interpreter.Wait) {
	if d.waiting != nil {
		d.waiting(d.call, &wait, workflow.Now(ctx).Add(wait.Delay))
		defer d.waiting(d.call, nil, time.Time{})
	}
	timer := workflow.NewTimerWithOptions(ctx, wait.Delay, workflow.TimerOptions{Summary: wait.Summary})
	if timer.Get(ctx, nil) != nil {
		d.cancel(ctx)
		return
	}
	d.call.Waited()
	d.alone = true
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
		workflow.GetLogger(ctx).Warn(verdict.Message(), verdict.Fields()...)
	} else {
		workflow.GetLogger(ctx).Info(verdict.Message(), verdict.Fields()...)
	}
}
