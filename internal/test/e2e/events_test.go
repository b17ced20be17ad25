package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/runs"
	"reprise/internal/observe/stats"
	"reprise/workflows/protocol"
)

// events are the events of a run that are asked for.
func (l *looker) events(run client.WorkflowRun, ask runs.EventFilter) []runs.Event {
	l.w.t.Helper()
	found, err := l.Find(l.w.t.Context(), run.GetID(), run.GetRunID())
	require.NoError(l.w.t, err)
	var events []runs.Event
	told, err := l.Events(l.w.t.Context(), found, ask, func(event runs.Event) error {
		events = append(events, event)
		return nil
	})
	require.NoError(l.w.t, err)
	require.Empty(l.w.t, told.Notes)
	for i := 1; i < len(events); i++ {
		require.False(l.w.t, events[i].At.Before(events[i-1].At), "%s is told after %s", events[i].Event, events[i-1].Event)
	}
	return events
}

// timeline writes events as the sources draw them. Attempts take what they are
// said to take, and waits their delay: on a real server they take a little longer,
// and never less.
func timeline(t *testing.T, events []runs.Event, attempt time.Duration) string {
	t.Helper()
	var b strings.Builder
	nominal, real := time.Duration(0), events[0].At
	for _, event := range events {
		if event.Event == runs.ActionCompleted || event.Event == runs.ActionError {
			nominal += attempt
			require.GreaterOrEqual(t, event.Duration, attempt.Seconds())
		}
		if event.IsRetry {
			nominal += nextDelay(events, event)
		}
		require.GreaterOrEqual(t, event.At.Sub(real), nominal, "%s comes too early", event.Event)
		fmt.Fprintf(&b, "T+%s %s", nominal, event.Event)
		if event.Attempt > 0 {
			fmt.Fprintf(&b, " attempt=%d", event.Attempt)
		}
		if event.IsRetry {
			b.WriteString(" is_retry")
		}
		if event.Event == runs.StepRetry {
			delay := time.Duration(event.Delay * float64(time.Second))
			require.Equal(t, delay, event.NextRetryAt.Sub(event.At))
			fmt.Fprintf(&b, " delay=%s next_retry_at=T+%s reason=%s", delay, nominal+delay, event.Reason)
		}
		if event.Status != "" {
			b.WriteString(" " + string(event.Status))
		}
		if event.Error != nil {
			fmt.Fprintf(&b, " (%s)", event.Error.ShortText())
		}
		b.WriteString("\n")
	}
	return b.String()
}

// nextDelay is that of the wait before an attempt.
func nextDelay(events []runs.Event, attempt runs.Event) time.Duration {
	for _, event := range events {
		if event.Event == runs.StepRetry && event.Attempt == attempt.Attempt-1 {
			return time.Duration(event.Delay * float64(time.Second))
		}
	}
	return 0
}

