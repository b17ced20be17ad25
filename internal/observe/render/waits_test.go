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
		"1 needs a person",
	}, waitsText(step, now))
	step.WaitsOf, step.Waits = 2, step.Waits[:1]
	require.Equal(t, []string{"of 2 iterations that were queried, 10 wait: HTTP 503 from GET api.example.com, next in 4s"}, waitsText(step, now))
}

// TestWaitsCountDown: a line that stays says when a wait is over, and one that is drawn again how
// much of it is left; what others have written behind stays as it is.
func TestWaitsCountDown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 23, 0, 14, 0, time.UTC)
	retry := &interpreter.WaitPhrase{What: "attempt 2 of 5", Why: ": HTTP 503 after 3s"}
	for _, row := range []struct {
		phrase     *interpreter.WaitPhrase
		at         time.Time
		stays, now string
	}{
		{retry, now.Add(51 * time.Second), "attempt 2 of 5 at 23:01:05 UTC: HTTP 503 after 3s", "attempt 2 of 5 in 51s: HTTP 503 after 3s"},
		{retry, now, "attempt 2 of 5 at 23:00:14 UTC: HTTP 503 after 3s", "attempt 2 of 5 due: HTTP 503 after 3s"},
		{&interpreter.WaitPhrase{What: "poll 2 of 4"}, now.Add(time.Second), "poll 2 of 4 at 23:00:15 UTC", "poll 2 of 4 in 1s"},
		{retry, time.Time{}, "in words", "in words"},
		{nil, now, "in words", "in words"},
	} {
		item := interpreter.CallStatus{Waiting: "in words", Phrase: row.phrase, NextRetryAt: row.at}
		require.Equal(t, row.stays, DueText(item))
		require.Equal(t, row.now, CountDown(item, now))
	}
}

// TestCountsThatAreUnknown: what no workflow has answered is not to go.
func TestCountsThatAreUnknown(t *testing.T) {
	t.Parallel()
	step := runs.Step{Loop: &runs.Counts{Total: 1000, Success: 490, Failed: 1, Running: 5, Unknown: 504}}
	require.Equal(t, "at least 490 completed, 1 failed of 1000 (504 unknown, 5 running)", CountsText(step))
	step.Loop.Pending, step.Loop.Unknown = 504, 0
	require.Equal(t, "490 completed, 1 failed, 509 to go of 1000 (5 running, 504 pending)", CountsText(step))
}
