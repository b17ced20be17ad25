package check

import (
	"fmt"

	"reprise/interpreter/playbook"
)

// checkSinkRetry checks the retry of sinks, which handles failures only, because a sink has neither pages nor sinks
// (docs/concepts/written-once.md).
func checkSinkRetry(c *checker) {
	for _, call := range c.pb.AllCalls() {
		if call.Sink == nil {
			continue
		}
		kind, instead := writingCallName(call), "move it to the retry of the step"
		if call.Spot&playbook.AtNotices != 0 {
			instead = "leave it out"
		}
		for _, policy := range call.Action.Retry {
			then := &policy.Then
			for _, word := range playbook.StepsOnlyWords {
				if then.Words.Has(word) {
					c.Errorf(placeOfWord(then, word), codeSinkRetry, "the retry of %s cannot have %s: %s", kind, word, sinkRetryMessage(word, kind, instead))
				}
			}
			if then.OnExhausted == playbook.ExhaustedPause && call.Spot&playbook.AtNotices != 0 {
				c.Errorf(placeOfWord(then, "on_exhausted"), codeSinkRetry, "the retry of a notice cannot have on_exhausted: pause, because nobody waits for a notice; remove it")
			}
			if policy.When != nil && !policy.When.UsesAny("error", "this") {
				c.Errorf(policy.When.Pos, codeSinkRetry, "the retry of %s handles only failures, so its when must use error, such as when: \"{{ error is defined }}\"", kind)
			}
		}
	}
}

// sinkRetryMessage says why the retry of a sink or notice cannot have a word, and what to do instead.
func sinkRetryMessage(word, kind, instead string) string {
	switch word {
	case "fail":
		return fmt.Sprintf("it handles only failures, and a success ends %s; remove it", kind)
	case "result":
		return fmt.Sprintf("nothing reads the result of %s; remove it", kind)
	default:
		return fmt.Sprintf("%s has neither pages nor sinks; %s", kind, instead)
	}
}