// slowly answers after a second, the first n times with 503.
func slowly(t *testing.T, fails int64) string {
	t.Helper()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(time.Second): // what the request is to take
		case <-r.Context().Done():
		}
		if requests.Add(1) <= fails {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestEventTimeline is the time line that source 2 draws, of three attempts.
func TestEventTimeline(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fails int64
		want  string
	}{
		"the third succeeds": {2, `
T+0s execution_started
T+0s step_started
T+0s action_started attempt=1
T+1s action_error attempt=1 (HTTP 503)
T+1s step_retry attempt=1 delay=1s next_retry_at=T+2s reason=failure (HTTP 503)
T+2s action_started attempt=2 is_retry
T+3s action_error attempt=2 (HTTP 503)
T+3s step_retry attempt=2 delay=2s next_retry_at=T+5s reason=failure (HTTP 503)
T+5s action_started attempt=3 is_retry
T+6s action_completed attempt=3
T+6s step_result completed
T+6s step_started
T+6s step_result completed
T+6s execution_completed completed
`},
		"the third fails": {3, `
T+0s execution_started
T+0s step_started
T+0s action_started attempt=1
T+1s action_error attempt=1 (HTTP 503)
T+1s step_retry attempt=1 delay=1s next_retry_at=T+2s reason=failure (HTTP 503)
T+2s action_started attempt=2 is_retry
T+3s action_error attempt=2 (HTTP 503)
T+3s step_retry attempt=2 delay=2s next_retry_at=T+5s reason=failure (HTTP 503)
T+5s action_started attempt=3 is_retry
T+6s action_error attempt=3 (HTTP 503)
T+6s step_retry_exhausted (HTTP 503)
T+6s step_failed_terminal failed (HTTP 503)
T+6s execution_failed failed (HTTP 503)
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			run := w.start(book(`
  - step: my_step
    tool: http
    url: "{{ url }}"
    retry: {max_attempts: 3, retry_when: error.status == 503, initial_delay: 1s}
    next: next_step
  - step: next_step
`), map[string]any{"url": slowly(t, test.fails)})
			_, err := w.outcome(run)
			require.NoError(t, err)
			require.Equal(t, strings.TrimPrefix(test.want, "\n"), timeline(t, w.looker().events(run, runs.EventFilter{}), time.Second))
		})
	}
}

// TestRetryPendingTimeline is the time line that source 3 draws: an import that
// times out twice, and what it is meanwhile. The seconds are a tenth of those
// drawn.
func TestRetryPendingTimeline(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	var requests atomic.Int64
	looked := make(chan struct{})
	look := sync.OnceFunc(func() { close(looked) })
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if requests.Add(1) <= 2 {
			<-r.Context().Done()
			return
		}
		select {
		case <-looked:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	l := w.looker()
	run := w.start(book(`
  - step: import
    tool: http
    url: "{{ url }}"
    timeout: 3s
    retry: {max_retries: 3, initial_delay_secs: 1, backoff_multiplier: 2.0, max_delay_secs: 12}
`), map[string]any{"url": server.URL})
	var states []string
	note := func(status *runs.Status) bool {
		for _, step := range status.Visits("import") {
			state := fmt.Sprintf("%s attempt=%d/%d", step.Status, step.Attempt, step.MaxAttempts)
			require.Equal(t, step.Status == "retry_pending", !step.NextRetryAt.IsZero(), state)
			if step.Attempt == 3 && step.Status == "running" {
				look()
			}
			if len(states) == 0 || states[len(states)-1] != state {
				states = append(states, state)
			}
		}
		return status.Ended()
	}
	l.until(run.GetID(), note)
	_, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, []string{
		"running attempt=1/4", "retry_pending attempt=1/4", "running attempt=2/4", "retry_pending attempt=2/4",
		"running attempt=3/4", "completed attempt=3/0",
	}, states)
	events := l.events(run, runs.EventFilter{Step: "import"})
	require.Equal(t, `T+0s step_started
T+0s action_started attempt=1
T+3s action_error attempt=1 (timeout)
T+3s step_retry attempt=1 delay=1s next_retry_at=T+4s reason=failure (timeout)
T+4s action_started attempt=2 is_retry
T+7s action_error attempt=2 (timeout)
T+7s step_retry attempt=2 delay=2s next_retry_at=T+9s reason=failure (timeout)
T+9s action_started attempt=3 is_retry
`, timeline(t, events[:8], 3*time.Second))
	require.Equal(t, runs.ActionCompleted, events[8].Event)
	require.Equal(t, runs.StepResult, events[9].Event)
	require.Len(t, events, 10)
}

// inFewWords is events in few words, without times.
func inFewWords(events []runs.Event) []string {
	all := make([]string, 0, len(events))
	for _, event := range events {
		text := event.Event
		if event.Index != nil {
			text += fmt.Sprintf("[%d]", *event.Index)
		}
		if event.Sink != "" {
			text += " " + event.Sink
		}
		if event.Attempt > 0 {
			text += fmt.Sprintf(" %d", event.Attempt)
			if event.AttemptTo > 0 {
				text += fmt.Sprintf("–%d of pages %d–%d", event.AttemptTo, event.Page, event.PageTo)
			}
		}
		if event.Reason != "" {
			text += " " + event.Reason
		}
		all = append(all, text)
	}
	return all
}

// TestEventsOfIterations: what is asked for is told, and no other history read.
func TestEventsOfIterations(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	l := w.looker()
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ item }}"
    loop: {collection: [200, 503, 404], batch: 1, thresholds: {partial_success: 0.1}, sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {code: "{{ item }}"}}}
    retry: [{when: error.status == 503, then: {max_attempts: 2, delay: 1s, jitter: none}}]
`), nil)
	_, err := w.outcome(run)
	require.NoError(t, err)

	require.Equal(t, []string{
		"execution_started", "step_started", "iteration_started[0]", "iteration_completed[0]", "iteration_started[1]",
		"step_retry_exhausted[1]", "iteration_failed[1]", "iteration_started[2]", "iteration_failed[2]",
		"step_result", "execution_completed",
	}, inFewWords(l.events(run, runs.EventFilter{})))
	one := 1
	require.Equal(t, []string{
		"iteration_started[1]", "action_started[1] 1", "action_error[1] 1", "step_retry[1] 1 failure", "action_started[1] 2",
		"action_error[1] 2", "step_retry_exhausted[1]", "iteration_failed[1]",
	}, inFewWords(l.events(run, runs.EventFilter{Index: &one})))
	require.Equal(t, []string{"action_error[1] 1", "action_error[1] 2", "action_error[2] 1"},
		inFewWords(l.events(run, runs.EventFilter{Failed: true, Kinds: []string{runs.ActionError, runs.ActionCompleted}})))
	all := inFewWords(l.events(run, runs.EventFilter{Step: "fetch"}))
	require.Contains(t, all, "sink_completed[0] fetch.loop.sink 1")
	require.Equal(t, "step_started", all[0])
	require.Equal(t, "step_result", all[len(all)-1])
}

