package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/internal/test/testenv/testworker"
	"reprise/interpreter/ratelimit"
)

// workNarrow starts a worker that makes few attempts at once.
func (w *world) workNarrow(places int) {
	w.t.Helper()
	catalogue := activities.NewCatalogue(w.resources)
	worker := host.NewWorker(w.env.Dial(w.t, client.Options{Logger: quiet{}}), catalogue,
		host.Options{TaskQueue: w.queue, StopTimeout: time.Second, MaxAttempts: places})
	require.NoError(w.t, worker.Start())
	w.t.Cleanup(func() {
		worker.Stop()
		require.NoError(w.t, catalogue.Close())
	})
}

// year answers every request but those with ok in their query that it takes a
// year until the next one.
func year(t *testing.T) (address string, refused *atomic.Int32) {
	t.Helper()
	refused = &atomic.Int32{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("ok") {
			_, _ = fmt.Fprintln(w, `{"ok": true}`)
			return
		}
		refused.Add(1)
		w.Header().Set("Retry-After", "31536000")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(server.Close)
	return server.URL, refused
}

// TestAYearStopsNobody: an answer that asks for a year of patience holds back who
// shares the limit for as long as the operator says and no longer, and who does
// not share it not at all.
func TestAYearStopsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	api, refused := year(t)
	at, err := url.Parse(api)
	require.NoError(t, err)
	const pause = 10 * time.Second
	w.resources.RateLimits = attempt.RateLimits{at.Host: {MaxPause: pause}}
	w.workNarrow(2)
	const told = `
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {n: "{{ n }}"}
    rate_limit: {requests: 10}
    loop: {collection: "{{ 1..12 }}", element: n, mode: parallel, max_concurrency: 12}
    retry:
      - when: "{{ error.class == 'rate_limited' }}"
        then: {max_attempts: 2, max_wait: 9000h}
`
	long := w.start(book(told), map[string]any{"api": api})
	require.Eventually(t, func() bool { return refused.Load() > 0 }, patience, tick)

	began := time.Now()
	const unrelated = `
  - step: fetch
    tool: http
    url: "{{ api }}/?ok=1"
    rate_limit: {requests: 10, key: %s}
`
	w.ends("completed", book(fmt.Sprintf(unrelated, "another")), map[string]any{"api": api})
	require.Less(t, time.Since(began), pause+testenv.Within(20*time.Second), "who does not share the limit")
	w.ends("completed", book(fmt.Sprintf(unrelated, "'"+at.Host+"'")), map[string]any{"api": api})
	require.Less(t, time.Since(began), pause+testenv.Within(time.Minute), "who shares it waits for the pause alone")
	require.EqualValues(t, "cancelled", w.cancel(long).Status)
}

// TestWaitingForATurnTakesNoSlot: twenty attempts wait for a slow limit, on a
// worker that makes two at once. Another run goes through, none of them counts as
// an attempt, and the limit is kept.
func TestWaitingForATurnTakesNoSlot(t *testing.T) {
	t.Parallel()
	for name, batch := range map[string]int{"alone": 1, "batches": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			api := newArrivals(t)
			w.workNarrow(2)
			const elements, rate, per = 20, 1, 2 * time.Second
			slow := w.start(book(fmt.Sprintf(pacedLoop, rate, per, elements, elements, batch)), map[string]any{"api": api.url})
			require.Eventually(t, func() bool { requests, _ := api.count(); return requests > 0 }, patience, tick)

			const quick = `
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {n: quick}
`
			result := w.ends("completed", book(quick), map[string]any{"api": api.url})
			requests, _ := api.count()
			require.Less(t, requests, elements/2, "it did not wait for the others")
			require.Equal(t, 1, step(t, result, "fetch").Attempts)

			result, err := w.outcome(slow)
			require.NoError(t, err)
			require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
			require.Equal(t, elements, step(t, result, "fetch").Attempts, "attempts")
			requests, _ = api.count()
			require.Equal(t, elements+1, requests)
			require.LessOrEqual(t, api.densest(per), rate+1, "one is that of the other run")
			events := 0
			for _, history := range w.histories {
				events += len(history.History.GetEvents())
			}
			t.Logf("%d events for %d elements", events, elements)
			require.Less(t, events, 150*elements, "waits do not fill the history")
		})
	}
}

// TestTurnsOutliveWorkersAndTheLimiter: those that wait elsewhere come back for
// their turns, whatever became of the worker and of the workflow that holds the
// limit, and no window holds more than the limit.
func TestTurnsOutliveWorkersAndTheLimiter(t *testing.T) {
	t.Parallel()
	loop := paced{elements: 12, rate: 1, per: 2 * time.Second, batch: 1}
	loop.disturbed(t, func(w *world, api *arrivals, worker *testworker.Process) {
		for n := 1; n <= 3; n++ {
			require.Eventually(t, func() bool { requests, _ := api.count(); return requests >= 3*n }, patience, tick)
			worker.Kill()
			if n == 2 {
				terminateLimiters(w)
			}
			worker = w.spawn()
		}
	})
}

// TestKeysBelongToAPlaybook: limits of one key and two playbooks are two, unless
// both share it; the operator's is one for all.
func TestKeysBelongToAPlaybook(t *testing.T) {
	t.Parallel()
	const source = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: %s}
