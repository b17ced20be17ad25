package call

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/call/watermark"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
	"reprise/interpreter/source"
)

// This file ends a call: with a result, its sinks, and what becomes of the state that the step keeps.

// fail ends the call at once, without a ruling of its policies.
func (c *Call) fail(failure *interpreter.ErrorObject, now time.Time) {
	c.state.Last.Error = c.complete(failure)
	c.end(c.state.failed(*failure, now))
}

// failBy ends the call by the error of an expression; where says which.
func (c *Call) failBy(where string, err error, now time.Time) {
	c.fail(interpreter.ExpressionError(c.config.Book, where, err), now)
}

// end plans the end of the call, with the sinks of its result behind that of
// the last page.
func (c *Call) end(result *interpreter.CallResult, page ...Todo) {
	moves, err := c.endMoves(result)
	if err != nil {
		c.failBy(c.config.Where(), err, result.Meta.EndedAt)
		return
	}
	result.Warnings = append(result.Warnings, c.state.Watermark.Warnings(c.config.incremental(), c.config.Where())...)
	published, warnings := c.round().End(&c.config.Sinks, result)
	result.Warnings = append(result.Warnings, warnings...)
	sinks := c.config.Of(result, &c.state.Pages, c.state.Last.Policy)
	c.state.Todo = slices.Concat(c.withPageMove(page), sinkTodo(sinks...), moves, sinkTodo(published...), []Todo{{End: result}})
	c.state.behindPage()
	c.endsBehindSinks(result.Meta.EndedAt)
}

// endMoves are the moves of the watermark with which a call ends, behind its sinks. What has no sinks leaves
// the move to the result. The error is that of a token.
func (c *Call) endMoves(result *interpreter.CallResult) ([]Todo, error) {
	own := c.state.Watermark
	if own == nil {
		return nil, nil
	}
	end := watermark.End{
		Failure: result.Error, Incomplete: c.state.Incomplete || result.Meta.Truncated, At: result.Meta.EndedAt, Scope: c.policyScope,
	}
	move, err := c.keeps.EndMove(own, end)
	if err == nil && move != nil && c.keeps.Waits(end) {
		result.Meta.Incremental = &interpreter.CallIncremental{Pending: own.Moves(move)}
		move = nil
	}
	return moveTodo(move), err
}

// withPageMove is the sink of a page with the move behind it.
func (c *Call) withPageMove(page []Todo) []Todo {
	if len(page) == 0 || c.state.Watermark == nil {
		return page
	}
	return slices.Concat(page, moveTodo(c.keeps.PageMove(c.state.Watermark)))
}

// endsBehindSinks moves the end of a call whose sinks are all done to a time, and completes its result. Until then
// the result, which the sinks see, has the time of the decision.
func (c *Call) endsBehindSinks(now time.Time) {
	if c.state.head().End == nil {
		return
	}
	result := *c.state.head().End
	result.Meta.EndedAt = now
	if own := c.state.Watermark; own != nil {
		shown := own.Shown(c.config.incremental())
		if before := result.Meta.Incremental; before != nil {
			shown.Pending = before.Pending
		}
		result.Meta.Incremental = shown
	}
	result.Meta.LeftOut = c.state.LeftOut.Plus(c.state.Last.Meta.LeftOut)
	if c.config.Sink == nil {
		result.Warnings = append(result.Warnings, sink.LeftOutWarnings(c.config.Where(), result.Meta.LeftOut)...)
	}
	c.state.replaceLast(Todo{End: &result})
}

