package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// receiver is what notices are sent to. It is down for as many requests to a path as
// down says, -1 for ever.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	down     map[string]int
	received []received
}

// received is a request that a receiver took, or refused.
type received struct {
	path, key string
	body      any
	refused   bool
}

func newReceiver(t *testing.T, down map[string]int) *receiver {
	t.Helper()
	r := &receiver{down: down}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		got := received{path: request.Method + " " + request.URL.Path, key: request.Header.Get("Idempotency-Key")}
		text, _ := io.ReadAll(request.Body)
		if json.Unmarshal(text, &got.body) != nil {
			got.body = string(text)
		}
		if left := r.down[request.URL.Path]; left != 0 {
			r.down[request.URL.Path], got.refused = left-1, true
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		r.received = append(r.received, got)
	}))
	t.Cleanup(r.Close)
	return r
}

// got are the requests so far.
func (r *receiver) got() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received{}, r.received...)
}

// bodies are those of the requests that were taken at a path.
func (r *receiver) bodies(path string) []any {
	var bodies []any
	for _, got := range r.got() {
		if got.path == "POST "+path && !got.refused {
			bodies = append(bodies, got.body)
		}
	}
	return bodies
}

// sinkEvents are those that have a sink, with its place.
func sinkEvents(events []runs.Event) []string {
	var words []string
	for _, event := range events {
		if event.Sink != "" {
			words = append(words, event.Event+" "+event.Sink)
		}
	}
	return words
}

// TestStepNotices: a step fails, is tried again and succeeds; both of its hooks
// tell how its visits have ended, each under a key of its own.
func TestStepNotices(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("notices")
	hooks := newReceiver(t, map[string]int{"/fetched": 1})
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/flaky?times=1&key={{ execution_id }}"
    retry: [{when: "{{ error.class == 'retryable' }}", then: {max_attempts: 2, backoff: none}}]
    sink: {tool: http, url: "{{ hooks }}/sink", args: {}}
    on_success:
      url: "{{ hooks }}/fetched"
      retry: [{when: "{{ error is defined }}", then: {max_attempts: 3, delay: 0.1}}]
    on_failure: {url: "{{ hooks }}/not-fetched"}
    next: fails
  - step: fails
    tool: http
    url: "{{ api }}/status/404"
    on_success: {url: "{{ hooks }}/wrong"}
    on_failure: {url: "{{ hooks }}/failed", method: PUT, body: {text: "{{ error.status }} after {{ fetch is defined }}"}}
    next: [{when: "{{ error is defined }}", step: after}]
  - step: after
`), map[string]any{"hooks": hooks.URL})
	result := w.endsAs(run, interpreter.Completed)
	require.Equal(t, 2, step(t, result, "fetch").Attempts, "attempts of a notice are not the step's")

	got := hooks.got()
	paths := make([]string, len(got))
	for i, one := range got {
		paths[i] = one.path
		require.NotEmpty(t, one.key)
	}
	require.Equal(t, []string{"POST /sink", "POST /fetched", "POST /fetched", "PUT /failed"}, paths)
	require.Equal(t, got[1].key, got[2].key, "attempts of a notice have one key")
	require.Equal(t, map[string]any{
		"run": run.GetID(), "playbook": "test", "step": "fetch", "visit": 1.0, "status": "completed", "attempts": 2.0,
	}, got[2].body)
	require.Equal(t, map[string]any{"text": "404 after true"}, got[3].body)

	l := w.looker()
	require.Equal(t, []string{
		"action_started fetch.sink", "action_completed fetch.sink", "sink_completed fetch.sink",
		"action_started fetch.on_success", "action_error fetch.on_success", "step_retry fetch.on_success",
		"action_started fetch.on_success", "action_completed fetch.on_success", "sink_completed fetch.on_success",
	}, sinkEvents(l.events(run, runs.EventFilter{Step: "fetch"})))
}

// TestNotifyOfAFailure: the receiver is down at first, and is told once.
func TestNotifyOfAFailure(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	hooks := newReceiver(t, map[string]int{"/team": 2})
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/503"
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, backoff: none}}]
notify:
  - on: [failed, completed]
    url: "{{ hooks }}/team"
    body: {text: "{{ run.playbook }} {{ event.name }}: {{ event.error.status }}"}
    retry: [{when: "{{ error.class == 'retryable' }}", then: {max_attempts: 5, delay: 0.1}}]
  - {on: exhausted, url: "{{ hooks }}/pager"}
on_success: {url: "{{ hooks }}/wrong"}
on_failure: {url: "{{ hooks }}/failed"}
`), map[string]any{"hooks": hooks.URL})
	result := w.endsAs(run, interpreter.Failed)
	require.Empty(t, result.Warnings)
	require.Equal(t, []any{map[string]any{"text": "test failed: 503"}}, hooks.bodies("/team"))
	require.Len(t, hooks.bodies("/pager"), 1)
	require.Len(t, hooks.bodies("/failed"), 1)
	require.Empty(t, hooks.bodies("/wrong"))
	failed := hooks.bodies("/failed")[0].(map[string]any)
	require.Equal(t, []any{"failed", "failed", run.GetID(), "http"},
		[]any{failed["event"], failed["status"], failed["run"], failed["error"].(map[string]any)["kind"]})
	require.NotContains(t, failed["error"], "body")

	l := w.looker()
	told := l.events(run, runs.EventFilter{})
	for _, event := range told {
		if event.Step == "" {
			require.Zero(t, event.Page, "%s of %s: notices have no pages", event.Event, event.Sink)
		}
	}
	words := sinkEvents(told)
	require.Contains(t, words, "step_retry run.notify.1.failed")
	require.Contains(t, words, "sink_completed run.notify.1.failed")
	require.Contains(t, words, "sink_completed run.notify.2.exhausted")
	require.Contains(t, words, "sink_completed run.on_failure")
	require.NotContains(t, words, "sink_failed run.notify.1.failed", "it was sent in the end")
}

