package call

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/interpreter/call/watermark"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
	"reprise/interpreter/source"
)

// This file decides what follows an outcome: the policies rule on it (interpreter/retry), and the ruling determines
// what is left to do.

// ruling is a decision of the policies, with its time and the budget for everything it evaluates.
type ruling struct {
	retry.Decision
	budget *expression.Budget
	now    time.Time
}

// startCall begins the call. A step that keeps a state claims it first. If sinks publish all rows together, their tables first
// record that reading begins, so that they notice what other loads write meanwhile.
func (c *Call) startCall(now time.Time) {
	c.state.StartedAt = now
	switch {
	case c.keeps == nil && len(c.newReader().beginsToRead(now)) > 0:
		c.state.Todo = []Todo{{State: &watermark.Pending{Begins: true}}}
		return
	case c.keeps == nil, c.state.Watermark != nil:
		c.beginRequest(now)
		return
	}
	unclaimed, err := c.keeps.PendingClaim(now)
	if err != nil {
		c.failBy(c.config.CallPlace(), err, now)
		return
	}
	c.state.Todo = []Todo{{State: unclaimed}}
}

// beginRequest renders the first request and makes its attempt the next thing to do.
func (c *Call) beginRequest(now time.Time) {
	notes, err := c.requests.StartRequest(&c.state.Requests, c.newReader().requestMoment(), now)
	if err != nil {
		c.failBy(c.config.CallPlace(), err, now)
		return
	}
	c.warnOf(notes)
	c.state.requestAgain(nil)
}

// warnOf adds the warnings of expressions to those of the result, each once.
func (c *Call) warnOf(notes []string) {
	for _, text := range notes {
		c.state.warnOnce(c.config.CallPlace() + ": " + text)
	}
}

// decideAttempt counts an attempt that was made, and decides what follows it.
func (c *Call) decideAttempt(outcome interpreter.Outcome, now time.Time) {
	c.state.Attempts++
	c.state.RequestAttempts++
	c.refused, c.othersWait = nil, nil
	c.ruleOnOutcome(outcome, now)
}

// ruleOnOutcome applies the policies to the outcome of an attempt.
func (c *Call) ruleOnOutcome(outcome interpreter.Outcome, now time.Time) {
	before := c.state.beforeAnswer(outcome, c.config.Policies)
	c.state.recordOutcome(outcome, &c.config, now)
	c.state.Last.Noted, c.noted = c.noted, false
	if outcome.Failed() && !outcome.Err.PoliciesDecide() {
		c.planEnd(c.state.failedResult(*c.state.Last.Error, now))
		return
	}
	budget := expression.DecisionBudget(now)
	conditions := &callConditions{reader: c.newReader(), explain: c.explain, budget: budget, now: now}
	decision, err := retry.Decide(c.config.Policies, outcome, &c.state.Counters, conditions, now, c.config.Random)
	if err != nil {
		c.failBy(c.config.CallPlace(), err, now)
		return
	}
	c.warnOf(budget.Notes())
	c.showObservation(c.config.observationOf(outcome, decision, c.state.Attempts))
	d := ruling{Decision: decision, budget: budget, now: now}
	if d.Ruling == retry.RulingRefuses {
		c.refuseAnswer(d, *before, outcome)
		return
	}
	c.state.Last.Policy = d.Policy
	if outcome.Failed() {
		c.readWait(d)
		c.afterFailure(d)
		return
	}
	if d.Unread != "" {
		c.state.warnOnce(c.config.whereThen(d.Policy) + ": " + c.config.unreadWait(d.Unread))
	}
	c.afterSuccess(d)
	c.warnOf(budget.Notes())
}

// putOff postpones an attempt that was not made: until its slot under a rate limit, or until a person resumes the
// call. It does not count as an attempt.
func (c *Call) putOff(off interpreter.PutOff, now time.Time) {
	if off.Hold != nil {
		c.Hold(*off.Hold)
		return
	}
	turn := *off.Turn
	c.state.Turn = &turn
	phrase := interpreter.WaitPhrase{What: "slot", Why: ", under its rate limit"}
	wait := interpreter.PhrasedWait(c.config.Name(), turn.Promised.Sub(now), interpreter.ReasonTurn, phrase)
	wait.Delay = max(turn.At.Sub(now), 0)
	c.state.requestAgain(wait)
}

