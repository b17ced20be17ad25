package call

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
	"reprise/interpreter/source"
)

// policyScope holds the names of when and then for the last outcome.
func (c *Call) policyScope() *interpreter.Scope {
	c.restore(c.state.StartedAt)
	last := c.state.Last
	names := map[string]any{
		"error":              last.Error.Value(),
		"this":               c.attemptEnvelope(),
		playbook.DefaultInto: c.state.Collected.Data,
		"_retry": map[string]any{
			"page": c.page0(), "index": c.page0(), "attempt": c.state.RequestAttempts,
			"count": c.state.Attempts, "policy": last.Policy,
		},
	}
	if last.Error == nil {
		names["response"], names["page"] = last.Data.Data, last.Data.Data
	} else {
		names["response"], names["page"] = nil, nil
	}
	for _, policy := range c.config.Policies {
		if collect := policy.Then.Collect; collect != nil && collect.Into != "" {
			names[collect.Into] = c.state.Collected.Data
		}
	}
	return c.scope.With(names)
}

// page0 is the page the last attempt was for, from 1; before the first attempt
// of a request it is the page that is due.
func (c *Call) page0() int {
	due := c.state.head().Attempt != nil && c.state.RequestAttempts == 0
	if c.config.Sink != nil || c.state.Last.Error != nil || due {
		return c.page()
	}
	return max(c.state.Successes, 1)
}

func (c *Call) attemptEnvelope() map[string]any {
	last := interpreter.CallResult{Status: interpreter.StatusSuccess, Data: c.state.Last.Data, Meta: c.state.meta(time.Time{})}
	if c.state.Last.Partial {
		last.Status = interpreter.Partial
	}
	if c.state.Last.Error != nil {
		last.Status, last.Data, last.Error = interpreter.StatusError, expression.Value{}, c.state.Last.Error
	}
	return last.Envelope()
}

func (s *State) meta(ended time.Time) interpreter.CallMeta {
	return interpreter.CallMeta{
		Attempts: s.Attempts, Pages: s.Successes, Incomplete: s.Incomplete,
		StartedAt: s.StartedAt, EndedAt: ended, Tool: s.Last.Meta, LeftOut: s.LeftOut.Plus(s.Last.Meta.LeftOut),
	}
}

// success is the result of a call that succeeded.
func (c *Call) success(decision retry.Decision, budget *expression.Budget, now time.Time) *interpreter.CallResult {
	data, err := c.data(decision, budget)
	if err != nil {
		return c.failure(*c.complete(interpreter.ExpressionError(c.config.Book, c.config.whereThen(decision.Policy), err)), now)
	}
	result := &interpreter.CallResult{
		Status: interpreter.StatusSuccess, Data: expression.Of(data), Meta: c.state.meta(now), Warnings: slices.Clone(c.state.Warnings),
	}
	if c.state.Last.Partial {
		result.Status = interpreter.Partial
		result.Warnings = append(result.Warnings, c.config.where()+": the playbook that it ran ended as "+string(interpreter.Partial))
	}
	for _, warning := range c.state.Last.Warnings {
		result.Warnings = append(result.Warnings, c.config.where()+": "+warning)
	}
	if decision.Ruling.Truncated() {
		result.Meta.Truncated = true
		result.Warnings = append(result.Warnings, fmt.Sprintf(
			"%s: policy %d%s stopped the call after %s (%s); the result may be incomplete",
			c.config.where(), decision.Spent, c.config.from(decision.Spent), pages(c.state.Successes), decision.Why))
	} else if decision.Policy == 0 && decision.Ruling != retry.RulingStops {
		if lacks := cutShort(c.state.PagedBy, c.config.Policies, c.state.Last); lacks != "" {
			result.Meta.Truncated = true
			result.Warnings = append(result.Warnings, fmt.Sprintf(
				"%s: page %d %s; the result may be incomplete", c.config.where(), c.state.Successes, lacks))
		}
	}
	return result
}

// pages counts pages in a message.
func pages(n int) string {
	if n == 1 {
		return "1 page"
	}
	return fmt.Sprintf("%d pages", n)
}

// data is that of a call that succeeds: what the policy that ends it says, what
// was collected, or the last page. Where a failure ends it, what was collected
// goes first.
func (c *Call) data(decision retry.Decision, budget *expression.Budget) (any, error) {
	if c.state.Last.Error != nil && c.state.Collector != 0 {
		return c.state.Collected.Data, nil
	}
	if result := c.config.then(decision.Policy).Result; result != nil {
		return result.Render(c.policyScope(), budget)
	}
	if decision.Ruling == retry.RulingIgnores {
		return nil, nil
	}
	if number := c.state.collector(&c.config); number != 0 {
		return nothing(c.config.then(number).Collect.Strategy, c.state.Collected.Data), nil
	}
	return c.config.withoutMissing(c.state.Last.Data.Data), nil
}

// failure is the result of a call that failed; what was collected stays in
// the error, so that nothing is lost silently.
func (c *Call) failure(failure interpreter.ErrorObject, now time.Time) *interpreter.CallResult {
	if c.state.Collector != 0 {
		failure.Collected = c.state.Collected
	}
	return &interpreter.CallResult{Status: interpreter.StatusError, Error: &failure, Meta: c.state.meta(now), Warnings: slices.Clone(c.state.Warnings)}
}

func (c *Call) complete(failure *interpreter.ErrorObject) *interpreter.ErrorObject {
	failure.Attempt, failure.Page, failure.Policy = c.state.Attempts, c.page0(), c.state.Last.Policy
	return failure
}

// exhaustedError is the failure of a poll that never became ready.
func (c *Call) exhaustedError(decision retry.Decision) *interpreter.ErrorObject {
	const most = 200
	answer := c.lastAnswer()
	last := source.Cut(expression.Text(answer.Data), most)
	failure := c.complete(&interpreter.ErrorObject{
		Kind: interpreter.KindExhausted, Class: interpreter.ClassFinal,
		Message: fmt.Sprintf("%s: policy %d%s matched %d of %d times after %d attempts (%s); last response: %s",
			c.config.where(), decision.Policy, c.config.from(decision.Policy), decision.Count, decision.Limit, c.state.Attempts, decision.Why, last),
	})
	failure.Exhausted, failure.Body = true, answer
	return failure
}

// lastAnswer is the answer to the last attempt, as errors show it.
func (c *Call) lastAnswer() expression.Value {
	if c.config.Step.Secret {
		return expression.Of(playbook.Hidden)
	}
	return c.state.Last.Data
}

func (c *Config) whereThen(policy int) string {
	return fmt.Sprintf("%s: retry[%d].then%s", c.where(), policy, c.from(policy))
}
