package playbook

// failWords are the words of then that say how the failure is that fail makes of an
// answer.
var failWords = []string{"class", "type"}

// checkFail refuses fail where it could not hold, and words beside it that would never
// apply: docs/concepts/attempts.md#failures-in-answers.
func (c *checker) checkFail(policy *Policy) {
	then := &policy.Then
	if then.Fail == nil {
		for _, word := range failWords {
			if then.Words.Has(word) {
				c.errorf(then.word(word), codeMissingKey, "%s says how the failure is that fail makes of an answer, and there is no fail; write fail: \"what went wrong\" beside it, or leave %s out", word, word)
			}
		}
		if then.RetryAfter != nil && !then.Repeats {
			c.errorf(then.word("retry_after"), codeMissingKey, "retry_after says how long to wait before the next attempt, and this policy makes none; write max_attempts beside it")
		}
		return
	}
	program, ok := policy.When.program()
	if ok && failuresOnly(program) {
		c.errorf(then.word("fail"), codeFailAfterFailure,
			"fail makes a failure of an answer that says it worked, but this policy matches failures only; name the answer, such as when: \"{{ response.errors is defined }}\"")
		return
	}
	for _, word := range []string{"next_call", "collect", "per_iteration", "result", "ignore", "allow_repeat", "end_on_repeat", "pages_per_activity"} {
		if then.Words.Has(word) {
			c.errorf(then.word(word), codeConflict, "%s cannot be combined with fail: nothing of an answer that is a failure is collected or written; write it in a policy of its own", word)
			return
		}
	}
	if !ok || !successesOnly(program) {
		return
	}
	for _, word := range append([]string{"restart", "sink", "on_exhausted"}, repeating...) {
		if then.Words.Has(word) {
			c.errorf(then.word(word), codeConflict,
				"%s has no effect beside fail: the policies are evaluated again for the failure, which this when does not match; write it in another policy, such as when: \"{{ error.kind == 'response' }}\"", word)
			return
		}
	}
}

// checkPolicyLists warns of lists that nobody uses.
func checkPolicyLists(c *checker) {
	for _, list := range c.pb.lent {
		if !list.used && !c.partial {
			c.warnf(list.pos, codeUnusedPolicies, "nobody uses policies.%s; a retry does with - use: %s", list.name, list.name)
		}
	}
}

// nodes are the values of then itself, without those of its sinks.
func (t *Then) nodes() []*Node {
	nodes := []*Node{t.Result, t.Fail, t.Type, t.RetryAfter}
	if t.NextCall != nil {
		nodes = append(nodes, t.NextCall.Nodes()...)
	}
	return nodes
}

// Nodes are the values of a request that it changes, nil for each that it does not.
func (n *NextCall) Nodes() []*Node {
	return []*Node{n.Args, n.Params, n.Headers, n.URL, n.Method, n.Body}
}