// TestEventsOfIgnoredSinks: a sink, or a notice, whose failure a policy ignores counts as written.
func TestEventsOfIgnoredSinks(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	l := w.looker()
	run := w.start(book(`
  - step: each
    tool: http
    url: "{{ api }}/status/200"
    loop:
      collection: [1, 2]
      batch: 1
      sink: &refused
        tool: http
        url: "{{ api }}/status/409"
        args: {row: 1}
        retry: [{when: error.status == 409, then: {ignore: true}}]
    next: once
  - step: once
    tool: http
    url: "{{ api }}/status/200"
    sink: *refused
    on_success: {url: "{{ api }}/status/409", retry: [{when: error.status == 409, then: {ignore: true}}]}
`), nil)
	_, err := w.outcome(run)
	require.NoError(t, err)
	all := inFewWords(append(l.events(run, runs.EventFilter{Step: "each"}), l.events(run, runs.EventFilter{Step: "once"})...))
	for _, sink := range []string{"[0] each.loop.sink", "[1] each.loop.sink", " once.sink", " once.on_success"} {
		require.Contains(t, all, "action_error"+sink+" 1")
		require.Contains(t, all, "sink_completed"+sink+" 1")
		require.NotContains(t, all, "sink_failed"+sink+" 1")
	}
}

// TestEventsOfWhatIsHosted: pages that are fetched together are one pair with a
// range; so are the attempts of a batch. Iterations that wait outside are told of
// by their loop.
func TestEventsOfWhatIsHosted(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	l := w.looker()
	run := w.start(book(`
  - step: listed
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: 1, pageSize: 10}
    retry:
      - when: "{{ response.paging.hasMore }}"
        then: {max_attempts: 10, next_call: {params: {page: "{{ response.paging.page + 1 }}"}}, collect: {path: data}}
    next: many
  - step: many
    tool: http
    url: "{{ api }}/status/{{ item }}"
    loop: {collection: [200, 503, 200], batch: 3, mode: parallel, thresholds: {partial_success: 0.1}}
    retry: [{when: error.status == 503, then: {max_attempts: 2, delay: 6s, jitter: none}}]
`), nil)
	_, err := w.outcome(run)
	require.NoError(t, err)
	pages := inFewWords(l.events(run, runs.EventFilter{Step: "listed"}))
	require.Equal(t, []string{"step_started", "action_started 1", "action_completed 1"}, pages[:3])
	require.Contains(t, strings.Join(pages[3:], "\n"), "action_completed 2–")
	many := inFewWords(l.events(run, runs.EventFilter{Step: "many"}))
	require.ElementsMatch(t, []string{
		"step_started", "iteration_started[0]", "iteration_started[1]", "iteration_started[2]",
		"action_started[0] 1", "action_completed[0] 1", "action_started[1] 1", "action_error[1] 1", "action_started[2] 1",
		"action_completed[2] 1", "step_retry[1] 1 failure", "iteration_completed[0]", "iteration_completed[2]",
		"action_started[1] 2", "action_error[1] 2", "step_retry_exhausted[1]", "iteration_failed[1]", "step_result",
	}, many)
}

