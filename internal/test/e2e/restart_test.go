package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"

	"reprise/internal/test/testenv"
	"reprise/internal/test/testenv/testworker"
	"reprise/interpreter"
)

// arrivals is an API that notes when each element was asked for.
type arrivals struct {
	url   string
	mu    sync.Mutex
	at    []time.Time
	from  []time.Time // when it may have come, at the earliest: the machine may have held us up
	of    map[string]int
	awake [2]time.Time // when we last were, and before that
}

func newArrivals(t *testing.T) *arrivals {
	t.Helper()
	a := &arrivals{of: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.at, a.from = append(a.at, time.Now()), append(a.from, a.awake[1])
		a.of[r.URL.Query().Get("n")]++
		a.mu.Unlock()
		_, _ = fmt.Fprintln(w, `{"ok": true}`)
	}))
	t.Cleanup(server.Close)
	a.url = server.URL
	go a.watch(t.Context())
	return a
}

// watch notes when this process runs.
func (a *arrivals) watch(ctx context.Context) {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for ctx.Err() == nil {
		a.mu.Lock()
		a.awake = [2]time.Time{time.Now(), a.awake[0]}
		a.mu.Unlock()
		<-ticker.C
	}
}

// count is how many requests came, elements of how many elements.
func (a *arrivals) count() (requests, elements int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.at), len(a.of)
}

// repeated is the most requests that came for one element.
func (a *arrivals) repeated() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	most := 0
	for _, requests := range a.of {
		most = max(most, requests)
	}
	return most
}

