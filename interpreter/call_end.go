package interpreter

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// policyScope holds the names of when and then for the last outcome.
func (c *Call) policyScope() *Scope {
	c.restore(c.State.StartedAt)
	last := c.State.Last
	names := map[string]any{
		"error": last.Error.Value(),
		"this":  c.attemptEnvelope(),
		"pages": c.State.Collected.Data,
		"_retry": map[string]any{
			"index": c.page0(), "attempt": c.State.RequestAttempts,
			"count": c.State.Attempts, "policy": last.Policy,
		},
	}
	if last.Error == nil {
		names["response"], names["page"] = last.Data.Data, last.Data.Data
	} else {
		names["response"], names["page"] = nil, nil
	}
	for _, policy := range c.config.Policies {
		if collect := policy.Then.Collect; collect != nil && collect.Into != "" {
			names[collect.Into] = c.State.Collected.Data
		}
	}
	return c.scope.With(names)
}

// page0 is the page the last attempt was for, from 1; before the first attempt
// of a request it is the page that is due.
func (c *Call) page0() int {
	due := c.State.Phase == PhaseAttempt && c.State.RequestAttempts == 0
	if c.config.Sink != nil || c.State.Last.Error != nil || due {
		return c.page()
	}
	return max(c.State.Successes, 1)
}

func (c *Call) attemptEnvelope() map[string]any {
	last := CallResult{Status: StatusSuccess, Data: c.State.Last.Data, Meta: c.meta(time.Time{})}
	if c.State.Last.Error != nil {
		last.Status, last.Data, last.Error = StatusError, expression.Value{}, c.State.Last.Error
	}
	return last.Envelope()
}

func (c *Call) meta(ended time.Time) CallMeta {
	return CallMeta{
		Attempts: c.State.Attempts, Pages: c.State.Successes,
		StartedAt: c.State.StartedAt, EndedAt: ended, Tool: c.State.Last.Meta,
	}
}

// warn notes what the call's result has to tell.
func (c *Call) warn(warnings ...string) {
	into := &c.State.Warnings
	switch {
	case c.State.Result != nil:
		into = &c.State.Result.Warnings
	case c.State.After != nil && c.State.After.Result != nil:
		into = &c.State.After.Result.Warnings
	}
	*into = append(slices.Clip(*into), warnings...)
}

// success is the result of a call that succeeded.
func (c *Call) success(decision Decision, budget *expression.Budget, now time.Time) *CallResult {
	data, err := c.data(decision, budget)
	if err != nil {
		where := c.whereThen(c.policy(decision.Policy).policy)
		return c.failure(*c.complete(expressionError(c.config.Book, where, err)), now)
	}
	result := &CallResult{
		Status: StatusSuccess, Data: expression.Of(data), Meta: c.meta(now), Warnings: slices.Clone(c.State.Warnings),
	}
	if decision.Truncated {
		result.Meta.Truncated = true
		result.Warnings = append(result.Warnings, fmt.Sprintf(
			"%s: policy %d stopped the call after %d pages (%s); the result may be incomplete",
			c.where(), decision.Policy, c.State.Successes, decision.Why))
	} else if decision.Policy == 0 && !decision.Stopped {
		if lacks := c.cutShort(); lacks != "" {
			result.Meta.Truncated = true
			result.Warnings = append(result.Warnings, lacks)
		}
	}
	return result
}

// data is that of a call that succeeds: what the policy that ends it says, what
// was collected, or the last page. Where a failure ends it, what was collected
// goes first.
func (c *Call) data(decision Decision, budget *expression.Budget) (any, error) {
	failed, collected := c.State.Last.Error != nil, c.State.Collector != 0
	if failed && collected {
		return c.State.Collected.Data, nil
	}
	if policy := c.policy(decision.Policy).policy; policy != nil && policy.Then.Result != nil {
		return policy.Then.Result.Render(c.policyScope(), budget)
	}
	switch {
	case decision.Ignored:
		return nil, nil
	case collected:
		return c.State.Collected.Data, nil
	}
	return c.State.Last.Data.Data, nil
}

// failure is the result of a call that failed; what was collected stays in
// the error, so that nothing is dropped in silence.
func (c *Call) failure(failure ErrorObject, now time.Time) *CallResult {
	if c.State.Collector != 0 {
		failure.Collected = c.State.Collected
	}
	return &CallResult{Status: StatusError, Error: &failure, Meta: c.meta(now), Warnings: slices.Clone(c.State.Warnings)}
}

// fail ends the call at once, without asking any policy or running a sink.
func (c *Call) fail(failure *ErrorObject, now time.Time) {
	c.State.Last.Error = c.complete(failure)
	c.finishFailure(*failure, 0, now)
}

func (c *Call) finishFailure(failure ErrorObject, policy int, now time.Time) {
	c.State.Last.Error = &failure
	c.State.Result = c.failure(failure, now)
	c.State.Sinks, c.State.After = nil, nil
	if policy != 0 && c.config.Policies[policy-1].Then.Sink != nil {
		c.State.Sinks = []PendingSink{{Policy: policy}}
	}
	c.enterSinks()
}

