package call

import (
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/interpreter/playbook"
)

// This file handles attempts that people or other systems answer (interpreter/call/await).

// awaitAnswer makes the call wait for an answer to the attempt whose request was just sent.
func (c *Call) awaitAnswer(outcome interpreter.Outcome, now time.Time) {
	c.state.Last.Meta = outcome.Meta
	limit := c.requests.AnswerLimit(c.state.StartedAt)
	c.state.recordAwaited(await.NewAnswerWait(now, limit))
	address := c.View().AttemptAddress()
	c.showObservation(Observation{Attempt: address.Attempt, Awaits: &address, Limit: limit})
}

// peopleQuestion returns the question of the current attempt; nil if its tool is not approval.
func (r reader) peopleQuestion() *await.Question {
	if !r.requests.ToolTraits(r.state.StartedAt).AsksPeople {
		return nil
	}
	return await.NewQuestion(r.config.Step.Name, r.requests.ResolvedAction(), &r.state.Request)
}

// AttemptAddress returns the address of the current attempt, or of the one that is due, to which answers must refer.
func (v View) AttemptAddress() interpreter.AnswerTo {
	return interpreter.AnswerTo{
		Step: v.config.Step.Name, Visit: v.config.Visit, Index: v.config.Index, Attempt: v.state.Attempts + 1,
		Key: v.requests.AttemptKey(v.requestMoment()),
	}
}

// IsAddressed reports whether an answer is for the current attempt of the call. sent is true while the attempt is
// being sent and nobody awaits it yet.
func (v View) IsAddressed(to interpreter.AnswerTo, sent bool) bool {
	return (v.state.nextTodo().Await != nil || sent) && to.Matches(v.AttemptAddress())
}

// CheckAnswer returns why an answer to the current attempt is refused; nil accepts it.
func (v View) CheckAnswer(answer interpreter.Answer) error {
	if v.state.Answer != nil {
		return &interpreter.AnswerError{Type: interpreter.AnswerLate, Message: fmt.Sprintf("attempt %d of %s has already been answered", v.state.Attempts+1, v.config.Name())}
	}
	return await.CheckAnswer(answer, v.config.Step.Name, v.peopleQuestion(), v.config.Limits)
}

// AcceptAnswer stores an answer that CheckAnswer accepts. ApplyAnswer applies it.
func (c *Call) AcceptAnswer(answer interpreter.Answer, now time.Time) interpreter.AnswerReceipt {
	if extended := c.state.Answers.Accept(answer, c.state.nextTodo().Await, now); extended != nil {
		c.state.recordAwaited(extended)
	}
	return interpreter.AnswerReceipt{
		Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index, Attempt: c.state.Attempts + 1, ID: answer.ID,
	}
}

// ApplyAnswer decides what follows from the stored answer, or from its absence once the deadline has passed. It
// returns the failure of the attempt, nil for none.
func (c *Call) ApplyAnswer(now time.Time) *interpreter.ErrorObject {
	outcome := c.state.Answers.ConsumeAnswer(c.config.Step.Name, c.newReader().peopleQuestion(), c.state.nextTodo().Await, now)
	outcome.Meta = c.state.Last.Meta
	c.state.dropHead()
	c.decideAttempt(outcome, now)
	return outcome.Err
}

// CancelRequest returns the request that informs the server that the current attempt was cancelled; false if the step has
// none.
func (v View) CancelRequest(now time.Time) (interpreter.ToolInput, bool) {
	return v.requests.CancelInput(&v.state.Requests, v.requestMoment(), now)
}

// PendingApproval returns the approval that the current attempt requests and the option with which it would end now; nil
// and "" if it requests none.
func (v View) PendingApproval() (approval *playbook.Approval, choice string) {
	question := v.peopleQuestion()
	return question.ParseApproval(), v.state.Answers.ChosenOption(question)
}
