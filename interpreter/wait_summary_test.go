package interpreter_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

func TestParseWait(t *testing.T) {
	t.Parallel()
	seven := 7
	for summary, want := range map[string]interpreter.WaitSummary{
		"attempt 3/5 of fetch in 4s: HTTP 503": {
			Name: "fetch", Reason: "failure", Attempt: 3, Most: 5, Delay: 4 * time.Second, Error: "HTTP 503",
		},
		"attempt 2/2 of fetch[7] in 1.5s: tool a: b\nc": {
			Name: "fetch", Index: &seven, Reason: "failure", Attempt: 2, Most: 2, Delay: 1500 * time.Millisecond, Error: "tool a: b\nc",
		},
		"attempt 2 of fetch in 1h0m0s, as asked: HTTP 429": {
			Name: "fetch", Reason: "rate_limited", Attempt: 2, Delay: time.Hour, Error: "HTTP 429",
		},
		"attempt 2/3 of fetch.retry[1].then.sink[7] in 250ms: connection": {
			Name: "fetch.retry[1].then.sink", Index: &seven, Reason: "failure", Attempt: 2, Most: 3,
			Delay: 250 * time.Millisecond, Error: "connection",
		},
		"attempt 2/3 of fetch.sink in 1s: timeout": {
			Name: "fetch.sink", Reason: "failure", Attempt: 2, Most: 3, Delay: time.Second, Error: "timeout",
		},
		"poll 4/100 of job in 30s":  {Name: "job", Reason: "poll", Attempt: 4, Most: 100, Delay: 30 * time.Second},
		"page 12 of fetch[7] in 2s": {Name: "fetch", Index: &seven, Reason: "page", Attempt: 12, Delay: 2 * time.Second},
		"restart 1/1 of fetch in 1s: HTTP 410": {
			Name: "fetch", Reason: "failure", Restart: true, Attempt: 1, Most: 1, Delay: time.Second, Error: "HTTP 410",
		},
		"turn of fetch[7] in 4m0s, under its rate limit": {Name: "fetch", Index: &seven, Reason: "turn", Delay: 4 * time.Minute},
	} {
		wait, ok := interpreter.ParseWait(summary)
		require.True(t, ok, summary)
		require.Equal(t, want, wait, summary)
	}
	for _, other := range []string{"", "timeout of the run", "fetch 3/10: bo waits", "attempt of fetch in 4s"} {
		_, ok := interpreter.ParseWait(other)
		require.False(t, ok, other)
	}
}