// densest is the most requests that came within any time of that length, as far
// as is sure.
func (a *arrivals) densest(within time.Duration) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	most := 0
	for i, at := range a.at {
		n := 0
		for j := i; j >= 0; j-- {
			if at.Sub(a.from[j]) < within {
				n++
			}
		}
		most = max(most, n)
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
    rate_limit: {requests: %d, per: %s, key: "{{ api }}"}
    loop:
      collection: "{{ 1..%d }}"
      element: n
      mode: parallel
      max_concurrency: %d
      batch: %d
output: {stats: "{{ fetch.stats }}", errors: "{{ fetch.errors }}"}
`

// paced is a loop under a rate limit of rate requests per a time.
type paced struct {
	elements, batch int
	rate            int
	per             time.Duration
}

// spawnPatient starts a worker that lets attempts end, as long as it takes on a
// machine that has much else to do.
func spawnPatient(w *world) *testworker.Process {
	w.t.Helper()
	return testworker.Start(w.t, testworker.Options{
		Address: w.env.Address, Namespace: w.env.Namespace, TaskQueue: w.queue, Directory: w.dir, StopTimeout: 20 * time.Second,
	})
}

// disturbed runs a paced loop while disturb replaces its worker, and gives how
// its API was asked.
func (p paced) disturbed(t *testing.T, disturb func(*world, *arrivals, *testworker.Process)) *arrivals {
	t.Helper()
	w := newWorld(t)
	w.patience = testenv.Within(15 * time.Minute)
	api := newArrivals(t)
	worker := spawnPatient(w)
	run := w.start(book(fmt.Sprintf(pacedLoop, p.rate, p.per, p.elements, p.elements, p.batch)), map[string]any{"api": api.url})
	disturb(w, api, worker)
	result, err := w.outcome(run)
	require.NoError(t, err)
	requests, asked := api.count()
	t.Logf("%d requests for %d of %d elements, at most %d of %d in %s", requests, asked, p.elements, api.densest(p.per), p.rate, p.per)
	require.Equal(t, map[string]any{
		"stats":  map[string]any{"total": p.elements, "success": p.elements, "failed": 0, "truncated": 0, "cancelled": 0},
		"errors": []any{},
	}, result.Result.Data)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, p.elements, asked, "each element is asked for")
	// A worker that the machine holds up sends a request later than its turn, and the
	// next ones on time, so that one more is within any window.
	require.LessOrEqual(t, api.densest(p.per), p.rate+1, "requests in %s", p.per)
	require.LessOrEqual(t, api.densest(5*p.per), 5*p.rate+1, "requests in %s", 5*p.per)
	require.Equal(t, p.elements, step(t, result, "fetch").Attempts, "attempts")
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
	loop, restarts, pause := paced{elements: 30, rate: 5, per: time.Second}, 6, time.Duration(0)
	if *soak {
		loop, restarts, pause = paced{elements: 90, rate: 5, per: 8 * time.Second}, 12, 11750*time.Millisecond
	}
	for _, batch := range []int{1, loop.elements / 3} {
		t.Run(fmt.Sprintf("batch %d", batch), func(t *testing.T) {
			t.Parallel()
			loop.batch = batch
			api := loop.disturbed(t, func(w *world, api *arrivals, worker *testworker.Process) {
				for i := range restarts {
					began := time.Now()
					require.Eventually(t, func() bool {
						requests, asked := api.count()
						due := requests >= (i+1)*loop.elements/(restarts+1) || asked == loop.elements
						return due && time.Since(began) >= pause
					}, patience, tick)
					worker.Stop()
					require.NoError(t, worker.Err())
					worker = spawnPatient(w)
				}
			})
			requests, _ := api.count()
			require.Equal(t, loop.elements, requests, "what was sent has ended within the grace")
		})
	}
}

// TestKillsUnderARateLimit: workers that die every second fail no element of
// which nothing was sent, and the limit holds across them.
func TestKillsUnderARateLimit(t *testing.T) {
	t.Parallel()
	loop, kills := paced{elements: 30, rate: 5, per: time.Second}, 12
	if *soak {
		loop.elements, kills = 90, 80
	}
	for _, batch := range []int{1, loop.elements / 3} {
		t.Run(fmt.Sprintf("batch %d", batch), func(t *testing.T) {
			t.Parallel()
			loop.batch = batch
			loop.disturbed(t, func(w *world, api *arrivals, worker *testworker.Process) {
				beat := time.NewTicker(time.Second)
				defer beat.Stop()
				// An attempt that loses its worker four times while it asks has failed, which a slow machine
				// brings about: workers start there for longer than they live.
				for range kills {
					<-beat.C
					if api.repeated() > interpreter.MaxDeliveries-2 {
						break
					}
					worker.Kill()
					worker = w.spawn()
				}
			})
		})
	}
}

// TestHeartbeatsOfAttempts: an attempt that does not wait costs no call to the
// server, one under a rate limit says that it begins, and a batch says so once.
func TestHeartbeatsOfAttempts(t *testing.T) {
	t.Parallel()
	const elements = 24
	for name, test := range map[string]struct {
		limit, batch string
		least, most  int // without those that say, as time passes, that a worker lives
	}{
		"alone":                          {"", "", 0, elements / 4},
		"a batch":                        {"", "batch: 8", 0, elements / 4},
		"alone, under a rate limit":      {"rate_limit: {requests: 200}", "", elements, 10 * elements},
		"batches of 12 under rate limit": {"rate_limit: {requests: 200}", "batch: 12", 2, elements / 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var beats atomic.Int32
			count := func(ctx context.Context, method string, request, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
				if strings.HasSuffix(method, "/RecordActivityTaskHeartbeat") {
					beats.Add(1)
				}
				return invoke(ctx, method, request, reply, c, options...)
			}
			w.workWith(w.env.Dial(t, client.Options{Logger: quiet{}, ConnectionOptions: client.ConnectionOptions{
				DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(count)},
			}}))
			api := newArrivals(t)
			began := time.Now()
			w.ends("completed", book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {n: "{{ n }}"}
    %s
    loop: {collection: "{{ 1..%d }}", element: n, mode: parallel, %s}
`, test.limit, elements, test.batch)), map[string]any{"api": api.url})
			require.GreaterOrEqual(t, int(beats.Load()), test.least)
			const attempts, interval = 2, time.Second // of batches; a worker says so at most once in that time
			require.LessOrEqual(t, int(beats.Load()), test.most+attempts*int(time.Since(began)/interval))
		})
	}
}
