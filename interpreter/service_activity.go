package interpreter

import (
	"slices"

	"reprise/interpreter/queue"
)

// LongHistory and LargeHistory are the events and bytes of a history beyond which its
// workflow continues as new. Signals for a queue of a concurrency key wait until it has: the
// server refuses that a workflow continues while signals come.
const (
	LongHistory  = 3500
	LargeHistory = 3_000_000
)

// serviceActivities are the activities with which runs ask others, or tidy up. They
// make no attempt of a step.
var serviceActivities = []string{
	AdmitActivity, CancelTreeActivity, CheckActivity, DeliverActivity, EndedActivity, ForgetActivity, HoldBackActivity,
	queue.CancelActivity, queue.DeadlockActivity, queue.EndedActivity, queue.EnterActivity, RecallActivity, SettleActivity, StoppedActivity,
}

// IsServiceActivity reports whether the activity of a name makes no attempt of a step: no
// tool may have the name, and no event is about it.
func IsServiceActivity(name string) bool { return slices.Contains(serviceActivities, name) }
