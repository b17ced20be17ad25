package playbook

import "time"

// What a policy means where it says nothing: docs/concepts/attempts.md.
const (
	DefaultInitialDelay = time.Second
	DefaultMaxDelay     = time.Minute // or the initial delay, where that is longer
	DefaultMultiplier   = 2.0
	DefaultMaxWait      = time.Hour

	DefaultFailureAttempts = 3
	DefaultSuccessAttempts = 100
	DefaultRestarts        = 1

	// DefaultFailClass is the class of a failure that fail makes of an answer.
	DefaultFailClass = "final"

	// DefaultInto is the name of what was collected.
	DefaultInto = "pages"
)
