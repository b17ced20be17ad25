package playbook

import (
	"fmt"
	"time"
)

// Limits are the limits that the operator of the workers sets
// (docs/concepts/limits.md#of-the-operator). Zero is no limit.
type Limits struct {
	// MaxRetries bounds the attempts after the first that follow failures.
	MaxRetries int
	// MaxDelay bounds every delay of a policy. Waits that the other side asks
	// for are bounded by max_wait.
	MaxDelay time.Duration
	// MaxRuns bounds the runs that start below a first run, at any depth.
	MaxRuns int
	// MaxVisits bounds how often a run makes one step.
	MaxVisits int
	// Assumed says that the limits come from the environment of a program that is no worker.
	// Workers may have others, so messages do not say what a worker allows.
	Assumed bool
}

// The variables of the worker's environment that set the limits, and their
// defaults.
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

// RetriesText describes the limit of retries, and whose it is.
func (l Limits) RetriesText() string {
	if l.Assumed {
		return assumedText(MaxRetriesVariable, retriesText(l.MaxRetries))
	}
	return WorkerRetries(l.MaxRetries)
}

// WorkerRetries says how many retries the worker allows.
func WorkerRetries(n int) string {
	return fmt.Sprintf("the worker allows %s, set by %s", retriesText(n), MaxRetriesVariable)
}

// DelayText describes the limit of delays, and whose it is.
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
