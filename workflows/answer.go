package workflows

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/call/await"
	"reprise/interpreter/lists"
)

// Answers from outside come as updates of the workflow that hosts the attempt, or,
// where the sender does not wait for the outcome, as signals (docs/concepts/answers.md).
const (
	// AnswerUpdate takes an interpreter.Answer and returns an interpreter.AnswerReceipt.
	AnswerUpdate = interpreter.AnswerUpdate
	// AnswerSignal takes an interpreter.Answer.
	AnswerSignal = "answer"
)

// Answered is an answer that was accepted; kept in workflow history.
type Answered struct {
	Key     string                    `json:"key"`    // of the attempt
	Digest  string                    `json:"digest"` // of the answer
	Receipt interpreter.AnswerReceipt `json:"receipt"`
	// Verb, Option, By and At say what was answered, by whom and when.
	Verb   interpreter.AnswerVerb `json:"verb,omitempty"`
	Option string                 `json:"option,omitempty"`
	By     string                 `json:"by,omitempty"`
	At     time.Time              `json:"at,omitzero"`
}

// maxAnswered bounds the answers that a workflow remembers; the last count.
const maxAnswered = 200

// awaitedCall is a call whose attempts are answered from outside.
type awaitedCall struct {
	call *call.Call
	// sent says that the attempt is being made, and is not awaited yet.
	sent bool
	// stirred says that the driver has to check the attempt again: progress has
	// arrived, or the call continues as new.
	stirred bool
}

// await records a call that may be answered, until it is over.
func (c *controls) await(awaited *awaitedCall) (over func()) {
	c.awaited = append(c.awaited, awaited)
	return func() {
		c.awaited = slices.DeleteFunc(c.awaited, func(other *awaitedCall) bool { return other == awaited })
	}
}

// serveAnswers sets the handlers of answers, and of queries of the attempts that await them.
func (c *controls) serveAnswers(ctx workflow.Context) error {
	return errors.Join(
		onUpdate(ctx, c, &c.answers, AnswerUpdate, c.checkAnswer, c.acceptAnswer),
		workflow.SetQueryHandler(ctx, AttemptDetailsQuery, c.describeAttempt),
	)
}

// awaitAnswers has the workflow accept answers, by updates and signals, once the calls that begin
// now have come to what they wait for: before, no attempt is awaited. The coroutine comes behind the
// handlers that wait, which therefore continue when all others have run.
func (c *controls) awaitAnswers(ctx workflow.Context) {
	if c.awaitsAnswers {
		return
	}
	c.awaitsAnswers = true
	workflow.Go(ctx, func(ctx workflow.Context) {
		c.answers.open(ctx)
		onSignal(ctx, AnswerSignal, c.answerSignalled)
	})
}

// checkAnswer refuses an answer to nothing that is awaited.
func (c *controls) checkAnswer(answer interpreter.Answer) error {
	_, err := c.findAwaited(answer)
	if id := interpreter.AnsweredAt(err); id != "" && !c.reachable(id) {
		return nil // the handler waits until it is: a sender that goes there earlier would find no workflow
	}
	return answerError(err)
}

// acceptAnswer has the call accept an answer that is for it, and refers the senders of others to the workflow that has it.
func (c *controls) acceptAnswer(ctx workflow.Context, answer interpreter.Answer) (interpreter.AnswerReceipt, error) {
	taken, err := c.answer(ctx, answer)
	if id := interpreter.AnsweredAt(err); id != "" && c.awaitReachable(ctx, id) != nil {
		return taken, ctx.Err()
	}
	return taken, answerError(err)
}

// drainAnswers applies answers that have arrived and were not read yet.
func (c *controls) drainAnswers(ctx workflow.Context) {
	for answer := range arrived[interpreter.Answer](workflow.GetSignalChannel(ctx, AnswerSignal)) {
		c.answerSignalled(ctx, answer)
	}
}

// answerSignalled applies an answer whose sender does not wait for the outcome.
func (c *controls) answerSignalled(ctx workflow.Context, answer interpreter.Answer) {
	_, err := c.answer(ctx, answer)
	if id := interpreter.AnsweredAt(err); id != "" {
		c.forward(ctx, id, answer)
		return
	}
	if err != nil {
		logger(ctx).Warn("an answer was refused", "step", answer.Step, "verb", answer.Verb, "error", err.Error())
	}
}

