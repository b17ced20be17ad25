package call

import (
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// Awaited is an attempt that a person or another system answers. Kept with State.
type Awaited struct {
	Since time.Time `json:"since"`
	// Until is when its time is over, zero for never; progress sets it anew.
	Until time.Time `json:"until,omitzero"`
	// Limit is what it has from Since, and from each progress; 0 is no limit.
	Limit time.Duration `json:"limit,omitempty"`
}

// Wait is the attempt as a wait that others see.
func (a Awaited) Wait(reported *interpreter.Reported) interpreter.Wait {
	summary := "awaits an answer"
	if !a.Until.IsZero() {
		summary += " until " + a.Until.UTC().Format(time.RFC3339)
	}
	if reported != nil {
		summary += ": " + reported.String()
	}
	return interpreter.Wait{Reason: interpreter.ReasonAnswer, Summary: summary}
}

// Awaited is the attempt of the call that a person or another system answers, nil for none.
func (c *Call) Awaited() *Awaited { return c.state.head().Await }

// HasAnswer reports whether the current attempt has its answer.
func (c *Call) HasAnswer() bool { return c.state.Answer != nil }

// IsAddressed reports whether an answer is for the current attempt of the call.
// sent says that it is being made, though nobody awaits it yet.
func (c *Call) IsAddressed(to interpreter.AnswerTo, sent bool) bool {
	if c.Awaited() == nil && !sent {
		return false
	}
	return to.Matches(c.Address())
}

// CheckAnswer says why an answer to the current attempt is refused; nil accepts it.
func (c *Call) CheckAnswer(answer interpreter.Answer) error {
	if c.HasAnswer() {
		return &interpreter.AnswerError{Type: interpreter.AnswerLate, Message: fmt.Sprintf("attempt %d of %s has its answer", c.state.Attempts+1, c.config.name())}
	}
	return c.checkAnswer(answer)
}

// checkAnswer is CheckAnswer for an attempt that may have its answer.
func (c *Call) checkAnswer(answer interpreter.Answer) error {
	if err := answer.Check(); err != nil {
		return err
	}
	if most := c.config.Limits.PayloadCap(); interpreter.EncodedSize(answer) > most {
		return interpreter.OversizedAnswer(most)
	}
	if asked := c.question(); asked != nil {
		return asked.check(answer)
	}
	if answer.Option != "" || len(answer.Form) > 0 {
		return interpreter.RefusedAnswer("step %s requests no approval, so there is no option to choose; complete it with a result", c.config.Step.Name)
	}
	return nil
}

// AcceptAnswer applies an answer that CheckAnswer accepts.
func (c *Call) AcceptAnswer(answer interpreter.Answer, now time.Time) interpreter.AnswerReceipt {
	if answer.Verb == interpreter.AnswerProgress {
		c.state.Reported = &interpreter.Reported{Done: answer.Done, Total: answer.Total, Message: answer.Message, At: now}
		if awaited := c.Awaited(); awaited != nil && awaited.Limit > 0 {
			longer := *awaited
			longer.Until = now.Add(awaited.Limit)
			c.state.Todo = []Todo{{Await: &longer}, {Attempt: &PendingAttempt{}}}
		}
	} else {
		c.state.Answer = &answer
	}
	return interpreter.AnswerReceipt{
		Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index, Attempt: c.state.Attempts + 1, ID: answer.ID,
	}
}

// Address is the current attempt, or the one that is due.
func (c *Call) Address() interpreter.AnswerTo {
	return interpreter.AnswerTo{
		Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index, Attempt: c.state.Attempts + 1, Key: c.attemptKey(),
	}
}

// DueAttempt is the number of the current attempt, or of the one that is due.
func (c *Call) DueAttempt() int { return c.state.Attempts + 1 }

// Page is the number of the current page.
func (c *Call) Page() int { return c.page() }

// AnsweredBy is who answered the current attempt, "" where the answer does not say.
func (c *Call) AnsweredBy() string {
	if c.state.Answer == nil {
		return ""
	}
	return c.state.Answer.By
}

// AnsweredFromOutside reports whether the attempts of the call are answered from outside.
func (c *Call) AnsweredFromOutside() bool { return c.traits().Awaits }

// Sends reports whether the attempt that is due sends a request before it is
// awaited.
func (c *Call) Sends() bool {
	_, sends := c.state.Request.Fields[playbook.FieldOnStart]
	return sends
}

// maxSending bounds the request with which an attempt begins that is then awaited.
const maxSending = 30 * time.Second

// attemptLimit bounds what an activity does of an attempt.
func (c *Call) attemptLimit() time.Duration {
	limit := timeoutOf(c.action, c.tool)
	if c.AnsweredFromOutside() && (limit == 0 || limit > maxSending) {
		return maxSending
	}
	return limit
}

// awaitLimit bounds the time until the answer, and between reports of progress; 0
// is no bound.
func (c *Call) awaitLimit() time.Duration {
	return timeoutOf(c.action, c.toolName())
}

// callback is what requests name where the answer is to be sent. The worker puts
// the address in its place when it sends them: a token is a secret, and history
// keeps none.
func callback(operation string) map[string]any {
	members := make(map[string]any, len(playbook.CallbackMembers))
	for _, name := range playbook.CallbackMembers {
		members[name] = CallbackPlace(operation, name)
	}
	return members
}

// CallbackPlace is the text that stands for a member of callback until a request
// is sent. Nobody can write it without the operation key.
func CallbackPlace(operation, member string) string {
	return "reprise_callback_" + operation + "_" + member
}

// Cancels is the request that reports to the other side that the current attempt is
// cancelled; false where there is none.
func (c *Call) Cancels(now time.Time) (interpreter.ToolInput, bool) {
	if _, told := c.state.Request.Fields[playbook.FieldOnCancel]; !told {
		return interpreter.ToolInput{}, false
	}
	input, err := c.attempt(now)
	input.Sends = playbook.FieldOnCancel
	if input.IdempotencyKey != "" {
		input.IdempotencyKey += ":" + playbook.FieldOnCancel // or the other side mistakes it for on_start
	}
	return input, err == nil
}

// overdue is the outcome of an attempt whose time is over.
func (c *Call) overdue(now time.Time) interpreter.Outcome {
	if asked := c.question(); asked != nil {
		if data := asked.overdue(now); data != nil {
			return interpreter.Outcome{Data: data}
		}
	}
	awaited := c.Awaited()
	message := fmt.Sprintf("step %q: no answer within %s", c.config.Step.Name, awaited.Limit)
	if reported := c.state.Reported; reported != nil && reported.At.After(awaited.Since) {
		message += " of the last report: " + reported.String()
	}
	return interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindTimeout, Class: interpreter.ClassRetryable, Message: message}}
}