// refuseAnswer turns a successful answer into a failure, because a policy says so, and applies the policies to it
// (docs/concepts/attempts.md#failures-in-responses). Only the meta of the answer is kept.
func (c *Call) refuseAnswer(d ruling, before beforeAnswer, answer interpreter.Outcome) {
	r, policy := c.newReader(), c.config.Policies[d.Policy-1]
	scope := r.answerScope(r.policyScope(), d.budget, policy, policy.Then.Fail, policy.Then.Type, policy.Then.RetryAfter)
	message := fmt.Sprintf("%s: policy %d%s treats the response as a failure", c.config.CallPlace(), d.Policy, c.config.policySource(d.Policy))
	failure, err := c.config.answerFailure(d, scope, answer, message)
	if err != nil {
		c.failBy(c.config.whereThen(d.Policy), err, d.now)
		return
	}
	c.state.restoreBefore(before)
	failure.Attempt, failure.Page = c.state.Attempts, c.state.currentPage(&c.config)
	c.refused = failure
	if failure.Class == interpreter.ClassRateLimited {
		c.othersWait = failure.RetryAfter
	}
	c.ruleOnOutcome(interpreter.Outcome{Err: failure}, d.now)
}

// readWait records the wait that a policy's retry_after read from the failure, or a warning if it could not be
// parsed.
func (c *Call) readWait(d ruling) {
	if d.Requested > 0 {
		seconds := d.Requested.Seconds()
		c.othersWait = &seconds
	}
	if d.Unread != "" {
		failure := *c.state.Last.Error
		failure.Message += " (" + c.config.unreadWait(d.Unread) + ")"
		c.state.Last.Error = &failure
	}
}

func (c *Call) afterFailure(d ruling) {
	switch d.Ruling {
	case retry.RulingRepeats:
		if c.config.Policies.ThenOf(d.Policy).Restart {
			c.restartCall(d)
			return
		}
		c.state.requestAgain(c.newReader().newResults().waitOf(d.Decision))
	case retry.RulingSucceeds, retry.RulingIgnores:
		// The failure is ignored or turned into a success; the warning still mentions it.
		d.Why += "; " + c.state.Last.Error.Message
		// If the request of a further page fails and that is ignored, the pages end there.
		c.state.Incomplete = d.Ruling != retry.RulingIgnores || c.state.PagedBy == nil && !c.state.Watermark.ReadsSlices()
		result := c.newReader().newResults().successResult(d)
		c.state.Last.Error = nil
		if d.Ruling == retry.RulingIgnores {
			c.state.Pages.RecordMatches(d.Policy) // what it matched is an answer
		}
		c.planEnd(result)
	default:
		failure := *c.state.Last.Error
		failure.Policy, failure.Exhausted = d.Policy, d.Ruling.IsExhausted()
		if err := c.rewordFailure(&failure, d); err != nil {
			c.failBy(c.config.whereThen(d.Policy), err, d.now)
			return
		}
		if d.Cut != "" {
			failure.Message += " (" + d.Cut + ")"
			c.state.addWarnings(c.config.CallPlace() + ": " + d.Cut)
		}
		if failure.Exhausted && c.config.Policies[d.Policy-1].IsTableRetry() {
			failure.Message += fmt.Sprintf(" (given up after %s: %s; to change that, add retry to the sink)", source.Count(c.state.Attempts, "attempt"), d.Why)
		}
		c.state.Last.Error = &failure
		if d.Ruling == retry.RulingHolds {
			c.Hold(interpreter.Hold{Exhausted: true})
			return
		}
		c.planEnd(c.state.failedResult(failure, d.now))
	}
}

// afterSuccess collects the page, schedules its sink, and continues with the next request or the end.
func (c *Call) afterSuccess(d ruling) {
	c.state.Pages.RecordMatches(d.Matched...)
	then := c.config.Policies.ThenOf(d.Policy)
	switch {
	case d.Repeats() && then.NextCall == nil:
		c.state.notePoll(&c.config)
		c.state.requestAgain(c.newReader().newResults().waitOf(d.Decision)) // a poll's pages are not collected
		return
	case d.Ruling == retry.RulingHolds:
		failure := c.newReader().newResults().pollFailure(d.Decision)
		failure.Body = expression.Value{} // the body is already in the state
		c.Hold(interpreter.Hold{Exhausted: true, Failure: failure})
		return
	case d.Ruling == retry.RulingFails && then.NextCall == nil:
		// The last response of a poll that never became ready is not a page.
		c.planEnd(c.state.failedResult(*c.newReader().newResults().pollFailure(d.Decision), d.now))
		return
	case d.Ruling == retry.RulingTruncates && pollMayGiveUp(then):
		c.state.Incomplete = true
		c.planEnd(c.newReader().newResults().successResult(d)) // nor is it a page if the policy makes it a success
		return
	case d.Repeats() && c.state.Pages.IsRepeatedPage(c.state.Last.Data.Data) && !then.AllowRepeat:
		// A repeated page is neither collected nor written.
		c.planEnd(c.newReader().newResults().repeatedResult(d, "page %d is the same as the previous page", c.state.Successes))
		return
	}
	if failure := c.state.addPage(&c.config, d, c.newReader().rowSelection(d.budget)); failure != nil {
		c.failCall(failure, d.now)
		return
	}
	if d.Ruling.MayTruncate() {
		c.state.Incomplete = true
	}
	switch {
	case d.Repeats():
		c.state.Pages.RecordPaging(c.config.Policies[d.Policy-1], c.state.Last.Data.Data)
		c.fetchNextPage(d)
	case d.Ruling == retry.RulingFails:
		c.planEnd(c.state.failedResult(*c.newReader().newResults().pollFailure(d.Decision), d.now), c.newReader().pageTodo(d)...)
	case d.Ruling == retry.RulingStands && c.state.Last.Meta.Next != nil:
		c.readNextBatch(*c.state.Last.Meta.Next)
	default:
		c.planEnd(c.newReader().newResults().successResult(d), c.newReader().pageTodo(d)...)
	}
}