// TestEventsOfABatch: attempts that fail and are made again without a wait are told one
// by one, and stats count them; an element that follows another is told behind it.
func TestEventsOfABatch(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string][]string{
		"batch: 3": {
			"step_started",
			"iteration_started[0]", "action_started[0] 1", "action_error[0] 1", "action_started[0] 2", "action_error[0] 2",
			"action_started[0] 3", "action_completed[0] 3", "iteration_completed[0]",
			"iteration_started[1]", "action_started[1] 1", "action_completed[1] 1", "iteration_completed[1]",
			"iteration_started[2]", "action_started[2] 1", "action_error[2] 1", "action_started[2] 2", "action_error[2] 2",
			"action_started[2] 3", "action_error[2] 3", "step_retry_exhausted[2]", "iteration_failed[2]",
			"step_result",
		},
		"batch: 3, mode: parallel": nil, // the same, in any order of the elements
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			seen := map[string]int{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				n := r.URL.Query().Get("n")
				if seen[n]++; n == "0" && seen[n] < 3 || n == "2" {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
			t.Cleanup(server.Close)
			w := newWorking(t)
			l := w.looker()
			run := w.start(book(`
  - step: many
    tool: http
    url: "`+server.URL+`"
    params: {n: "{{ item }}"}
    loop: {collection: [0, 1, 2], thresholds: {partial_success: 0.1}, `+mode+`}
    retry: [{when: error.status == 503, then: {max_attempts: 3, backoff: none}}]
`), nil)
			_, err := w.outcome(run)
			require.NoError(t, err)
			events := l.events(run, runs.EventFilter{Step: "many"})
			if want != nil {
				require.Equal(t, want, inFewWords(events))
			}
			failures, retries := map[int]int{}, 0
			for _, event := range events {
				if event.Event == runs.ActionError {
					failures[*event.Index]++
					require.Equal(t, 503, event.Error.Status)
				}
				if event.IsRetry {
					retries++
				}
			}
			require.Equal(t, map[int]int{0: 2, 2: 3}, failures)
			require.Equal(t, 4, retries)
			collector := stats.NewCollector(nil)
			collector.BeginRun(runs.Found{})
			for _, event := range l.events(run, runs.EventFilter{Attempts: true}) {
				collector.AddEvent(event)
			}
			collector.EndRun(time.Now())
			require.Equal(t, []stats.ErrorCount{{Class: "retryable", Kind: "http", Status: 503, Attempts: 5, Items: 1}}, collector.Stats().Errors)
		})
	}
}

// TestEventsOfHostedSinks: attempts of a sink that fail in an activity which hosts calls are
// told as those of a call alone, and stats count them.
func TestEventsOfHostedSinks(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 2} {
		for tool, sink := range map[string]string{
			"http":   `{tool: http, url: "{{ sink }}", args: {n: "{{ item }}"}, retry: [{when: error is defined, then: {max_attempts: 3, backoff: none}}]}`,
			"sqlite": `{tool: sqlite, path: w.db, table: there, args: {n: "{{ nil if item == 1 else item }}"}, retry: [{when: error is defined, then: {max_attempts: 3, backoff: none}}]}`,
		} {
			t.Run(fmt.Sprint(tool, batch), func(t *testing.T) {
				t.Parallel()
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "1") {
						w.WriteHeader(http.StatusServiceUnavailable)
					}
				}))
				t.Cleanup(server.Close)
				w := newWorking(t)
				l := w.looker()
				run := w.start(book(fmt.Sprintf(`
  - {step: begin, tool: sqlite, path: w.db, statement: "CREATE TABLE there (n INTEGER NOT NULL)", next: many}
  - step: many
    tool: http
    url: "{{ api }}/status/200"
    loop: {collection: [0, 1], thresholds: {partial_success: 0.1}, batch: %d, sink: %s}
`, batch, sink)), map[string]any{"sink": server.URL})
				_, err := w.outcome(run)
				require.NoError(t, err)
				var failed []string
				collector := stats.NewCollector(nil)
				collector.BeginRun(runs.Found{})
				for _, event := range l.events(run, runs.EventFilter{Step: "many", Attempts: true}) {
					collector.AddEvent(event)
					if event.Event == runs.ActionError {
						failed = append(failed, inFewWords([]runs.Event{event})...)
					}
				}
				collector.EndRun(time.Now())
				require.Equal(t, []string{
					"action_error[1] many.loop.sink 1", "action_error[1] many.loop.sink 2", "action_error[1] many.loop.sink 3",
				}, failed)
				errs := collector.Stats().Errors // of attempts, and of the iteration that failed with the last
				require.Len(t, errs, 2)
				require.Equal(t, [2]int{3, 0}, [2]int{errs[0].Attempts, errs[1].Attempts})
			})
		}
	}
}

