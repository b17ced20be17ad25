package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"reprise/internal/program/demoapi"
	"reprise/internal/test/testenv"
	"reprise/interpreter/call"
)

// serve replaces the world's API.
func (w *world) serve(options demoapi.Options) {
	w.t.Helper()
	w.api = demoapi.New(options)
	_, err := w.api.Start(context.WithoutCancel(w.t.Context()), "127.0.0.1:0")
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = w.api.Close() })
}

// manyPages fetches all assessments, some at a time.
const manyPages = `
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: 1, pageSize: "{{ size }}"}
    retry:
      - when: "{{ error.class == 'retryable' }}"
        then: {max_attempts: 3, delay: 0.1}
      - when: "{{ response.paging.hasMore }}"
        then:
          max_attempts: 10001
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
          %s
output: "{{ fetch }}"
`

// wantRows checks that all rows are there, each once and in order.
func wantRows(t *testing.T, n int, data any) {
	t.Helper()
	rows, _ := data.([]any)
	require.Len(t, rows, n)
	for i, row := range rows {
		require.Equal(t, i+1, row.(map[string]any)["id"])
	}
}

// totals are the events and bytes of a run and its descendants.
func (w *world) totals(run client.WorkflowRun) (events, bytes int) {
	w.t.Helper()
	for _, history := range testenv.Histories(w.t, w.env.Client(), run.GetID(), run.GetRunID()) {
		events += len(history.History.GetEvents())
		bytes += proto.Size(history.History)
	}
	return events, bytes
}

// lostActivities counts the attempts that Temporal gave up and made again, in a
// run and its descendants.
func (w *world) lostActivities(run client.WorkflowRun) int {
	w.t.Helper()
	lost := 0
	for _, history := range testenv.Histories(w.t, w.env.Client(), run.GetID(), run.GetRunID()) {
		for _, event := range history.History.GetEvents() {
			lost += max(int(event.GetActivityTaskStartedEventAttributes().GetAttempt())-1, 0)
		}
	}
	return lost
}

// TestManyPages: 1,000 pages of 100 rows in one call.
func TestManyPages(t *testing.T) {
	t.Parallel()
	w := newStoring(t, nil)
	w.serve(demoapi.Options{Items: 100_000})
	const pages = 1000
	run := w.start(book(fmt.Sprintf(manyPages, "")), map[string]any{"size": 100})
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	wantRows(t, 100*pages, result.Result.Data)
	// An activity that is lost, as when a busy machine keeps its heartbeats back,
	// fetches its pages again.
	requests, lost := w.api.CountRequests("", "/"), w.lostActivities(run)
	require.GreaterOrEqual(t, requests, pages)
	require.LessOrEqual(t, requests, pages+lost*call.MostPagesPerActivity, "%d activities were lost", lost)
	require.Equal(t, pages, step(t, result, "fetch").Pages)
	events, bytes := w.totals(run)
	require.Less(t, bytes/pages, 1000, "bytes of history for a page")
	require.Less(t, events, pages)
}

// TestPagesPerActivity: with 1 each page is an attempt of its own, with 4 they
// travel together; the result is the same.
func TestPagesPerActivity(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]map[string]int{
		1: {"http": 10},
		4: {"http": 1, "drive": 3},
		0: {"http": 1, "drive": 1},
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			w.serve(demoapi.Options{Items: 100})
			words := ""
			if n > 0 {
				words = fmt.Sprintf("pages_per_activity: %d", n)
			}
			run := w.start(book(fmt.Sprintf(manyPages, words)), map[string]any{"size": 10})
			result, err := w.outcome(run)
			require.NoError(t, err)
			wantRows(t, 100, result.Result.Data)
			require.Equal(t, 10, w.api.CountRequests("", "/"))
			scheduled := map[string]int{}
			for _, history := range testenv.Histories(t, w.env.Client(), run.GetID(), run.GetRunID()) {
				for _, event := range history.History.GetEvents() {
					if name := event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName(); name == "http" || name == "drive" {
						scheduled[name]++
					}
				}
			}
			require.Equal(t, want, scheduled)
		})
	}
}

// TestPagesFailingApart: pages that fail are repeated, and those after them go
// on together.
func TestPagesFailingApart(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.serve(demoapi.Options{Items: 400})
	source := strings.Replace(book(fmt.Sprintf(manyPages, "")), `pageSize: "{{ size }}"`,
		`pageSize: "{{ size }}", fail_pages: "1,2,17,18,40", fail_times: 2`, 1)
	result := w.ends("completed", source, map[string]any{"size": 10})
	wantRows(t, 400, result.Result.Data)
	require.Equal(t, 40+5*2, w.api.CountRequests("", "/"))
	require.Equal(t, 50, step(t, result, "fetch").Attempts)
}

// repeated counts how many requests were made more than once.
func (w *world) repeated(path string) int {
	seen, repeated := map[string]bool{}, 0
	for _, request := range w.api.Requests("") {
		if strings.HasPrefix(request.Path, path) && request.Method == "GET" {
			key := request.Path + "?" + request.Query
			if seen[key] {
				repeated++
			}
			seen[key] = true
		}
	}
	return repeated
}

