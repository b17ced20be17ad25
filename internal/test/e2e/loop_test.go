package e2e_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"reprise/internal/program/demoapi"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

func TestLoopWithoutSinkGivesOneAggregate(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("loop")
	result := w.ends("partial_success", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ code }}"
    loop:
      collection: [200, 404, 201]
      element: code
`), nil)
	require.Empty(t, w.api.Writes(""))
	data := result.Result.Data.(map[string]any)
	require.Equal(t, map[string]any{"total": 3, "success": 2, "failed": 1, "truncated": 0, "cancelled": 0}, data["stats"])
	results := data["results"].([]any)
	require.Len(t, results, 3)
	require.NotNil(t, results[0])
	require.Nil(t, results[1], "a failed iteration has no result")
	require.NotNil(t, results[2])
	failures := data["errors"].([]any)
	require.Len(t, failures, 1)
	failure := failures[0].(map[string]any)
	require.Equal(t, 1, failure["index"])
	require.Equal(t, 404, failure["element"])
	require.Equal(t, 1, failure["attempts"])
	require.Equal(t, "http", failure["error"].(map[string]any)["kind"])
	require.Equal(t, 404, failure["error"].(map[string]any)["status"])
}

// TestLoopOfStatsOnly: counts and errors stay, results do not.
func TestLoopOfStatsOnly(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.completes(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ item == 2 ? 404 : 200 }}"
    loop: {collection: [1, 2, 3], mode: parallel, results: stats, thresholds: {completed: 0.5}}
output:
  results: "{{ fetch.results }}"
  stats: "{{ fetch.stats }}"
  failed: "{{ map(fetch.errors, .element) }}"
`), nil)
	require.Equal(t, map[string]any{
		"results": []any{}, "failed": []any{2},
		"stats": map[string]any{"total": 3, "success": 2, "failed": 1, "truncated": 0, "cancelled": 0},
	}, result)
}

// TestLoopOverMap: elements come in the order of the keys. There are so many that
// no other order looks like it.
func TestLoopOverMap(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	rates, want := map[string]any{}, []any{}
	for i := range 26 {
		key := string(rune('a' + i))
		rates[key] = i
		want = append(want, []any{fmt.Sprintf("%s=%d", key, i), fmt.Sprintf("%d/%d/26", i, i+1)})
	}
	data := w.completes(book(`
  - step: each
    tool: http
    url: "{{ api }}/echo"
    params: {pair: "{{ item.key }}={{ item.value }}", at: "{{ _loop.index }}/{{ _loop.count }}/{{ _loop.size }}"}
    loop: {collection: "{{ rates }}", mode: parallel}
output: "{{ map(each.results, [.query.pair[0], .query.at[0]]) }}"
`), map[string]any{"rates": rates})
	require.Equal(t, want, data)
}

func TestLoopOverWhatIsNoCollection(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(`
  - step: each
    tool: http
    url: "{{ api }}/echo"
    loop: {collection: "{{ text }}"}
`), map[string]any{"text": "abc"})
	require.EqualValues(t, "expression", result.Error.Kind)
	require.Contains(t, result.Error.Message, "must be a list or a map")
	require.Zero(t, w.api.CountRequests("", "/"))
}

func TestThresholds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ thresholds, codes, status string }{
		"one of four failed":      {"", "[200, 200, 200, 404]", "partial_success"},
		"half failed":             {"", "[200, 404]", "partial_success"},
		"most failed":             {"", "[200, 404, 404]", "failed"},
		"all failed":              {"", "[404]", "failed"},
		"empty":                   {"", "[]", "completed"},
		"author's own: completed": {"{completed: 0.5}", "[200, 404]", "completed"},
		"author's own: failed":    {"{completed: 1.0, partial_success: 0.9}", "[200, 200, 200, 404]", "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			thresholds := ""
			if test.thresholds != "" {
				thresholds = ", thresholds: " + test.thresholds
			}
			result := w.ends(test.status, book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ item }}"
    loop: {collection: `+test.codes+`, mode: parallel`+thresholds+`}
    sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {status: "{{ this.status }}", stats: "{{ result.stats }}"}}
