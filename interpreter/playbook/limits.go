package playbook

import (
	"fmt"
	"time"
)

// Limits are the limits set by the operator of the workers (docs/concepts/limits.md#limits-set-by-the-operator). Zero means no
// limit.
type Limits struct {
	// MaxRetries bounds the retries after failures, without the first attempt.
	MaxRetries int
	// MaxDelay bounds every delay of a policy. Waits requested by servers are bounded by max_wait.
	MaxDelay time.Duration
	// MaxRuns bounds the descendants of a first run.
	MaxRuns int
	// MaxVisits bounds how often a run visits one step.
	MaxVisits int
	// Assumed says that the limits come from the environment of a program other than a worker. Workers may have
	// other limits, so messages do not say what a worker allows.
	Assumed bool
}

// The environment variables of the worker with the limits, and their defaults.
const (
	MaxRetriesVariable = "REPRISE_RETRY_MAX_RETRIES_LIMIT"
	MaxDelayVariable   = "REPRISE_RETRY_MAX_DELAY_LIMIT"
	RunsVariable       = "REPRISE_RUNS_LIMIT"
	VisitsVariable     = "REPRISE_VISITS_LIMIT"

	DefaultMaxRetriesLimit = 10
	DefaultMaxDelayLimit   = time.Hour
	DefaultRunsLimit       = 10_000
	DefaultVisitsLimit     = 1000
)

// RetriesText describes the limit of retries, and where it comes from.
func (l Limits) RetriesText() string {
	if l.Assumed {
		return assumedText(MaxRetriesVariable, retriesText(l.MaxRetries))
	}
	return WorkerRetries(l.MaxRetries)
}

// WorkerRetries describes how many retries the worker allows.
func WorkerRetries(n int) string {
	return fmt.Sprintf("the worker allows %s, set by %s", retriesText(n), MaxRetriesVariable)
}

// DelayText describes the limit of delays, and where it comes from.
func (l Limits) DelayText() string {
	if l.Assumed {
		return assumedText(MaxDelayVariable, DurationText(l.MaxDelay))
	}
	return "that is the worker's limit, set by " + MaxDelayVariable
}

func assumedText(variable, limit string) string {
	return fmt.Sprintf("%s allows %s here; a worker may have another limit", variable, limit)
}

func retriesText(n int) string {
	if n == 1 {
		return "1 retry"
	}
	return fmt.Sprintf("%d retries", n)
}