// Bounds of the answers that wait to be passed on: of those to one call, and of all.
const (
	maxForwardedTo = 100
	maxForwarded   = 2000
)

// forwarded is an answer that is passed on to another workflow.
type forwarded struct {
	id     string
	answer interpreter.Answer
	digest string // identifies the answer; all progress has the same
}

// forward passes an answer on to the workflow that accepts it. One is on its way at a
// time: Temporal fails every task of a workflow that sends too many signals at once. Of
// those that wait the newest progress and one of each other answer is enough; beyond
// the bounds an answer is dropped.
func (c *controls) forward(ctx workflow.Context, id string, answer interpreter.Answer) {
	to, digest := 0, ""
	if answer.Verb != interpreter.AnswerProgress {
		digest = answer.Digest()
	}
	for i := range c.forwards {
		waits := &c.forwards[i]
		if waits.id != id {
			continue
		}
		to++
		if waits.digest == digest && reflect.DeepEqual(waits.answer.AnswerTo, answer.AnswerTo) {
			waits.answer = answer
			return
		}
	}
	if to >= maxForwardedTo || len(c.forwards) >= maxForwarded {
		logger(ctx).Warn("an answer was dropped: too many wait to be passed on", "step", answer.Step, "verb", answer.Verb)
		return
	}
	c.forwards = append(c.forwards, forwarded{id, answer, digest})
	if !c.forwarding {
		c.forwarding = true
		disconnected, _ := workflow.NewDisconnectedContext(ctx) // the receiver may continue after a cancel
		workflow.Go(disconnected, c.passOn)
	}
}

// passOn passes on what waits, one answer after the other.
func (c *controls) passOn(ctx workflow.Context) {
	defer func() { c.forwarding = false }()
	for len(c.forwards) > 0 {
		next := c.forwards[0]
		c.forwards = c.forwards[1:]
		if c.awaitReachable(ctx, next.id) != nil {
			return
		}
		if err := signal(ctx, next.id, AnswerSignal, next.answer).Get(ctx, nil); err != nil {
			logger(ctx).Warn("an answer could not be passed on", "step", next.answer.Step, "workflow_id", next.id, "error", err)
		}
	}
}

// reachable reports whether the workflow that accepts an answer in place of this one
// exists: the workflow of a call that has just moved may not have begun.
func (c *controls) reachable(id string) bool {
	return !c.childCalls[id] || slices.ContainsFunc(c.children, func(child *steered) bool {
		return child.id == id && child.child.GetChildWorkflowExecution().IsReady()
	})
}

func (c *controls) awaitReachable(ctx workflow.Context, id string) error {
	return workflow.Await(ctx, func() bool { return c.reachable(id) })
}

// answerError is an error of an answer as clients get it: an application error with the
// type of the interpreter's.
func answerError(err error) error {
	if refused, ok := errors.AsType[*interpreter.AnswerError](err); ok {
		return temporal.NewNonRetryableApplicationError(refused.Message, refused.Type, nil, refused.WorkflowID)
	}
	return err
}

// answer has the call accept an answer that is for it.
func (c *controls) answer(ctx workflow.Context, answer interpreter.Answer) (interpreter.AnswerReceipt, error) {
	found, err := c.findAwaited(answer)
	switch {
	case err != nil:
		return interpreter.AnswerReceipt{}, err
	case found.before != nil:
		return *found.before, nil
	}
	now, key := workflow.Now(ctx), found.call.call.View().Address().Key
	taken := found.call.call.AcceptAnswer(answer, now)
	found.call.stirred = true
	if answer.Verb == interpreter.AnswerProgress {
		return taken, nil
	}
	c.Answered = append(c.Answered, Answered{
		Key: key, Digest: answer.Digest(), Receipt: taken, Verb: answer.Verb, Option: answer.Option, By: answer.By, At: now,
	})
	if n := len(c.Answered) - maxAnswered; n > 0 {
		c.Answered = slices.Clone(c.Answered[n:])
	}
	return taken, nil
}