`), nil)
			require.EqualValues(t, test.status, step(t, result, "fetch").Status)
			require.Len(t, w.bodies(), 1, "the sink on the step runs whatever the status")
			if test.status == "failed" {
				require.EqualValues(t, "loop", result.Error.Kind)
			}
		})
	}
}

func TestFailureBudget(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.recordAs("failure_budget")
	result := w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ 200 if item < 2 else 404 }}"
    loop:
      collection: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
      failure_budget: {rate: 0.4, min_samples: 4}
    sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {stats: "{{ result.stats }}"}}
`), nil)
	require.Equal(t, "FailureBudgetExceeded", result.Error.Type)
	require.Contains(t, result.Error.Message, "2 of 4 ended iterations failed (0.5), budget 0.4")
	stats := step(t, result, "fetch").Loop.Stats
	require.Equal(t, [4]int{10, 2, 2, 6}, [4]int{stats.Total, stats.Success, stats.Failed, stats.Cancelled})
	require.Equal(t, 4, w.api.CountRequests("", "/status"), "no further iteration starts")
	require.Len(t, w.bodies(), 1)
}

// TestFailureBudgetCancelsThoseInFlight: a request and a wait of a minute each end
// within seconds of the failure that spends the budget, and count as cancelled.
func TestFailureBudgetCancelsThoseInFlight(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ batch, children, cancelled int }{{1, 3, 2}, {2, 2, 1}} {
		t.Run(fmt.Sprint("batch ", c.batch), func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			result := w.ends("failed", book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ api }}{{ item == 0 ? '/slow?ms=60000' : item == 1 ? '/status/503' : '/status/404' }}"
    timeout: 90s
    retry:
      - when: "{{ error.status == 503 }}"
        then: {max_attempts: 3, delay: 60s}
    loop:
      collection: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
      mode: parallel
      batch: %d
      max_concurrency: %d
      failure_budget: {rate: 0.5, min_samples: 3}
`, c.batch, 2*c.batch)), nil)
			record := step(t, result, "fetch")
			stats := record.Loop.Stats
			require.Contains(t, []int{3, c.batch * c.children}, stats.Failed, "two of a batch end at about the same time")
			require.Equal(t, interpreter.LoopStats{Total: 10, Failed: stats.Failed, Cancelled: 10 - stats.Failed}, stats)
			require.Equal(t, "FailureBudgetExceeded", result.Error.Type)
			require.Contains(t, result.Error.Message, fmt.Sprintf(
				"%[1]d of %[1]d ended iterations failed (1), budget 0.5 after 3 samples; %[2]d of 10 did not run to their end",
				stats.Failed, stats.Cancelled))

			at := w.times(record.Loop.WorkflowID)
			// The second batch has failed as a whole where its other iteration was soon enough.
			failed, cancelled := at[enums.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED], at[enums.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED]
			ended := slices.Concat(failed, at[enums.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED])
			require.NotEmpty(t, failed)
			slices.SortFunc(ended, time.Time.Compare)
			require.Equal(t, [2]int{c.children, c.cancelled}, [2]int{len(ended), len(cancelled)})
			for _, over := range cancelled {
				require.WithinDuration(t, ended[len(ended)-1], over, 5*time.Second)
			}
		})
	}
}

// TestFailureBudgetInEveryMode: however iterations are put together, the budget
// ends the loop behind the same one.
func TestFailureBudgetInEveryMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{
		"batch: 1", "batch: 2", "batch: 10", "mode: parallel, max_concurrency: 1", "mode: parallel, max_concurrency: 1, batch: 2",
		"mode: parallel, max_concurrency: 1, batch: 10",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			result := w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ 404 if item in [0, 2] else 200 }}"
    loop: {collection: "{{ 0..9 }}", failure_budget: {rate: 0.5, min_samples: 3}, `+mode+`}
`), nil)
			require.Equal(t, "FailureBudgetExceeded", result.Error.Type)
			require.Contains(t, result.Error.Message, "2 of 3 ended iterations failed (0.6666666666666666), budget 0.5 "+
				"after 3 samples; 7 of 10 did not run to their end")
			require.Equal(t, interpreter.LoopStats{Total: 10, Success: 1, Failed: 2, Cancelled: 7}, step(t, result, "fetch").Loop.Stats)
			require.Equal(t, 3, w.api.CountRequests("", "/status"), "no further iteration starts")
		})
	}
}

