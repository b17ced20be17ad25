package call

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
)

// This file applies what the host reports to what a call has still to do. An outcome
// replaces Todo, a sink that is done drops its head, and one that failed cuts it to
// the dead letter and the end.

// Attempted applies the outcome of an attempt and decides what follows.
func (c *Call) Attempted(outcome interpreter.Outcome, now time.Time) {
	c.refused = nil
	if outcome.PutOff != nil {
		c.putOff(*outcome.PutOff, now)
		return
	}
	c.state.Turn = nil
	if c.AnsweredFromOutside() && c.state.head().Attempt != nil && (!outcome.Failed() || c.HasAnswer()) {
		c.await(outcome, now)
		return
	}
	c.attempted(outcome, now)
}

// attempted decides what follows an attempt that was made.
func (c *Call) attempted(outcome interpreter.Outcome, now time.Time) {
	c.state.Attempts++
	c.state.RequestAttempts++
	c.refused = nil
	c.decide(outcome, now)
}

// decide has the policies rule on the outcome of an attempt.
func (c *Call) decide(outcome interpreter.Outcome, now time.Time) {
	before := c.beforeAnswer(outcome)
	c.recordOutcome(outcome, now)
	if outcome.Failed() && !outcome.Err.PoliciesDecide() {
		c.end(c.failure(*c.state.Last.Error, now))
		return
	}
	budget := decisionBudget(now)
	conditions := &callConditions{call: c, budget: budget}
	decision, err := retry.Decide(c.config.Policies, outcome, &c.state.Counters, conditions, now, c.config.Random)
	if err != nil {
		c.fail(interpreter.ExpressionError(c.config.Book, c.config.where(), err), now)
		return
	}
	c.showDecision(outcome, decision)
	if decision.Ruling == retry.RulingRefuses {
		c.refuse(decision, *before, outcome, budget, now)
		return
	}
	c.state.Last.Policy = decision.Policy
	if outcome.Failed() {
		c.afterFailure(decision, budget, now)
		return
	}
	c.afterSuccess(decision, budget, now)
}

// putOff has the attempt wait for its turn, or until people resume it. It was not
// made and does not count.
func (c *Call) putOff(off interpreter.PutOff, now time.Time) {
	if off.Hold != nil {
		c.Hold(*off.Hold)
		return
	}
	turn := *off.Turn
	c.state.Turn = &turn
	c.state.again(&interpreter.Wait{
		Delay: max(turn.At.Sub(now), 0), Reason: interpreter.ReasonTurn,
		Summary: fmt.Sprintf("slot of %s after %s, under its rate limit", c.config.name(), turn.Promised.Sub(now).Round(time.Millisecond)),
	})
}

// recordOutcome records the outcome and completes its error.
func (c *Call) recordOutcome(outcome interpreter.Outcome, now time.Time) {
	if outcome.Failed() {
		failure := *outcome.Err
		if failure.Kind == interpreter.KindWorkerLost && failure.Type != interpreter.TypeStopped {
			c.state.Lost++
		}
		failure.Attempt, failure.Page, failure.At = c.state.Attempts, c.page(), now
		meta := c.state.Last.Meta
		if failure.Answer != nil {
			meta, failure.Answer = failure.AnswerMeta(), nil
		}
		// The last page stays: on_exhausted may make it the result.
		c.state.Last = lastAttempt{Data: c.state.Last.Data, Meta: meta, Error: &failure}
		return
	}
	c.state.Last = lastAttempt{Data: expression.Of(outcome.Data), Meta: outcome.Meta, Partial: outcome.Partial, Warnings: outcome.Warnings}
	if c.config.Sink == nil {
		c.state.Successes++
	}
}

func (c *Call) afterFailure(decision retry.Decision, budget *expression.Budget, now time.Time) {
	switch decision.Ruling {
	case retry.RulingRepeats:
		if c.config.then(decision.Policy).Restart {
			c.restart(decision, now)
			return
		}
		c.state.again(c.wait(decision))
	case retry.RulingSucceeds, retry.RulingIgnores:
		// Its failure is ignored, or turned into a success: it stays in the warning.
		decision.Why += "; " + c.state.Last.Error.Message
		c.state.Incomplete = true
		result := c.success(decision, budget, now)
		c.state.Last.Error = nil
		if decision.Ruling == retry.RulingIgnores {
			c.state.match(decision.Policy) // what it matched is an answer
		}
		c.end(result)
	default:
		failure := *c.state.Last.Error
		failure.Policy, failure.Exhausted = decision.Policy, decision.Ruling.Exhausted()
		if decision.Cut != "" {
			failure.Message += " (" + decision.Cut + ")"
			c.state.warn(c.config.where() + ": " + decision.Cut)
		}
		c.state.Last.Error = &failure
		if decision.Ruling == retry.RulingHolds {
			c.Hold(interpreter.Hold{Exhausted: true})
			return
		}
		c.end(c.failure(failure, now))
	}
}

