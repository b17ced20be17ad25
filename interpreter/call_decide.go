package interpreter

import (
	"errors"
	"fmt"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Attempted takes the outcome of an attempt and decides what follows.
func (c *Call) Attempted(outcome Outcome, now time.Time) {
	if outcome.PutOff() {
		c.putOff(*outcome.Err.Turn, now)
		return
	}
	c.State.Turn = nil
	c.State.Attempts++
	c.State.RequestAttempts++
	c.note(outcome, now)
	if outcome.Failed() && !outcome.Err.asksPolicies() {
		c.finishFailure(*c.State.Last.Error, 0, now)
		return
	}
	budget := c.budget(now)
	conditions := &callConditions{call: c, budget: budget}
	decision, err := Decide(c.config.Policies, outcome, &c.State.Counters, conditions, now, c.config.Random)
	if err != nil {
		c.fail(expressionError(c.config.Book, c.where(), err), now)
		return
	}
	c.State.Last.Policy = decision.Policy
	if outcome.Failed() {
		c.afterFailure(decision, budget, now)
		return
	}
	c.afterSuccess(decision, budget, now)
}

// note records the outcome and completes its error.
func (c *Call) note(outcome Outcome, now time.Time) {
	if outcome.Failed() {
		failure := *outcome.Err
		if failure.Kind == KindWorkerLost && failure.Type != TypeStopped {
			c.State.Lost++
		}
		failure.Attempt, failure.Page, failure.At = c.State.Attempts, c.page(), now
		// The last page stays: on_exhausted may make it the result.
		c.State.Last = LastAttempt{Data: c.State.Last.Data, Meta: outcome.Meta, Error: &failure}
		return
	}
	c.State.Last = LastAttempt{Data: expression.Of(outcome.Data), Meta: outcome.Meta}
	if c.config.Sink == nil {
		c.State.Successes++
	}
}

func (c *Call) afterFailure(decision Decision, budget *expression.Budget, now time.Time) {
	failure := *c.State.Last.Error
	failure.Policy = decision.Policy
	switch {
	case decision.Repeat && c.policy(decision.Policy).policy.Then.Restart:
		c.restart(decision, now)
	case decision.Repeat:
		c.repeat(decision)
	case decision.Succeeds, decision.Ignored:
		c.finishSuccess(decision, budget, now)
	default:
		failure.Exhausted = decision.Exhausted
		if decision.Cut != "" {
			failure.Message += " (" + decision.Cut + ")"
			c.warn(c.where() + ": " + decision.Cut)
		}
		c.finishFailure(failure, decision.Policy, now)
	}
}

// afterSuccess collects the page, has its sink written, and goes on to the
// next request or to the end.
func (c *Call) afterSuccess(decision Decision, budget *expression.Budget, now time.Time) {
	for _, number := range decision.Matched {
		c.noteMatch(number)
	}
	next := c.policy(decision.Policy).nextCall()
	if decision.Repeat && next == nil {
		c.repeat(decision) // a poll's pages are not collected
		return
	}
	if decision.Fails && next == nil {
		// What a poll that never became ready said last is no page.
		failure := c.exhaustedError(decision)
		c.State.After = &AfterPage{Result: c.failure(*failure, now)}
		c.resume(now)
		return
	}
	if decision.Repeat && c.policy(decision.Policy).policy.Then.EndOnRepeat && hash(c.State.Last.Data.Data) == c.State.LastPage {
		// The page before has come again: it is neither collected nor written.
		c.State.After = &AfterPage{Result: c.success(decision, budget, now)}
		c.resume(now)
		return
	}
	if err := c.collectPage(decision); err != nil {
		c.fail(expressionError(c.config.Book, c.where(), err), now)
		return
	}
	after := &AfterPage{}
	switch {
	case decision.Repeat:
		c.notePage(c.policy(decision.Policy).policy)
		after = c.prepareNext(decision, budget, now)
	case decision.Fails:
		after.Result = c.failure(*c.exhaustedError(decision), now)
	default:
		after.Result = c.success(decision, budget, now)
	}
	c.State.After = after
	c.queuePageSink(decision)
	c.resume(now)
}

func (c *Call) noteMatch(number int) {
	for _, seen := range c.State.Matched {
		if seen == number {
			return
		}
	}
	c.State.Matched = append(c.State.Matched, number)
}

// policyView lets the zero policy (none matched) answer too.
type policyView struct{ policy *playbook.Policy }

func (c *Call) policy(number int) policyView {
	if number == 0 {
		return policyView{}
	}
	return policyView{c.config.Policies[number-1]}
}

func (v policyView) nextCall() *playbook.NextCall {
	if v.policy == nil {
		return nil
	}
	return v.policy.Then.NextCall
}

// repeat asks for the same request again after the decision's delay.
func (c *Call) repeat(decision Decision) {
	c.State.Phase = PhaseAttempt
	if decision.Delay > 0 {
		c.State.Phase = PhaseWait
		c.State.Wait = &Wait{Delay: decision.Delay, Reason: decision.Reason, Summary: c.waitSummary(decision)}
	}
}

// restart drops what the call has collected and begins it again from its first
// request, after the decision's delay. What was written is counted further: the
// notes of both rounds stand in one row.
func (c *Call) restart(decision Decision, now time.Time) {
	before, summary := c.State, c.waitSummary(decision)
	before.Counters.restart(c.config.Policies)
	c.State = CallState{
		StartedAt: before.StartedAt, Attempts: before.Attempts, Restarts: before.Restarts + 1, Lost: before.Lost,
		Counters: before.Counters, Written: before.Written, Warnings: before.Warnings,
		Request: Request{Origin: before.Request.Origin}, // or a page could send the first one elsewhere
		Last:    LastAttempt{Meta: before.Last.Meta, Error: before.Last.Error, Policy: before.Last.Policy},
	}
	c.operation = pageKey{}
	if c.begin(now); c.State.Phase == PhaseAttempt && decision.Delay > 0 {
		c.State.Phase = PhaseWait
		c.State.Wait = &Wait{Delay: decision.Delay, Reason: decision.Reason, Summary: summary}
	}
}

// waitSummary is what Temporal's UI shows beside the timer.
func (c *Call) waitSummary(decision Decision) string {
	name := c.config.Step.Name
	if c.config.Sink != nil {
		name = c.config.Sink.Place
	}
	delay := decision.Delay.Round(time.Millisecond)
	if c.policy(decision.Policy).policy.Then.Restart {
		return fmt.Sprintf("restart %d/%d of %s in %s: %s", decision.Count, decision.Limit, name, delay, c.State.Last.Error.Short())
	}
	switch decision.Reason {
	case ReasonPage:
		return fmt.Sprintf("page %d of %s in %s", c.State.Successes+1, name, delay)
	case ReasonPoll:
		return fmt.Sprintf("poll %d/%d of %s in %s", decision.Count+1, decision.Limit, name, delay)
	case ReasonRateLimited:
		return fmt.Sprintf("attempt %d of %s in %s, as asked: %s",
			c.State.RequestAttempts+1, name, delay, c.State.Last.Error.Short())
	}
	return fmt.Sprintf("attempt %d/%d of %s in %s: %s",
		decision.Count+1, decision.Limit, name, delay, c.State.Last.Error.Short())
}

// prepareNext builds the request of the next page and guards against going
// round in circles.
func (c *Call) prepareNext(decision Decision, budget *expression.Budget, now time.Time) *AfterPage {
	next := c.policy(decision.Policy).nextCall()
	request, failure := c.nextRequest(next, decision, budget, now)
	switch {
	case failure == nil:
	case failure.Kind == KindRepeat && c.policy(decision.Policy).policy.Then.EndOnRepeat:
		return &AfterPage{Result: c.success(decision, budget, now)}
	default:
		return &AfterPage{Result: c.failure(*failure, now)}
	}
	c.State.Counters.newRequest(c.config.Policies)
	after := &AfterPage{Request: &request}
	if decision.Delay > 0 {
		c.State.Wait = &Wait{Delay: decision.Delay, Reason: ReasonPage, Summary: c.waitSummary(decision)}
	}
	return after
}

func (c *Call) nextRequest(
	next *playbook.NextCall, decision Decision, budget *expression.Budget, now time.Time,
) (Request, *ErrorObject) {
	policy := c.policy(decision.Policy).policy
	digest := hash(c.State.Last.Data.Data)
	if !policy.Then.AllowRepeat && digest == c.State.LastPage {
		return Request{}, c.repeatError("page %d is the same as the page before", c.State.Successes)
	}
	c.State.LastPage = digest
	request, err := c.renderer(budget).next(c.State.Request, next, c.policyScope())
	if err != nil {
		return Request{}, c.complete(expressionError(c.config.Book, c.whereThen(policy), err))
	}
	request.At = now
	print, err := c.fingerprint(request)
	if err != nil {
		return Request{}, c.complete(expressionError(c.config.Book, c.whereThen(policy), err))
	}
	if !policy.Then.AllowRepeat && c.State.Seen.has(print) {
		return Request{}, c.repeatError("the request for page %d was made before in this call", c.State.Successes+1)
	}
	c.State.Seen = append(c.State.Seen, print...)
	return request, nil
}

func (c *Call) repeatError(format string, args ...any) *ErrorObject {
	return c.complete(&ErrorObject{
		Kind: KindRepeat, Class: ClassFinal,
		Message: fmt.Sprintf("%s: %s, so the pages would never end; check next_call, or set allow_repeat: true, or end_on_repeat: true where that is the end",
			c.where(), fmt.Sprintf(format, args...)),
	})
}

func (c *Call) complete(failure *ErrorObject) *ErrorObject {
	failure.Attempt, failure.Page, failure.Policy = c.State.Attempts, c.page0(), c.State.Last.Policy
	return failure
}

// exhaustedError is the failure of a poll that never became ready.
func (c *Call) exhaustedError(decision Decision) *ErrorObject {
	const most = 200
	answer := c.State.Last.Data
	if c.config.Step.Secret {
		answer = expression.Of(playbook.Hidden)
	}
	last := expression.Text(answer.Data)
	if runes := []rune(last); len(runes) > most {
		last = string(runes[:most]) + "…"
	}
	failure := c.complete(&ErrorObject{
		Kind: KindExhausted, Class: ClassFinal,
		Message: fmt.Sprintf("%s: policy %d matched %d of %d times after %d attempts (%s); last response: %s",
			c.where(), decision.Policy, decision.Count, decision.Limit, c.State.Attempts, decision.Why, last),
	})
	failure.Exhausted, failure.Body = true, answer
	return failure
}

// collectPage adds the page where it belongs: by the policy it matched, and
// the page that ends the call by the collect used last, else the first.
func (c *Call) collectPage(decision Decision) error {
	c.State.Last.Contribution = c.State.Last.Data
	number := decision.Policy
	if policy := c.policy(number).policy; policy == nil || policy.Then.Collect == nil {
		number = 0
		if !decision.Repeat {
			number = c.lastCollector()
		}
	}
	if number == 0 {
		return nil
	}
	policy := c.config.Policies[number-1]
	sum, contribution, err := collect(policy.Then.Collect, c.State.Collected.Data, c.State.Last.Data.Data)
	if err != nil {
		return &playbook.EvalError{Pos: policy.Then.Collect.Pos, Message: err.Error()}
	}
	c.State.Collector = number
	c.State.Collected = expression.Of(sum)
	c.State.Last.Contribution = expression.Of(contribution)
	return nil
}

func (c *Call) lastCollector() int {
	if c.State.Collector != 0 {
		return c.State.Collector
	}
	for _, policy := range c.config.Policies {
		if policy.Then.Collect != nil {
			return policy.Number
		}
	}
	return 0
}

// callConditions evaluates conditions in the scope of one outcome, which is
// made for the first of them.
type callConditions struct {
	call   *Call
	scope  *Scope
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
	if err == nil {
		return result, nil
	}
	var eval *playbook.EvalError
	if errors.As(err, &eval) {
		return false, &playbook.EvalError{
			Pos: eval.Pos, Message: fmt.Sprintf("retry[%d].%s: %s", policy.Number, word, eval.Message),
		}
	}
	return false, err
}