// TestFailureBudgetOfTheWholeLoop: a batch goes on counting where those before it
// ended, and so do iterations that have waited.
func TestFailureBudgetOfTheWholeLoop(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result := w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ 503 if item in [3, 6, 7] else 200 }}"
    retry: [{when: "{{ error.status == 503 }}", then: {max_attempts: 2, delay: 0.1s}}]
    loop: {collection: "{{ 0..9 }}", failure_budget: {rate: 0.3, min_samples: 5}, batch: 5}
`), nil)
	require.Equal(t, "FailureBudgetExceeded", result.Error.Type)
	require.Contains(t, result.Error.Message, "3 of 8 ended iterations failed (0.375), budget 0.3 after 5 samples")
	require.Equal(t, interpreter.LoopStats{Total: 10, Success: 5, Failed: 3, Cancelled: 2}, step(t, result, "fetch").Loop.Stats)
	require.Equal(t, 5+3*2, w.api.CountRequests("", "/status"))
}

// TestFailureBudgetWithinABatch: those of the batch that are in flight are
// cancelled, and nothing further begins.
func TestFailureBudgetWithinABatch(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	began := time.Now()
	result := w.ends("failed", book(`
  - step: fetch
    tool: http
    url: "{{ api }}{{ item < 2 ? '/slow?ms=300000' : '/status/404' }}"
    timeout: 20m
    loop: {collection: "{{ 0..19 }}", mode: parallel, batch: 20, max_concurrency: 3, failure_budget: {rate: 0.5, min_samples: 3}}
`), nil)
	require.Less(t, time.Since(began), testenv.Within(20*time.Second), "nobody waits for those in flight")
	require.Equal(t, "FailureBudgetExceeded", result.Error.Type)
	require.Equal(t, interpreter.LoopStats{Total: 20, Failed: 3, Cancelled: 17}, step(t, result, "fetch").Loop.Stats)
	require.Equal(t, 3, w.api.CountRequests("", "/status"))
}

// times are those of the events of a workflow of the last run that ended.
func (w *world) times(workflowID string) map[enums.EventType][]time.Time {
	at := map[enums.EventType][]time.Time{}
	for _, history := range w.histories {
		if history.WorkflowID != workflowID {
			continue
		}
		for _, event := range history.History.Events {
			at[event.EventType] = append(at[event.EventType], event.EventTime.AsTime())
		}
	}
	return at
}

// TestSequentialIsInOrder: the next iteration begins after the one before has
// ended, its wait and its sink included.
func TestSequentialIsInOrder(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.completes(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/flaky"
    params: {times: "{{ 1 if item == 'b' else 0 }}", key: "{{ item }}"}
    retry:
      - when: "{{ error is defined }}"
        then: {delay: 0.1, max_attempts: 3}
    loop:
      collection: [a, b, c]
      sink: {tool: http, url: "{{ api }}/api/v1/writes", params: {of: "{{ item }}"}, args: {item: "{{ item }}"}}
`), nil)
	logged := w.api.Requests("")
	require.Equal(t, []string{
		"/flaky?key=a&times=0", "/api/v1/writes?of=a", "/flaky?key=b&times=1", "/flaky?key=b&times=1",
		"/api/v1/writes?of=b", "/flaky?key=c&times=0", "/api/v1/writes?of=c",
	}, requests(logged))
	require.Equal(t, 1, w.api.MaxConcurrent(""))
}

