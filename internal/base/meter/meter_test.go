package meter_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/meter"
	"reprise/interpreter"
	"reprise/interpreter/call"
)

// TestRetryLabel passes maxRetryLabel.
func TestRetryLabel(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "1", 1: "1", 2: "2", 10: "10", 11: "more", 1 << 40: "more"} {
		require.Equal(t, want, meter.RetryLabel(n))
	}
}

// counts are what a Recorder was given.
type counts []string

func (c *counts) Add(m *meter.Metric, _ int64, values ...string) {
	*c = append(*c, m.Name+" "+strings.Join(values, " "))
}

func (c *counts) Observe(*meter.Metric, time.Duration, ...string) {}

// TestExhaustedIsCountedOnce: a call that fails with its sink has the sink's
// error, and the sink's call has been counted.
func TestExhaustedIsCountedOnce(t *testing.T) {
	t.Parallel()
	exhausted := func(kind interpreter.Kind) interpreter.CallResult {
		return interpreter.CallResult{
			Status: interpreter.StatusError,
			Error:  &interpreter.ErrorObject{Kind: kind, Class: interpreter.ClassRetryable, Exhausted: true},
		}
	}
	var got counts
	sink := call.Facts{Playbook: "book", Step: "fetch", Tool: "postgres", Place: "fetch.sink"}
	call := call.Facts{Playbook: "book", Step: "fetch", Tool: "http"}
	meter.CountCall(&got, sink, exhausted(interpreter.KindTool))
	meter.CountCall(&got, call, exhausted(interpreter.KindSink))
	require.Equal(t, counts{
		"reprise_calls_total book fetch postgres sink error",
		"reprise_task_retry_exhausted_total book fetch postgres retryable",
		"reprise_calls_total book fetch http step error",
	}, got)
	got = nil
	meter.CountCall(&got, call, exhausted(interpreter.KindExhausted)) // a poll that never became ready
	require.Equal(t, "reprise_task_retry_exhausted_total book fetch http retryable", got[1])
}

// TestNames: Prometheus would change those that do not follow its rules.
func TestNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range meter.AllMetrics() {
		require.False(t, seen[m.Name], m.Name)
		seen[m.Name] = true
		require.Regexp(t, regexp.MustCompile(`^reprise_[a-z_]+$`), m.Name)
		require.Equal(t, m.Kind == meter.Counter, strings.HasSuffix(m.Name, "_total"), m.Name)
		require.Equal(t, m.Kind == meter.Histogram || strings.HasSuffix(m.Name, "_age_seconds"), strings.HasSuffix(m.Name, "_seconds"), m.Name)
		require.NotContains(t, m.Help, "|", "it stands in a table")
	}
}
