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

// maxAnswered bounds the answers that a workflow remembers in order to recognise repeated ones. The latest are
// kept; they are part of the state with which the workflow continues as new.
const maxAnswered = 200

// AwaitedCall is a call whose attempts are answered by people or other systems.
type AwaitedCall struct {
	Call *call.Call
	// Sent says that the attempt's request is being sent, and nobody awaits the attempt yet.
	Sent bool
	// Stirred says that the driver has to check the attempt again: progress has
	// arrived, or the call continues as new.
	Stirred bool
}

// AwaitAnswer records a call that may be answered, until over is called.
func (c *Controls) AwaitAnswer(awaited *AwaitedCall) (over func()) {
	c.awaited = append(c.awaited, awaited)
	return func() {
		c.awaited = slices.DeleteFunc(c.awaited, func(other *AwaitedCall) bool { return other == awaited })
	}
}

// ServeAnswers sets the handlers of answers, and of queries about the attempts that await them.
func (c *Controls) ServeAnswers(ctx workflow.Context) error {
	return errors.Join(
		HandleUpdate(ctx, c, &c.Answers, protocol.AnswerUpdate, c.checkAnswer, c.acceptAnswer),
		workflow.SetQueryHandler(ctx, protocol.AttemptDetailsQuery, c.describeAttempt),
	)
}

// AwaitAnswers makes the workflow accept answers, by updates and signals, once the calls that begin now have
// reached the attempt that they wait for. Its coroutine is started after the waiting handlers, so that these
// continue when all others have run.
func (c *Controls) AwaitAnswers(ctx workflow.Context) {
	if c.awaitsAnswers {
		return
	}
	c.awaitsAnswers = true
	workflow.Go(ctx, func(ctx workflow.Context) {
		c.Answers.Open(ctx)
		gate.HandleSignal(ctx, protocol.AnswerSignal, c.answerSignalled)
	})
}

// checkAnswer returns an error for an answer that no attempt awaits.
func (c *Controls) checkAnswer(answer interpreter.Answer) error {
	_, err := c.findAwaited(answer)
	if id := interpreter.AnsweredAt(err); id != "" && !c.isReachable(id) {
		return nil // the handler waits: before the other workflow exists, the sender would not find it
	}
	return answerError(err)
}

// acceptAnswer passes an answer to the call that awaits it. If another workflow has the call, the error refers the
// sender to that workflow, once it exists.
func (c *Controls) acceptAnswer(ctx workflow.Context, answer interpreter.Answer) (interpreter.AnswerReceipt, error) {
	taken, err := c.giveAnswer(ctx, answer)
	if id := interpreter.AnsweredAt(err); id != "" && c.awaitReachable(ctx, id) != nil {
		return taken, ctx.Err()
	}
	return taken, answerError(err)
}

// drainAnswers applies answers that have arrived as signals but were not read yet.
func (c *Controls) drainAnswers(ctx workflow.Context) {
	for answer := range gate.ArrivedSignals[interpreter.Answer](workflow.GetSignalChannel(ctx, protocol.AnswerSignal)) {
		c.answerSignalled(ctx, answer)
	}
}

// answerSignalled applies an answer that arrived as a signal, whose sender does not wait for the outcome.
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

// Bounds on the answers that wait to be forwarded, to one call and in total.
const (
	// maxForwardedTo bounds the answers to one call that wait to be forwarded to the workflow that has the call.
	// Otherwise a holder of the call's token could fill the memory of this workflow.
	maxForwardedTo = 100
	// maxForwarded bounds the answers to all calls that wait to be forwarded. They are in the memory of the
	// workflow and in its next history.
	maxForwarded = 2000
)

// forwardedAnswer is an answer to be forwarded to another workflow.
type forwardedAnswer struct {
	id     string
	answer interpreter.Answer
	digest string // identifies the answer; "" for progress
}

