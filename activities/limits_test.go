package activities_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/interpreter/playbook"
)

func TestLimitsFromEnv(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, retries, delay, runs, visits string
		want                               playbook.Limits
		wrong                              string
	}{
		{name: "defaults", want: playbook.Limits{MaxRetries: 10, MaxDelay: time.Hour, MaxRuns: playbook.DefaultRunsLimit, MaxVisits: playbook.DefaultVisitsLimit}},
		{name: "both", retries: "3", delay: "90s", want: playbook.Limits{MaxRetries: 3, MaxDelay: 90 * time.Second, MaxRuns: playbook.DefaultRunsLimit, MaxVisits: playbook.DefaultVisitsLimit}},
		{name: "seconds and runs", delay: "2.5", runs: "5", want: playbook.Limits{MaxRetries: 10, MaxDelay: 2500 * time.Millisecond, MaxRuns: 5, MaxVisits: playbook.DefaultVisitsLimit}},
		{name: "visits", visits: "7", want: playbook.Limits{MaxRetries: 10, MaxDelay: time.Hour, MaxRuns: playbook.DefaultRunsLimit, MaxVisits: 7}},
		{name: "no visits", visits: "none", wrong: `REPRISE_VISITS_LIMIT is "none"; it must be a number of visits from 1`},
		{name: "no retries", retries: "0", wrong: `REPRISE_RETRY_MAX_RETRIES_LIMIT is "0"; it must be a number of retries from 1`},
		{name: "no runs", runs: "0", wrong: `REPRISE_RUNS_LIMIT is "0"; it must be a number of runs from 1`},
		{name: "words", retries: "many", wrong: `REPRISE_RETRY_MAX_RETRIES_LIMIT is "many"; it must be a number of retries from 1`},
		{name: "no time", delay: "0s", wrong: `REPRISE_RETRY_MAX_DELAY_LIMIT is "0s"; it must be a duration such as 90s or 1h`},
		{name: "nan", delay: "NaN", wrong: `REPRISE_RETRY_MAX_DELAY_LIMIT is "NaN"; it must be a duration such as 90s or 1h`},
	} {
		limits, err := activities.LimitsFromEnv(func(name string) (string, bool) {
			text := map[string]string{
				playbook.MaxRetriesVariable: c.retries, playbook.MaxDelayVariable: c.delay,
				playbook.RunsVariable: c.runs, playbook.VisitsVariable: c.visits,
			}[name]
			return text, text != ""
		})
		if c.wrong != "" {
			require.EqualError(t, err, c.wrong, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, limits, c.name)
	}
}

// TestAnswersBytesFromEnv.
func TestAnswersBytesFromEnv(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]int64{"": 256 << 20, "134217728": 128 << 20, "1000": 0, "much": 0} {
		n, err := activities.AnswersBytesFromEnv(func(name string) (string, bool) {
			require.Equal(t, "REPRISE_MAX_ANSWERS_BYTES", name)
			return text, true
		})
		require.Equal(t, want, n, text)
		require.Equal(t, want == 0, err != nil, text)
	}
}
