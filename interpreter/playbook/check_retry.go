package playbook

import (
	"cmp"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/source"
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
		c.checkRestart(step)
		c.checkNextCalls(step)
		c.checkStrategies(step)
		c.checkGiveUpSinks(step)
		for _, route := range step.Next {
			c.checkFailedMeta(route.When)
		}
	}
}

func (c *checker) checkPolicies(policies []*Policy, ofSink bool) {
	var taken outcomes
	for i, policy := range policies {
		if by := cmp.Or(taken.by(policy), wider(policies[:i], policy)); by != nil {
			c.warnf(policy.Pos, codeUnreachablePolicy, "policy %d is never reached: policy %d in line %d matches every outcome that it could match; put the special policies before the general ones",
				policy.Number, by.Number, by.Pos.Line)
		} else {
			taken.add(policy)
		}
		c.checkBounds(policy)
		c.checkDelays(&policy.Then)
		c.checkEffects(policy)
		c.checkIgnore(policy)
		c.checkLimits(policy)
		c.checkFailedMeta(policy.When, policy.StopWhen)
		if !ofSink { // check_sink_retry.go refuses pages there
			c.checkPages(policy)
			c.checkFail(policy)
		}
	}
}

// outcomes remembers which policies take every failure and every success for
// themselves.
type outcomes struct{ failures, successes *Policy }

// by is the policy that leaves nothing to another one, nil if there is none.
func (o outcomes) by(policy *Policy) *Policy {
	failures, successes := true, true
	if program, ok := policy.When.program(); ok {
		failures, successes = !successesOnly(program), !failuresOnly(program)
	}
	switch {
	case failures && o.failures == nil, successes && o.successes == nil:
		return nil
	case successes:
		return o.successes
	}
	return o.failures
}

// wider is the first of some policies that matches whatever another one does and is the last to be
// asked then, nil if there is none. Counts differ from policy to policy.
func wider(earlier []*Policy, policy *Policy) *Policy {
	const most = 50 // others are few, or written by a program
	program, ok := policy.When.program()
	if !ok || policy.When.Names("_retry") {
		return nil
	}
	for _, other := range earlier[:min(len(earlier), most)] {
		if when, ok := other.When.program(); ok && other.Then.OnExhausted != ExhaustedContinue && program.Implies(when) {
			return other
		}
	}
	return nil
}

func (o *outcomes) add(policy *Policy) {
	program, ok := policy.When.program()
	if !ok || policy.Then.OnExhausted == ExhaustedContinue {
		return
	}
	if o.failures == nil && program.Assume(failureFacts) == expression.AlwaysTrue && program.Assume(noAnswerFacts) == expression.AlwaysTrue {
		o.failures = policy
	}
	if o.successes == nil && program.Assume(successFacts) == expression.AlwaysTrue {
		o.successes = policy
	}
}

// program is a condition's expression, false where there is none.
func (n *Node) program() (*expression.Program, bool) {
	if n == nil || n.Template == nil {
		return nil, false
	}
	return n.Template.Single()
}

func (c *checker) checkBounds(policy *Policy) {
	then := &policy.Then
	if n := then.MaxAttempts; n != nil && *n < 1 {
		counts := "it counts the first attempt, so 1 means no retry"
		if then.Restart {
			counts = "it counts the restarts"
		}
		c.errorf(then.value("max_attempts"), codeBounds, "%s must be at least 1, not %d: %s", then.name("max_attempts"), *n, counts)
	}
	if m := then.Multiplier; m != nil && !(*m >= 1) {
		c.errorf(then.value("backoff_multiplier"), codeBounds, "backoff_multiplier must be at least 1, not %v: with 1 every delay is the same", *m)
	}
}

// word is the place of a key, value that of what is behind it.
func (t *Then) word(name string) source.Position  { return t.Words.at(name, t.Pos) }
func (t *Then) value(name string) source.Position { return t.Values.at(name, t.Pos) }

// name is the word as the author wrote it, which an older form has others for.
func (t *Then) name(word string) string {
	if spelt, ok := t.spelt[word]; ok {
		return spelt
	}
	return word
}

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
	case longest == nil:
	case then.InitialDelay != nil && *longest < *then.InitialDelay:
		c.errorf(then.value("max_delay"), codeBounds, "%s (%s) must be at least %s (%s)",
			then.name("max_delay"), *longest, then.name("initial_delay"), *then.InitialDelay)
	case then.InitialDelay == nil && *longest < DefaultInitialDelay:
		c.errorf(then.value("max_delay"), codeBounds, "max_delay (%s) must be at least initial_delay, which is %s where it is absent; write initial_delay too",
			*longest, DefaultInitialDelay)
	}
}

// noEffect warns of words that the reason given makes idle.
func (c *checker) noEffect(then *Then, reason string, words ...string) {
	for _, word := range words {
		if then.Words.Has(word) {
			c.warnf(then.word(word), codeNoEffect, "%s has no effect: %s", word, reason)
		}
	}
}

func (c *checker) checkEffects(policy *Policy) {
	then := &policy.Then
	if !then.Repeats {
		c.noEffect(then, "this policy never repeats; max_attempts, delay, next_call and their like make it repeat", "on_exhausted", "allow_repeat", "end_on_repeat")
		return
	}
	if then.NextCall == nil {
		c.noEffect(then, "only next_call is guarded against repeating itself", "allow_repeat", "end_on_repeat")
	}
	if then.AllowRepeat && then.EndOnRepeat {
		c.errorf(then.word("end_on_repeat"), codeConflict, "allow_repeat turns the guards off, and end_on_repeat ends the pages where they find something; keep one of them")
	}
}