// finishSuccess ends a call whose failure is ignored, or turned into a success
// by on_exhausted: then it stays in the warning.
func (c *Call) finishSuccess(decision Decision, budget *expression.Budget, now time.Time) {
	decision.Why += "; " + c.State.Last.Error.Message
	result := c.success(decision, budget, now)
	c.State.Last.Error = nil
	if decision.Ignored {
		c.noteMatch(decision.Policy) // what it matched is an answer
	}
	c.State.After = &AfterPage{Result: result}
	c.resume(now)
}

// queuePageSink has the page written before anything else happens: by the
// policy it matched, and the page that ends the call by the policy that paged
// last, else the first that has such a sink.
func (c *Call) queuePageSink(decision Decision) {
	number := 0
	if policy := c.policy(decision.Policy).policy; policy != nil && policy.Then.PerIteration != nil {
		number = policy.Number
	} else if !decision.Repeat {
		number = c.lastPager()
	}
	if number == 0 {
		return
	}
	if decision.Repeat {
		c.State.Pager = number
	}
	c.State.Sinks = []PendingSink{{Policy: number, Page: true}}
	c.State.Phase = PhasePage
}

func (c *Call) lastPager() int {
	if c.State.Pager != 0 {
		return c.State.Pager
	}
	for _, policy := range c.config.Policies {
		if policy.Then.PerIteration != nil {
			return policy.Number
		}
	}
	return 0
}

// resume goes on with what follows a page, unless its sink is still due.
func (c *Call) resume(time.Time) {
	if c.State.Phase == PhasePage && len(c.State.Sinks) > 0 {
		return
	}
	after := c.State.After
	c.State.After = nil
	if after.Request != nil {
		c.State.Request = *after.Request
		c.State.RequestAttempts, c.State.Lost = 0, 0
		c.State.Phase = PhaseAttempt
		if c.State.Wait != nil {
			c.State.Phase = PhaseWait
		}
		return
	}
	c.State.Result = after.Result
	c.State.Sinks = nil
	if after.Result.Failed() {
		c.State.Last.Error = after.Result.Error
		if policy := c.policy(c.State.Last.Policy).policy; policy != nil && policy.Then.Sink != nil &&
			after.Result.Error.Kind == KindExhausted {
			c.State.Sinks = []PendingSink{{Policy: policy.Number}}
		}
	} else {
		c.queueSuccessSinks()
	}
	c.enterSinks()
}

// queueSuccessSinks lists, in order, the sinks of every policy that pages or
// collects, or that matched a success of this call, then the sinks that stand
// on the loop or the step.
func (c *Call) queueSuccessSinks() {
	for _, policy := range c.config.Policies {
		then := policy.Then
		if then.Sink == nil {
			continue
		}
		if then.NextCall != nil || then.Collect != nil || c.matched(policy.Number) {
			c.State.Sinks = append(c.State.Sinks, PendingSink{Policy: policy.Number})
		}
	}
	for i := range c.config.After {
		c.State.Sinks = append(c.State.Sinks, PendingSink{After: i + 1})
	}
}

func (c *Call) matched(number int) bool {
	for _, seen := range c.State.Matched {
		if seen == number {
			return true
		}
	}
	return false
}

// enterSinks goes on with the sinks that are left. Behind them a failed call is
// written as a dead letter, once, whatever failed it.
func (c *Call) enterSinks() {
	c.State.Phase = PhaseSinks
	if len(c.State.Sinks) > 0 {
		return
	}
	if c.config.DeadLetter != nil && !c.State.DeadLettered && isDead(c.State.Result) {
		c.State.DeadLettered = true
		c.State.Sinks = []PendingSink{{DeadLetter: true}}
		return
	}
	c.State.Phase = PhaseDone
}

// expressionError turns an error of rendering or evaluating into the final
// error of the call, with the place in the playbook.
func expressionError(book *playbook.Playbook, where string, err error) *ErrorObject {
	message := where + ": " + err.Error()
	var eval *playbook.EvalError
	if errors.As(err, &eval) {
		message = where + ": " + eval.Message
		if book != nil && eval.Pos.Line > 0 {
			message += fmt.Sprintf(" (%s:%s)", book.File.Name, eval.Pos)
		}
	}
	return &ErrorObject{Kind: KindExpression, Class: ClassFinal, Message: message}
}

func (c *Call) whereThen(policy *playbook.Policy) string {
	return fmt.Sprintf("%s: retry[%d].then", c.where(), policy.Number)
}

// Short is the error in a few words, for summaries and tables.
func (e *ErrorObject) Short() string {
	switch {
	case e == nil:
		return ""
	case e.Status != 0:
		return fmt.Sprintf("HTTP %d", e.Status)
	case e.Type != "":
		return e.Kind + " " + e.Type
	}
	return e.Kind
}
