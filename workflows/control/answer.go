package control

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/lists"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// maxAnswered bounds the answers that a workflow remembers to recognise repeated ones, keeping
// the latest, because they are in the state with which it continues as new.
const maxAnswered = 200

// AwaitedCall is a call whose attempts are answered from outside.
type AwaitedCall struct {
	Call *call.Call
	// Sent says that the attempt is being made, and is not awaited yet.
	Sent bool
	// Stirred says that the driver has to check the attempt again: progress has
	// arrived, or the call continues as new.
	Stirred bool
}

// AwaitAnswer records a call that may be answered, until it is over.
func (c *Controls) AwaitAnswer(awaited *AwaitedCall) (over func()) {
	c.awaited = append(c.awaited, awaited)
	return func() {
		c.awaited = slices.DeleteFunc(c.awaited, func(other *AwaitedCall) bool { return other == awaited })
	}
}

// ServeAnswers sets the handlers of answers, and of queries of the attempts that await them.
func (c *Controls) ServeAnswers(ctx workflow.Context) error {
	return errors.Join(
		OnUpdate(ctx, c, &c.Answers, protocol.AnswerUpdate, c.checkAnswer, c.acceptAnswer),
		workflow.SetQueryHandler(ctx, protocol.AttemptDetailsQuery, c.describeAttempt),
	)
}

// AwaitAnswers makes the workflow accept answers, by updates and signals, once the calls that begin
// now have reached what they wait for: before, no attempt is awaited. Its coroutine is started after
// the waiting handlers, so these continue when all others have run.
func (c *Controls) AwaitAnswers(ctx workflow.Context) {
	if c.awaitsAnswers {
		return
	}
	c.awaitsAnswers = true
	workflow.Go(ctx, func(ctx workflow.Context) {
		c.Answers.Open(ctx)
		gate.OnSignal(ctx, protocol.AnswerSignal, c.answerSignalled)
	})
}

// checkAnswer refuses an answer if no attempt awaits it.
func (c *Controls) checkAnswer(answer interpreter.Answer) error {
	_, err := c.findAwaited(answer)
	if id := interpreter.AnsweredAt(err); id != "" && !c.isReachable(id) {
		return nil // the handler waits until it is: a sender that goes there earlier would find no workflow
	}
	return answerError(err)
}

// acceptAnswer has the call accept an answer that is for it, and refers the senders of others to the workflow that has it.
func (c *Controls) acceptAnswer(ctx workflow.Context, answer interpreter.Answer) (interpreter.AnswerReceipt, error) {
	taken, err := c.giveAnswer(ctx, answer)
	if id := interpreter.AnsweredAt(err); id != "" && c.awaitReachable(ctx, id) != nil {
		return taken, ctx.Err()
	}
	return taken, answerError(err)
}

// drainAnswers applies answers that have arrived and were not read yet.
func (c *Controls) drainAnswers(ctx workflow.Context) {
	for answer := range gate.Arrived[interpreter.Answer](workflow.GetSignalChannel(ctx, protocol.AnswerSignal)) {
		c.answerSignalled(ctx, answer)
	}
}

// answerSignalled applies an answer whose sender does not wait for the outcome.
func (c *Controls) answerSignalled(ctx workflow.Context, answer interpreter.Answer) {
	_, err := c.giveAnswer(ctx, answer)
	if id := interpreter.AnsweredAt(err); id != "" {
		c.forwardAnswer(ctx, id, answer)
		return
	}
	if err != nil {
		gate.Logger(ctx).Warn("an answer was refused", "step", answer.Step, "verb", answer.Verb, "error", err.Error())
	}
}

// Bounds of the answers that wait to be passed on, to one call and in all.
const (
	// maxForwardedTo bounds the answers to one call that wait to be passed on to the workflow
	// that has it. Without it, whoever has the call's token could fill the workflow.
	maxForwardedTo = 100
	// maxForwarded bounds the answers to all calls that wait to be passed on, in the memory and
	// the next history of the workflow.
	maxForwarded = 2000
)

// forwardedAnswer is an answer that is passed on to another workflow.
type forwardedAnswer struct {
	id     string
	answer interpreter.Answer
	digest string // identifies the answer; all progress has the same
}

// forwardAnswer passes an answer on to the workflow that accepts it. One is on its way at a
// time: Temporal fails every task of a workflow that sends too many signals at once. Of
// those that wait the newest progress and one of each other answer is enough; beyond
// the bounds an answer is dropped.
func (c *Controls) forwardAnswer(ctx workflow.Context, id string, answer interpreter.Answer) {
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
		gate.Logger(ctx).Warn("an answer was dropped: too many answers are waiting to be delivered", "step", answer.Step, "verb", answer.Verb)
		return
	}
	c.forwards = append(c.forwards, forwardedAnswer{id, answer, digest})
	if !c.forwarding {
		c.forwarding = true
		disconnected, _ := workflow.NewDisconnectedContext(ctx) // the receiver may continue after a cancel
		workflow.Go(disconnected, c.passOn)
	}
}

// passOn passes on what waits, one answer after the other.
func (c *Controls) passOn(ctx workflow.Context) {
	defer func() { c.forwarding = false }()
	for len(c.forwards) > 0 {
		next := c.forwards[0]
		c.forwards = c.forwards[1:]
		if c.awaitReachable(ctx, next.id) != nil {
			return
		}
		if err := gate.Signal(ctx, next.id, protocol.AnswerSignal, next.answer).Get(ctx, nil); err != nil {
			gate.Logger(ctx).Warn("an answer could not be delivered", "step", next.answer.Step, "workflow_id", next.id, "error", err)
		}
	}
}