// TestEventsOfPagesBehindASink: the first attempt for a page is no retry, whatever
// was done in the same activity before it; the second one is. Each page is told once
// as written, though its sink is in the activity of the next.
func TestEventsOfPagesBehindASink(t *testing.T) {
	t.Parallel()
	var third atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page := r.URL.Query().Get("page")
		if page == "3" && third.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"page": %s}`, page)
	}))
	t.Cleanup(server.Close)
	w := newWorking(t)
	l := w.looker()
	run := w.start(book(`
  - step: listed
    tool: http
    url: "`+server.URL+`"
    params: {page: 1}
    retry:
      - when: "{{ error is defined }}"
        then: {max_attempts: 2, delay: 1s, jitter: none}
      - when: "{{ response.page < 3 }}"
        then:
          next_call: {params: {page: "{{ response.page + 1 }}"}}
          collect: {}
          per_iteration: {sink: {tool: http, url: "`+server.URL+`", params: {page: 0}}}
`), nil)
	_, err := w.outcome(run)
	require.NoError(t, err)
	retries, written := map[int]bool{}, map[int]int{}
	for _, event := range l.events(run, runs.EventFilter{Step: "listed"}) {
		for page := event.Page; event.Event == runs.SinkCompleted && page <= max(event.Page, event.PageTo); page++ {
			written[page]++
		}
		if event.Event == runs.ActionStarted && event.Sink == "" {
			retries[event.Attempt] = event.IsRetry
		}
	}
	require.Equal(t, map[int]bool{1: false, 2: false, 3: false, 4: true}, retries)
	require.Equal(t, map[int]int{1: 1, 2: 1, 3: 1}, written)
}

// TestEventsFollowed: who follows is told the same, and told it as it happens.
func TestEventsFollowed(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	l := w.looker()
	run := w.start(book(`
  - step: flaky
    tool: http
    url: "{{ url }}"
    loop: {collection: [1, 2], mode: parallel, batch: 1}
    retry: [{when: error is defined, then: {max_attempts: 3, delay: 6s, jitter: none}}]
