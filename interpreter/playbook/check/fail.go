package check

import (
	"reprise/interpreter/playbook"
)

// failWords are the words of then that describe the failure made by fail.
var failWords = []string{"class", "type"}

// checkFail reports a fail that has no effect, and words beside it that never apply:
// docs/concepts/attempts.md#failures-in-responses.
func checkFail(c *checker, policy *playbook.Policy) {
	then := &policy.Then
	if then.Fail == nil {
		for _, word := range failWords {
			if then.Words.Has(word) {
				c.Errorf(placeOfWord(then, word), playbook.CodeMissingKey, "%s belongs to fail, which is missing here; add fail: \"what went wrong\", or remove %s", word, word)
			}
		}
		if then.RetryAfter != nil && !then.Repeats {
			c.Errorf(placeOfWord(then, "retry_after"), playbook.CodeMissingKey, "retry_after sets the wait before the next attempt, but this policy makes no other attempt; add max_attempts")
		}
		return
	}
	program, ok := policy.When.ConditionProgram()
	if ok && playbook.FailuresOnly(program) && (then.Repeats || then.Restart) {
		c.Errorf(placeOfWord(then, "fail"), codeFailAfterFailure,
			"fail ends the call with its own message, but this policy retries; move fail to a policy after this one, or remove the keys that retry")
		return
	}
	for _, word := range []string{"next_call", "collect", "per_iteration", "result", "ignore", "allow_repeat", "end_on_repeat", "pages_per_activity"} {
		if then.Words.Has(word) {
			c.Errorf(placeOfWord(then, word), playbook.CodeConflict, "%s cannot be combined with fail: a failed response is neither collected nor written; move it to a separate policy", word)
			return
		}
	}
	if !ok || !playbook.SuccessesOnly(program) {
		return
	}
	for _, word := range append([]string{"restart", "sink", "on_exhausted"}, playbook.RepeatingWords...) {
		if then.Words.Has(word) {
			c.Errorf(placeOfWord(then, word), playbook.CodeConflict,
				"%s has no effect beside fail: the policies are evaluated again for the failure, which this when does not match; move it to another policy, for example when: \"{{ error.kind == 'response' }}\"", word)
			return
		}
	}
}

// checkPolicyLists warns about unused lists of policies.
func checkPolicyLists(c *checker) {
	if c.partial {
		return
	}
	for _, list := range c.pb.UnusedPolicies() {
		c.Warnf(list.Pos, codeUnusedPolicies, "policies.%s is never used; include it in a retry with - use: %s", list.Name, list.Name)
	}
}