// checkIgnore refuses ignore where it could not hold, and warns of a result
// that no call could have.
func (c *checker) checkIgnore(policy *Policy) {
	then := &policy.Then
	program, ok := policy.When.program()
	switch {
	case !then.Ignore:
	case ok && successesOnly(program):
		c.errorf(then.word("ignore"), codeIgnoreAfterSuccess,
			"ignore makes an empty answer of a failure, but this policy matches successes only; result alone replaces what a success gives")
	case then.Repeats:
		word := then.repeatingWord()
		c.errorf(then.word("ignore"), codeConflict,
			"ignore ends the call at the first match, but %s asks for another attempt; to try again first, write a policy before this one with %s and on_exhausted: continue",
			word, word)
	}
	switch {
	case then.Ignore || then.OnExhausted == ExhaustedSucceed:
	case ok && failuresOnly(program):
		c.noEffect(then, "a failure that this policy matches does not end the call as a success; ignore: true makes it do so", "result")
	case then.Repeats && then.NextCall == nil:
		c.noEffect(then, "this policy tries again, and fails the call when it is exhausted; on_exhausted: succeed makes it end well", "result")
	}
}

// repeatingWord is the first word in the file that makes the policy repeat.
func (t *Then) repeatingWord() string {
	first := ""
	for _, word := range append([]string{"restart"}, repeating...) {
		if t.Words.Has(word) && (first == "" || t.word(word).Before(t.word(first))) {
			first = word
		}
	}
	return first
}

// checkPages warns where pages go nowhere and where next_call is never reached.
func (c *checker) checkPages(policy *Policy) {
	then := &policy.Then
	program, ok := policy.When.program()
	switch {
	case then.NextCall == nil && then.Collect != nil && then.Repeats && policy.When.Names("response"):
		c.warnf(then.Collect.Pos, codeCollectWithoutNextCall,
			"collect without next_call: this policy repeats the same request, and such answers are not collected; add next_call with what changes, or remove collect")
	case then.NextCall == nil:
	case ok && failuresOnly(program):
		c.errorf(then.NextCall.Pos, codeNextCallAfterFailure,
			"next_call follows a success, but this policy matches failures only; move it to a policy such as when: \"{{ response.next is defined }}\"")
	case then.Collect == nil && then.PerIteration == nil:
		c.warnf(then.NextCall.Pos, codePagesNotCollected,
			"next_call without collect or per_iteration.sink keeps only the last page; add collect: {strategy: append} to keep all")
	}
}

// checkNextCalls compares the words of next_call with the fields of the step's tool:
// one that it does not have would change nothing from page to page.
func (c *checker) checkNextCalls(step *Step) {
	spec, known := c.specOf(step.Action)
	if !known {
		return
	}
	for next := range step.nextCalls() {
		for _, word := range []struct {
			name  string
			value *Node
		}{{"params", next.Params}, {"headers", next.Headers}, {"url", next.URL}, {"method", next.Method}, {"body", next.Body}} {
			if _, ok := spec.field(word.name); word.value != nil && !ok {
				c.errorf(word.value.Pos, codeUnknownField, "next_call cannot change %s: the tool %s has no field %q; change args, and name them in its fields",
					word.name, spec.Name, word.name)
			}
		}
	}
}

// specOf is the spec of the tool that a step calls, the workbook's entry where it
// calls one; false where that is not known, or nothing is called.
func (c *checker) specOf(action *Action) (ToolSpec, bool) {
	if action == nil {
		return ToolSpec{}, false
	}
	name := c.toolOf(action)
	if name == WorkbookTool {
		entry, _ := action.entryName()
		if action = c.pb.Action(entry); action == nil {
			return ToolSpec{}, false
		}
		name = c.toolOf(action)
	}
	return c.tools.Spec(name)
}

// checkStrategies refuses policies that collect in different ways: what one has
// made of the pages before is nothing that another could continue with.
func (c *checker) checkStrategies(step *Step) {
	var first *Policy
	for _, policy := range step.Retry {
		collect := policy.Then.Collect
		switch {
		case collect == nil:
		case first == nil:
			first = policy
		case collect.Strategy != first.Then.Collect.Strategy:
			c.errorf(collect.Pos, codeConflict, "strategy %s cannot continue what policy %d collects by strategy %s, which would be lost; use one strategy in all policies",
				collect.Strategy, first.Number, first.Then.Collect.Strategy)
		}
	}
}

// checkGiveUpSinks warns of sinks that are written after failures only and would
// write rows of a result that no failed call has.
func (c *checker) checkGiveUpSinks(step *Step) {
	if slices.ContainsFunc(step.Retry, func(policy *Policy) bool { return policy.Then.Collect != nil }) {
		return
	}
	for _, policy := range step.Retry {
		then := &policy.Then
		program, ok := policy.When.program()
		if then.Sink == nil || !ok || !failuresOnly(program) || then.Ignore || then.OnExhausted == ExhaustedSucceed {
			continue
		}
		action := then.Sink.Action
		rows := action != nil && (TraitsOf(c.toolOf(action)).IntoFile || action.Field("table") != nil)
		if rows && action.Args == nil && action.Field(statementField) == nil {
			c.warnf(then.Sink.Pos, codeNoEffect, "this sink writes nothing: a call that failed has no result but what was collected before; give it args, such as {message: \"{{ error.message }}\"}")
		}
	}
}
