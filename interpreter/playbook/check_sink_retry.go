package playbook

import (
	"slices"

	"reprise/interpreter/expression"
)

// checkSinkRetry checks the retry of sinks: failure policies only, as a sink
// has neither pages nor sinks of its own (docs/concepts/written-once.md).
func checkSinkRetry(c *checker) {
	for _, call := range c.pb.actions() {
		if call.sink == nil {
			continue
		}
		kind, instead := call.kind(), "write it in the retry of the step"
		if call.spot&atNotices != 0 {
			instead = "leave it out"
		}
		for _, policy := range call.action.Retry {
			then := &policy.Then
			for _, word := range []string{"next_call", "collect", "sink", "per_iteration", "per_page", "restart", "end_on_repeat"} {
				if then.Words.Has(word) {
					c.errorf(then.word(word), codeSinkRetry, "the retry of %[1]s cannot have %[2]s: %[1]s has no pages and no sinks; %[3]s", kind, word, instead)
				}
			}
			if then.Words.Has("fail") {
				c.errorf(then.word("fail"), codeSinkRetry, "the retry of %[1]s cannot have fail: it handles failures only, and an answer that says it worked ends %[1]s; leave it out", kind)
			}
			if then.Words.Has("result") {
				c.errorf(then.word("result"), codeSinkRetry, "the retry of %[1]s cannot have result: nothing reads what %[1]s gives; leave it out", kind)
			}
			if then.OnExhausted == ExhaustedPause && call.spot&atNotices != 0 {
				c.errorf(then.word("on_exhausted"), codeSinkRetry, "the retry of a notice cannot have on_exhausted: pause: nobody waits for a notice; leave it out")
			}
			if policy.When != nil && !policy.When.names("error", "this") {
				c.errorf(policy.When.Pos, codeSinkRetry, "the retry of %s handles failures only, so its when must name error, such as when: \"{{ error is defined }}\"", kind)
			}
		}
	}
}

// names reports whether an expression of the node names one of the roots.
func (n *Node) names(roots ...string) bool {
	return slices.ContainsFunc(n.Refs(), func(ref expression.Ref) bool {
		return slices.Contains(roots, ref.Root)
	})
}