// isReachable reports whether the workflow that accepts an answer in place of this one
// exists: the workflow of a call that has just moved may not have begun.
func (c *Controls) isReachable(id string) bool {
	return !c.ChildCalls[id] || slices.ContainsFunc(c.Children, func(child *gate.SteeredChild) bool {
		return child.ID == id && child.Child.GetChildWorkflowExecution().IsReady()
	})
}

func (c *Controls) awaitReachable(ctx workflow.Context, id string) error {
	return workflow.Await(ctx, func() bool { return c.isReachable(id) })
}

// answerError is an error of an answer as clients get it: an application error with the
// type of the interpreter's.
func answerError(err error) error {
	if refused, ok := errors.AsType[*interpreter.AnswerError](err); ok {
		return temporal.NewNonRetryableApplicationError(refused.Message, refused.Type, nil, refused.WorkflowID)
	}
	return err
}

// giveAnswer has the call accept an answer that is for it.
func (c *Controls) giveAnswer(ctx workflow.Context, answer interpreter.Answer) (interpreter.AnswerReceipt, error) {
	found, err := c.findAwaited(answer)
	switch {
	case err != nil:
		return interpreter.AnswerReceipt{}, err
	case found.before != nil:
		return *found.before, nil
	}
	now, key := workflow.Now(ctx), found.call.Call.View().Address().Key
	taken := found.call.Call.AcceptAnswer(answer, now)
	found.call.Stirred = true
	if answer.Verb == interpreter.AnswerProgress {
		return taken, nil
	}
	c.Answered = append(c.Answered, protocol.AcceptedAnswer{
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
	call   *AwaitedCall
	before *interpreter.AnswerReceipt
}

// findAwaited finds what an answer is for. The error is an *interpreter.AnswerError.
func (c *Controls) findAwaited(answer interpreter.Answer) (answerTarget, error) {
	if err := answer.Check(); err != nil {
		return answerTarget{}, err
	}
	if before := c.duplicateOf(answer); before != nil {
		return answerTarget{before: before}, nil
	}
	open := lists.Filter(c.awaited, func(awaited *AwaitedCall) bool { return awaited.Call.View().IsAddressed(answer.AnswerTo, awaited.Sent) })
	switch {
	case len(open) > 1:
		return answerTarget{}, &interpreter.AnswerError{
			Type: interpreter.AnswerRefused, Message: fmt.Sprintf("%d attempts await an answer; name one of them: %s", len(open), callNames(open)),
		}
	case len(open) == 1 && !open[0].Call.View().HasAnswer():
		return answerTarget{call: open[0]}, open[0].Call.View().CheckAnswer(answer)
	}
	if before, over := c.findAnswered(answer); over {
		if before == nil {
			return answerTarget{}, &interpreter.AnswerError{Type: interpreter.AnswerLate, Message: "the attempt already has another answer, or is over"}
		}
		return answerTarget{before: before}, nil
	}
	if len(open) == 1 {
		return answerTarget{}, open[0].Call.View().CheckAnswer(answer) // it has its answer
	}
	return answerTarget{}, c.notAwaited(answer.AnswerTo)
}

// duplicateOf is the earlier reply to an answer that arrives again with its ID: a
// sender does not always know whether its update arrived, and sends the answer as a
// signal too. By then another attempt may be running, for which the answer is not
// meant.
func (c *Controls) duplicateOf(answer interpreter.Answer) *interpreter.AnswerReceipt {
	if answer.ID == "" {
		return nil
	}
	digest := answer.Digest()
	for i, one := range c.Answered {
		if one.Receipt.ID == answer.ID && one.Digest == digest && one.Is(answer.AnswerTo) {
			return &c.Answered[i].Receipt
		}
	}
	return nil
}

// findAnswered finds an attempt that was answered; before is the reply if it was the same
// answer, nil for another one.
func (c *Controls) findAnswered(answer interpreter.Answer) (before *interpreter.AnswerReceipt, over bool) {
	digest := answer.Digest()
	for _, one := range slices.Backward(c.Answered) {
		if !one.Is(answer.AnswerTo) {
			continue
		}
		if one.Digest == digest {
			return &one.Receipt, true
		}
		over = over || answer.Key != "" || answer.Attempt != 0
	}
	return nil, over
}

// notAwaited is the error of an answer that is for nothing here.
func (c *Controls) notAwaited(to interpreter.AnswerTo) error {
	for _, awaited := range c.awaited {
		if to.MatchesCall(awaited.Call.View().Address()) && to != (interpreter.AnswerTo{Key: to.Key}) {
			return &interpreter.AnswerError{Type: interpreter.AnswerLate, Message: fmt.Sprintf(
				"the attempt is over, or has not started: step %s is at attempt %d", gate.CallName(awaited.Call), awaited.Call.View().Attempts+1)}
		}
	}
	if c.Elsewhere != nil {
		if err := c.Elsewhere(to); err != nil {
			return err
		}
	}
	message := "nothing awaits an answer here"
	if len(c.awaited) > 0 {
		message = "no attempt awaits this answer; these await one: " + callNames(c.awaited)
	}
	return &interpreter.AnswerError{Type: interpreter.AnswerUnknown, Message: message}
}

// AnswerElsewhereError refuses an answer whose attempt another workflow hosts.
func AnswerElsewhereError(id string) error {
	return &interpreter.AnswerError{
		Type: interpreter.AnswerElsewhere, WorkflowID: id, Message: fmt.Sprintf("workflow %s accepts this answer; send it there", id),
	}
}

// callNames names calls, at most ten of them.
func callNames(calls []*AwaitedCall) string {
	const shown = 10
	names := lists.Map(calls[:min(len(calls), shown)], func(call *AwaitedCall) string { return gate.CallName(call.Call) })
	if len(calls) > shown {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}