// TestNoticesNobodyTakes: a receiver that is always down changes nothing of the run
// but its warnings.
func TestNoticesNobodyTakes(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	hooks := newReceiver(t, map[string]int{"/": -1})
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/200"
    on_success: {url: "{{ hooks }}/"}
notify: {on: completed, url: "{{ hooks }}/", retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, delay: 0.1}}]}
on_success: {url: "{{ hooks }}/"}
`), map[string]any{"hooks": hooks.URL})
	result := w.endsAs(run, interpreter.Completed)
	require.EqualValues(t, "completed", step(t, result, "fetch").Status)
	require.Nil(t, step(t, result, "fetch").Error)
	require.Len(t, result.Warnings, 3)
	for _, place := range []string{"fetch.on_success", "run.on_success", "run.notify.completed"} {
		require.Contains(t, strings.Join(result.Warnings, "\n"), "the notice "+place+" was not sent: HTTP 503")
	}
	require.Len(t, hooks.got(), 4)

	l := w.looker()
	events := l.events(run, runs.EventFilter{})
	words := sinkEvents(events)
	require.Contains(t, words, "sink_failed fetch.on_success")
	require.Contains(t, words, "sink_failed run.on_success")
	require.Contains(t, words, "sink_failed run.notify.completed")
	for _, event := range events {
		require.NotContains(t, []string{runs.StepFailedTerminal, runs.ExecutionFailed}, event.Event)
	}
}

// TestLate: a run that goes on for longer than it is expected to says so while it
// does, and keeps its outcome.
func TestLate(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	hooks := newReceiver(t, nil)
	run := w.start(book(`
  - step: waits
    tool: http
    url: "{{ api }}/status/503"
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, on_exhausted: pause, backoff: none}}]
    next: [{when: "{{ error is defined }}", step: after}]
  - step: after
expect: {within: 1s}
notify: {on: [late, paused, completed], url: "{{ hooks }}/team", body: "{{ event.name }} {{ event.step }}"}
`), map[string]any{"hooks": hooks.URL})
	l := w.looker()
	status := l.until(run.GetID(), func(s *runs.Status) bool { return s.Late && len(hooks.got()) == 2 })
	require.EqualValues(t, "retry_pending", status.Status)
	w.steers(run, protocol.SkipUpdate, protocol.CommandInput{Step: "waits"})
	result := w.endsAs(run, interpreter.Completed)
	require.True(t, result.Late)
	require.Contains(t, result.Warnings, "the run was late: it took longer than 1s")
	require.True(t, l.status(run.GetID()).Late)
	require.ElementsMatch(t, []any{"late ", "paused waits", "completed "}, hooks.bodies("/team"))
}

// TestNoticesGoAlong: a run goes on in another history while a notice of it is not
// taken. Nothing waits for the notice, which is told once, under its one key.
func TestNoticesGoAlong(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	hooks := newReceiver(t, map[string]int{"/team": -1})
	hold := w.api.HoldRequests(func(r *http.Request) bool { return r.URL.Path == "/echo" })
	run := w.start(book(`
  - {step: begin, tool: http, url: "{{ api }}/echo", vars: {n: 0}, next: visit}
  - step: visit
    tool: http
    url: "{{ api }}/body"
    params: {bytes: 100000, n: "{{ vars.n }}"}
    vars: {n: "{{ vars.n + 1 }}"}
    next:
      - {when: "{{ vars.n < 35 }}", step: visit}
      - {else: {step: after}}
  - {step: after, tool: http, url: "{{ api }}/status/200"}
