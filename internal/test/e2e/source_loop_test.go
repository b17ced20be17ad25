package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
	"reprise/workflows/protocol"
)

// sourceAPI gives a list page by page, by offset, which moves while it is read: with each answer elements come and go before the
// place that is read. It logs what it gave and what was visited.
type sourceAPI struct {
	*httptest.Server
	mu sync.Mutex
	// list are the ids, per page of which there are some. moves is how many ids come and go at the front with each answer.
	list         []int
	per, moves   int
	pages        int // after which the source ends
	wide         int // bytes beside each id
	fails        map[int]int
	failing      map[int]bool // ids whose visits fail
	slow         time.Duration
	answers      [][]int       // of each answer, in order
	begunAt      []int         // how many visits had come before each answer
	visits       map[int][]int // ids by index, of each attempt
	order        []int         // indexes, as they came
	sizes        []string      // of the loop, as visits said
	failedPages  map[int]int
	most, beside int
}

func newSourceAPI(t *testing.T, pages, per, moves int) *sourceAPI {
	t.Helper()
	a := &sourceAPI{per: per, moves: moves, pages: pages, visits: map[int][]int{}, fails: map[int]int{}, failedPages: map[int]int{}, failing: map[int]bool{}}
	for i := range (pages + 2) * per {
		a.list = append(a.list, 1000+i)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/ids", a.page)
	mux.HandleFunc("/visit", a.visit)
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

func (a *sourceAPI) page(rw http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	if a.failedPages[page] < a.fails[page] {
		a.failedPages[page]++
		http.Error(rw, "away", http.StatusServiceUnavailable)
		return
	}
	from := min(page*a.per, len(a.list))
	ids := slices.Clone(a.list[from:min(from+a.per, len(a.list))])
	if page >= a.pages {
		ids = []int{}
	}
	a.answers, a.begunAt = append(a.answers, ids), append(a.begunAt, len(a.order))
	for i := range a.moves {
		a.list = slices.Insert(a.list, 0, 100_000+len(a.answers)*10+i)
		at := len(a.list) / 2
		a.list = slices.Delete(a.list, at, at+1)
	}
	answer := map[string]any{"ids": idsOf(ids, a.wide)}
	if page+1 < a.pages {
		answer["next"] = page + 1
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(answer)
}

func idsOf(ids []int, wide int) []any {
	all := make([]any, len(ids))
	for i, id := range ids {
		all[i] = map[string]any{"id": id, "pad": strings.Repeat("x", wide)}
	}
	return all
}

func (a *sourceAPI) visit(rw http.ResponseWriter, r *http.Request) {
	id, _ := strconv.Atoi(r.URL.Query().Get("id"))
	index, _ := strconv.Atoi(r.URL.Query().Get("index"))
	a.mu.Lock()
	a.visits[index] = append(a.visits[index], id)
	a.order = append(a.order, index)
	a.sizes = append(a.sizes, r.URL.Query().Get("size"))
	a.beside++
	a.most = max(a.most, a.beside)
	fails, slow := a.failing[id], a.slow
	a.mu.Unlock()
	time.Sleep(slow)
	a.mu.Lock()
	a.beside--
	a.mu.Unlock()
	if fails {
		http.Error(rw, "gone", http.StatusNotFound)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(rw, `{"id": %d}`, id)
}

// given are the elements of all answers, in their order.
func (a *sourceAPI) given() []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Concat(a.answers...)
}

// visited are the elements by index, each of which has one.
func (a *sourceAPI) visited(t *testing.T) []int {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]int, len(a.visits))
	for index, ids := range a.visits {
		require.Less(t, index, len(all), "the indexes have no gap")
		require.Len(t, slices.Compact(slices.Clone(ids)), 1, "iteration %d has one element for good", index)
		all[index] = ids[0]
	}
	return all
}

const sourceRetry = `retry: [{when: "{{ error.class == 'retryable' }}", then: {max_attempts: 3, delay: 10ms}}, {when: "{{ response.next }}", then: {max_attempts: 1000, next_call: {params: {page: "{{ response.next }}"}}, collect: {path: ids}}}]`

// sourceBook visits each element of the source.
func sourceBook(loop string) string {
	return book(`
  - step: visit
    tool: http
    url: "{{ ids }}/visit"
    params: {id: "{{ item.id }}", index: "{{ _loop.index }}", size: "{{ _loop.size }}"}
    loop:
      source: {tool: http, url: "{{ ids }}/ids", params: {page: 0}, ` + sourceRetry + `}
      ` + loop + `
output: "{{ visit }}"
`)
}

// TestSourceThatMoves: each element that an answer had is one iteration, while the list moves below the reader.
func TestSourceThatMoves(t *testing.T) {
	t.Parallel()
	for name, loop := range map[string]string{
		"parallel":   "mode: parallel\n      batch: auto",
		"batches":    "mode: parallel\n      batch: 7\n      max_concurrency: 20",
		"sequential": "batch: 5",
		"budget":     "mode: parallel\n      failure_budget: {rate: 0.5, min_samples: 10}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			api := newSourceAPI(t, 30, 6, 2)
			if name == "batches" {
				w.recordAs("source")
			}
			data := w.completes(sourceBook(loop), map[string]any{"ids": api.URL}).(map[string]any)
			given := api.given()
			require.Len(t, given, 180)
			require.Equal(t, map[string]any{"total": 180, "success": 180, "failed": 0, "truncated": 0, "cancelled": 0}, data["stats"])
			require.Equal(t, given, api.visited(t))
			require.Less(t, len(slices.Compact(slices.Sorted(slices.Values(given)))), len(given), "the list has moved, so elements came twice")
			if strings.HasSuffix(loop, "auto") {
				require.Less(t, len(w.histories), len(given), "batches grow as elements come")
			}
		})
	}
}