// await has the call wait for an answer to the attempt that has just been sent.
func (c *Call) await(outcome interpreter.Outcome, now time.Time) {
	awaited := Awaited{Since: now, Limit: c.awaitLimit()}
	if awaited.Limit > 0 {
		awaited.Until = now.Add(awaited.Limit)
	}
	c.state.Last.Meta = outcome.Meta
	c.state.Todo = []Todo{{Await: &awaited}, {Attempt: &PendingAttempt{}}}
	c.showAwaited()
}

// ApplyAnswer continues with the answer that has come, or without one where the time
// of the attempt is over. It returns the failure of the attempt, nil for none.
func (c *Call) ApplyAnswer(now time.Time) *interpreter.ErrorObject {
	outcome := c.overdue(now)
	if c.state.Answer != nil {
		outcome = c.answered(*c.state.Answer, now)
	}
	outcome.Meta = c.state.Last.Meta
	c.state.Todo = c.state.Todo[1:]
	c.state.Answer = nil
	c.attempted(outcome, now)
	return outcome.Err
}

// answered is the outcome of an attempt that has its answer.
func (c *Call) answered(answer interpreter.Answer, now time.Time) interpreter.Outcome {
	if answer.Verb == interpreter.AnswerFail {
		failure := &interpreter.ErrorObject{Kind: interpreter.KindExplicit, Class: interpreter.ClassRetryable, Message: answer.Message, Body: answer.Details}
		if answer.Retryable != nil && !*answer.Retryable {
			failure.Class = interpreter.ClassFinal
		}
		return interpreter.Outcome{Err: failure}
	}
	if asked := c.question(); asked != nil {
		return interpreter.Outcome{Data: asked.answered(answer, now)}
	}
	return interpreter.Outcome{Data: answer.Result.Data}
}
