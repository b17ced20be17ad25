package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// busy is an API that notes when attempts begin and how many it has at a time.
type busy struct {
	url    string
	mu     sync.Mutex
	down   bool
	takes  time.Duration
	count  int       // attempts that have begun
	first  time.Time // the first one after mark, zero for none
	last   time.Time // the last one
	marked time.Time
	under  int
	most   int // at a time, after mark
}

func newBusy(t *testing.T, takes time.Duration) *busy {
	t.Helper()
	b := &busy{takes: takes}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if b.begin() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		time.Sleep(b.takes)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.under--
	}))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// begin notes that an attempt has begun, and reports whether it fails.
func (b *busy) begin() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.count++
	b.under++
	b.last = now
	if !b.marked.IsZero() && b.first.IsZero() && now.After(b.marked) {
		b.first = now
	}
	b.most = max(b.most, b.under)
	return b.down
}

// mark begins to look anew, from now on.
func (b *busy) mark() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.marked, b.first, b.most = time.Now(), time.Time{}, b.under
	return b.marked
}

// look is a copy of what there is to see.
func (b *busy) look() (count, most int, first, last time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count, b.most, b.first, b.last
}

func (b *busy) fail(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// until waits until attempts are as they should be.
func (b *busy) until(t *testing.T, there func(count, most int, first, last time.Time) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return there(b.look()) }, patience, tick)
}

// TestHowSoonCommandsAct tells how many seconds there are from a command to its effect.
// With -soak loops are as large as they get; the figures are in docs/how-to/steer-a-run.md.
func TestHowSoonCommandsAct(t *testing.T) {
	t.Parallel()
	for _, loop := range []struct {
		size, window, batch int
		takes               time.Duration // an attempt
		attempts            int           // of an element
	}{
		{10, 5, 1, 200 * time.Millisecond, 300},
		{1000, 100, 1, 4 * time.Second, 10}, // a server does some 40 attempts a second
		{100_000, 100, 50, 2 * time.Second, 1},
	} {
		if loop.size > 10 && !*soak {
			continue
		}
		t.Run(fmt.Sprint(loop.size), func(t *testing.T) {
			t.Logf("%d elements, window %d, batch %d", loop.size, loop.window, loop.batch)
			w := newWorking(t)
			begin := func(api *busy, attempts int) client.WorkflowRun {
				return w.start(book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    loop: {collection: "{{ 1..%d }}", element: n, mode: parallel, max_concurrency: %d, batch: %d, results: stats}
    retry:
      - {when: "{{ error is defined }}", then: {max_attempts: 3, delay: 1h}}
      - {when: "{{ error is not defined and _retry.count < %d - 1 }}", then: {max_attempts: 1000, backoff: none}}
`, loop.size, loop.window, loop.batch, attempts)), map[string]any{"api": api.url})
			}
			api := newBusy(t, loop.takes)
			w.goesSoon(begin(api, loop.attempts), api, loop.window)
			api = newBusy(t, 10*time.Millisecond)
			api.fail(true)
			w.retriesSoon(begin(api, 1), api, min(loop.size, 500)) // so many may be open
		})
	}
}

// goesSoon pauses a run, lets it go on, sets its window and cancels it.
func (w *world) goesSoon(run client.WorkflowRun, api *busy, window int) {
	w.t.Helper()
	t := w.t
	api.until(t, func(count, _ int, _, _ time.Time) bool { return count > window })
	told := api.mark()
	w.steers(run, protocol.PauseUpdate, protocol.CommandInput{})
	answered := time.Since(told)
	still := api.takes + 10*time.Second // then those that were to begin are held
	api.until(t, func(_, _ int, _, last time.Time) bool { return time.Since(last) > still })
	_, _, _, last := api.look()
	t.Logf("pause: answered after %.2f s, last attempt began after %.2f s", answered.Seconds(), max(last.Sub(told), 0).Seconds())

	told = api.mark()
	w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{})
	answered = time.Since(told)
	api.until(t, func(_, _ int, first, _ time.Time) bool { return !first.IsZero() })
	_, _, first, _ := api.look()
	t.Logf("resume: answered after %.2f s, first attempt began after %.2f s", answered.Seconds(), first.Sub(told).Seconds())

	api.until(t, func(_, most int, _, _ time.Time) bool { return most >= window*9/10 })
	told = api.mark()
	w.steers(run, protocol.SetUpdate, protocol.CommandInput{Step: "fetch", Tuning: &interpreter.Tuning{MaxConcurrency: 2 * window}})
	api.until(t, func(_, most int, _, _ time.Time) bool { return most > window })
	t.Logf("set max_concurrency=%d: more than %d attempts at a time after %.2f s", 2*window, window, time.Since(told).Seconds())

	told = api.mark()
	w.cancel(run)
	described, err := w.env.Client().DescribeWorkflowExecution(t.Context(), run.GetID(), run.GetRunID())
	require.NoError(t, err)
	_, _, _, last = api.look()
	t.Logf("cancel: last attempt began after %.2f s, the run had ended after %.2f s", max(last.Sub(told), 0).Seconds(),
		described.GetWorkflowExecutionInfo().GetCloseTime().AsTime().Sub(told).Seconds())
}

// retriesSoon has all that waits in a run tried again.
func (w *world) retriesSoon(run client.WorkflowRun, api *busy, waiting int) {
	w.t.Helper()
	t := w.t
	api.until(t, func(count, _ int, _, last time.Time) bool { return count >= waiting && time.Since(last) > time.Second })
	api.fail(false)
	told := api.mark()
	w.steers(run, protocol.RetryNowUpdate, protocol.CommandInput{})
	answered := time.Since(told)
	api.until(t, func(count, _ int, _, _ time.Time) bool { return count >= 2*waiting })
	_, _, first, _ := api.look()
	t.Logf("retry-now of %d that wait: answered after %.2f s, first attempt after %.2f s, as many attempts after %.2f s",
		waiting, answered.Seconds(), first.Sub(told).Seconds(), time.Since(told).Seconds())
	w.cancel(run)
}
