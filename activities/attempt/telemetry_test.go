package attempt_test

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/activities/tooltest"
	"reprise/internal/base/meter"
	"reprise/interpreter"
)

// listener keeps what a worker's activities tell.
type listener struct {
	mu    sync.Mutex
	lines []string
	zeros []string // the counters that begin
}

func (l *listener) note(words ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, strings.Join(words, " "))
}

func (l *listener) words() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

func (l *listener) Add(m *meter.Metric, n int64, values ...string) {
	if n == 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.zeros = append(l.zeros, strings.Join(append([]string{m.Name}, values...), " "))
		return
	}
	l.note(append([]string{m.Name, strconv.FormatInt(n, 10)}, values...)...)
}

func (l *listener) Observe(m *meter.Metric, _ time.Duration, values ...string) {
	l.note(append([]string{m.Name}, values...)...)
}

func (l *listener) Attempt(ctx context.Context, in interpreter.ToolInput) (context.Context, func(*interpreter.ErrorObject, bool)) {
	l.note("begin", in.Step)
	return ctx, func(failure *interpreter.ErrorObject, made bool) {
		kind := meter.ClassOf(failure)
		if !made {
			kind = "not made"
		}
		l.note("end", kind)
	}
}

func (l *listener) Ended(context.Context, meter.Span) {}

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func (l *listener) Propagate(_ context.Context, headers http.Header) {
	headers.Set("traceparent", parent)
}

func TestAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	_, url := tooltest.StartAPI(t)
	heard := &listener{}
	directory := t.TempDir()
	c := activities.NewCatalogue(activities.Resources{Telemetry: heard, Directory: directory})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	in := tooltest.Input(map[string]any{"url": url + "/status/200"})(t)
	in.Playbook, in.Step = "book", "fetch"
	_, err := tooltest.CallHTTP(t, c, in)
	require.NoError(t, err)
	in = tooltest.Input(map[string]any{"url": url + "/status/429"})(t)
	in.Playbook, in.Step = "book", "fetch"
	_, err = tooltest.CallHTTP(t, c, in)
	require.Error(t, err)
	in = tooltest.Input(map[string]any{"path": filepath.Join("rows.jsonl")})(t)
	in.Playbook, in.Step, in.Place, in.Result = "book", "fetch", "fetch.sink", tooltest.Value([]any{1, 2, 3})
	_, err = tooltest.Call(t, c, "file.write", "file", in)
	require.NoError(t, err)
	require.Equal(t, []string{
		"reprise_attempts_in_flight 1 book fetch http step", "begin fetch", "end none",
		"reprise_attempts_total 1 book fetch http step none",
		"reprise_attempt_duration_seconds book fetch http step none",
		"reprise_pages_total 1 book fetch http",
		"reprise_attempts_in_flight -1 book fetch http step",
		"reprise_attempts_in_flight 1 book fetch http step", "begin fetch", "end rate_limited",
		"reprise_attempts_total 1 book fetch http step rate_limited",
		"reprise_attempt_duration_seconds book fetch http step rate_limited",
		"reprise_attempts_in_flight -1 book fetch http step",
		"reprise_attempts_in_flight 1 book fetch file sink", "begin fetch", "end none",
		"reprise_attempts_total 1 book fetch file sink none",
		"reprise_attempt_duration_seconds book fetch file sink none",
		"reprise_rows_written_total 3 book fetch file",
		"reprise_attempts_in_flight -1 book fetch file sink",
	}, heard.words())
	for _, class := range []string{"final", "retryable", "rate_limited"} {
		require.Contains(t, heard.zeros, "reprise_attempts_total book fetch http step "+class, "an alert sees the first one")
		require.Contains(t, heard.zeros, "reprise_task_retry_exhausted_total book fetch http "+class)
	}
}

// TestAttemptsThatAreNotMade: an attempt whose run is cancelled is none.
func TestAttemptsThatAreNotMade(t *testing.T) {
	t.Parallel()
	heard := &listener{}
	c := activities.NewCatalogue(activities.Resources{Telemetry: heard})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in := tooltest.Input(map[string]any{"url": "http://127.0.0.1:9/"})(t)
	in.Tool, in.Step, in.TimeoutSeconds = "http", "fetch", 1
	at := slices.IndexFunc(c.Attempts.Activities(), func(a attempt.Activity) bool { return a.Name == "http" })
	_, err := c.Attempts.Activities()[at].Run(ctx, in)
	require.Error(t, err)
	require.Equal(t, []string{
		"reprise_attempts_in_flight 1  fetch http step", "begin fetch", "end not made",
		"reprise_attempts_in_flight -1  fetch http step",
	}, heard.words())
}

// TestTraceHeader: a request carries its trace, unless the author has set the
// header; another host that a redirect leads to is not sent it.
func TestTraceHeader(t *testing.T) {
	t.Parallel()
	other := tooltest.NewRecordingServer(t, "127.0.0.2", nil)
	first := tooltest.NewRecordingServer(t, "127.0.0.1", tooltest.RedirectTo(http.StatusFound, func() string { return other.URL + "/taken" }))
	c := activities.NewCatalogue(activities.Resources{Telemetry: &listener{}})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	_, err := tooltest.CallHTTP(t, c, tooltest.Input(map[string]any{"url": first.URL})(t))
	require.NoError(t, err)
	require.Contains(t, first.ReceivedRequests()[0], "Traceparent: "+parent)
	require.Len(t, other.ReceivedRequests(), 1)
	require.NotContains(t, strings.ToLower(other.ReceivedRequests()[0]), "traceparent")
	own := map[string]any{"url": other.URL, "headers": map[string]any{"TraceParent": "the author's"}}
	_, err = tooltest.CallHTTP(t, c, tooltest.Input(own)(t))
	require.NoError(t, err)
	require.Contains(t, other.ReceivedRequests()[1], "Traceparent: the author's")
	require.NotContains(t, other.ReceivedRequests()[1], parent)
}