// TestKilledWhileFetchingPages: a worker dies in the middle of a call of 200
// pages with a sink for each, three times.
func TestKilledWhileFetchingPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve(demoapi.Options{Items: 2000, Latency: 20 * time.Millisecond})
	worker := w.spawn()
	run := w.start(book(fmt.Sprintf(manyPages, `pages_per_activity: 200
          per_page: {sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {first: "{{ result[0].id }}", rows: "{{ len(result) }}"}}}`)),
		map[string]any{"size": 10})
	kills := []int{70, 120, 170}
	for _, requests := range kills {
		w.awaitRequests("/api/v1/assessments", requests)
		worker.Kill()
		worker = w.spawn()
	}
	result, err := w.outcome(run)
	require.NoError(t, err)
	wantRows(t, 2000, result.Result.Data)
	require.Equal(t, 200, step(t, result, "fetch").Pages)
	want := []any{}
	for page := range 200 {
		want = append(want, map[string]any{"first": page*10 + 1, "rows": 10})
	}
	require.Equal(t, want, w.bodies(), "each page once, in order")
	// A heartbeat leaves at least every 1.2 s; a page and its sink take 40 ms.
	require.LessOrEqual(t, w.repeated("/api/v1/assessments"), len(kills)*35)
}

// hostedLoop has elements that succeed, fail, wait and have pages.
const hostedLoop = `
  - step: fetch
    tool: http
    url: "{{ api }}{{ '/status/404' if item %% 10 == 3 else '/api/v1/assessments' }}"
    params: {item: "{{ item }}", page: 1, pageSize: 20, fail_pages: "{{ 1 if item %% 10 == 5 else '' }}"}
    headers: {X-Scenario: "{{ item }}"}
    retry:
      - when: "{{ error.status == 503 }}"
        then: {max_attempts: 3, delay: 0.2}
      - when: "{{ response is defined and item %% 10 == 7 and response.paging.hasMore }}"
        then:
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
          per_page: {sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {page_of: "{{ item }}", rows: "{{ len(result) }}"}}}
    loop:
      collection: "{{ 0..(n - 1) }}"
      mode: parallel
      max_concurrency: 100
      batch: %d
      sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {item: "{{ item }}", attempts: "{{ this.meta.attempts }}"}}
output: {results: "{{ fetch.results }}", stats: "{{ fetch.stats }}", errors: "{{ map(fetch.errors, [.index, .element, .attempts, .error.status]) }}"}
`

// bare orders what arrived in any order.
func bare(all []any) []string {
	text := make([]string, len(all))
	for i, body := range all {
		text[i] = fmt.Sprint(body)
	}
	slices.Sort(text)
	return text
}

// TestBatchIsTheSame: failures, waits, pages and sinks in batches of 50 give
// what they give one by one.
func TestBatchIsTheSame(t *testing.T) {
	t.Parallel()
	const n = 100
	outcome := func(batch int) (any, []string, int) {
		w := newWorking(t)
		result := w.ends("partial_success", book(fmt.Sprintf(hostedLoop, batch)), map[string]any{"n": n})
		return result.Result.Data, bare(w.bodies()), w.api.CountRequests("", "/")
	}
	results, writes, requests := outcome(1)
	require.Equal(t, 10+10*2+10*2+70+90+80+10*2, requests)
	for _, batch := range []int{7, 50} {
		again, wrote, asked := outcome(batch)
		require.Equal(t, results, again)
		require.Equal(t, writes, wrote)
		require.Equal(t, requests, asked)
	}
}

// TestKilledInABatch: nothing is lost or doubled, and what the heartbeats knew
// is not asked for again.
func TestKilledInABatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve(demoapi.Options{Items: 35, Latency: 100 * time.Millisecond})
	const n = 200
	worker := w.spawn()
	source := strings.Replace(book(fmt.Sprintf(hostedLoop, 100)), "max_concurrency: 100", "max_concurrency: 5", 1)
	run := w.start(source, map[string]any{"n": n})
	kills := []int{80, 200}
	for _, requests := range kills {
		w.awaitRequests("/", requests)
		worker.Kill()
		worker = w.spawn()
	}
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "partial_success", result.Status, "%+v", result.Error)
	data := result.Result.Data.(map[string]any)
	require.Equal(t, map[string]any{"total": n, "success": n - n/10, "failed": n / 10, "truncated": 0, "cancelled": 0}, data["stats"])
	require.Len(t, data["results"], n)
	written := map[string]int{}
	for _, body := range w.bodies() {
		fields := body.(map[string]any)
		delete(fields, "attempts") // an answer may have been lost with the worker
		written[fmt.Sprint(fields)]++
	}
	require.Len(t, written, (n-n/10)*2+n/10, "each row of each sink")
	for row, times := range written {
		require.Equal(t, 1, times, row)
	}
	// Five at a time, 100 ms each and their sinks: at most 60 in the 1.2 s
	// between two heartbeats.
	require.LessOrEqual(t, w.repeated("/api/v1/assessments"), len(kills)*60)
}

// TestStoppedWhileFetchingPages: a worker that is stopped says how far it came,
// so that only the request under way is made again.
func TestStoppedWhileFetchingPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve(demoapi.Options{Items: 1000, Latency: 30 * time.Millisecond})
	first := w.spawn()
	run := w.start(book(fmt.Sprintf(manyPages, "pages_per_activity: 100")), map[string]any{"size": 10})
	w.awaitRequests("/api/v1/assessments", 30)
	first.Stop()
	w.spawn()
	result, err := w.outcome(run)
	require.NoError(t, err)
	wantRows(t, 1000, result.Result.Data)
	require.LessOrEqual(t, w.api.CountRequests("", "/"), 101)
}

// TestCancelledWhileFetchingPages: what was fetched until then is in the error.
func TestCancelledWhileFetchingPages(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.serve(demoapi.Options{Items: 1000, Latency: 30 * time.Millisecond})
	run := w.start(book(fmt.Sprintf(manyPages, "pages_per_activity: 100")), map[string]any{"size": 10})
	w.awaitRequests("/api/v1/assessments", 20)
	result := w.cancel(run)
	failure := step(t, result, "fetch").Error
	require.EqualValues(t, "cancelled", failure.Kind)
	require.GreaterOrEqual(t, len(failure.Collected.Data.([]any)), 180)
}