workflow:
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {n: "{{ n }}"}
    %s
    loop: {collection: "{{ 1..4 }}", element: n, mode: parallel, batch: 4}
`
	for name, test := range map[string]struct {
		limit  string
		owned  bool
		shared bool
		warned bool
	}{
		"the default":    {limit: "rate_limit: {requests: 1, per: 2s}"},
		"a key":          {limit: "rate_limit: {requests: 1, per: 2s, key: api}"},
		"shared":         {limit: "rate_limit: {requests: 1, per: 2s, shared: api}", shared: true},
		"the operator's": {limit: "rate_limit: {requests: 5, per: 2s, key: api}", owned: true, shared: true, warned: true},
		"asks for none":  {owned: true, shared: true},
		"less":           {limit: "rate_limit: {requests: 1, per: 3s, key: api}", owned: true, shared: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, api := newWorld(t), newArrivals(t)
			at, err := url.Parse(api.url)
			require.NoError(t, err)
			if test.owned {
				w.resources.RateLimits = attempt.RateLimits{"api": {Requests: 1, Per: 2 * time.Second}, at.Host: {Requests: 1, Per: 2 * time.Second}}
			}
			w.work()
			given := map[string]any{"api": api.url}
			one := w.start(fmt.Sprintf(source, "one", test.limit), given)
			other := w.start(fmt.Sprintf(source, "other", test.limit), given)
			for _, run := range []client.WorkflowRun{one, other} {
				result, err := w.outcome(run)
				require.NoError(t, err)
				require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
				require.Equal(t, test.warned, len(result.Warnings) > 0, "%v", result.Warnings)
			}
			if densest := api.densest(2 * time.Second); test.shared {
				require.Equal(t, 1, densest)
			} else {
				require.LessOrEqual(t, densest, 2)
			}
			require.Len(t, limiters(w), map[bool]int{true: 1, false: 2}[test.shared])
		})
	}
}

// TestPagesWaitForTheirTurns: a call that turns pages under a slow limit goes on
// behind each wait, and its sinks too, where the operator has a limit on theirs.
func TestPagesWaitForTheirTurns(t *testing.T) {
	t.Parallel()
	const per = 7 * time.Second // further away than anybody waits in its place
	for name, test := range map[string]struct{ limit, sink string }{
		"pages": {limit: "rate_limit: {requests: 1, per: 7s, key: pages}"},
		"sinks": {sink: `, per_page: {sink: {tool: http, url: "{{ api }}/", method: POST, params: {n: "{{ result[0] }}"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, writes := newWorld(t), newArrivals(t)
			at, err := url.Parse(writes.url)
			require.NoError(t, err)
			if test.sink != "" {
				w.resources.RateLimits = attempt.RateLimits{at.Host: {Requests: 1, Per: per}}
			}
			pages := newArrivals(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := len(r.URL.Query().Get("n"))
				pages.mu.Lock()
				pages.at, pages.from = append(pages.at, time.Now()), append(pages.from, pages.awake[1])
				pages.mu.Unlock()
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"n": %d, "next": "%s", "rows": [%d]}`, n, strings.Repeat("x", n+1), n)
			}))
			t.Cleanup(server.Close)
			w.workNarrow(1)
			w.recordAs("turns_of_" + name)
			result := w.ends("completed", book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ list }}/"
    params: {n: x}
    %s
    retry:
      - when: page.n < 3
        then: {next_call: {params: {n: "{{ page.next }}"}}, collect: {path: rows, strategy: append}%s}
`, test.limit, test.sink)), map[string]any{"api": writes.url, "list": server.URL})
			require.Equal(t, []any{"1", "2", "3"}, numerals(result.Result.Data))
			require.Equal(t, 3, step(t, result, "fetch").Attempts)
			limited := pages
			if test.sink != "" {
				limited = writes
				requests, elements := writes.count()
				require.Equal(t, []int{3, 3}, []int{requests, elements})
			}
			require.Equal(t, 1, limited.densest(per))
		})
	}
}

func numerals(list any) []any {
	all, _ := list.([]any)
	for i := range all {
		all[i] = fmt.Sprint(all[i])
	}
	return all
}

// limiters are the workflows that hold limits on the queue of a world.
func limiters(w *world) []*workflowpb.WorkflowExecutionInfo {
	w.t.Helper()
	var found []*workflowpb.WorkflowExecutionInfo
	require.Eventually(w.t, func() bool {
		answer, err := w.env.Client().ListWorkflow(w.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowType = '%s' AND TaskQueue = '%s' AND ExecutionStatus = 'Running'",
				ratelimit.WorkflowName, w.queue),
		})
		found = answer.GetExecutions()
		return err == nil && len(found) > 0
	}, patience, tick)
	return found
}

// terminateLimiters ends them by hand.
func terminateLimiters(w *world) {
	w.t.Helper()
	for _, limiter := range limiters(w) {
		id := limiter.GetExecution()
		require.NoError(w.t, w.env.Client().TerminateWorkflow(w.t.Context(), id.GetWorkflowId(), id.GetRunId(), "test"))
	}
}
