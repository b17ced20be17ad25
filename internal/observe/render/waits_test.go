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
		"2 wait for a turn under the rate limit, next in 0s",
		"1 waits as it was told to: HTTP 429 from GET api.example.com, next in 1m00s",
		"1 waits for a person",
	}, waitsText(step, now))
	step.WaitsOf, step.Waits = 2, step.Waits[:1]
	require.Equal(t, []string{"of 2 iterations that were asked, 10 wait: HTTP 503 from GET api.example.com, next in 4s"}, waitsText(step, now))
}
