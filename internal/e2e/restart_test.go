package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"reprise/internal/testenv/testworker"
)

// arrivals is an API that notes when each element was asked for.
type arrivals struct {
	url string
	mu  sync.Mutex
	at  []time.Time
	of  map[string]int
}

func newArrivals(t *testing.T) *arrivals {
	t.Helper()
	a := &arrivals{of: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.at = append(a.at, time.Now())
		a.of[r.URL.Query().Get("n")]++
		a.mu.Unlock()
		_, _ = fmt.Fprintln(w, `{"ok": true}`)
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// count is how many requests came, elements of how many elements.
func (a *arrivals) count() (requests, elements int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.at), len(a.of)
}

// densest is the most requests that came within any time of that length.
func (a *arrivals) densest(within time.Duration) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	most, first := 0, 0
	for i, at := range a.at {
		for at.Sub(a.at[first]) >= within {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// pacedLoop asks for each element once, under a rate limit.
const pacedLoop = `
  - step: fetch
    tool: http
    method: POST
    url: "{{ api }}/"
    params: {n: "{{ n }}"}
    rate_limit: {requests: %d, per: 1s, key: "{{ api }}"}
    loop:
      collection: "{{ 1..%d }}"
      element: n
      mode: parallel
      max_concurrency: %d
      batch: %d
output: "{{ fetch.stats }}"
`

// disturbed runs a paced loop while disturb replaces its worker, and gives how
// its API was asked.
func disturbed(t *testing.T, rate, elements, batch int, patient time.Duration, disturb func(*world, *arrivals, *testworker.Process)) *arrivals {
	t.Helper()
	w := newWorld(t)
	w.patience = patient
	api := newArrivals(t)
	worker := w.spawn()
	run := w.start(book(fmt.Sprintf(pacedLoop, rate, elements, elements, batch)), map[string]any{"api": api.url})
	disturb(w, api, worker)
	result, err := w.outcome(run)
	require.NoError(t, err)
	requests, asked := api.count()
	t.Logf("%d requests for %d of %d elements, at most %d of %d in a second", requests, asked, elements, api.densest(time.Second), rate)
	require.Equal(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, map[string]any{"total": elements, "success": elements, "failed": 0, "truncated": 0, "cancelled": 0}, result.Result.Data)
	require.Equal(t, elements, asked, "each element is asked for")
	require.LessOrEqual(t, api.densest(time.Second), rate, "requests in a second")
	require.Equal(t, elements, step(t, result, "fetch").Attempts, "attempts")
	for _, history := range w.histories {
		text, err := protojson.Marshal(history.History)
		require.NoError(t, err)
		require.NotContains(t, string(text), "context canceled", "%s", history)
	}
	return api
}

// TestOrderlyRestarts: a worker that stops in order hands back what waits for
// its turn, and no element is failed by it, however often it happens.
func TestOrderlyRestarts(t *testing.T) {
	t.Parallel()
	restarts, elements, pause := 6, 30, time.Duration(0)
	if *soak {
		restarts, elements, pause = 12, 90, 11750*time.Millisecond
	}
	for _, batch := range []int{1, elements / 3} {
		t.Run(fmt.Sprintf("batch %d", batch), func(t *testing.T) {
			t.Parallel()
			api := disturbed(t, 5, elements, batch, 10*time.Minute, func(w *world, api *arrivals, worker *testworker.Process) {
				for i := range restarts {
					began := time.Now()
					require.Eventually(t, func() bool {
						requests, asked := api.count()
						return time.Since(began) >= pause && (requests >= (i+1)*elements/(restarts+1) || asked == elements)
					}, patience, tick)
					worker.Stop()
					require.NoError(t, worker.Err())
					worker = w.spawn()
				}
			})
			requests, _ := api.count()
			require.Equal(t, elements, requests, "what was sent ended within the grace")
		})
	}
}

// TestKillsUnderARateLimit: workers that die every second fail no element of
// which nothing was sent, and the limit holds across them.
func TestKillsUnderARateLimit(t *testing.T) {
	t.Parallel()
	kills, elements := 12, 30
	if *soak {
		kills, elements = 80, 90
	}
	for _, batch := range []int{1, elements / 3} {
		t.Run(fmt.Sprintf("batch %d", batch), func(t *testing.T) {
			t.Parallel()
			disturbed(t, 5, elements, batch, 10*time.Minute, func(w *world, _ *arrivals, worker *testworker.Process) {
				beat := time.NewTicker(time.Second)
				defer beat.Stop()
				for range kills {
					<-beat.C
					worker.Kill()
					worker = w.spawn()
				}
			})
		})
	}
}