// TestSourceIsReadOn: a workflow whose history is large has others read the source on, each from where the one before is.
func TestSourceIsReadOn(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.patience = testenv.Within(8 * time.Minute)
	api := newSourceAPI(t, 60, 10, 1)
	api.wide = 9_000
	data := w.completes(sourceBook("mode: parallel\n      batch: 10"), map[string]any{"ids": api.URL}).(map[string]any)
	require.Equal(t, map[string]any{"total": 600, "success": 600, "failed": 0, "truncated": 0, "cancelled": 0}, data["stats"])
	require.Equal(t, api.given(), api.visited(t))
	readers := 0
	for _, history := range w.histories {
		if strings.Contains(history.WorkflowID, "/source-") {
			readers++
		}
		require.Less(t, len(history.History.GetEvents()), 4096)
	}
	require.Greater(t, readers, 1, "others have read on")
}

// TestSourceOutlivesWorkers: each iteration has one element for good, wherever the worker dies, and each element belongs to an
// answer.
func TestSourceOutlivesWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.patience = testenv.Within(8 * time.Minute)
	api := newSourceAPI(t, 30, 6, 2)
	api.slow = 20 * time.Millisecond
	worker := w.spawn()
	run := w.start(sourceBook("mode: parallel\n      batch: 4"), map[string]any{"ids": api.URL})
	for _, visits := range []int{1, 30, 70, 120} {
		require.Eventually(t, func() bool { return api.visitCount() >= visits }, w.patience, tick)
		worker.Kill()
		worker = w.spawn()
	}
	result := w.endsAs(run, "completed")
	visited := api.visited(t)
	stats := step(t, result, "visit").Loop.Stats
	require.Equal(t, stats.Total, stats.Success)
	require.Len(t, visited, stats.Total)
	given := api.given()
	for _, id := range visited {
		at := slices.Index(given, id)
		require.GreaterOrEqual(t, at, 0, "iteration of an element that no answer had")
		given = slices.Delete(given, at, at+1)
	}
}

// visitCount is how many visits have begun.
func (a *sourceAPI) visitCount() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.order)
}

// TestSourceThatFails: what it gave ends first, and its failure is the loop's.
func TestSourceThatFails(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	api := newSourceAPI(t, 30, 5, 0)
	api.fails[6] = 100
	api.failing[1003] = true
	result := w.ends("failed", sourceBook("mode: parallel"), map[string]any{"ids": api.URL})
	require.EqualValues(t, "loop", result.Error.Kind)
	require.Equal(t, "SourceFailed", result.Error.Type)
	require.Contains(t, result.Error.Message, "its source failed after 30 elements, of which 29 completed, 1 failed and 0 were cancelled: HTTP 503 from GET")
	record := step(t, result, "visit")
	require.Equal(t, 30, record.Loop.Stats.Total)
	require.Len(t, record.Loop.Errors, 1)
	require.Equal(t, 3, api.failedPages[6], "its policy has tried three times")
	require.Len(t, api.visited(t), 30)
}