expect: {within: 1s}
notify:
  on: late
  url: "{{ hooks }}/team"
  retry: [{when: "{{ error is defined }}", then: {max_attempts: 1000, delay: 1s, jitter: none}}]
`), map[string]any{"hooks": hooks.URL})
	require.Eventually(t, func() bool { return len(hooks.got()) > 0 }, patience, tick)
	hold.Release()
	w.awaitRequests("/status/200", 1)
	hooks.mu.Lock()
	hooks.down["/team"] = 0
	hooks.mu.Unlock()
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, []string{"the run was late: it took longer than 1s"}, result.Warnings)
	require.Equal(t, "ContinuedAsNew", w.histories[0].Ending())
	require.Len(t, hooks.bodies("/team"), 1)
	keys := map[string]bool{}
	for _, got := range hooks.got() {
		keys[got.key] = true
	}
	require.Len(t, keys, 1)
	attempt, words := 0, sinkEvents(w.eventsOf(run))
	for _, event := range w.eventsOf(run) {
		if event.Sink != "" && event.Event == runs.ActionStarted {
			attempt++
			require.Equal(t, attempt, event.Attempt)
			require.Equal(t, attempt > 1, event.IsRetry)
		}
	}
	require.Len(t, hooks.got(), attempt)
	require.NotContains(t, words, "sink_failed run.notify.late")
	require.Equal(t, "sink_completed run.notify.late", words[len(words)-1])
}

// TestNoticesOfAReprocess: it tells of its own iterations, under keys of its own,
// and its notices know of the steps before what those of the run knew.
func TestNoticesOfAReprocess(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	hooks := newReceiver(t, nil)
	run := w.start(book(`
  - step: site
    tool: http
    url: "{{ api }}/echo"
    params: {name: north}
    next: fetch
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ code if id == 2 else 200 }}"
    loop: {collection: [1, 2, 3], element: id}
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, backoff: none}}]
    on_success: {url: "{{ hooks }}/fetched", body: "{{ site.query.name[0] }} {{ result.stats.failed }}/{{ result.stats.total }}"}
notify: {on: [completed, partial_success, exhausted], url: "{{ hooks }}/team", body: "{{ event.name }} {{ event.index }}"}
`), map[string]any{"hooks": hooks.URL, "code": 503})
	w.endsAs(run, interpreter.Partial)
	require.Equal(t, []any{"north 1/3"}, hooks.bodies("/fetched"))
	require.Equal(t, []any{"exhausted 1", "partial_success "}, hooks.bodies("/team"))

	again, err := w.outcome(w.reprocess(run, w.chain(run).Letters, "", map[string]any{"code": 200}))
	require.NoError(t, err)
	require.EqualValues(t, "completed", again.Status, "%+v", again.Error)
	require.Equal(t, []any{"north 1/3", "north 0/1"}, hooks.bodies("/fetched"))
	require.Equal(t, []any{"exhausted 1", "partial_success ", "completed "}, hooks.bodies("/team"))

	keys := map[string]bool{}
	for _, got := range hooks.got() {
		require.False(t, keys[got.key], "%s has a key that was there before", got.path)
		keys[got.key] = true
	}
}

// TestNotifyOfALoop: however many of its iterations wait for people, and in however
// many children and parts they are, the run tells it once.
func TestNotifyOfALoop(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"sequential", "parallel", "parallel, batch: 4"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			hooks := newReceiver(t, nil)
			run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/503"
    loop: {collection: "{{ 1..12 }}", element: id, mode: `+mode+`}
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 1, on_exhausted: pause}}]
    next: [{when: "{{ error is defined }}", step: after}]
  - step: after
notify: {on: [paused, exhausted, completed], url: "{{ hooks }}/team", body: "{{ event.name }} {{ event.step }} {{ event.visit }}"}
`), map[string]any{"hooks": hooks.URL})
			require.Eventually(t, func() bool { return len(hooks.got()) == 1 }, patience, tick)
			require.Equal(t, []any{"paused fetch 1"}, hooks.bodies("/team"))

			ended := make(chan error, 1)
			go func() { ended <- run.Get(t.Context(), nil) }()
			require.Eventually(t, func() bool {
				_, _ = w.steer(run, protocol.SkipUpdate, protocol.CommandInput{Step: "fetch"}) // nothing may wait right now
				return len(ended) == 1
			}, patience, 10*tick)
			require.NoError(t, testenv.Receive(t, ended, "the end of the run"))
			result, err := w.outcome(run)
			require.NoError(t, err)
			require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
			require.Equal(t, 12, step(t, result, "fetch").Loop.Stats.Failed)
			require.ElementsMatch(t, []any{"paused fetch 1", "exhausted fetch 1", "completed  "}, hooks.bodies("/team"), "the last two are sent side by side")
		})
	}
}
