package drive

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/interpreter/mailbox"
	"reprise/workflows/control"
	"reprise/workflows/gate"
	"reprise/workflows/keeper"
	"reprise/workflows/protocol"
)

// StepOverError returns the error for an answer to a step that has ended.
func StepOverError(step string) error {
	return &interpreter.AnswerError{Type: interpreter.AnswerLate, Message: fmt.Sprintf("the attempt is over: step %s has ended", step)}
}

// beginAwaited begins an attempt that is answered from outside, and sends its request, if it has one. The answer
// may arrive before the request has been sent.
func (d *Driver) beginAwaited(ctx workflow.Context, input interpreter.ToolInput) {
	outcome := interpreter.Outcome{}
	if request := d.Call.View().Request; request.SendsRequest() {
		d.awaited.Sent = true
		control.ControlsOf(ctx).RememberQuestion(d.Call.View()) // whose link may be opened from now on
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
	d.Call.ApplyOutcome(outcome, workflow.Now(ctx))
	logFailed(ctx, d.Call)
}

// awaitAnswer waits until the attempt is answered, its time is over, or Stirred is set.
func (d *Driver) awaitAnswer(ctx workflow.Context, awaited await.AnswerWait) {
	wait := awaited.DescribeWait(d.Call.View().Reported)
	d.Waiting(d.Call, &wait, time.Time{})
	over := func() bool { // progress that arrived at the same time extends the deadline
		until := awaited.Until
		if now := d.Call.View().Awaited; now != nil {
			until = now.Until
		}
		return !until.IsZero() && !workflow.Now(ctx).Before(until)
	}
	control.ControlsOf(ctx).RememberQuestion(d.Call.View())
	timer := d.startAnswerTimer(ctx, awaited)
	err := workflow.Await(ctx, func() bool { return d.Call.View().HasAnswer() || d.awaited.Stirred || timer.over })
	d.awaited.Stirred = false
	switch {
	case err != nil && !d.Call.View().HasAnswer(): // an accepted answer counts even if the run is cancelled
		d.notifyCancel(ctx)
		d.cancelCall(ctx)
	case d.Call.View().HasAnswer() || over():
		if !d.Call.View().HasAnswer() {
			d.awaitMailboxes(ctx)
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
		_, mark.Option = d.Call.View().PendingApproval()
		if d.Call.View().Answer == nil {
			control.ControlsOf(ctx).NoteUnanswered(d.Call.View(), mark.Option)
		}
		failure := d.Call.ApplyAnswer(workflow.Now(ctx))
		countAttempt(ctx, d.Call, awaited.Since, failure)
		mark.Error = failure.ShrunkError()
		gate.RecordMarker(ctx, mark)
		logFailed(ctx, d.Call)
	}
}

// answerMark returns the history marker of the current attempt.
func (d *Driver) answerMark() protocol.AnswerMark {
	return protocol.AnswerMark{AnswerTo: d.Call.View().AttemptAddress(), Page: d.Call.View().Page}
}

// answerTimer is the timer of an attempt that awaits an answer. Progress extends the deadline without a new timer:
// another one is started only when this one has fired.
type answerTimer struct {
	stop workflow.CancelFunc
	over bool
}

// startAnswerTimer returns the running timer or starts one; it fires at the deadline of the attempt, or earlier.
func (d *Driver) startAnswerTimer(ctx workflow.Context, awaited await.AnswerWait) *answerTimer {
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

// stopAnswerTimer stops the timer of an attempt that this workflow no longer awaits.
func (d *Driver) stopAnswerTimer() {
	if d.answerTimer != nil {
		d.answerTimer.stop()
		d.answerTimer = nil
	}
}

// cancelTime bounds the request that reports a cancel to the server.
const cancelTime = 30 * time.Second

// notifyCancel reports to the server that the attempt was cancelled, if the step has a request for that. Its
// outcome is ignored.
func (d *Driver) notifyCancel(ctx workflow.Context) {
	d.stopAnswerTimer()
	if d.Call.View().Awaited != nil {
		mark := d.answerMark()
		mark.Over = true
		mark.Error = &interpreter.ErrorObject{Kind: interpreter.KindCancelled, Class: interpreter.ClassFinal, Message: "cancelled"}
		gate.RecordMarker(ctx, mark)
	}
	input, notifies := d.Call.View().CancelRequest(workflow.Now(ctx))
	if !notifies {
		return
	}
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	to := gate.ToTool(input.ActivityName(), cancelTime+timeoutSlack, attemptSummary(input)+", cancelled")
	result, err := gate.Send[interpreter.ToolResult](disconnected, to, input, "the cancel of step "+input.Step)
	if err != nil {
		gate.Logger(ctx).Warn("the other system could not be notified of the cancellation", "step", input.Step, "error", protocol.AttemptError(err).Message)
	} else if result.PutOff != nil {
		gate.Logger(ctx).Warn("the other system was not notified of the cancellation: the rate limit has no free slot in time", "step", input.Step)
	}
}

const (
	// mostSettling bounds how often, a second apart, an expired attempt checks whether its mailboxes are empty.
	// Each check takes up to some seconds.
	mostSettling = 15
)

// awaitMailboxes waits until answers to the attempt that are stored in mailboxes have been delivered, before the
// attempt times out. Mailboxes store answers while no worker can accept them.
func (d *Driver) awaitMailboxes(ctx workflow.Context) {
	to := gate.ToTool(mailbox.SettleActivity, keeper.MailTimeout, "checks for answers that are kept")
	to.Tries = mostSettling
	_, err := gate.Send[struct{}](ctx, to, mailbox.IDs(d.Call.View().AttemptAddress(), control.ControlsOf(ctx).Run), "the address of an attempt")
	if err != nil && ctx.Err() == nil {
		gate.Logger(ctx).Warn("cannot check whether an answer was stored for an attempt that has timed out", "step", d.Call.Config().Step.Name, "error", err)
	}
}
