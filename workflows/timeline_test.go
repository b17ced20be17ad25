package workflows_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// took is an attempt that takes time and then ends in this way.
type took struct {
	time time.Duration
	err  error
}

// timeline runs a playbook whose attempts take time, and notes what happens
// when: attempts, their ends and waits as they come, and halfway through each
// second what the run says of the step.
func timeline(t *testing.T, steps string, attempts ...took) (events, seconds []string, result protocol.Result) {
	t.Helper()
	s := newStage(t, always(nil))
	note := func(format string, args ...any) {
		events = append(events, fmt.Sprintf("T+%s ", s.env.Now().Sub(began))+fmt.Sprintf(format, args...))
	}
	for i, attempt := range attempts {
		s.env.OnActivity("http", mock.Anything, mock.Anything).Once().After(attempt.time).Return(
			func(_ context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
				if attempt.err != nil {
					note("attempt %d fails", i+1)
					return interpreter.ToolResult{}, attempt.err
				}
				note("attempt %d succeeds", i+1)
				return interpreter.ToolResult{Data: expression.Of(map[string]any{"ok": true})}, nil
			})
	}
	n := 0
	s.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name != "http" {
			return
		}
		n++
		note("attempt %d", n)
		if n > 1 {
			return
		}
		// Not before: the clock would run to them while the check at the door does.
		for second := range 200 {
			s.env.RegisterDelayedCallback(func() { seconds = append(seconds, s.status()) },
				time.Duration(second)*time.Second+500*time.Millisecond)
		}
	})
	s.env.SetOnTimerScheduledListener(func(_ string, wait time.Duration) { note("wait %s", wait) })
	result, _ = s.run(steps)
	return events, seconds, result
}

// status is what the run says of its first step.
func (s *stage) status() string {
	answer, err := s.env.QueryWorkflow(protocol.ProgressQuery)
	require.NoError(s.t, err)
	var progress protocol.Progress
	require.NoError(s.t, answer.Get(&progress))
	require.NotEmpty(s.t, progress.Steps)
	record := progress.Steps[0]
	status := fmt.Sprintf("%s %d", record.Status, record.Attempts)
	if record.Status != "retry_pending" {
		require.Zero(s.t, record.NextRetryAt)
		return status
	}
	return fmt.Sprintf("%s %s until T+%s", status, record.Error.Class, record.NextRetryAt.Sub(began))
}

// spans joins equal seconds: "0-29 running".
func spans(seconds []string) []string {
	var all []string
	for from := 0; from < len(seconds); {
		to := from
		for to+1 < len(seconds) && seconds[to+1] == seconds[from] {
			to++
		}
		all = append(all, fmt.Sprintf("%d-%d %s", from, to, seconds[from]))
		from = to + 1
	}
	return all
}

const flatRetry = `
  - step: fetch
    tool: http
    url: http://x
    retry: {max_attempts: 3, retry_when: "{{ status_code == 503 }}"}
`

// TestTimelineOfThreeAttempts is the event timeline of retries that the server
// decides: three attempts of a second each, 503 and 503, then success.
func TestTimelineOfThreeAttempts(t *testing.T) {
	t.Parallel()
	events, seconds, result := timeline(t, flatRetry,
		took{time.Second, unavailable()}, took{time.Second, unavailable()}, took{time.Second, nil})
	require.EqualValues(t, "completed", result.Status)
	require.Equal(t, 3, result.Steps[0].Attempts)
	require.Equal(t, []string{
		"T+0s attempt 1",
		"T+1s attempt 1 fails",
		"T+1s wait 1s",
		"T+2s attempt 2",
		"T+3s attempt 2 fails",
		"T+3s wait 2s",
		"T+5s attempt 3",
		"T+6s attempt 3 succeeds",
	}, events)
	require.Equal(t, []string{
		"0-0 running 1", "1-1 retry_pending 1 retryable until T+2s", "2-2 running 2", "3-4 retry_pending 2 retryable until T+5s",
		"5-5 running 3",
	}, spans(seconds))
}

// TestTimelineExhausted is the same timeline with a last attempt that fails.
func TestTimelineExhausted(t *testing.T) {
	t.Parallel()
	events, _, result := timeline(t, flatRetry,
		took{time.Second, unavailable()}, took{time.Second, unavailable()}, took{time.Second, unavailable()})
	require.EqualValues(t, "failed", result.Status)
	require.True(t, result.Steps[0].Error.Exhausted)
	require.Equal(t, 3, result.Steps[0].Error.Attempt)
	require.Equal(t, "T+6s attempt 3 fails", events[len(events)-1])
}

// TestTimelineOfTwoTimeouts is the timeline of tasks that are tried again
// with a backoff: timeouts after 30 s at 0 and at 40, success at 100.
func TestTimelineOfTwoTimeouts(t *testing.T) {
	t.Parallel()
	timeout := failure(interpreter.ErrorObject{Kind: interpreter.KindTimeout, Class: interpreter.ClassRetryable})
	for _, retryOn := range []string{"", ", retry_on: [timeout]"} {
		events, seconds, result := timeline(t, `
  - step: import
    tool: http
    url: http://x
    timeout: 30
    retry: {max_retries: 3, initial_delay_secs: 10, backoff_multiplier: 2.0, max_delay_secs: 120`+retryOn+`}
`, took{30 * time.Second, timeout}, took{30 * time.Second, timeout}, took{10 * time.Second, nil})
		require.EqualValues(t, "completed", result.Status)
		require.Equal(t, []string{
			"T+0s attempt 1",
			"T+30s attempt 1 fails",
			"T+30s wait 10s",
			"T+40s attempt 2",
			"T+1m10s attempt 2 fails",
			"T+1m10s wait 20s",
			"T+1m30s attempt 3",
			"T+1m40s attempt 3 succeeds",
		}, events)
		require.Equal(t, []string{
			"0-29 running 1", "30-39 retry_pending 1 retryable until T+40s", "40-69 running 2",
			"70-89 retry_pending 2 retryable until T+1m30s", "90-99 running 3",
		}, spans(seconds))
	}
}