// readNextBatch schedules the request of the rows behind a place in the file that the call reads.
func (c *Call) readNextBatch(after interpreter.SourcePlace) {
	next := c.state.Request
	next.After = &after
	c.state.Counters.NewRequest(c.config.Policies)
	c.state.Todo = attemptAfter(nil, &next)
	c.state.continueAfterPage()
}

// pollMayGiveUp reports whether a policy polls and, when its attempts are used up, makes the last response the
// result without collecting it as a page.
func pollMayGiveUp(then *playbook.Then) bool {
	return then.Repeats && then.NextCall == nil && then.OnExhausted == playbook.ExhaustedSucceed &&
		then.Collect == nil && len(then.PageSinks) == 0
}

// pageTodo returns what must be done for a page before the next request: its sinks, then the move of the watermark.
func (r reader) pageTodo(d ruling) []Todo {
	number := r.state.Pages.SinkPolicy(r.config.Policies, d.Decision)
	if number == 0 {
		return nil
	}
	page := sinkTodo(r.config.ForPage(number)...)
	if r.state.Watermark == nil {
		return page
	}
	return slices.Concat(page, moveTodo(r.keeps.PageMove(r.state.Watermark)))
}

// fetchNextPage schedules the request of the next page. A request that repeats an earlier one ends the call.
func (c *Call) fetchNextPage(d ruling) {
	page, then := c.newReader().pageTodo(d), c.config.Policies.ThenOf(d.Policy)
	next, repeats, err := c.requests.NextRequest(&c.state.Requests, c.newReader().requestMoment(), then, c.newReader().policyScope(), d.budget, d.now)
	switch {
	case err != nil:
		failure := c.newReader().newResults().completeFailure(interpreter.ExpressionError(c.config.Book, c.config.whereThen(d.Policy), err))
		c.planEnd(c.state.failedResult(*failure, d.now), page...)
	case repeats:
		c.planEnd(c.newReader().newResults().repeatedResult(d, "the request for page %d was already made in this call", c.state.Successes+1), page...)
	default:
		if c.config.Sink == nil && !c.config.Step.Secret {
			c.state.NoteSize(c.state.rowsOfPage(), c.state.Successes)
			c.state.NoteOffset(then.NextCall, c.state.Request.Fields[playbook.FieldParams].Data, next.Fields[playbook.FieldParams].Data, c.state.rowsOfPage(), c.state.Successes)
			c.state.NoteEdge(then.NextCall, c.state.Last.Data.Data, next.Fields[playbook.FieldParams].Data, next.Fields[playbook.FieldBody].Data, c.state.Successes)
		}
		c.state.Counters.NewRequest(c.config.Policies)
		c.state.Todo = slices.Concat(page, attemptAfter(c.newReader().newResults().waitOf(d.Decision), &next))
		c.state.continueAfterPage()
	}
}

// restartCall discards what the call collected and starts again from the first request, after the decision's delay.
// The count of writes continues, because ledger entries are numbered across restarts. Policies that matched an
// earlier success keep their sinks, which belong to the call as a whole.
func (c *Call) restartCall(d ruling) {
	before, wait := c.state, c.newReader().newResults().waitOf(d.Decision)
	before.Counters.ResetForRestart(c.config.Policies)
	full := c.config.Policies.ThenOf(d.Policy).RestartFull
	c.state = State{
		StartedAt: before.StartedAt, Attempts: before.Attempts, Restarts: before.Restarts + 1, Lost: before.Lost,
		Counters: before.Counters, Written: before.Written, Noted: before.Noted, Ledger: before.Ledger,
		Warnings: before.Warnings, Answers: await.Answers{Reported: before.Reported},
		Requests:  before.Requests.AfterRestart(),
		Pages:     before.Pages.AfterRestart(),
		Last:      lastAttempt{Meta: before.Last.Meta, Error: before.Last.Error, Policy: before.Last.Policy},
		Watermark: before.Watermark.AfterRestart(c.config.incrementalSection(), full), LeftOut: before.LeftOut, Rows: before.Rows,
	}
	if c.beginRequest(d.now); c.state.nextTodo().Attempt != nil {
		c.state.requestAgain(wait)
	}
}