// success is the result of a call that succeeded.
func (c *Call) success(d decided) *interpreter.CallResult {
	data, err := c.data(d)
	if err != nil {
		return c.state.failed(*c.complete(interpreter.ExpressionError(c.config.Book, c.config.whereThen(d.Policy), err)), d.now)
	}
	s, where := &c.state, c.config.Where()
	result := &interpreter.CallResult{
		Status: interpreter.StatusSuccess, Data: expression.Of(data), Meta: s.meta(d.now), Warnings: slices.Clone(s.Warnings),
	}
	if s.Last.Partial {
		result.Status = interpreter.Partial
		result.Warnings = append(result.Warnings, where+": the playbook that it ran ended as "+string(interpreter.Partial))
	}
	for _, warning := range s.Last.Warnings {
		result.Warnings = append(result.Warnings, where+": "+warning)
	}
	if d.Ruling.Truncated() {
		result.Meta.Truncated = true
		result.Warnings = append(result.Warnings, fmt.Sprintf(
			"%s: policy %d%s stopped the call after %s (%s); the result may be incomplete",
			where, d.Spent, c.config.from(d.Spent), pages(s.Successes), d.Why))
	} else if d.Policy == 0 && d.Ruling != retry.RulingStops {
		if lacks := s.Pages.CutShort(c.config.Policies, s.Last.Data.Data, s.Last.Contribution.Data); lacks != "" {
			result.Meta.Truncated = true
			result.Warnings = append(result.Warnings, fmt.Sprintf(
				"%s: page %d %s; the result may be incomplete", where, s.Successes, lacks))
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
func (c *Call) data(d decided) (any, error) {
	if c.state.Last.Error != nil && c.state.Collector != 0 {
		return c.state.Collected.Data, nil
	}
	if result := c.config.Policies.Then(d.Policy).Result; result != nil {
		return result.Render(c.policyScope(), d.budget)
	}
	if d.Ruling == retry.RulingIgnores {
		return nil, nil
	}
	if data, collects := c.state.Pages.Result(c.config.Policies); collects {
		return data, nil
	}
	return watermark.WithoutMissing(c.config.incremental(), c.state.Last.Data.Data), nil
}

// complete says of a failure where in the call it happened.
func (c *Call) complete(failure *interpreter.ErrorObject) *interpreter.ErrorObject {
	failure.Attempt, failure.Page, failure.Policy = c.state.Attempts, c.lastPage(), c.state.Last.Policy
	return failure
}

// exhaustedError is the failure of a poll that never became ready.
func (c *Call) exhaustedError(decision retry.Decision) *interpreter.ErrorObject {
	const most = 200
	answer := c.config.shown(c.state.Last.Data)
	last := source.Cut(expression.Text(answer.Data), most)
	failure := c.complete(&interpreter.ErrorObject{
		Kind: interpreter.KindExhausted, Class: interpreter.ClassFinal,
		Message: fmt.Sprintf("%s: policy %d%s matched %d of %d times after %d attempts (%s); last response: %s",
			c.config.Where(), decision.Policy, c.config.from(decision.Policy), decision.Count, decision.Limit, c.state.Attempts, decision.Why, last),
	})
	failure.Exhausted, failure.Body = true, answer
	return failure
}

// skip ends the call as failed. The failure is the one that it waited for, if there
// was one.
func (c *Call) skip(settlement interpreter.Settlement, now time.Time) {
	said := settlement.SkipText()
	failure := interpreter.ErrorObject{Kind: interpreter.KindExplicit, Class: interpreter.ClassFinal, Message: c.config.Where() + ": " + said, Attempt: c.state.Attempts, Page: c.page()}
	if last := c.state.Failure(); last != nil {
		failure = *last
		failure.Message += " (" + said + ")"
	}
	if hold := c.state.held(); hold != nil && hold.Failure != nil {
		failure.Body = c.config.shown(c.state.Last.Data)
	}
	c.state.Last.Error = &failure
	c.end(c.state.failed(failure, now))
}

// shown is an answer as errors show it.
func (c *Config) shown(answer expression.Value) expression.Value {
	if c.Step.Secret {
		return expression.Of(playbook.Hidden)
	}
	return answer
}

// failed is the result of a call that failed; what was collected stays in
// the error, so that nothing is lost silently.
func (s *State) failed(failure interpreter.ErrorObject, now time.Time) *interpreter.CallResult {
	if s.Collector != 0 {
		failure.Collected = s.Collected
	}
	return &interpreter.CallResult{Status: interpreter.StatusError, Error: &failure, Meta: s.meta(now), Warnings: slices.Clone(s.Warnings)}
}

func (s *State) meta(ended time.Time) interpreter.CallMeta {
	return interpreter.CallMeta{
		Attempts: s.Attempts, Pages: s.Successes, Incomplete: s.Incomplete,
		StartedAt: s.StartedAt, EndedAt: ended, Tool: s.Last.Meta, LeftOut: s.LeftOut.Plus(s.Last.Meta.LeftOut),
	}
}