func TestParallelWindowIsNeverExceeded(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 2, 5} {
		t.Run(fmt.Sprint("batch ", batch), func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			w.completes(book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ api }}/slow"
    params: {ms: 100, item: "{{ item }}"}
    loop: {collection: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], mode: parallel, max_concurrency: 3, batch: %d}
`, batch)), nil)
			require.Equal(t, 12, w.api.CountRequests("", "/slow"))
			require.LessOrEqual(t, w.api.MaxConcurrent(""), 3)
			require.Greater(t, w.api.MaxConcurrent(""), 1)
		})
	}
}

// TestBatches: a batch changes which workflow an iteration runs in and nothing
// else.
func TestBatches(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"sequential", "parallel"} {
		for batch, firsts := range map[int][]string{
			1: {"0", "1", "2", "3", "4", "5", "6"}, 3: {"0", "3", "6"}, 20: {"0"},
		} {
			t.Run(fmt.Sprint(mode, " ", batch), func(t *testing.T) {
				t.Parallel()
				w := newWorking(t)
				if mode == "parallel" && batch == 3 {
					w.recordAs("batches")
				}
				run := w.start(book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ api }}/status/{{ 404 if item == 'd' else 200 }}"
    loop:
      collection: [a, b, c, d, e, f, g]
      mode: %s
      batch: %d
      sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {item: "{{ item }}", at: "{{ _loop.count }}/{{ _loop.size }}"}}
output: {stats: "{{ fetch.stats }}", errors: "{{ map(fetch.errors, [.index, .element]) }}", nils: "{{ map(fetch.results, # is defined) }}"}
`, mode, batch)), nil)
				result, err := w.outcome(run)
				require.NoError(t, err)
				require.Equal(t, map[string]any{
					"stats":  map[string]any{"total": 7, "success": 6, "failed": 1, "truncated": 0, "cancelled": 0},
					"errors": []any{[]any{3, "d"}},
					"nils":   []any{true, true, true, false, true, true, true},
				}, result.Result.Data)
				require.ElementsMatch(t, []any{
					map[string]any{"item": "a", "at": "1/7"},
					map[string]any{"item": "b", "at": "2/7"},
					map[string]any{"item": "c", "at": "3/7"},
					map[string]any{"item": "e", "at": "5/7"},
					map[string]any{"item": "f", "at": "6/7"},
					map[string]any{"item": "g", "at": "7/7"},
				}, w.bodies(), "every write has a key of its own, so none is taken for another")
				var children []string
				prefix := run.GetID() + "/fetch#1/"
				for _, history := range testenv.Histories(t, w.env.Client(), run.GetID(), run.GetRunID()) {
					if first, isIteration := strings.CutPrefix(history.WorkflowID, prefix); isIteration {
						children = append(children, first)
					}
				}
				sort.Strings(children)
				require.Equal(t, firsts, children)
			})
		}
	}
}

// TestMedications is the main job with rows in PostgreSQL: pages, faults, rate
// limits and a patient that is not there.
func TestMedications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := w.database()
	w.work()
	run := w.start(w.playbook("patient_medications.yaml"), map[string]any{"db": "postgres", "connection": "pg"})
	result, err := w.outcome(run)
	require.NoError(t, err)
	w.checkMedications(run, result, db)
	// A lost activity asks again for the pages of its patient, at most four.
	least, requests, lost := demoapi.MedicationRequests(), w.api.CountRequests(run.GetID(), "/"), w.lostActivities(run)
	require.GreaterOrEqual(t, requests, least)
	require.LessOrEqual(t, requests, least+4*lost, "%d activities were lost", lost)
}