// afterSuccess collects the page, has its sink written, and continues with the
// next request or to the end.
func (c *Call) afterSuccess(decision retry.Decision, budget *expression.Budget, now time.Time) {
	c.state.match(decision.Matched...)
	then := c.config.then(decision.Policy)
	switch {
	case decision.Repeats() && then.NextCall == nil:
		c.state.again(c.wait(decision)) // a poll's pages are not collected
		return
	case decision.Ruling == retry.RulingHolds:
		failure := c.exhaustedError(decision)
		failure.Body = expression.Value{} // the state has it
		c.Hold(interpreter.Hold{Exhausted: true, Failure: failure})
		return
	case decision.Ruling == retry.RulingFails && then.NextCall == nil:
		// What a poll that never became ready said last is no page.
		c.end(c.failure(*c.exhaustedError(decision), now))
		return
	case decision.Ruling == retry.RulingTruncates && pollMayGiveUp(then):
		c.state.Incomplete = true
		c.end(c.success(decision, budget, now)) // neither is it where that is a success
		return
	case decision.Repeats() && c.state.pageRepeats(c.state.Last.Data.Data) && !then.AllowRepeat:
		// It is neither collected nor written.
		c.repeated(c.repeatError("page %d is the same as the page before", c.state.Successes), decision, budget, now)
		return
	}
	var err error
	if c.state.Last.Contribution, err = c.addPage(decision); err != nil {
		c.fail(interpreter.ExpressionError(c.config.Book, c.config.where(), err), now)
		return
	}
	if failure := c.readCursors(); failure != nil {
		c.fail(failure, now)
		return
	}
	switch {
	case decision.Repeats():
		c.state.PagedBy = pagedBy(c.state.PagedBy, c.config.Policies[decision.Policy-1], c.state.Last.Data.Data)
		c.turnPage(decision, budget, now)
	case decision.Ruling == retry.RulingFails:
		c.end(c.failure(*c.exhaustedError(decision), now), c.state.pageSink(&c.config, decision)...)
	default:
		c.end(c.success(decision, budget, now), c.state.pageSink(&c.config, decision)...)
	}
}

// pollMayGiveUp reports whether a policy polls, accepts the last answer as a success
// where that never became ready, and does not call it a page.
func pollMayGiveUp(then *playbook.Then) bool {
	return then.Repeats && then.NextCall == nil && then.OnExhausted == playbook.ExhaustedSucceed &&
		then.Collect == nil && then.PerIteration == nil
}

// noPolicy is what a call does that no policy matched.
var noPolicy playbook.Then

// then is what a policy does, by its number; 0 is none.
func (c *Config) then(number int) *playbook.Then {
	if number == 0 {
		return &noPolicy
	}
	return &c.Policies[number-1].Then
}

// turnPage continues with the request of the next page, and guards against going
// round in circles.
func (c *Call) turnPage(decision retry.Decision, budget *expression.Budget, now time.Time) {
	page := c.state.pageSink(&c.config, decision)
	request, failure := c.nextRequest(decision, budget, now)
	switch {
	case failure == nil:
		c.state.Counters.NewRequest(c.config.Policies)
		c.state.Todo = slices.Concat(c.withPageMove(page), attemptAfter(c.wait(decision), &request))
		c.state.behindPage()
	case failure.Kind == interpreter.KindRepeat:
		c.repeated(failure, decision, budget, now, page...)
	default:
		c.end(c.failure(*failure, now), page...)
	}
}

// repeated ends a call that would go round in circles.
func (c *Call) repeated(failure *interpreter.ErrorObject, decision retry.Decision, budget *expression.Budget, now time.Time, page ...Todo) {
	result := c.failure(*failure, now)
	if c.config.then(decision.Policy).EndOnRepeat {
		result = c.success(decision, budget, now)
	}
	c.end(result, page...)
}

