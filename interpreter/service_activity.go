package interpreter

import (
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// LongHistory and LargeHistory are the number of events and bytes beyond which a history is continued as new.
// Signals to the queue of a concurrency key wait until that has happened: the server rejects the continuation of a
// workflow while signals arrive.
const (
	LongHistory  = 3500
	LargeHistory = 3_000_000
)

// ForgetActivity is the local activity that deletes ledger entries of calls whose results are in history.
const ForgetActivity = "forget"

// A stopped run leaves calls between two pages. Some of their pages were delivered under keys that a later run
// would use too, while the source may return other data by now. So the run that replaces it continues such a call
// from its state, as another worker would, instead of starting anew (docs/concepts/runs.md#playbooks-in-playbooks).
// These names of what reads the state are part of histories.
const (
	// StoppedActivity reads the state of a call from the workflow that began it.
	StoppedActivity = "stopped_call"
	// StoppedQuery returns a call.Stopped, even when the workflow has ended.
	StoppedQuery = "stopped"
)

// PauseRateLimitActivity is the local activity that pauses all attempts under a rate limit, because a policy read
// from a response that clients must wait.
const PauseRateLimitActivity = "pause_rate_limit"

// PauseRateLimitInput is the argument of PauseRateLimitActivity; it stays within the worker.
type PauseRateLimitInput struct {
	// Attempt is the attempt that received the response; it identifies the rate limit.
	Attempt ToolInput `json:"attempt"`
	Seconds float64   `json:"seconds"`
}

// PausesRateLimit returns the pause of all attempts under the attempt's rate limit, for the number of seconds that
// a policy read from its outcome. It returns false without a rate limit, or if seconds is nil.
func (in ToolInput) PausesRateLimit(seconds *float64) (PauseRateLimitInput, bool) {
	if seconds == nil {
		return PauseRateLimitInput{}, false
	}
	attempt := ToolInput{
		Tool: in.Tool, Playbook: in.Playbook, Step: in.Step, Auth: in.Auth, RateLimit: in.RateLimit,
		Fields: map[string]expression.Value{},
	}
	if address, has := in.Fields[playbook.FieldURL]; has {
		attempt.Fields[playbook.FieldURL] = address
	}
	return PauseRateLimitInput{Attempt: attempt, Seconds: *seconds}, true
}