// answerTarget is what an answer is for: a call of this workflow, or one whose attempt
// has been answered in the same way before.
type answerTarget struct {
	call   *awaitedCall
	before *interpreter.AnswerReceipt
}

// findAwaited finds what an answer is for. The error is an *interpreter.AnswerError.
func (c *controls) findAwaited(answer interpreter.Answer) (answerTarget, error) {
	if err := answer.Check(); err != nil {
		return answerTarget{}, err
	}
	if before := c.duplicateOf(answer); before != nil {
		return answerTarget{before: before}, nil
	}
	open := lists.Filter(c.awaited, func(awaited *awaitedCall) bool { return awaited.call.View().IsAddressed(answer.AnswerTo, awaited.sent) })
	switch {
	case len(open) > 1:
		return answerTarget{}, &interpreter.AnswerError{
			Type: interpreter.AnswerRefused, Message: fmt.Sprintf("%d attempts await an answer; say which one is meant: %s", len(open), callNames(open)),
		}
	case len(open) == 1 && !open[0].call.View().HasAnswer():
		return answerTarget{call: open[0]}, open[0].call.View().CheckAnswer(answer)
	}
	if before, over := c.answered(answer); over {
		if before == nil {
			return answerTarget{}, &interpreter.AnswerError{Type: interpreter.AnswerLate, Message: "the attempt has been answered otherwise, or is over"}
		}
		return answerTarget{before: before}, nil
	}
	if len(open) == 1 {
		return answerTarget{}, open[0].call.View().CheckAnswer(answer) // it has its answer
	}
	return answerTarget{}, c.notAwaited(answer.AnswerTo)
}

// duplicateOf is the earlier reply to an answer that arrives again with its ID: a
// sender does not always know whether its update arrived, and sends the answer as a
// signal too. By then another attempt may be running, for which the answer is not
// meant.
func (c *controls) duplicateOf(answer interpreter.Answer) *interpreter.AnswerReceipt {
	if answer.ID == "" {
		return nil
	}
	digest := answer.Digest()
	for i, one := range c.Answered {
		if one.Receipt.ID == answer.ID && one.Digest == digest && one.is(answer.AnswerTo) {
			return &c.Answered[i].Receipt
		}
	}
	return nil
}

// answered finds an attempt that has its answer; before is the reply to the same
// answer, nil where it was another one.
func (c *controls) answered(answer interpreter.Answer) (before *interpreter.AnswerReceipt, over bool) {
	digest := answer.Digest()
	for _, one := range slices.Backward(c.Answered) {
		if !one.is(answer.AnswerTo) {
			continue
		}
		if one.Digest == digest {
			return &one.Receipt, true
		}
		over = over || answer.Key != "" || answer.Attempt != 0
	}
	return nil, over
}

// is reports whether an address that names a step, or an attempt by its key, is one of
// the attempt that was answered.
func (a Answered) is(to interpreter.AnswerTo) bool {
	at := a.Receipt.Address()
	at.Key = a.Key
	return (to.Step != "" || to.Key != "") && to.Matches(at)
}

// notAwaited is the error of an answer that is for nothing here.
func (c *controls) notAwaited(to interpreter.AnswerTo) error {
	for _, awaited := range c.awaited {
		if to.MatchesCall(awaited.call.View().Address()) && to != (interpreter.AnswerTo{Key: to.Key}) {
			return &interpreter.AnswerError{Type: interpreter.AnswerLate, Message: fmt.Sprintf(
				"the attempt is over, or has not begun: step %s makes attempt %d", nameOf(awaited.call), awaited.call.View().Attempts+1)}
		}
	}
	if c.elsewhere != nil {
		if err := c.elsewhere(to); err != nil {
			return err
		}
	}
	message := "nothing awaits an answer here"
	if len(c.awaited) > 0 {
		message = "no attempt awaits this answer; what awaits one is: " + callNames(c.awaited)
	}
	return &interpreter.AnswerError{Type: interpreter.AnswerUnknown, Message: message}
}