// wait is the wait of a decision, nil for none.
func (c *Call) wait(decision retry.Decision) *interpreter.Wait {
	if decision.Delay <= 0 {
		return nil
	}
	wait := &interpreter.Wait{Delay: decision.Delay, Reason: decision.Reason, Summary: c.waitSummary(decision)}
	if c.config.then(decision.Policy).Restart || decision.Reason == interpreter.ReasonFailure || decision.Reason == interpreter.ReasonPoll {
		wait.Most = decision.Limit
	}
	return wait
}

// restart drops what the call has collected and begins it again from its first
// request, after the decision's delay. The count of writes continues: the
// ledger entries of both rounds are one sequence.
func (c *Call) restart(decision retry.Decision, now time.Time) {
	before, wait := c.state, c.wait(decision)
	before.Counters.Restart(c.config.Policies)
	full := c.config.then(decision.Policy).RestartFull
	c.state = State{
		StartedAt: before.StartedAt, Attempts: before.Attempts, Restarts: before.Restarts + 1, Lost: before.Lost,
		Counters: before.Counters, Written: before.Written, Noted: before.Noted, Ledger: before.Ledger,
		Warnings: before.Warnings, Reported: before.Reported,
		Request:     Request{Origin: before.Request.Origin}, // or a page could send the first one elsewhere
		Last:        lastAttempt{Meta: before.Last.Meta, Error: before.Last.Error, Policy: before.Last.Policy},
		Incremental: before.Incremental.restarted(c.config.incremental(), full), LeftOut: before.LeftOut,
	}
	c.operation = pageKey{}
	if c.begin(now); c.state.head().Attempt != nil {
		c.state.again(wait)
	}
}

// fail ends the call at once, without a ruling of its policies.
func (c *Call) fail(failure *interpreter.ErrorObject, now time.Time) {
	c.state.Last.Error = c.complete(failure)
	c.end(c.failure(*failure, now))
}

// end plans the end of the call, with the sinks of its result behind that of
// the last page.
func (c *Call) end(result *interpreter.CallResult, page ...Todo) {
	moves, err := c.endMoves(result)
	if err != nil {
		c.fail(interpreter.ExpressionError(c.config.Book, c.config.where(), err), result.Meta.EndedAt)
		return
	}
	c.warnOfRows(result)
	published := c.endStaging(result)
	sinks := c.state.sinksOf(&c.config, result, c.state.Last.Policy)
	c.state.Todo = slices.Concat(c.withPageMove(page), sinks, moves, published, []Todo{{End: result}})
	c.state.behindPage()
	c.endsBehindSinks(result.Meta.EndedAt)
}

// Waited reports that the wait is over.
func (c *Call) Waited() { c.state.Todo = c.state.Todo[1:] }

// CalledBack reports that the call may come for its turn at once, and returns whether
// it waits for one.
func (c *Call) CalledBack() bool {
	if wait := c.state.head().Wait; wait == nil || wait.Reason != interpreter.ReasonTurn || c.state.Turn == nil {
		return false
	}
	turn := *c.state.Turn
	turn.Called = true
	c.state.Turn = &turn
	return true
}

// WaitedUntil reports that the call has waited elsewhere, for a time that was to
// end at due. The call waits for the rest of it.
func (c *Call) WaitedUntil(due, now time.Time) {
	left := due.Sub(now)
	if left <= 0 {
		c.Waited()
		return
	}
	rest := *c.state.head().Wait
	rest.Delay, rest.Rest = left, true
	c.state.again(&rest)
}

// SinkLeft reports how far the call of the sink that is due has come; another host goes
// on with it.
func (c *Call) SinkLeft(sink *Call) {
	pending := *c.state.head().Sink
	pending.State = &sink.state
	c.state.Todo = slices.Concat([]Todo{{Sink: &pending}}, c.state.Todo[1:])
}

// SinkDone applies the result of the sink's call. The first sink that fails ends
// the rest and fails the call; a call that had failed already keeps its own
// error.
func (c *Call) SinkDone(result interpreter.CallResult, now time.Time) {
	if result.Failed() && result.Error.Kind == interpreter.KindCancelled {
		c.stop()
	}
	done := *c.state.head().Sink
	written := c.sinkState(done)
	c.state.Todo = c.state.Todo[1:]
	c.state.warn(result.Warnings...)
	if result.Failed() {
		c.sinkFailed(done, result.Error, now)
	} else {
		c.state.Written++
		c.state.LeftOut = c.state.LeftOut.Plus(result.Meta.LeftOut)
		c.stateWritten(written)
		if done.Page {
			c.state.behindPage()
		}
	}
	c.endsBehindSinks(now)
}

