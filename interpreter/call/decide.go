package call

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/call/watermark"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
)

// This file decides what follows an outcome: the policies rule on it (interpreter/retry), and
// the ruling becomes what is still to do.

// decided is what the policies say of an outcome, with the time of the decision and the
// budget of all that it evaluates.
type decided struct {
	retry.Decision
	budget *expression.Budget
	now    time.Time
}

// start begins the call: by a claim of its state, where it keeps one.
func (c *Call) start(now time.Time) {
	c.state.StartedAt = now
	if c.keeps == nil || c.state.Watermark != nil {
		c.begin(now)
		return
	}
	unclaimed, err := c.keeps.Unclaimed(now)
	if err != nil {
		c.failBy(c.config.Where(), err, now)
		return
	}
	c.state.Todo = []Todo{{State: unclaimed}}
}

// begin renders the first request.
func (c *Call) begin(now time.Time) {
	if err := c.requests.First(&c.state.Requests, c.moment(), now); err != nil {
		c.failBy(c.config.Where(), err, now)
		return
	}
	c.state.again(nil)
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
	before := c.state.beforeAnswer(outcome, c.config.Policies)
	c.recordOutcome(outcome, now)
	if outcome.Failed() && !outcome.Err.PoliciesDecide() {
		c.end(c.state.failed(*c.state.Last.Error, now))
		return
	}
	budget := expression.DecisionBudget(now)
	conditions := &callConditions{call: c, budget: budget}
	decision, err := retry.Decide(c.config.Policies, outcome, &c.state.Counters, conditions, now, c.config.Random)
	if err != nil {
		c.failBy(c.config.Where(), err, now)
		return
	}
	c.showDecision(outcome, decision)
	d := decided{Decision: decision, budget: budget, now: now}
	if d.Ruling == retry.RulingRefuses {
		c.refuse(d, *before, outcome)
		return
	}
	c.state.Last.Policy = d.Policy
	if outcome.Failed() {
		c.afterFailure(d)
		return
	}
	c.afterSuccess(d)
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
		Summary: fmt.Sprintf("slot of %s after %s, under its rate limit", c.config.Name(), turn.Promised.Sub(now).Round(time.Millisecond)),
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

// refuse makes a failure of an answer, and has the policies rule on that (docs/concepts/attempts.md#failures-in-answers).
// Nothing of the answer stays but its meta.
func (c *Call) refuse(d decided, before beforeAnswer, answer interpreter.Outcome) {
	failure, err := c.config.answerFailure(d, c.policyScope(), answer)
	if err != nil {
		c.failBy(c.config.whereThen(d.Policy), err, d.now)
		return
	}
	c.state.restore(before)
	failure.Attempt, failure.Page = c.state.Attempts, c.page()
	c.refused = failure
	c.decide(interpreter.Outcome{Err: failure}, d.now)
}

func (c *Call) afterFailure(d decided) {
	switch d.Ruling {
	case retry.RulingRepeats:
		if c.config.Policies.Then(d.Policy).Restart {
			c.restart(d)
			return
		}
		c.state.again(c.wait(d.Decision))
	case retry.RulingSucceeds, retry.RulingIgnores:
		// Its failure is ignored, or turned into a success: it stays in the warning.
		d.Why += "; " + c.state.Last.Error.Message
		c.state.Incomplete = true
		result := c.success(d)
		c.state.Last.Error = nil
		if d.Ruling == retry.RulingIgnores {
			c.state.Pages.Match(d.Policy) // what it matched is an answer
		}
		c.end(result)
	default:
		failure := *c.state.Last.Error
		failure.Policy, failure.Exhausted = d.Policy, d.Ruling.Exhausted()
		if d.Cut != "" {
			failure.Message += " (" + d.Cut + ")"
			c.state.warn(c.config.Where() + ": " + d.Cut)
		}
		c.state.Last.Error = &failure
		if d.Ruling == retry.RulingHolds {
			c.Hold(interpreter.Hold{Exhausted: true})
			return
		}
		c.end(c.state.failed(failure, d.now))
	}
}

// afterSuccess collects the page, has its sink written, and continues with the
// next request or to the end.
func (c *Call) afterSuccess(d decided) {
	c.state.Pages.Match(d.Matched...)
	then := c.config.Policies.Then(d.Policy)
	switch {
	case d.Repeats() && then.NextCall == nil:
		c.state.again(c.wait(d.Decision)) // a poll's pages are not collected
		return
	case d.Ruling == retry.RulingHolds:
		failure := c.exhaustedError(d.Decision)
		failure.Body = expression.Value{} // the state has it
		c.Hold(interpreter.Hold{Exhausted: true, Failure: failure})
		return
	case d.Ruling == retry.RulingFails && then.NextCall == nil:
		// What a poll that never became ready said last is no page.
		c.end(c.state.failed(*c.exhaustedError(d.Decision), d.now))
		return
	case d.Ruling == retry.RulingTruncates && pollMayGiveUp(then):
		c.state.Incomplete = true
		c.end(c.success(d)) // neither is it where that is a success
		return
	case d.Repeats() && c.state.Pages.Repeats(c.state.Last.Data.Data) && !then.AllowRepeat:
		// It is neither collected nor written.
		c.repeated(c.repeatError("page %d is the same as the page before", c.state.Successes), d)
		return
	}
	if failure := c.addPage(d); failure != nil {
		c.fail(failure, d.now)
		return
	}
	switch {
	case d.Repeats():
		c.state.Pages.Paged(c.config.Policies[d.Policy-1], c.state.Last.Data.Data)
		c.turnPage(d)
	case d.Ruling == retry.RulingFails:
		c.end(c.state.failed(*c.exhaustedError(d.Decision), d.now), c.pageSink(d)...)
	default:
		c.end(c.success(d), c.pageSink(d)...)
	}
}

// pollMayGiveUp reports whether a policy polls, accepts the last answer as a success
// where that never became ready, and does not call it a page.
func pollMayGiveUp(then *playbook.Then) bool {
	return then.Repeats && then.NextCall == nil && then.OnExhausted == playbook.ExhaustedSucceed &&
		then.Collect == nil && then.PerIteration == nil
}

// addPage collects the page of the last attempt, and reads the cursors of what it contributes. The failure is one
// that ends the call; the page is not written then.
func (c *Call) addPage(d decided) *interpreter.ErrorObject {
	s, section := &c.state, c.config.incremental()
	var keep func(page any) any
	if section != nil {
		keep = func(page any) any {
			kept := watermark.WithoutMissing(section, page)
			s.Watermark = s.Watermark.LeftOut(page, kept)
			return kept
		}
	}
	contribution, err := s.Pages.Add(c.config.Policies, d.Decision, s.Last.Data, keep)
	if s.Last.Contribution = contribution; err != nil {
		return interpreter.ExpressionError(c.config.Book, c.config.Where(), err)
	}
	if section == nil {
		return nil
	}
	var failure *interpreter.ErrorObject
	if s.Watermark, failure = s.Watermark.Read(section, contribution.Data, s.StartedAt); failure != nil {
		failure.Message = fmt.Sprintf("%s: page %d, %s", c.config.Where(), s.Successes, failure.Message)
	}
	return failure
}

// pageSink is the sink of a page that is written before anything else happens, nothing for none.
func (c *Call) pageSink(d decided) []Todo {
	number := c.state.Pages.WrittenBy(c.config.Policies, d.Decision)
	if number == 0 {
		return nil
	}
	return sinkTodo(sink.Choice{Policy: number, Page: true})
}

// turnPage continues with the request of the next page, and guards against going
// round in circles.
func (c *Call) turnPage(d decided) {
	page, then := c.pageSink(d), c.config.Policies.Then(d.Policy)
	next, repeats, err := c.requests.Next(&c.state.Requests, c.moment(), then, c.policyScope(), d.budget, d.now)
	switch {
	case err != nil:
		failure := c.complete(interpreter.ExpressionError(c.config.Book, c.config.whereThen(d.Policy), err))
		c.end(c.state.failed(*failure, d.now), page...)
	case repeats:
		c.repeated(c.repeatError("the request for page %d was made before in this call", c.state.Successes+1), d, page...)
	default:
		c.state.Counters.NewRequest(c.config.Policies)
		c.state.Todo = slices.Concat(c.withPageMove(page), attemptAfter(c.wait(d.Decision), &next))
		c.state.behindPage()
	}
}

// repeated ends a call that would go round in circles.
func (c *Call) repeated(failure *interpreter.ErrorObject, d decided, page ...Todo) {
	result := c.state.failed(*failure, d.now)
	if c.config.Policies.Then(d.Policy).EndOnRepeat {
		result = c.success(d)
	}
	c.end(result, page...)
}

func (c *Call) repeatError(format string, args ...any) *interpreter.ErrorObject {
	return c.complete(&interpreter.ErrorObject{
		Kind: interpreter.KindRepeat, Class: interpreter.ClassFinal,
		Message: fmt.Sprintf("%s: %s, so the pages would never end; check next_call, or set allow_repeat: true, or end_on_repeat: true where that is the end",
			c.config.Where(), fmt.Sprintf(format, args...)),
	})
}

// wait is the wait of a decision, nil for none.
func (c *Call) wait(decision retry.Decision) *interpreter.Wait {
	if decision.Delay <= 0 {
		return nil
	}
	wait := &interpreter.Wait{Delay: decision.Delay, Reason: decision.Reason, Summary: c.waitSummary(decision)}
	if c.config.Policies.Then(decision.Policy).Restart || decision.Reason == interpreter.ReasonFailure || decision.Reason == interpreter.ReasonPoll {
		wait.Most = decision.Limit
	}
	return wait
}

// waitSummary says what follows after which time. It is kept, also beside timers in Temporal's UI,
// so it is no countdown. Its numbers are those of the policy, which counts retries; attempts
// are those of the call.
func (c *Call) waitSummary(decision retry.Decision) string {
	name, delay := c.config.Name(), decision.Delay.Round(time.Millisecond)
	if c.config.Policies.Then(decision.Policy).Restart {
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

// restart drops what the call has collected and begins it again from its first
// request, after the decision's delay. The count of writes continues: the
// ledger entries of both rounds are one sequence.
func (c *Call) restart(d decided) {
	before, wait := c.state, c.wait(d.Decision)
	before.Counters.Restart(c.config.Policies)
	full := c.config.Policies.Then(d.Policy).RestartFull
	c.state = State{
		StartedAt: before.StartedAt, Attempts: before.Attempts, Restarts: before.Restarts + 1, Lost: before.Lost,
		Counters: before.Counters, Written: before.Written, Noted: before.Noted, Ledger: before.Ledger,
		Warnings: before.Warnings, Answers: await.Answers{Reported: before.Reported},
		Requests:  before.Requests.Restarted(),
		Last:      lastAttempt{Meta: before.Last.Meta, Error: before.Last.Error, Policy: before.Last.Policy},
		Watermark: before.Watermark.Restarted(c.config.incremental(), full), LeftOut: before.LeftOut,
	}
	if c.begin(d.now); c.state.head().Attempt != nil {
		c.state.again(wait)
	}
}
