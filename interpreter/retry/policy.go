package retry

import (
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/ratelimit"
)

// Counters has the counts of a call's policies; kept in workflow history. Policies[i] belongs to the policy with
// number i+1.
type Counters struct {
	Policies []counter `json:"policies,omitempty"`
	// NamedInRow counts consecutive waits requested by the server; a failure without one resets it. Named counts
	// all such waits of the call.
	NamedInRow int `json:"named_in_row,omitempty"`
	Named      int `json:"named,omitempty"`
	// Limits are the limits of the worker's operator. They apply to every failure, even if validation could not
	// evaluate the policy's condition.
	Limits interpreter.RunLimits `json:"limits,omitzero"`
}

// counter counts one policy's matches, failures and successes separately, each with the time of the first counted
// match.
type counter struct {
	Failures       int       `json:"failures,omitempty"`
	FailuresSince  time.Time `json:"failures_since,omitzero"`
	Successes      int       `json:"successes,omitempty"`
	SuccessesSince time.Time `json:"successes_since,omitzero"`
}

// resetFailures resets what is counted of failures.
func (c *counter) resetFailures() { c.Failures, c.FailuresSince = 0, time.Time{} }

// resetSuccesses resets what is counted of successes.
func (c *counter) resetSuccesses() { c.Successes, c.SuccessesSince = 0, time.Time{} }

// NewCounters returns the counters of n policies.
func NewCounters(n int) Counters { return Counters{Policies: make([]counter, n)} }

// resetFailures resets the failure counts for a new page. Restarts are counted over the whole call.
func (c *Counters) resetFailures(policies []*playbook.Policy) {
	c.NamedInRow = 0
	for i, policy := range policies {
		if !policy.Then.Restart {
			c.Policies[i].resetFailures()
		}
	}
}

// ResetForRestart resets all counts of a call that restarts, except the number of restarts.
func (c *Counters) ResetForRestart(policies []*playbook.Policy) {
	for i, policy := range policies {
		if !policy.Then.Restart {
			c.Policies[i] = counter{}
		}
	}
}

// ResetSettled resets the count of an exhausted policy, because a person requested another attempt: the count of
// its polls if polls is set, otherwise of its failures.
func (c *Counters) ResetSettled(policy int, polls bool) {
	switch {
	case policy == 0:
	case polls:
		c.Policies[policy-1].resetSuccesses()
	default:
		c.Policies[policy-1].resetFailures()
	}
	c.NamedInRow, c.Named = 0, 0
}

// ResetResumed resets the counts of the current request of a call that a later run continues, so that it gets all
// attempts and polls again.
func (c *Counters) ResetResumed(policies []*playbook.Policy) {
	c.NamedInRow, c.Named = 0, 0
	c.resetFailures(policies)
	c.NewRequest(policies)
	for i := range c.Policies {
		c.Policies[i].SuccessesSince = time.Time{}
	}
}

// NewRequest resets the polls for a new request; policies that page continue counting.
func (c *Counters) NewRequest(policies []*playbook.Policy) {
	for i, policy := range policies {
		if policy.Then.NextCall == nil {
			c.Policies[i].resetSuccesses()
		}
	}
}

// Ruling is the policies' decision about an outcome.
type Ruling uint8

// The rulings. From RulingGivesUp on, a policy would repeat but is exhausted.
const (
	RulingStands    Ruling = iota // the call ends with the outcome
	RulingStops                   // the call ends with the outcome, because of stop_when
	RulingRepeats                 // another attempt follows
	RulingIgnores                 // the failure is treated as an empty response
	RulingRefuses                 // the success is treated as a failure, on which the policies then rule
	RulingGivesUp                 // the failure remains
	RulingHolds                   // people decide how the call continues
	RulingSucceeds                // the failure becomes a success, which may lack pages
	RulingFails                   // the success becomes a failure: a poll that never became ready
	RulingTruncates               // the success remains, and may lack pages
)

// IsExhausted reports whether a policy would repeat but has used up its attempts or time.
func (r Ruling) IsExhausted() bool { return r >= RulingGivesUp }

// MayTruncate reports whether the call's result may lack pages.
func (r Ruling) MayTruncate() bool { return r == RulingSucceeds || r == RulingTruncates }

// Decision is the result of Decide.
type Decision struct {
	Ruling Ruling
	// Policy is the number of the policy that decided, 0 if none matched.
	Policy int
	// Matched lists all policies that matched, in order. There are several if an exhausted one says continue.
	Matched []int
	// Delay is the wait before the next attempt, and Reason says why.
	Delay  time.Duration
	Reason interpreter.Reason
	// Count and Limit are the policy's count for this match and its
	// max_attempts, for summaries such as "attempt 3/5".
	Count, Limit int
	// Spent is the number of the policy that ran out of attempts or time with this outcome, 0 for none. It differs
	// from Policy if a later policy matched after it. Why says what ran out, for messages.
	Spent int
	Why   string
	// Cut names a policy that ended at the operator's limit before its own.
	Cut string
	// Requested is the wait that a policy's retry_after read from the outcome, 0 for none.
	Requested time.Duration
	// Unread describes a requested wait that could not be parsed; "" for none.
	Unread string
}