// answeredElsewhere names the workflow that accepts an answer for which the run's own
// history has no call: the workflow that makes a step's call in place of the run, or an
// iteration of its loop. It is nil where the run knows of no attempt like that.
func (r *run) answeredElsewhere(to interpreter.AnswerTo) error {
	over := false
	for _, record := range slices.Backward(r.records) {
		switch {
		case record.Step != to.Step || to.Visit != 0 && to.Visit != record.Visit:
		case !record.EndedAt.IsZero():
			over = true
		case record.Loop != nil:
			return r.answeredInLoop(record, to.Index)
		case record.Call != "":
			return answeredAt(record.Call)
		}
	}
	if over {
		return stepOver(to.Step)
	}
	return nil
}

// answeredInLoop names the workflow that accepts an answer to an iteration.
func (r *run) answeredInLoop(record *StepRecord, index *int) error {
	size := record.Loop.Stats.Total
	if index == nil {
		return &interpreter.AnswerError{Type: interpreter.AnswerRefused, Message: fmt.Sprintf(
			"step %s is a loop of %d: say which iteration is meant, by its index", record.Step, size)}
	}
	var chosen *Chosen
	if r.input.Reprocess != nil {
		chosen = &r.input.Reprocess.Loops[r.Reprocessed].Chosen
		size = chosen.Size
	}
	task := Task{ID: r.id, Step: record.Step, Visit: record.Visit}
	id, found := IterationID(task, r.book.Step(record.Step).Loop, size, chosen, *index)
	if !found {
		return &interpreter.AnswerError{Type: interpreter.AnswerUnknown, Message: fmt.Sprintf(
			"step %s has no iteration %d here", record.Step, *index)}
	}
	return answeredAt(id)
}

func answeredAt(id string) error {
	return &interpreter.AnswerError{
		Type: interpreter.AnswerElsewhere, WorkflowID: id, Message: fmt.Sprintf("workflow %s takes this answer; send it there", id),
	}
}

func stepOver(step string) error {
	return &interpreter.AnswerError{Type: interpreter.AnswerLate, Message: fmt.Sprintf("the attempt is over: step %s has ended", step)}
}

// answeredElsewhere says that an iteration has ended, where it has.
func (b *batch) answeredElsewhere(to interpreter.AnswerTo) error {
	ended := slices.ContainsFunc(b.ended, func(one interpreter.IterationResult) bool { return to.Index != nil && one.Index == *to.Index })
	if ended && to.Step == b.step.Name {
		return stepOver(indexed(b.step.Name, to.Index))
	}
	return nil
}

