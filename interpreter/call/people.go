package call

import (
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/interpreter/playbook"
)

// This file has what a call does with attempts that people or other systems answer (interpreter/call/await).

// await has the call wait for an answer to the attempt that has just been sent.
func (c *Call) await(outcome interpreter.Outcome, now time.Time) {
	c.state.Last.Meta = outcome.Meta
	limit := c.requests.AnswerLimit(c.state.StartedAt)
	c.state.awaits(await.From(now, limit))
	address := c.Address()
	c.show(Seen{Attempt: address.Attempt, Awaits: &address, Limit: limit})
}

// question is that of the current attempt, nil where that is no approval.
func (c *Call) question() *await.Question {
	if !c.Traits().AsksPeople {
		return nil
	}
	return await.NewQuestion(c.config.Step.Name, c.requests.Action(), &c.state.Request)
}

// Address is the current attempt, or the one that is due.
func (c *Call) Address() interpreter.AnswerTo {
	return interpreter.AnswerTo{
		Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index, Attempt: c.state.Attempts + 1,
		Key: c.requests.AttemptKey(c.moment()),
	}
}

// IsAddressed reports whether an answer is for the current attempt of the call.
// sent says that it is being made, though nobody awaits it yet.
func (c *Call) IsAddressed(to interpreter.AnswerTo, sent bool) bool {
	return (c.state.head().Await != nil || sent) && to.Matches(c.Address())
}

// CheckAnswer says why an answer to the current attempt is refused; nil accepts it.
func (c *Call) CheckAnswer(answer interpreter.Answer) error {
	if c.state.Answer != nil {
		return &interpreter.AnswerError{Type: interpreter.AnswerLate, Message: fmt.Sprintf("attempt %d of %s has its answer", c.state.Attempts+1, c.config.Name())}
	}
	return await.Check(answer, c.config.Step.Name, c.question(), c.config.Limits)
}

// AcceptAnswer applies an answer that CheckAnswer accepts.
func (c *Call) AcceptAnswer(answer interpreter.Answer, now time.Time) interpreter.AnswerReceipt {
	if extended := c.state.Answers.Accept(answer, c.state.head().Await, now); extended != nil {
		c.state.awaits(extended)
	}
	return interpreter.AnswerReceipt{
		Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index, Attempt: c.state.Attempts + 1, ID: answer.ID,
	}
}

// ApplyAnswer continues with the answer that has come, or without one where the time
// of the attempt is over. It returns the failure of the attempt, nil for none.
func (c *Call) ApplyAnswer(now time.Time) *interpreter.ErrorObject {
	outcome := c.state.Answers.Outcome(c.config.Step.Name, c.question(), c.state.head().Await, now)
	outcome.Meta = c.state.Last.Meta
	c.state.dropHead()
	c.attempted(outcome, now)
	return outcome.Err
}

// Cancels is the request that reports to the other side that the current attempt is
// cancelled; false where there is none.
func (c *Call) Cancels(now time.Time) (interpreter.ToolInput, bool) {
	return c.requests.CancelInput(&c.state.Requests, c.moment(), now)
}

// Approval is what people read of the approval that the current attempt requests, and the option with which it ends
// as things are; nil and "" where it requests none.
func (c *Call) Approval() (approval *playbook.Approval, choice string) {
	question := c.question()
	return question.Approval(), c.state.Answers.Choice(question)
}
