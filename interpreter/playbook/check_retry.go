package playbook

import (
	"strings"
	"time"

	"reprise/interpreter/source"
)

// The default delays of a policy: docs/language.md, section retry.
const (
	DefaultInitialDelay = time.Second
	DefaultMaxDelay     = time.Minute
)

// checkRetry checks the bounds of policies and warns of words without effect.
func checkRetry(c *checker) {
	for _, call := range c.pb.actions() {
		if call.sink != nil {
			c.checkPolicies(call.action.Retry, true)
		}
	}
	for _, step := range c.pb.Steps {
		c.checkPolicies(step.Retry, false)
	}
}

func (c *checker) checkPolicies(policies []*Policy, ofSink bool) {
	var always *Policy
	for _, policy := range policies {
		if always != nil {
			c.warnf(policy.Pos, CodeUnreachablePolicy, "policy %d is never asked: policy %d in line %d matches every outcome", policy.Number, always.Number, always.Pos.Line)
		} else if policy.matchesAlways() {
			always = policy
		}
		c.checkBounds(policy)
		c.checkDelays(&policy.Then)
		c.checkEffects(policy)
		if !ofSink { // check_sink_retry.go refuses pages there
			c.checkPages(policy)
		}
	}
}

// matchesAlways reports whether the policy takes every outcome for itself.
func (p *Policy) matchesAlways() bool {
	return p.When.printed() == "true" && p.StopWhen == nil && p.Then.OnExhausted != ExhaustedContinue
}

// printed is a condition's expression in its plain form, "" where there is none.
func (n *Node) printed() string {
	if n == nil || n.Template == nil {
		return ""
	}
	program, ok := n.Template.Single()
	if !ok {
		return ""
	}
	return program.Printed()
}

func (c *checker) checkBounds(policy *Policy) {
	then := &policy.Then
	if n := then.MaxAttempts; n != nil && *n < 1 {
		c.errorf(then.value("max_attempts"), CodeBounds, "max_attempts must be at least 1, not %d: it counts the first attempt, so 1 means no retry", *n)
	}
	if m := then.Multiplier; m != nil && !(*m >= 1) {
		c.errorf(then.value("backoff_multiplier"), CodeBounds, "backoff_multiplier must be at least 1, not %v: with 1 every delay is the same", *m)
	}
	for _, d := range []struct {
		word  string
		value *time.Duration
	}{
		{"delay", then.Delay},
		{"initial_delay", then.InitialDelay},
		{"max_delay", then.MaxDelay},
		{"max_elapsed", then.MaxElapsed},
		{"max_wait", then.MaxWait},
	} {
		if d.value != nil && *d.value < 0 {
			c.errorf(then.value(d.word), CodeBounds, "%s must not be negative, not %s", d.word, *d.value)
		}
	}
}

// word is the place of a key, value that of what stands behind it.
func (t *Then) word(name string) source.Position  { return t.Words.At(name, t.Pos) }
func (t *Then) value(name string) source.Position { return t.Values.At(name, t.Pos) }

func (c *checker) checkDelays(then *Then) {
	if then.Delay != nil {
		c.noEffect(then, "with delay every wait is the same",
			"initial_delay", "max_delay", "backoff", "backoff_multiplier")
		return
	}
	if then.Backoff == NoBackoff {
		c.noEffect(then, "with backoff: none there is no wait",
			"initial_delay", "max_delay", "backoff_multiplier", "jitter")
		return
	}
	if then.Backoff == Linear || then.Backoff == Fixed {
		c.noEffect(then, "only backoff: exponential multiplies", "backoff_multiplier")
	}
	switch longest := then.MaxDelay; {
	case longest == nil || *longest < 0:
	case then.InitialDelay != nil && *longest < *then.InitialDelay:
		c.errorf(then.value("max_delay"), CodeBounds, "max_delay (%s) must be at least initial_delay (%s)", *longest, *then.InitialDelay)
	case then.InitialDelay == nil && *longest < DefaultInitialDelay:
		c.errorf(then.value("max_delay"), CodeBounds, "max_delay (%s) must be at least initial_delay, which is %s where it is absent; write initial_delay too",
			*longest, DefaultInitialDelay)
	}
}

// noEffect warns of words that the reason given makes idle.
func (c *checker) noEffect(then *Then, reason string, words ...string) {
	for _, word := range words {
		if then.Words.Has(word) {
			c.warnf(then.word(word), CodeNoEffect, "%s has no effect: %s", word, reason)
		}
	}
}

func (c *checker) checkEffects(policy *Policy) {
	then := &policy.Then
	if !then.Repeats {
		c.noEffect(then, "this policy never repeats; max_attempts, delay, next_call and their like make it repeat", "on_exhausted", "allow_repeat")
		return
	}
	if then.NextCall == nil {
		c.noEffect(then, "only next_call is guarded against repeating itself", "allow_repeat")
	}
}

// checkPages warns where pages go nowhere and where next_call is never reached.
func (c *checker) checkPages(policy *Policy) {
	then := &policy.Then
	if then.NextCall == nil {
		return
	}
	if printed := policy.When.printed(); printed == "error != nil" || printed == "error" || strings.HasPrefix(printed, "error.") {
		c.errorf(then.NextCall.Pos, CodeNextCallAfterFailure,
			"next_call follows a success, but this policy matches failures only; move it to a policy such as when: \"{{ response.next is defined }}\"")
		return
	}
	if then.Collect == nil && then.PerIteration == nil {
		c.warnf(then.NextCall.Pos, CodePagesNotCollected,
			"next_call without collect or per_iteration.sink keeps only the last page; add collect: {strategy: append} to keep all")
	}
}
