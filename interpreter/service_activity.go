package interpreter

import (
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/login"
	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
)

// LongHistory and LargeHistory are the events and bytes of a history beyond which its
// workflow continues as new. Signals for a queue of a concurrency key wait until it has: the
// server refuses that a workflow continues while signals come.
const (
	LongHistory  = 3500
	LargeHistory = 3_000_000
)

// serviceActivities are the activities by which runs reach others, or tidy up. They make no
// attempt of a step.
var serviceActivities = []string{
	AdmitActivity, CancelTreeActivity, CheckActivity, DeliverActivity, EndedActivity, ForgetActivity, PauseRateLimitActivity, MayStartActivity, PlanActivity,
	queue.CancelActivity, queue.DeadlockActivity, queue.EndedActivity, queue.EnterActivity, partition.ClaimActivity, partition.NoteActivity,
	login.ChallengeActivity, login.ExchangeActivity, login.ProofActivity, RecallActivity, SettleActivity, SinksActivity, StateActivity, StateCommandActivity, StoppedActivity,
}

// IsServiceActivity reports whether the activity of a name makes no attempt of a step: no
// tool may have the name, and no event is about it.
func IsServiceActivity(name string) bool { return slices.Contains(serviceActivities, name) }

// ForgetActivity is the name of the local activity that has ledgers forget their
// notes of calls whose results are in history.
const ForgetActivity = "forget"

// A run that is stopped leaves calls between two pages. Some of these pages
// have been delivered under keys that a later run has too, and the source may give
// others by now. So the run that replaces it continues such a call from its
// state, as another worker would, and does not begin it anew (docs/concepts/runs.md#playbooks-in-playbooks).
// Names of what reads the state of a call that was stopped. They are part of histories.
const (
	// StoppedActivity reads the state of a call from the workflow that has begun it.
	StoppedActivity = "stopped_call"
	// StoppedQuery answers with call.Stopped, also when the workflow has ended.
	StoppedQuery = "stopped"
)

// PauseRateLimitActivity is the name of the local activity that pauses all attempts
// under a rate limit, because a policy has read in a response that clients are to wait.
const PauseRateLimitActivity = "pause_rate_limit"

// PauseRateLimitInput is the argument of PauseRateLimitActivity; it does not travel.
type PauseRateLimitInput struct {
	// Attempt is the attempt that got the response; it identifies the rate limit.
	Attempt ToolInput `json:"attempt"`
	Seconds float64   `json:"seconds"`
}

// PausesRateLimit is the pause of all attempts under the rate limit of an attempt, of as many seconds as a policy has
// read in its outcome; false for nothing. seconds is nil where none has.
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
