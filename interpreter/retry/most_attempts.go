package retry

import (
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// MostAttempts is how many attempts the policies of a step give one request that
// goes on failing: those of the most patient one, within the operator's limits; 1
// where none repeats. A policy that only pages or polls may count too; what a
// call waits for says what its own policy gives.
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
