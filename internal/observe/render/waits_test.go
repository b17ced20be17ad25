package render

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

func TestWaitsInWords(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	step := runs.Step{Loop: &runs.Counts{Total: 20, Waiting: 13}, WaitsOf: 20, Waits: []runs.WaitsFor{
		{Items: 10, Reason: interpreter.ReasonFailure, Why: "HTTP 503 from GET api.example.com", NextRetryAt: now.Add(4 * time.Second)},
		{Items: 2, Reason: interpreter.ReasonTurn, NextRetryAt: now.Add(-time.Second)},
		{Items: 1, Reason: interpreter.ReasonRateLimited, Why: "HTTP 429 from GET api.example.com", NextRetryAt: now.Add(time.Minute)},
		{Items: 1, Reason: interpreter.ReasonPerson},
	}}
	require.Equal(t, []string{
		"10 wait: HTTP 503 from GET api.example.com, next in 4s",
		"2 wait for the rate limit, next in 0s",
		"1 waits as the server requested: HTTP 429 from GET api.example.com, next in 1m00s",
		"1 waits for a person",
	}, waitsText(step, now))
	step.WaitsOf, step.Waits = 2, step.Waits[:1]
	require.Equal(t, []string{"of 2 iterations that were queried, 10 wait: HTTP 503 from GET api.example.com, next in 4s"}, waitsText(step, now))
}

// TestWaitsCountDown: a line that stays says when a wait is over, and one that is drawn again how
// much of it is left; what others have written behind stays as it is.
func TestWaitsCountDown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 23, 0, 14, 0, time.UTC)
	for _, row := range []struct {
		text       string
		at         time.Time
		stays, now string
	}{
		{"call retry 1/4 after 5m0s: HTTP 503 after 3s", now.Add(51 * time.Second), "call retry 1/4 at 23:01:05 UTC: HTTP 503 after 3s", "call retry 1/4 in 51s: HTTP 503 after 3s"},
		{"call retry 1/4 after 5m0s: HTTP 503", now, "call retry 1/4 at 23:00:14 UTC: HTTP 503", "call retry 1/4 due: HTTP 503"},
		{"job poll 2/4 after 1.5s", now.Add(time.Second), "job poll 2/4 at 23:00:15 UTC", "job poll 2/4 in 1s"},
		{"call running", time.Time{}, "call running", "call running"},
	} {
		require.Equal(t, row.stays, Due(row.text, row.at))
		require.Equal(t, row.now, CountDown(row.text, row.at, now))
	}
}

// TestCountsThatAreUnknown: what no workflow has answered is not to go.
func TestCountsThatAreUnknown(t *testing.T) {
	t.Parallel()
	step := runs.Step{Loop: &runs.Counts{Total: 1000, Success: 490, Failed: 1, Running: 5, Unknown: 504}}
	require.Equal(t, "at least 490 completed, 1 failed of 1000 (504 unknown, 5 running)", Counts(step))
	step.Loop.Pending, step.Loop.Unknown = 504, 0
	require.Equal(t, "490 completed, 1 failed, 509 to go of 1000 (5 running, 504 pending)", Counts(step))
}
