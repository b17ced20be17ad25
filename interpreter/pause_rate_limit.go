package interpreter

import (
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// PauseRateLimitActivity is the name of the local activity that pauses all attempts
// under a rate limit, because a response that reports success asks clients to wait.
const PauseRateLimitActivity = "pause_rate_limit"

// PauseRateLimitInput is the argument of PauseRateLimitActivity; it does not travel.
type PauseRateLimitInput struct {
	// Attempt is the one with that response; it names the rate limit.
	Attempt ToolInput `json:"attempt"`
	Seconds float64   `json:"seconds"`
}

// PausesRateLimit is the pause of all attempts under the rate limit of an attempt, as the failure says that a policy
// has made of its answer; false for nothing. refused is nil where none has.
func (in ToolInput) PausesRateLimit(refused *ErrorObject) (PauseRateLimitInput, bool) {
	if refused == nil || refused.Class != ClassRateLimited || refused.RetryAfter == nil {
		return PauseRateLimitInput{}, false
	}
	attempt := ToolInput{
		Tool: in.Tool, Playbook: in.Playbook, Step: in.Step, Auth: in.Auth, RateLimit: in.RateLimit,
		Fields: map[string]expression.Value{},
	}
	if address, has := in.Fields[playbook.FieldURL]; has {
		attempt.Fields[playbook.FieldURL] = address
	}
	return PauseRateLimitInput{Attempt: attempt, Seconds: *refused.RetryAfter}, true
}