// forwardAnswer forwards an answer to the workflow that accepts it. Answers are sent one at a time, because
// Temporal fails every task of a workflow that sends too many signals at once. Of the waiting answers to a call,
// only the newest progress and one copy of each other answer is kept; beyond the bounds, answers are dropped.
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
		disconnected, _ := workflow.NewDisconnectedContext(ctx) // the receiver may outlive a cancel of this workflow
		workflow.Go(disconnected, c.passOnAnswers)
	}
}

// passOnAnswers sends the waiting answers one after the other.
func (c *Controls) passOnAnswers(ctx workflow.Context) {
	defer func() { c.forwarding = false }()
	for len(c.forwards) > 0 {
		next := c.forwards[0]
		c.forwards = c.forwards[1:]
		if c.awaitReachable(ctx, next.id) != nil {
			return
		}
		if err := gate.SignalWorkflow(ctx, next.id, protocol.AnswerSignal, next.answer).Get(ctx, nil); err != nil {
			gate.Logger(ctx).Warn("an answer could not be delivered", "step", next.answer.Step, "workflow_id", next.id, "error", err)
		}
	}
}

// isReachable reports whether the workflow that accepts an answer in place of this one exists. The workflow of a
// call that has just moved may not have begun.
func (c *Controls) isReachable(id string) bool {
	return !c.ChildCalls[id] || slices.ContainsFunc(c.Children, func(child *gate.SteeredChild) bool {
		return child.ID == id && child.Child.GetChildWorkflowExecution().IsReady()
	})
}

func (c *Controls) awaitReachable(ctx workflow.Context, id string) error {
	return workflow.Await(ctx, func() bool { return c.isReachable(id) })
}

// answerError converts an error about an answer for clients: to an application error whose type is that of the
// *interpreter.AnswerError.
func answerError(err error) error {
	if refused, ok := errors.AsType[*interpreter.AnswerError](err); ok {
		return temporal.NewNonRetryableApplicationError(refused.Message, refused.Type, nil, refused.WorkflowID)
	}
	return err
}

// giveAnswer passes an answer to the call that awaits it, and returns the receipt.
func (c *Controls) giveAnswer(ctx workflow.Context, answer interpreter.Answer) (interpreter.AnswerReceipt, error) {
	found, err := c.findAwaited(answer)
	switch {
	case err != nil:
		return interpreter.AnswerReceipt{}, err
	case found.before != nil:
		return *found.before, nil
	}
	now, key := workflow.Now(ctx), found.call.Call.View().AttemptAddress().Key
	taken := found.call.Call.AcceptAnswer(answer, now)
	found.call.Stirred = true
	if answer.Verb == interpreter.AnswerProgress {
		return taken, nil
	}
	c.rememberAnswer(protocol.AcceptedAnswer{
		Key: key, Digest: answer.Digest(), Receipt: taken, Verb: answer.Verb, Option: answer.Option, By: answer.By, At: now,
	})
	return taken, nil
}

// rememberAnswer adds an answer to the ones that are recognised when they are repeated, of which the newest stay.
func (c *Controls) rememberAnswer(accepted protocol.AcceptedAnswer) {
	c.Answered = append(c.Answered, accepted)
	if n := len(c.Answered) - maxAnswered; n > 0 {
		c.Answered = slices.Clone(c.Answered[n:])
	}
}

// Bounds on the questions that a workflow remembers. They are part of the input of its next history, which Temporal bounds; a
// link whose question is forgotten still says how it ended.
const (
	// maxAsked bounds the number: a run may ask in each of thousands of iterations.
	maxAsked = 20
	// maxAskedBytes bounds all messages together. Without it twenty long questions would not fit into the next history, and the run
	// would fail.
	maxAskedBytes = 32 << 10
)

// RememberQuestion remembers what the current attempt of a call asks people, for links that are opened when it is over.
func (c *Controls) RememberQuestion(attempt call.View) {
	approval, _ := attempt.PendingApproval()
	key := attempt.AttemptAddress().Key
	if approval == nil || c.askedQuestion(key) != nil {
		return
	}
	c.rememberAsked(protocol.AskedQuestion{Key: key, Message: approval.Message, Data: approval.Data})
}

