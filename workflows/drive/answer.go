package drive

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/workflows/control"
	"reprise/workflows/gate"
	"reprise/workflows/keeper"
	"reprise/workflows/protocol"
)

// StepOverError refuses an answer to a step that has ended.
func StepOverError(step string) error {
	return &interpreter.AnswerError{Type: interpreter.AnswerLate, Message: fmt.Sprintf("the attempt is over: step %s has ended", step)}
}

// beginAwaited begins an attempt that is answered from outside: it sends the attempt's request,
// if there is one. The answer may arrive before that has ended.
func (d *Driver) beginAwaited(ctx workflow.Context, input interpreter.ToolInput) {
	outcome := interpreter.Outcome{}
	if request := d.Call.View().Request; request.Sends() {
		d.awaited.Sent = true
		outcome = runTool(ctx, input)
		d.awaited.Sent = false
		if outcome.Err != nil && outcome.Err.Kind == interpreter.KindCancelled {
			d.notifyCancel(ctx)
			d.cancelCall(ctx)
			return
		}
	} else {
		gate.RecordMarker(ctx, d.answerMark())
	}
	d.Call.Attempted(outcome, workflow.Now(ctx))
	logFailed(ctx, d.Call)
}

// awaitAnswer waits until the attempt is answered, its time is over, or the driver has to
// check it again.
func (d *Driver) awaitAnswer(ctx workflow.Context, awaited await.Awaited) {
	wait := awaited.Wait(d.Call.View().Reported)
	d.Waiting(d.Call, &wait, time.Time{})
	over := func() bool { // progress may have come as the time was over, and makes it begin anew
		until := awaited.Until
		if now := d.Call.View().Awaited; now != nil {
			until = now.Until
		}
		return !until.IsZero() && !workflow.Now(ctx).Before(until)
	}
	timer := d.startAnswerTimer(ctx, awaited)
	err := workflow.Await(ctx, func() bool { return d.Call.View().HasAnswer() || d.awaited.Stirred || timer.over })
	d.awaited.Stirred = false
	switch {
	case err != nil && !d.Call.View().HasAnswer(): // an accepted answer counts, though the run is cancelled
		d.notifyCancel(ctx)
		d.cancelCall(ctx)
	case d.Call.View().HasAnswer() || over():
		if !d.Call.View().HasAnswer() {
			d.settleKept(ctx)
		}
		if !d.Call.View().HasAnswer() && (ctx.Err() != nil || !over()) {
			return
		}
		d.endRest()
		d.stopAnswerTimer()
		mark := d.answerMark()
		mark.Over = true
		if answer := d.Call.View().Answer; answer != nil {
			mark.By = answer.By
		}
		_, mark.Option = d.Call.View().Approval()
		failure := d.Call.ApplyAnswer(workflow.Now(ctx))
		countAttempt(ctx, d.Call, awaited.Since, failure)
		mark.Error = failure.ShrunkError()
		gate.RecordMarker(ctx, mark)
		logFailed(ctx, d.Call)
	}
}

// answerMark is the mark of the current attempt.
func (d *Driver) answerMark() protocol.AnswerMark {
	return protocol.AnswerMark{AnswerTo: d.Call.View().Address(), Page: d.Call.View().Page}
}

// answerTimer is the timer of an attempt that awaits its answer. Progress moves the end of the time, and another timer is
// started only when this one is over.
type answerTimer struct {
	stop workflow.CancelFunc
	over bool
}

// startAnswerTimer gives a timer that is over when the time of the attempt is, or before.
func (d *Driver) startAnswerTimer(ctx workflow.Context, awaited await.Awaited) *answerTimer {
	if d.answerTimer != nil && !d.answerTimer.over {
		return d.answerTimer
	}
	d.answerTimer = &answerTimer{stop: func() {}}
	if awaited.Until.IsZero() {
		return d.answerTimer
	}
	timed, stop := workflow.WithCancel(ctx)
	started := &answerTimer{stop: stop}
	summary := fmt.Sprintf("answer to attempt %d of %s", d.Call.View().Attempt, gate.CallName(d.Call))
	timer := workflow.NewTimerWithOptions(timed, awaited.Until.Sub(workflow.Now(ctx)), workflow.TimerOptions{Summary: summary})
	workflow.Go(timed, func(ctx workflow.Context) { started.over = timer.Get(ctx, nil) == nil })
	d.answerTimer = started
	return started
}

// stopAnswerTimer stops the timer of an attempt that is not awaited here any more.
func (d *Driver) stopAnswerTimer() {
	if d.answerTimer != nil {
		d.answerTimer.stop()
		d.answerTimer = nil
	}
}

// cancelTime bounds the request that reports a cancel.
const cancelTime = 30 * time.Second

// notifyCancel notifies the other side that the attempt is cancelled, where the step
// says how. The outcome changes nothing.
func (d *Driver) notifyCancel(ctx workflow.Context) {
	d.stopAnswerTimer()
	if d.Call.View().Awaited != nil {
		mark := d.answerMark()
		mark.Over = true
		mark.Error = &interpreter.ErrorObject{Kind: interpreter.KindCancelled, Class: interpreter.ClassFinal, Message: "cancelled"}
		gate.RecordMarker(ctx, mark)
	}
	input, notifies := d.Call.View().Cancels(workflow.Now(ctx))
	if !notifies {
		return
	}
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	to := gate.ToTool(input.Activity(), cancelTime+timeoutSlack, attemptSummary(input)+", cancelled")
	result, err := gate.Send[interpreter.ToolResult](disconnected, to, input, "the cancel of step "+input.Step)
	if err != nil {
		gate.Logger(ctx).Warn("the other system could not be notified of the cancellation", "step", input.Step, "error", protocol.AttemptError(err).Message)
	} else if result.PutOff != nil {
		gate.Logger(ctx).Warn("the other system was not notified of the cancellation: the rate limit has no free slot in time", "step", input.Step)
	}
}

const (
	// mostSettling is how often an attempt whose time is over checks, a second apart,
	// whether its mailboxes are empty, each time for some seconds.
	mostSettling = 15
)

// settleKept waits until the answers to the attempt that were kept in mailboxes have been
// delivered, before the attempt times out: while no worker was there, they could not be
// accepted.
func (d *Driver) settleKept(ctx workflow.Context) {
	to := gate.ToTool(interpreter.SettleActivity, keeper.MailTimeout, "checks for answers that are kept")
	to.Tries = mostSettling
	_, err := gate.Send[struct{}](ctx, to, d.Call.View().Address().MailboxIDs(control.ControlsOf(ctx).Run), "the address of an attempt")
	if err != nil && ctx.Err() == nil {
		gate.Logger(ctx).Warn("it is unknown whether answers were kept; the attempt is over", "step", d.Call.Config().Step.Name, "error", err)
	}
}
