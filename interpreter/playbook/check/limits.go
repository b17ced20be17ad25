package check

import (
	"reprise/interpreter/playbook"
)

// checkLimits reports a policy that exceeds the operator's limits. Attempts are limited for failures only, so
// validation considers only policies whose when uses error; a run applies the limit to every failure.
func checkLimits(c *checker, policy *playbook.Policy) {
	then, limits := &policy.Then, c.options.Limits
	if limits.MaxRetries > 0 && then.Repeats && matchesFailures(policy) {
		attempts, most, absent := playbook.DefaultFailureAttempts, limits.MaxRetries+1, ", the default"
		if then.Restart {
			attempts, most = playbook.DefaultRestarts, limits.MaxRetries
		}
		if then.MaxAttempts != nil {
			attempts, absent = *then.MaxAttempts, ""
		}
		word := writtenWord(then, "max_attempts")
		if attempts > most {
			if word == "max_retries" { // it does not count the first attempt
				most, attempts = most-1, attempts-1
			}
			c.Errorf(placeOfValue(then, "max_attempts"), codeOperatorLimit, "%s must be at most %d after failures, not %d%s: %s",
				word, most, attempts, absent, limits.RetriesText())
		}
	}
	if limits.MaxDelay <= 0 {
		return
	}
	for _, d := range then.Delays {
		if d.Value > limits.MaxDelay {
			c.Errorf(placeOfValue(then, d.Word), codeOperatorLimit, "%s must be at most %s, not %s: %s",
				writtenWord(then, d.Word), playbook.DurationText(limits.MaxDelay), playbook.DurationText(d.Value), limits.DelayText())
		}
	}
}

// matchesFailures reports whether the condition uses error, other than to exclude failures.
func matchesFailures(p *playbook.Policy) bool {
	program, ok := p.When.ConditionProgram()
	return ok && p.When.UsesAny("error") && !playbook.SuccessesOnly(program)
}