// TestSourceWithEmptyPages: they give no iteration, and the pages behind them are read.
func TestSourceWithEmptyPages(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	api := newSourceAPI(t, 1, 0, 0)
	data := w.completes(sourceBook("mode: parallel"), map[string]any{"ids": api.URL}).(map[string]any)
	require.Equal(t, map[string]any{"total": 0, "success": 0, "failed": 0, "truncated": 0, "cancelled": 0}, data["stats"])
	api = newSourceAPI(t, 5, 3, 0)
	api.list = slices.Concat([]int{1, 1, 2}, []int{2, 1, 3}, []int{9, 9, 9})
	data = w.completes(sourceBook("batch: 2"), map[string]any{"ids": api.URL}).(map[string]any)
	require.Equal(t, 9, data["stats"].(map[string]any)["total"], "an element that comes twice is two iterations")
	require.Equal(t, []int{1, 1, 2, 2, 1, 3, 9, 9, 9}, api.visited(t))
}

// TestSourceWaitsForTheIterations: it is at most max_concurrency pages ahead of those that have begun.
func TestSourceWaitsForTheIterations(t *testing.T) {
	t.Parallel()
	const per, width = 4, 3
	w := newWorking(t)
	api := newSourceAPI(t, 20, per, 0)
	api.slow = 60 * time.Millisecond
	w.completes(sourceBook(fmt.Sprintf("mode: parallel\n      max_concurrency: %d", width)), map[string]any{"ids": api.URL})
	for answer, begun := range api.begunAt {
		require.LessOrEqual(t, answer-begun/per, width, "answer %d came when %d visits had", answer, begun)
	}
	require.LessOrEqual(t, api.most, width)
	require.Equal(t, "", api.sizes[0], "nobody knows the size yet")
	require.Equal(t, "80", api.sizes[len(api.sizes)-1])
}

// TestSourceIsPausedAndCancelled: a pause holds the source too, and a cancel leaves nothing uncounted.
func TestSourceIsPausedAndCancelled(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	api := newSourceAPI(t, 200, 4, 0)
	api.slow = 30 * time.Millisecond
	run := w.start(sourceBook("mode: parallel\n      max_concurrency: 4"), map[string]any{"ids": api.URL})
	require.Eventually(t, func() bool { return api.visitCount() > 20 }, patience, tick)
	w.steers(run, protocol.PauseUpdate, protocol.CommandInput{})
	still := func() int { return api.visitCount() + len(api.given()) }
	before := -1
	require.Eventually(t, func() bool {
		now := still()
		same := now == before
		before = now
		return same
	}, patience, 2*time.Second)
	w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{})
	require.Eventually(t, func() bool { return still() > before+40 }, patience, tick)
	stats := step(t, w.cancel(run), "visit").Loop.Stats
	require.Positive(t, stats.Success)
	require.LessOrEqual(t, stats.Total, len(api.given()))
	require.Equal(t, stats.Total, stats.Success+stats.Failed+stats.Cancelled)
}

// TestSourceIterationsAreReprocessed: those that failed run again under their indexes, with the elements that they had.
func TestSourceIterationsAreReprocessed(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	api := newSourceAPI(t, 12, 10, 1)
	api.failing[1003], api.failing[1050] = true, true
	run := w.start(sourceBook("mode: parallel\n      batch: 8"), map[string]any{"ids": api.URL})
	w.endsAs(run, "completed")
	letters := w.chain(run).Letters
	require.NotEmpty(t, letters)
	before := api.visited(t)
	clear(api.failing)
	api.visits = map[int][]int{}
	w.endsAs(w.reprocess(run, letters, "", nil), "completed")
	for index, ids := range api.visits {
		require.Equal(t, []int{before[index]}, ids)
	}
	require.Len(t, api.visits, len(letters))
}
