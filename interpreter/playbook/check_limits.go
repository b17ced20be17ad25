package playbook

import (
	"fmt"
	"time"
)

// Limits are what the operator of the workers allows (docs/concepts/limits.md#of-the-operator).
// A zero limit is none.
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
	// Assumed limits are those of the environment of a program that is no worker: workers may have
	// others, so no message says what a worker allows.
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

// checkLimits refuses a policy above the operator's limits. Attempts are
// limited for failures only, so by the validation only where when names error; a run
// holds every failure to the limit.
func (c *checker) checkLimits(policy *Policy) {
	then, limits := &policy.Then, c.options.Limits
	if limits.MaxRetries > 0 && then.Repeats && policy.forFailures() {
		attempts, most, absent := DefaultFailureAttempts, limits.MaxRetries+1, ", which it is where it is absent"
		if then.Restart {
			attempts, most = DefaultRestarts, limits.MaxRetries
		}
		if then.MaxAttempts != nil {
			attempts, absent = *then.MaxAttempts, ""
		}
		word := then.name("max_attempts")
		if attempts > most {
			if word == "max_retries" { // which does not count the first attempt
				most, attempts = most-1, attempts-1
			}
			c.errorf(then.value("max_attempts"), codeOperatorLimit, "%s must be at most %d after failures, not %d%s: %s",
				word, most, attempts, absent, limits.retriesText())
		}
	}
	if limits.MaxDelay <= 0 {
		return
	}
	for _, d := range then.Delays {
		if d.Value > limits.MaxDelay {
			c.errorf(then.value(d.Word), codeOperatorLimit, "%s must be at most %s, not %s: %s",
				then.name(d.Word), DurationText(limits.MaxDelay), DurationText(d.Value), limits.delayText())
		}
	}
}

// retriesText describes the limit of retries, and whose it is.
func (l Limits) retriesText() string {
	if l.Assumed {
		return assumed(MaxRetriesVariable, retries(l.MaxRetries))
	}
	return WorkerRetries(l.MaxRetries)
}

// WorkerRetries says how many retries the worker allows.
func WorkerRetries(n int) string {
	return fmt.Sprintf("the worker allows %s, set by %s", retries(n), MaxRetriesVariable)
}

// delayText describes the limit of delays, and whose it is.
func (l Limits) delayText() string {
	if l.Assumed {
		return assumed(MaxDelayVariable, DurationText(l.MaxDelay))
	}
	return "that is the worker's limit, set by " + MaxDelayVariable
}

func assumed(variable, limit string) string {
	return fmt.Sprintf("%s allows %s here; a worker may have another limit", variable, limit)
}

// forFailures reports whether the condition names error, other than to exclude
// failures.
func (p *Policy) forFailures() bool {
	program, ok := p.When.program()
	return ok && p.When.Names("error") && !successesOnly(program)
}

func retries(n int) string {
	if n == 1 {
		return "1 retry"
	}
	return fmt.Sprintf("%d retries", n)
}
