package activities

import (
	"fmt"
	"strconv"
	"time"

	"reprise/activities/memory"
	"reprise/interpreter/playbook"
)

// LimitsFromEnv reads the operator's limits (docs/concepts/limits.md#limits-set-by-the-operator):
// REPRISE_RETRY_MAX_RETRIES_LIMIT, a number of retries,
// REPRISE_RETRY_MAX_DELAY_LIMIT, a duration such as 90s or a number of seconds,
// REPRISE_RUNS_LIMIT, a number of runs, and REPRISE_VISITS_LIMIT, how often a run makes
// one step. lookup is usually os.LookupEnv. What is not
// set has its default.
func LimitsFromEnv(lookup func(string) (string, bool)) (playbook.Limits, error) {
	limits := playbook.Limits{
		MaxRetries: playbook.DefaultMaxRetriesLimit, MaxDelay: playbook.DefaultMaxDelayLimit,
		MaxRuns: playbook.DefaultRunsLimit, MaxVisits: playbook.DefaultVisitsLimit,
	}
	if text, set := lookup(playbook.MaxRetriesVariable); set && text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return limits, fmt.Errorf("%s is %q; it must be a number of retries from 1", playbook.MaxRetriesVariable, text)
		}
		limits.MaxRetries = n
	}
	if text, set := lookup(playbook.MaxDelayVariable); set && text != "" {
		delay, err := time.ParseDuration(text)
		if seconds, notNumber := strconv.ParseFloat(text, 64); notNumber == nil {
			delay, err = time.Duration(seconds*float64(time.Second)), nil
		}
		if err != nil || delay <= 0 {
			return limits, fmt.Errorf("%s is %q; it must be a duration such as 90s or 1h", playbook.MaxDelayVariable, text)
		}
		limits.MaxDelay = delay
	}
	for _, one := range []struct {
		variable, what string
		into           *int
	}{{playbook.RunsVariable, "runs", &limits.MaxRuns}, {playbook.VisitsVariable, "visits", &limits.MaxVisits}} {
		text, set := lookup(one.variable)
		if !set || text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return limits, fmt.Errorf("%s is %q; it must be a number of %s from 1", one.variable, text, one.what)
		}
		*one.into = n
	}
	return limits, nil
}

// leastAnswersBytes admits a page that is as large as Temporal accepts.
const leastAnswersBytes = 64 << 20

// AnswersBytesFromEnv reads REPRISE_MAX_ANSWERS_BYTES: the memory, in bytes, that all attempts
// of a worker use together for what they read. lookup is usually os.LookupEnv.
func AnswersBytesFromEnv(lookup func(string) (string, bool)) (int64, error) {
	text, set := lookup(memory.Variable)
	if !set || text == "" {
		return memory.DefaultBytes, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < leastAnswersBytes {
		return 0, fmt.Errorf("%s is %q; it must be a number of bytes from %d", memory.Variable, text, int64(leastAnswersBytes))
	}
	return n, nil
}