// callNames names calls, at most ten of them.
func callNames(calls []*awaitedCall) string {
	const most = 10
	names := lists.Map(calls[:min(len(calls), most)], func(call *awaitedCall) string { return nameOf(call.call) })
	if len(calls) > most {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// beginAwaited begins an attempt that is answered from outside: it sends the request
// with which it begins, where it has one. The answer may come before that has ended.
func (d *driver) beginAwaited(ctx workflow.Context, input interpreter.ToolInput) {
	outcome := interpreter.Outcome{}
	if request := d.call.View().Request; request.Sends() {
		d.awaited.sent = true
		outcome = attempt(ctx, input)
		d.awaited.sent = false
		if outcome.Err != nil && outcome.Err.Kind == interpreter.KindCancelled {
			d.notifyCancel(ctx)
			d.cancel(ctx)
			return
		}
	} else {
		recordMarker(ctx, d.answerMark())
	}
	d.call.Attempted(outcome, workflow.Now(ctx))
	logFailed(ctx, d.call)
}

// await waits until the attempt is answered, its time is over, or the driver has to
// check it again.
func (d *driver) await(ctx workflow.Context, awaited await.Awaited) {
	wait := awaited.Wait(d.call.View().Reported)
	d.waiting(d.call, &wait, time.Time{})
	over := func() bool { // progress may have come with the bell, and makes the time begin anew
		until := awaited.Until
		if now := d.call.View().Awaited; now != nil {
			until = now.Until
		}
		return !until.IsZero() && !workflow.Now(ctx).Before(until)
	}
	bell := d.ring(ctx, awaited)
	err := workflow.Await(ctx, func() bool { return d.call.View().HasAnswer() || d.awaited.stirred || bell.rang })
	d.awaited.stirred = false
	switch {
	case err != nil && !d.call.View().HasAnswer(): // an accepted answer counts, though the run is cancelled
		d.notifyCancel(ctx)
		d.cancel(ctx)
	case d.call.View().HasAnswer() || over():
		if !d.call.View().HasAnswer() {
			d.settle(ctx)
		}
		if !d.call.View().HasAnswer() && (ctx.Err() != nil || !over()) {
			return
		}
		d.rested()
		d.silence()
		mark := d.answerMark()
		mark.Over = true
		if answer := d.call.View().Answer; answer != nil {
			mark.By = answer.By
		}
		_, mark.Option = d.call.View().Approval()
		failure := d.call.ApplyAnswer(workflow.Now(ctx))
		countAttempt(ctx, d.call, awaited.Since, failure)
		mark.Error = failure.Shrunk()
		recordMarker(ctx, mark)
		logFailed(ctx, d.call)
	}
}

// AnswerMark marks in the history where an attempt began that sends nothing, and where
// one ended that was answered from outside, or not in time: readers of the history need
// not guess. Kept in workflow history.
type AnswerMark struct {
	interpreter.AnswerTo

	Page  int                      `json:"page"`
	Over  bool                     `json:"over,omitempty"`
	Error *interpreter.ErrorObject `json:"error,omitempty"`
	By    string                   `json:"by,omitempty"`
	// Option is what was chosen, of an approval.
	Option string `json:"option,omitempty"`
}

// answerMark is the mark of the current attempt.
func (d *driver) answerMark() AnswerMark {
	return AnswerMark{AnswerTo: d.call.View().Address(), Page: d.call.View().Page}
}

// bell is the timer of an attempt that is awaited. Progress sets the end of its
// time further away, and the bell is only set again when it has rung.
type bell struct {
	stop workflow.CancelFunc
	rang bool
}

// ring has the bell ring when the time of the attempt is over, or before.
func (d *driver) ring(ctx workflow.Context, awaited await.Awaited) *bell {
	if d.bell != nil && !d.bell.rang {
		return d.bell
	}
	d.bell = &bell{stop: func() {}}
	if awaited.Until.IsZero() {
		return d.bell
	}
	timed, stop := workflow.WithCancel(ctx)
	set := &bell{stop: stop}
	summary := fmt.Sprintf("answer to attempt %d of %s", d.call.View().Attempt, nameOf(d.call))
	timer := workflow.NewTimerWithOptions(timed, awaited.Until.Sub(workflow.Now(ctx)), workflow.TimerOptions{Summary: summary})
	workflow.Go(timed, func(ctx workflow.Context) { set.rang = timer.Get(ctx, nil) == nil })
	d.bell = set
	return set
}

// silence ends the timer of an attempt that is not awaited here any more.
func (d *driver) silence() {
	if d.bell != nil {
		d.bell.stop()
		d.bell = nil
	}
}

// cancelTime bounds the request that reports a cancel.
const cancelTime = 30 * time.Second

// notifyCancel notifies the other side that the attempt is cancelled, where the step
// says how. The outcome changes nothing.
func (d *driver) notifyCancel(ctx workflow.Context) {
	d.silence()
	if d.call.View().Awaited != nil {
		mark := d.answerMark()
		mark.Over = true
		mark.Error = &interpreter.ErrorObject{Kind: interpreter.KindCancelled, Class: interpreter.ClassFinal, Message: "cancelled"}
		recordMarker(ctx, mark)
	}
	input, notifies := d.call.View().Cancels(workflow.Now(ctx))
	if !notifies {
		return
	}
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	to := toTool(input.Activity(), cancelTime+timeoutSlack, attemptSummary(input)+", cancelled")
	result, err := send[interpreter.ToolResult](disconnected, to, input, "the cancel of step "+input.Step)
	if err != nil {
		logger(ctx).Warn("the other side could not be notified of the cancel", "step", input.Step, "error", AttemptError(err).Message)
	} else if result.PutOff != nil {
		logger(ctx).Warn("the other side was not notified of the cancel: the rate limit has no slot soon enough", "step", input.Step)
	}
}
