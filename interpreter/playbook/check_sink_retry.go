package playbook

import (
	"fmt"
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
			for i := range thenSection.keys {
				if word := thenSection.keys[i].name; thenSection.keys[i].stepsOnly && then.Words.Has(word) {
					c.errorf(then.word(word), codeSinkRetry, "the retry of %s cannot have %s: %s", kind, word, notOfSinks(word, kind, instead))
				}
			}
			if then.OnExhausted == ExhaustedPause && call.spot&atNotices != 0 {
				c.errorf(then.word("on_exhausted"), codeSinkRetry, "the retry of a notice cannot have on_exhausted: pause: nobody waits for a notice; leave it out")
			}
			if policy.When != nil && !policy.When.Names("error", "this") {
				c.errorf(policy.When.Pos, codeSinkRetry, "the retry of %s handles failures only, so its when must name error, such as when: \"{{ error is defined }}\"", kind)
			}
		}
	}
}

// notOfSinks says why the retry of a sink or notice cannot have a word, and what to do instead.
func notOfSinks(word, kind, instead string) string {
	switch word {
	case "fail":
		return fmt.Sprintf("it handles failures only, and an answer that says it worked ends %s; leave it out", kind)
	case "result":
		return fmt.Sprintf("nothing reads what %s gives; leave it out", kind)
	default:
		return fmt.Sprintf("%s has no pages and no sinks; %s", kind, instead)
	}
}