// sinkFailed leaves nothing to do but the dead letter and the end. What a page's
// sink could not write is no result.
func (c *Call) sinkFailed(sink pendingSink, cause *interpreter.ErrorObject, now time.Time) {
	failure, before := sinkError(c.config.pendingSink(sink).Place, cause), c.Result()
	if before != nil && before.Failed() {
		c.state.warn(failure.Message)
		c.state.Todo = slices.DeleteFunc(slices.Clone(c.state.Todo), func(todo Todo) bool {
			return todo.Sink != nil && !todo.Sink.DeadLetter
		})
		if failure.Kind == interpreter.KindCancelled {
			return
		}
		result := *c.Result()
		result.SinkErrors = append(slices.Clip(result.SinkErrors), failure.Brief())
		c.state.replaceLast(Todo{End: &result})
		return
	}
	c.fail(failure, now)
	if before == nil {
		return
	}
	result := *c.Result()
	result.Warnings = before.Warnings
	if !sink.Page || sink.Do != "" {
		result.Data = before.Data // the data of the call stays, as that of loops
	}
	c.state.replaceLast(Todo{End: &result})
}

// Cancel ends the call because it was cancelled; its sinks do not run.
func (c *Call) Cancel(now time.Time) interpreter.CallResult {
	c.stop()
	result := c.failure(interpreter.ErrorObject{
		Kind: interpreter.KindCancelled, Class: interpreter.ClassFinal, Message: c.config.where() + ": cancelled",
		Attempt: c.state.Attempts, Page: c.page0(),
	}, now)
	c.Finish(*result)
	return *result
}

// Finish ends the call with a result that another host has come to.
func (c *Call) Finish(result interpreter.CallResult) { c.state.Todo = []Todo{{End: &result}} }

// waitSummary says what follows after which time. It is kept, also beside timers in Temporal's UI,
// so it is no countdown. Its numbers are those of the policy, which counts retries; attempts
// are those of the call.
func (c *Call) waitSummary(decision retry.Decision) string {
	name, delay := c.config.name(), decision.Delay.Round(time.Millisecond)
	if c.config.then(decision.Policy).Restart {
		return fmt.Sprintf("restart %d/%d of %s after %s: %s", decision.Count, decision.Limit, name, delay, c.state.Last.Error.Short())
	}
	switch decision.Reason {
	case interpreter.ReasonPage:
		return fmt.Sprintf("page %d of %s after %s", c.state.Successes+1, name, delay)
	case interpreter.ReasonPoll:
		return fmt.Sprintf("poll %d/%d of %s after %s", decision.Count+1, decision.Limit, name, delay)
	case interpreter.ReasonRateLimited:
		return fmt.Sprintf("retry %d of %s after %s, as the server requested: %s", c.state.RequestAttempts, name, delay, c.state.Last.Error.Short())
	}
	return fmt.Sprintf("retry %d/%d of %s after %s: %s", decision.Count, decision.Limit-1, name, delay, c.state.Last.Error.Short())
}

// usedLast is the policy of those that have something which was used last, else
// the first of them; 0 for none.
func (c *Config) usedLast(number int, has func(*playbook.Then) bool) int {
	if number != 0 {
		return number
	}
	for _, policy := range c.Policies {
		if has(&policy.Then) {
			return policy.Number
		}
	}
	return 0
}

// callConditions evaluates conditions in the scope of one outcome, which is
// made for the first of them.
type callConditions struct {
	call   *Call
	scope  *interpreter.Scope
	budget *expression.Budget
}

func (c *callConditions) When(policy *playbook.Policy) (bool, error) {
	return c.truth(policy, policy.When, "when")
}

func (c *callConditions) StopWhen(policy *playbook.Policy) (bool, error) {
	return c.truth(policy, policy.StopWhen, "stop_when")
}

func (c *callConditions) truth(policy *playbook.Policy, node *playbook.Node, word string) (bool, error) {
	if c.scope == nil {
		c.scope = c.call.policyScope()
	}
	result, err := node.Truth(c.scope, c.budget)
	c.report(policy, node, word, result, err)
	if err == nil {
		return result, nil
	}
	var eval *playbook.EvalError
	if errors.As(err, &eval) {
		return false, &playbook.EvalError{
			Pos: eval.Pos, Message: fmt.Sprintf("retry[%d].%s%s: %s", policy.Number, word, policy.From(), eval.Message),
		}
	}
	return false, err
}