`), map[string]any{"url": slowly(t, 2)})
	found, err := l.Find(t.Context(), run.GetID(), "")
	require.NoError(t, err)
	var followed []runs.Event
	started := false
	_, err = l.Events(t.Context(), found, runs.EventFilter{Step: "flaky", Follow: true}, func(event runs.Event) error {
		followed = append(followed, event)
		started = started || event.Event == runs.ActionStarted && time.Since(event.At) < 3*time.Second
		return nil
	})
	require.NoError(t, err)
	require.True(t, started, "an attempt is told of while it is made, or soon after")
	_, err = w.outcome(run)
	require.NoError(t, err)
	require.ElementsMatch(t, inFewWords(l.events(run, runs.EventFilter{Step: "flaky"})), inFewWords(followed))
}

// mostVisits is how many step visits a run takes along; it forgets older ones.
const mostVisits = 1000

// mostTold is how many histories a run may have whose events are checked.
const mostTold = 150

// checkEvents holds the events of a run against its result: every step visit
// starts and ends, every iteration of a loop is told of as it is counted, and every
// attempt of a call once, with its end.
func (w *world) checkEvents(run client.WorkflowRun, result protocol.Result) {
	w.t.Helper()
	reader := &runs.Reader{Client: w.env.Client(), Store: w.store, Namespace: w.env.Namespace}
	found, err := reader.Find(w.t.Context(), run.GetID(), run.GetRunID())
	require.NoError(w.t, err)
	steps := map[string]bool{}
	for _, record := range result.Steps {
		if record.Visit == 0 || steps[record.Step] || len(result.Steps) >= mostVisits {
			continue
		}
		steps[record.Step] = true
		var events []runs.Event
		_, err := reader.Events(w.t.Context(), found, runs.EventFilter{Step: record.Step}, func(event runs.Event) error {
			require.True(w.t, len(events) == 0 || !event.At.Before(events[len(events)-1].At), "%+v is told too late", event)
			events = append(events, event)
			return nil
		})
		require.NoError(w.t, err)
		checked := &checkedEvents{t: w.t, made: map[string]int{}, counts: map[string]int{}, again: strings.Contains(run.GetID(), "/reprocess-")}
		collector := stats.NewCollector(nil)
		collector.BeginRun(found)
		for _, event := range events {
			checked.apply(event)
			collector.AddEvent(event)
		}
		collector.EndRun(time.Now())
		checkFigures(w.t, collector.Stats(), record.Step, result)
		for _, visit := range result.Steps {
			if visit.Step == record.Step {
				checked.visit(visit)
			}
		}
	}
}

// checkFigures holds the figures of a step against the result of its run.
func checkFigures(t *testing.T, sums stats.Stats, step string, result protocol.Result) {
	t.Helper()
	success, failed := 0, 0
	for _, visit := range result.Steps {
		switch {
		case visit.Step != step || visit.Visit == 0:
		case visit.Loop != nil:
			success, failed = success+visit.Loop.Stats.Success, failed+visit.Loop.Stats.Failed
		case visit.Status == "failed":
			failed++
		case (visit.Status == "completed" || visit.Status == "partial_success") && visit.Attempts > 0:
			success++
		}
	}
	require.Len(t, sums.Steps, 1)
	of := sums.Steps[0]
	require.Equal(t, []int{success, failed, 0}, []int{of.Success, of.Failed, of.Open}, "%+v", of)
	counted := 0
	for _, bar := range sums.Attempts {
		counted += bar.Items
	}
	require.Equal(t, success, counted)
}

// checkedEvents are those of one step.
type checkedEvents struct {
	t      *testing.T
	made   map[string]int // attempts of each call
	counts map[string]int // of words, by visit
	// again says that calls may have begun in an earlier run.
	again bool
}

func (c *checkedEvents) apply(event runs.Event) {
	c.t.Helper()
	visit := fmt.Sprintf("#%d ", event.Visit)
	c.counts[visit+event.Event+" "+string(event.Status)]++
	if event.Sink != "" {
		return
	}
	call := visit
	if event.Index != nil {
		call += fmt.Sprint(*event.Index)
	}
	switch event.Event {
	case runs.ActionStarted:
		if c.again && c.made[call] == 0 {
			c.made[call] = event.Attempt - 1
		}
		require.Equal(c.t, c.made[call]+1, event.Attempt, "%s: %+v", call, event)
		c.made[call] = max(event.Attempt, event.AttemptTo)
	case runs.ActionCompleted, runs.ActionError:
		require.Equal(c.t, c.made[call], max(event.Attempt, event.AttemptTo), "%s: %+v", call, event)
		require.Equal(c.t, event.Event == runs.ActionError, event.Error != nil)
	case runs.IterationCompleted:
		if c.again && c.made[call] == 0 {
			break // it had ended, and its batch had not
		}
		require.Equal(c.t, c.made[call], event.Attempts, "%s: %+v", call, event)
	}
}

func (c *checkedEvents) visit(record protocol.StepRecord) {
	c.t.Helper()
	visit := fmt.Sprintf("#%d ", record.Visit)
	require.Equal(c.t, 1, c.counts[visit+runs.StepStarted+" "], "%+v", c.counts)
	require.Positive(c.t, c.counts[visit+runs.StepResult+" "+string(record.Status)]+c.counts[visit+runs.StepFailedTerminal+" "+string(record.Status)], "%+v", c.counts)
	switch {
	case record.Loop != nil:
		loop := record.Loop.Stats
		completed := c.counts[visit+runs.IterationCompleted+" completed"] + c.counts[visit+runs.IterationCompleted+" partial_success"]
		require.Equal(c.t, loop.Success, completed, "%+v", c.counts)
		require.Equal(c.t, loop.Failed, c.counts[visit+runs.IterationFailed+" failed"], "%+v", c.counts)
	case record.Status == "completed":
		require.Equal(c.t, record.Attempts, c.made[visit], "%s%s", record.Step, visit)
	}
}