// rememberAsked adds a question to those that are remembered, of which the newest stay.
func (c *Controls) rememberAsked(asked protocol.AskedQuestion) {
	c.Asked = append(slices.Clone(c.Asked), asked)
	size := 0
	for _, one := range c.Asked {
		size += len(one.Message)
	}
	for len(c.Asked) > maxAsked || size > maxAskedBytes {
		size -= len(c.Asked[0].Message)
		c.Asked = c.Asked[1:]
	}
}

// NoteUnanswered notes that nobody answered the current attempt of a call in time, and the option that applies in place of an
// answer; "" if the attempt fails.
func (c *Controls) NoteUnanswered(attempt call.View, option string) {
	if asked := c.askedQuestion(attempt.AttemptAddress().Key); asked != nil {
		asked.Late, asked.Option = true, option
		if details := attempt.AwaitedDetails(); details != nil {
			asked.Until = details.Until
		}
	}
}

// askedQuestion returns the question of the attempt with a key; nil if it is not remembered.
func (c *Controls) askedQuestion(key string) *protocol.AskedQuestion {
	for i := range c.Asked {
		if key != "" && c.Asked[i].Key == key {
			return &c.Asked[i]
		}
	}
	return nil
}

// answerTarget is the call of this workflow that an answer is for, or the receipt of the same answer to an attempt
// answered before.
type answerTarget struct {
	call   *AwaitedCall
	before *interpreter.AnswerReceipt
}

// findAwaited returns the target of an answer. The error is an *interpreter.AnswerError.
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
		return answerTarget{}, open[0].Call.View().CheckAnswer(answer) // the attempt already has an answer
	}
	return answerTarget{}, c.notAwaitedError(answer.AnswerTo)
}

// duplicateOf returns the receipt of the same answer, recognised by its ID, if it arrived before; otherwise nil. A
// sender that does not know whether its update arrived sends the answer again as a signal. By then another attempt
// may be running, for which the answer is not meant.
func (c *Controls) duplicateOf(answer interpreter.Answer) *interpreter.AnswerReceipt {
	if answer.ID == "" {
		return nil
	}
	digest := answer.Digest()
	for i, one := range c.Answered {
		if one.Receipt.ID == answer.ID && one.Digest == digest && one.MatchesAddress(answer.AnswerTo) {
			return &c.Answered[i].Receipt
		}
	}
	return nil
}

// findAnswered reports whether the attempt has been answered; before is the receipt if the answer was the same, nil
// if it was another one.
func (c *Controls) findAnswered(answer interpreter.Answer) (before *interpreter.AnswerReceipt, over bool) {
	digest := answer.Digest()
	for _, one := range slices.Backward(c.Answered) {
		if !one.MatchesAddress(answer.AnswerTo) {
			continue
		}
		if one.Digest == digest {
			return &one.Receipt, true
		}
		over = over || answer.Key != "" || answer.Attempt != 0
	}
	return nil, over
}

// notAwaitedError returns the error for an answer that no attempt of this workflow awaits.
func (c *Controls) notAwaitedError(to interpreter.AnswerTo) error {
	for _, awaited := range c.awaited {
		if to.MatchesCall(awaited.Call.View().AttemptAddress()) && to != (interpreter.AnswerTo{Key: to.Key}) {
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

// AnswerElsewhereError returns the error that refers an answer to the workflow that accepts it.
func AnswerElsewhereError(id string) error {
	return &interpreter.AnswerError{
		Type: interpreter.AnswerElsewhere, WorkflowID: id, Message: fmt.Sprintf("workflow %s accepts this answer; send it there", id),
	}
}

// callNames lists the names of calls, at most ten.
func callNames(calls []*AwaitedCall) string {
	const shown = 10
	names := lists.Map(calls[:min(len(calls), shown)], func(call *AwaitedCall) string { return gate.CallName(call.Call) })
	if len(calls) > shown {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}