// Repeats reports whether another attempt follows.
func (d *Decision) Repeats() bool { return d.Ruling == RulingRepeats }

// conditions evaluates a policy's conditions for the current outcome. RetryAfter returns the wait of the policy's
// retry_after, 0 for none, or in unread why it could not be parsed.
type conditions interface {
	StopWhen(policy *playbook.Policy) (bool, error)
	When(policy *playbook.Policy) (bool, error)
	RetryAfter(policy *playbook.Policy) (wait time.Duration, unread string, err error)
}

// Decide tries the policies in order; the first that matches decides (docs/concepts/attempts.md). It only changes
// counters, and takes the time and random numbers as arguments, so the same history always gives the same decision.
// Without random, waits have no jitter. Errors are those of conditions.
func Decide(
	policies []*playbook.Policy, outcome interpreter.Outcome, counters *Counters,
	conditions conditions, now time.Time, random func() float64,
) (Decision, error) {
	if !outcome.Failed() {
		counters.resetFailures(policies)
	}
	named := counters.Named
	decision, err := matchPolicies(policies, outcome, counters, conditions, now, random)
	if counters.Named == named {
		counters.NamedInRow = 0
	}
	return decision, err
}

func matchPolicies(
	policies []*playbook.Policy, outcome interpreter.Outcome, counters *Counters,
	conditions conditions, now time.Time, random func() float64,
) (Decision, error) {
	var decision Decision
	counted := false // a requested wait counts once, however many policies match
	for _, policy := range policies {
		stop, match, err := evaluatePolicy(conditions, policy)
		if err != nil {
			return Decision{}, err
		}
		if stop {
			if !decision.Ruling.IsExhausted() {
				decision.Ruling = RulingStops
			}
			return decision, nil
		}
		if !match {
			continue
		}
		decision.Policy = policy.Number
		decision.Matched = append(decision.Matched, policy.Number)
		if !outcome.Failed() && policy.Then.Fail != nil {
			decision.Ruling = RulingRefuses
			return decision, nil
		}
		if !policy.Then.Repeats || policy.Then.Restart && !outcome.Failed() {
			if outcome.Failed() && policy.Then.Ignore {
				decision.Ruling, decision.Spent, decision.Why = RulingIgnores, 0, ""
			}
			return decision, nil
		}
		round := round{policy: policy, outcome: outcome, counters: counters, now: now, random: random, counted: counted}
		if err := round.readWait(conditions, &decision); err != nil {
			return Decision{}, err
		}
		counted = counted || round.waitIsNamed()
		if round.decideRepeat(&decision); decision.Repeats() || policy.Then.OnExhausted != playbook.ExhaustedContinue {
			return decision, nil
		}
	}
	return decision, nil
}

func evaluatePolicy(conditions conditions, policy *playbook.Policy) (stop, match bool, err error) {
	if policy.StopWhen != nil {
		if stop, err = conditions.StopWhen(policy); err != nil || stop {
			return stop, false, err
		}
	}
	match, err = conditions.When(policy)
	return false, match, err
}

// round is one match of a policy that repeats.
type round struct {
	policy   *playbook.Policy
	outcome  interpreter.Outcome
	counters *Counters
	now      time.Time
	random   func() float64
	counted  bool          // an earlier policy has already counted the requested wait
	asked    time.Duration // the wait that the server requested, 0 for none
}

// decideRepeat counts the match, and decides between another attempt and exhaustion.
func (r round) decideRepeat(decision *Decision) {
	then := &r.policy.Then
	count, since := r.countMatch()
	decision.Count, decision.Limit = *count, r.attemptLimit()
	named := r.waitIsNamed()
	if r.isSpent(*count, decision.Limit) {
		r.exhaustPolicy(decision, "max_attempts reached")
		return
	}
	if most := r.counters.Limits.MaxRetries; r.countsMatch() && r.outcome.Failed() && most > 0 && *count > most {
		r.exhaustPolicy(decision, playbook.WorkerRetries(most))
		decision.Cut = fmt.Sprintf("policy %d%s ended after %d of %d attempts: %s",
			r.policy.Number, r.policy.OriginText(), decision.Count, decision.Limit, decision.Why)
		return
	}
	delay, why := r.nextDelay(*count)
	if why == "" && then.MaxElapsed != nil && r.now.Add(delay).Sub(since) > *then.MaxElapsed {
		why = "the next attempt would start after max_elapsed"
	}
	if why != "" {
		r.exhaustPolicy(decision, why)
		return
	}
	decision.Spent, decision.Why, decision.Cut = 0, "", ""
	decision.Ruling, decision.Delay, decision.Reason = RulingRepeats, delay, r.waitReason(named)
	if !r.outcome.Failed() && then.NextCall != nil {
		decision.Reason = interpreter.ReasonPage
	}
}

