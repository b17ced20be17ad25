package check

import (
	"cmp"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// checkRetry checks the bounds of policies and warns about words without effect.
func checkRetry(c *checker) {
	for _, call := range c.pb.AllCalls() {
		if call.Sink != nil {
			checkPolicies(c, call.Action.Retry, true)
		}
	}
	for _, step := range c.pb.CallSteps() {
		checkPolicies(c, step.Retry, false)
		checkPages(c, step)
		checkRestart(c, step)
		checkNextCalls(c, step)
		checkStrategies(c, step)
		checkGiveUpSinks(c, step)
		checkIgnoredPages(c, step)
		for _, route := range step.Next {
			checkFailedMeta(c, route.When)
		}
	}
}

func checkPolicies(c *checker, policies []*playbook.Policy, ofSink bool) {
	var taken outcomes
	for i, policy := range policies {
		if by := cmp.Or(taken.exhaustedBy(policy), widerPolicy(policies[:i], policy)); by != nil {
			c.Warnf(policy.Pos, codeUnreachablePolicy, "policy %d is never reached: policy %d on line %d already matches every outcome that it could match; put specific policies before general ones",
				policy.Number, by.Number, by.Pos.Line)
		} else {
			taken.addPolicy(policy)
		}
		checkBounds(c, policy)
		checkDelays(c, &policy.Then)
		checkEffects(c, policy)
		checkIgnore(c, policy)
		checkLimits(c, policy)
		checkFailedMeta(c, policy.When, policy.StopWhen)
		if !ofSink { // sink_retry.go reports pages there
			checkFail(c, policy)
		}
	}
}

// outcomes records which policies match all failures and all successes.
type outcomes struct{ failures, successes *playbook.Policy }

// exhaustedBy returns the earlier policy that leaves nothing for this one, because it matches all failures or all
// successes; nil if there is none.
func (o outcomes) exhaustedBy(policy *playbook.Policy) *playbook.Policy {
	failures, successes := true, true
	if program, ok := policy.When.ConditionProgram(); ok {
		failures, successes = !playbook.SuccessesOnly(program), !playbook.FailuresOnly(program)
	}
	switch {
	case failures && o.failures == nil, successes && o.successes == nil:
		return nil
	case successes:
		return o.successes
	}
	return o.failures
}

// widerPolicy returns the first earlier policy that matches everything the given one does and leaves nothing for
// later ones; nil if there is none. Counts are ignored, since they differ between policies.
func widerPolicy(earlier []*playbook.Policy, policy *playbook.Policy) *playbook.Policy {
	const most = 50 // others are few, or written by a program
	program, ok := policy.When.ConditionProgram()
	if !ok || policy.When.UsesAny("_retry") {
		return nil
	}
	for _, other := range earlier[:min(len(earlier), most)] {
		if when, ok := other.When.ConditionProgram(); ok && other.Then.OnExhausted != playbook.ExhaustedContinue && program.Implies(when) {
			return other
		}
	}
	return nil
}

func (o *outcomes) addPolicy(policy *playbook.Policy) {
	program, ok := policy.When.ConditionProgram()
	if !ok || policy.Then.OnExhausted == playbook.ExhaustedContinue {
		return
	}
	if o.failures == nil && program.Assume(playbook.FailureFacts) == expression.AlwaysTrue && program.Assume(playbook.NoAnswerFacts) == expression.AlwaysTrue {
		o.failures = policy
	}
	if o.successes == nil && program.Assume(playbook.SuccessFacts) == expression.AlwaysTrue {
		o.successes = policy
	}
}

func checkBounds(c *checker, policy *playbook.Policy) {
	then := &policy.Then
	if n := then.MaxAttempts; n != nil && *n < 1 {
		counts := "it counts the first attempt, so 1 means no retry"
		if then.Restart {
			counts = "it counts the restarts"
		}
		c.Errorf(placeOfValue(then, "max_attempts"), playbook.CodeBounds, "%s must be at least 1, not %d: %s", writtenWord(then, "max_attempts"), *n, counts)
	}
	if m := then.Multiplier; m != nil && !(*m >= 1) {
		c.Errorf(placeOfValue(then, "backoff_multiplier"), playbook.CodeBounds, "backoff_multiplier must be at least 1, not %v: with 1 every delay is the same", *m)
	}
}

// placeOfWord returns the position of a key, placeOfValue that of its value.
func placeOfWord(t *playbook.Then, name string) source.Position { return t.Words.Place(name, t.Pos) }

func placeOfValue(t *playbook.Then, name string) source.Position { return t.Values.Place(name, t.Pos) }

// writtenWord returns the word as the author wrote it, in an older form.
func writtenWord(t *playbook.Then, word string) string {
	if spelt, ok := t.OlderWords()[word]; ok {
		return spelt
	}
	return word
}

func checkDelays(c *checker, then *playbook.Then) {
	if then.Delay != nil {
		warnNoEffect(c, then, "with delay, every wait is the same",
			"initial_delay", "max_delay", "backoff", "backoff_multiplier")
		return
	}
	if then.Backoff == playbook.NoBackoff {
		warnNoEffect(c, then, "with backoff: none there is no wait",
			"initial_delay", "max_delay", "backoff_multiplier", "jitter")
		return
	}
	if then.Backoff == playbook.Linear || then.Backoff == playbook.Fixed {
		warnNoEffect(c, then, "only backoff: exponential multiplies", "backoff_multiplier")
	}
	switch longest := then.MaxDelay; {
	case longest == nil:
	case then.InitialDelay != nil && *longest < *then.InitialDelay:
		c.Errorf(placeOfValue(then, "max_delay"), playbook.CodeBounds, "%s (%s) must be at least %s (%s)",
			writtenWord(then, "max_delay"), *longest, writtenWord(then, "initial_delay"), *then.InitialDelay)
	case then.InitialDelay == nil && *longest < playbook.DefaultInitialDelay:
		c.Errorf(placeOfValue(then, "max_delay"), playbook.CodeBounds, "max_delay (%s) must be at least initial_delay, which is %s by default; set initial_delay too",
			*longest, playbook.DefaultInitialDelay)
	}
}

// warnNoEffect warns about words that have no effect, for the given reason.
func warnNoEffect(c *checker, then *playbook.Then, reason string, words ...string) {
	for _, word := range words {
		if then.Words.Has(word) {
			c.Warnf(placeOfWord(then, word), codeNoEffect, "%s has no effect: %s", word, reason)
		}
	}
}

func checkEffects(c *checker, policy *playbook.Policy) {
	then := &policy.Then
	if !then.Repeats {
		warnNoEffect(c, then, "this policy never repeats a request; add for example max_attempts, delay or next_call", "on_exhausted", "allow_repeat", "end_on_repeat")
		return
	}
	if then.NextCall == nil {
		warnNoEffect(c, then, "only next_call is checked for repetition", "allow_repeat", "end_on_repeat")
	}
	if then.AllowRepeat && then.EndOnRepeat {
		c.Errorf(placeOfWord(then, "end_on_repeat"), playbook.CodeConflict, "allow_repeat allows repetition, and end_on_repeat ends the pages at a repetition; keep one of them")
	}
}

// checkIgnore reports an ignore that cannot apply, and warns about a result that no call could have.
func checkIgnore(c *checker, policy *playbook.Policy) {
	then := &policy.Then
	program, ok := policy.When.ConditionProgram()
	switch {
	case !then.Ignore:
	case ok && playbook.SuccessesOnly(program):
		c.Errorf(placeOfWord(then, "ignore"), codeIgnoreAfterSuccess,
			"ignore turns a failure into an empty result, but this policy matches only successes; to replace the result of a success, use result alone")
	case then.Repeats:
		word := repeatingWord(then)
		c.Errorf(placeOfWord(then, "ignore"), playbook.CodeConflict,
			"ignore ends the call at the first match, but %s requests another attempt; to retry first, add a policy before this one with %s and on_exhausted: continue",
			word, word)
	}
	switch {
	case then.Ignore || then.OnExhausted == playbook.ExhaustedSucceed:
	case ok && playbook.FailuresOnly(program):
		warnNoEffect(c, then, "a failure that this policy matches does not end the call successfully; to do so, add ignore: true", "result")
	case then.Repeats && then.NextCall == nil:
		warnNoEffect(c, then, "this policy retries, and the call fails when it is exhausted; to succeed instead, add on_exhausted: succeed", "result")
	}
}

// outage is a failure that says nothing about the end of the pages.
var outage = map[string]any{"kind": "http", "class": "retryable", "status": 503, "type": "", "message": "Service Unavailable", "attempt": 1, "page": 2, "exhausted": false}

// checkIgnoredPages warns about a step with pages that ignores failures which are not the end of the pages, if what it has read by then
// counts as everything: it replaces rows, or moves a watermark.
func checkIgnoredPages(c *checker, step *playbook.Step) {
	harm := c.harmOfUnreadPages(step)
	if harm == "" || !slices.ContainsFunc(step.Retry, func(policy *playbook.Policy) bool { return policy.Then.NextCall != nil }) {
		return
	}
	scope := c.workloadScope()
	scope["error"], scope["response"] = outage, nil
	scope["this"] = map[string]any{"status": "error", "error": outage, "data": nil}
	for _, policy := range step.Retry {
		value, err := policy.When.Render(scope, c.newBudget())
		switch {
		case err != nil:
			return
		case !expression.Truthy(value):
			continue
		case policy.Then.Ignore:
			c.Warnf(placeOfWord(&policy.Then, "ignore"), codeIgnoredPages, "this policy also ignores failures such as HTTP 503; if a further page fails like that, the call counts as complete, and %s; "+
				"match only what ends the pages, such as error.status == 404", harm)
			return
		case policy.Then.OnExhausted != playbook.ExhaustedContinue:
			return
		}
	}
}

// harmOfUnreadPages says what a step does to rows of pages that it has not read, if it counts as complete; "" for none.
func (c *checker) harmOfUnreadPages(step *playbook.Step) (harm string) {
	for _, sink := range slices.Concat(step.SuccessSinks(), step.Sinks) {
		if action := c.pb.ResolveAction(sink.Action); action != nil && action.StagesRows() {
			harm = "the rows of later pages are deleted from the table"
		}
	}
	if step.Incremental != nil {
		harm = "the watermark moves, although later pages were not read"
	}
	return harm
}

// repeatingWord returns the first word in the file that makes the policy repeat.
func repeatingWord(t *playbook.Then) string {
	first := ""
	for _, word := range append([]string{"restart"}, playbook.RepeatingWords...) {
		if t.Words.Has(word) && (first == "" || placeOfWord(t, word).Before(placeOfWord(t, first))) {
			first = word
		}
	}
	return first
}

// checkPages warns about pages that are neither written nor collected, and about next_call that is never reached.
func checkPages(c *checker, step *playbook.Step) {
	pages, collects := step.Incremental != nil && step.Incremental.Step != "", step.PagesCollect() != nil
	for _, policy := range step.Retry {
		then := &policy.Then
		program, ok := policy.When.ConditionProgram()
		pages = pages || then.NextCall != nil
		switch {
		case then.NextCall == nil && then.Collect != nil && then.Repeats && policy.When.UsesAny("response"):
			c.Warnf(then.Collect.Pos, codeCollectWithoutNextCall,
				"collect has no effect without next_call: this policy repeats the same request, and does not collect its responses; add next_call with the fields that change, or remove collect")
		case then.NextCall == nil:
		case ok && playbook.FailuresOnly(program):
			c.Errorf(then.NextCall.Pos, codeNextCallAfterFailure,
				"next_call follows a success, but this policy matches only failures; move it to a policy such as when: \"{{ response.next is defined }}\"")
		case then.Collect == nil && len(then.PageSinks) == 0 && !collects:
			c.notCollected(step, policy)
		}
	}
	if step.Collect != nil && !step.IsSource() && !pages && step.Action != nil && !step.Secret {
		c.Warnf(step.Collect.Pos, codeCollectWithoutNextCall,
			"collect has no effect without next_call: step %q reads a single page, so there is nothing to combine; add a policy with next_call, or remove collect%s", step.Name, insteadText(step))
	}
}

// insteadText returns how to write a collect in a step without pages.
func insteadText(step *playbook.Step) string {
	if step.Collect.Path == "" {
		return ""
	}
	return " and write rows: " + step.Collect.Path
}

// notCollected reports pages of which only the last is kept: as an error if the step selects their rows, which
// would be missing in a table.
func (c *checker) notCollected(step *playbook.Step, policy *playbook.Policy) {
	pos := policy.Then.NextCall.Pos
	if step.ReadsRows() {
		c.Errorf(pos, codePagesNotCollected, "the rows of pages that policy %d matches are neither written nor collected, as other policies write or collect theirs; "+
			"add per_iteration or collect to policy %d, or collect: {strategy: append} to the step", policy.Number, policy.Number)
		return
	}
	c.Warnf(pos, codePagesNotCollected,
		"next_call without collect or per_iteration.sink keeps only the last page; to keep all, add collect: {strategy: append} to the step, or rows with the path to the rows")
}

// checkNextCalls checks the words of next_call against the fields of the step's tool: an unknown one would change
// nothing from page to page.
func checkNextCalls(c *checker, step *playbook.Step) {
	spec, known := c.specOf(step.Action)
	if !known {
		return
	}
	for next := range step.NextCalls() {
		for _, word := range []struct {
			name  string
			value *playbook.Node
		}{{"params", next.Params}, {"headers", next.Headers}, {"url", next.URL}, {"method", next.Method}, {"body", next.Body}} {
			if _, ok := spec.Field(word.name); word.value != nil && !ok {
				c.Errorf(word.value.Pos, codeUnknownField, "next_call cannot change %s: the tool %s has no field %q; change args, and use them in its fields",
					word.name, spec.Name, word.name)
			}
		}
	}
}

// specOf returns the spec of the tool that a step calls, possibly through a workbook entry; false if it is unknown,
// or if nothing is called.
func (c *checker) specOf(action *playbook.Action) (playbook.ToolSpec, bool) {
	if action == nil {
		return playbook.ToolSpec{}, false
	}
	name := c.toolOf(action)
	if name == playbook.WorkbookTool {
		entry, _ := action.EntryName()
		if action = c.pb.Action(entry); action == nil {
			return playbook.ToolSpec{}, false
		}
		name = c.toolOf(action)
	}
	return c.tools.Spec(name)
}

// checkStrategies reports pages collected with different strategies: one could not continue with the data that
// another has collected.
func checkStrategies(c *checker, step *playbook.Step) {
	var first *playbook.Collect
	for collect := range step.CollectSections() {
		switch {
		case len(collect.MergeBy) > 0 && collect.Strategy != playbook.Append:
			c.Errorf(collect.Words.Place("merge_by", collect.Pos), playbook.CodeConflict, "merge_by merges rows of lists, but strategy: %s keeps no list of all pages; remove the strategy", collect.Strategy)
		case first == nil:
		case collect.Strategy != first.Strategy:
			c.Errorf(collect.Pos, playbook.CodeConflict, "strategy %s would lose the pages that line %d collects with strategy %s; use the same strategy everywhere in the step",
				collect.Strategy, first.Pos.Line, first.Strategy)
		case !slices.Equal(collect.MergeBy, first.MergeBy):
			c.Errorf(collect.Pos, playbook.CodeConflict, "merge_by differs from the one on line %d, but the rows of all pages are merged together; write the same in both", first.Pos.Line)
		}
		if first == nil {
			first = collect
		}
	}
	if first == nil || len(first.MergeBy) == 0 {
		return
	}
	for _, policy := range step.Retry {
		if len(policy.Then.PageSinks) > 0 {
			c.Warnf(policy.Then.PageSinks[0].Pos, codeNoEffect, "this sink writes each page before its rows are merged by the collect on line %d; write them with a sink of then, step or loop, or by mode: upsert without merge_by", first.Pos.Line)
		}
	}
}

// collectsPages reports whether a step collects its pages.
func collectsPages(step *playbook.Step) bool {
	for range step.CollectSections() {
		return true
	}
	return step.PagesCollect() != nil
}

// checkGiveUpSinks warns about sinks that are only written after failures and would write rows of a result, which a
// failed call does not have.
func checkGiveUpSinks(c *checker, step *playbook.Step) {
	if collectsPages(step) {
		return
	}
	for _, policy := range step.Retry {
		then := &policy.Then
		program, ok := policy.When.ConditionProgram()
		if !ok || !playbook.FailuresOnly(program) || then.Ignore || then.OnExhausted == playbook.ExhaustedSucceed {
			continue
		}
		for _, sink := range then.Sinks {
			action := sink.Action
			rows := action != nil && (playbook.TraitsOf(c.toolOf(action)).IntoFile || action.Field("table") != nil)
			if rows && action.Args == nil && action.Field(playbook.FieldStatement) == nil {
				c.Warnf(sink.Pos, codeNoEffect, "this sink writes nothing: a failed call has no result except what was collected before; add args, such as {message: \"{{ error.message }}\"}")
			}
		}
	}
}