// countMatch counts the match, unless the server requested the wait, and records when the policy began to count.
func (r round) countMatch() (count *int, since time.Time) {
	counter := &r.counters.Policies[r.policy.Number-1]
	count, start := &counter.Successes, &counter.SuccessesSince
	if r.outcome.Failed() {
		count, start = &counter.Failures, &counter.FailuresSince
	}
	if start.IsZero() {
		*start = r.now
	}
	if r.countsMatch() {
		*count++
	}
	if r.waitIsNamed() && !r.counted {
		r.counters.NamedInRow++
		r.counters.Named++
	}
	return count, *start
}

// countsMatch reports whether the match uses up an attempt, or a restart.
func (r round) countsMatch() bool { return !r.waitIsNamed() || r.policy.Then.Restart }

// isSpent reports whether the policy has used up its max_attempts: attempts including the first, or restarts.
func (r round) isSpent(count, limit int) bool {
	if r.policy.Then.Restart {
		return count > limit
	}
	return r.countsMatch() && count >= limit
}

func (r round) attemptLimit() int {
	if r.policy.Then.Restart {
		return valueOr(r.policy.Then.MaxAttempts, playbook.DefaultRestarts)
	}
	if r.outcome.Failed() {
		return valueOr(r.policy.Then.MaxAttempts, playbook.DefaultFailureAttempts)
	}
	if r.policy.Then.NextCall == nil {
		return valueOr(r.policy.Then.MaxAttempts, playbook.DefaultPolls)
	}
	return valueOr(r.policy.Then.MaxAttempts, playbook.DefaultPages)
}

// nextDelay returns the delay before the next attempt or, in why, the reason why there is none.
func (r round) nextDelay(count int) (delay time.Duration, why string) {
	schedule := newBackoff(&r.policy.Then, r.outcome.Failed())
	if r.asked == 0 {
		return r.scheduledDelay(schedule, count), ""
	}
	if limit := valueOr(r.policy.Then.MaxWait, playbook.DefaultMaxWait); r.asked > limit {
		return 0, "asked to wait " + r.asked.String() + ", longer than max_wait " + limit.String()
	}
	inRow := count
	if r.waitIsNamed() {
		inRow = r.counters.NamedInRow
	}
	if r.waitIsNamed() && r.counters.Named > maxNamedWaits {
		return 0, "the server requested more than 1000 waits"
	}
	random := 0.0
	if schedule.jitter != playbook.JitterNone && r.random != nil {
		random = r.random()
	}
	return schedule.namedWait(r.asked, inRow, random), ""
}

// scheduledDelay returns the delay according to the policy's schedule.
func (r round) scheduledDelay(schedule backoff, count int) time.Duration {
	delay := schedule.delayAfter(count)
	if delay > 0 && schedule.jitter != playbook.JitterNone && r.random != nil {
		delay = schedule.applyJitter(delay, r.random())
	}
	if most := r.counters.Limits.MaxDelaySeconds; most > 0 {
		delay = min(delay, ratelimit.ToDuration(most))
	}
	return delay
}

func (r round) waitReason(named bool) interpreter.Reason {
	switch {
	case named:
		return interpreter.ReasonRateLimited
	case r.outcome.Failed():
		return interpreter.ReasonFailure
	}
	return interpreter.ReasonPoll
}

// exhaustPolicy decides the match of a policy that must not repeat.
func (r round) exhaustPolicy(decision *Decision, why string) {
	decision.Ruling, decision.Spent, decision.Why = r.exhaustedRuling(), r.policy.Number, why
}

// exhaustedRuling applies on_exhausted and its defaults: a failure remains a failure, paging returns what it has
// with a warning, and a poll that never became ready fails. If later policies decide and none repeats, a success
// still lacks the pages that this policy would have requested.
func (r round) exhaustedRuling() Ruling {
	then := &r.policy.Then
	if r.outcome.Failed() {
		switch then.OnExhausted {
		case playbook.ExhaustedSucceed:
			return RulingSucceeds
		case playbook.ExhaustedPause:
			return RulingHolds
		}
		return RulingGivesUp
	}
	switch polls := then.NextCall == nil; {
	case then.OnExhausted == playbook.ExhaustedPause && polls:
		return RulingHolds
	case then.OnExhausted == playbook.ExhaustedFail:
		return RulingFails
	case then.OnExhausted == playbook.ExhaustedSucceed, then.OnExhausted == playbook.ExhaustedContinue, !polls:
		return RulingTruncates
	}
	return RulingFails
}

// MostAttempts returns how many attempts a step's policies allow for a request that keeps failing: the maximum over
// the policies, within the operator's limits; 1 if none repeats. Policies that only page or poll may be included; a
// waiting call shows the number of its own policy.
func MostAttempts(step *playbook.Step, limits interpreter.RunLimits) int {
	most := 1
	for _, policy := range step.Retry {
		if !policy.Then.Repeats || policy.Then.NextCall != nil || policy.Then.Restart {
			continue
		}
		most = max(most, valueOr(policy.Then.MaxAttempts, playbook.DefaultFailureAttempts))
	}
	if limits.MaxRetries > 0 {
		most = min(most, limits.MaxRetries+1)
	}
	return most
}
