package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/workflows/protocol"
)

// TestSlotsInAnyOrder: a server that has much to do delivers signals in another order
// than they were sent in. A child that requests its slot again before the loop knows
// that it was released takes no slot from the others.
func TestSlotsInAnyOrder(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.patience = testenv.Within(time.Minute)
	w.recordAs("places")
	began, goOn := make(chan string, 2), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if n := r.URL.Query().Get("n"); n == "1" || n == "2" {
			began <- n
			<-goOn
		}
		_, _ = fmt.Fprint(rw, `{}`)
	}))
	t.Cleanup(api.Close)
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {n: "{{ n }}"}
    loop: {collection: "{{ 1..6 }}", element: n, mode: parallel, max_concurrency: 2, batch: 1}
`), map[string]any{"api": api.URL})
	testenv.Receive(t, began, "a request")
	testenv.Receive(t, began, "a request")
	loop := run.GetID() + "/fetch#1"
	width := func(slots int) {
		w.steers(run, protocol.SetUpdate, protocol.CommandInput{Step: "fetch", Tuning: &interpreter.Tuning{MaxConcurrency: slots}})
		require.Eventually(t, func() bool {
			var progress protocol.Progress
			return w.ask(loop, "", protocol.ProgressQuery, &progress) && progress.Control.TuningOf("fetch").MaxConcurrency == slots
		}, patience, tick)
	}
	w.steers(run, protocol.PauseUpdate, protocol.CommandInput{}) // nobody acquires the slots that become free
	width(4)
	for index := range 2 {
		for _, told := range []map[string]any{{"index": index, "now": true}, {"index": index, "waiting": 1}} {
			require.NoError(t, w.env.Client().SignalWorkflow(t.Context(), loop, "", "slot", told))
		}
	}
	width(2)
	release()
	w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{})
	result := w.endsAs(run, interpreter.Completed)
	require.Equal(t, 6, step(t, result, "fetch").Loop.Stats.Success)
}

// TestASlotReturnsToABatchThatHasContinued: a batch whose first iteration has ended continues in another history, where another
// iteration comes first. Its loop knows the batch all the same: it takes the slot that a long wait releases, and returns it.
func TestASlotReturnsToABatchThatHasContinued(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	w.patience = testenv.Within(time.Minute)
	const polls = 35 // of which the results make a history large
	asked, pending := atomic.Int32{}, fmt.Sprintf(`{"pending": true, "filler": %q}`, strings.Repeat("x", 100_000))
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("n") == "0" {
			_, _ = fmt.Fprint(rw, `{}`)
			return
		}
		switch n := asked.Add(1); {
		case n == 1, n == polls: // the first wait leaves the rest to the workflow; the last one releases the slot
			rw.Header().Set("Retry-After", map[bool]string{true: "1", false: "5"}[n == 1])
			rw.WriteHeader(http.StatusTooManyRequests)
		case n < polls:
			_, _ = fmt.Fprint(rw, pending)
		default:
			_, _ = fmt.Fprint(rw, `{}`)
		}
	}))
	t.Cleanup(api.Close)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {n: "{{ n }}"}
    loop: {collection: [0, 1], element: n, mode: parallel, max_concurrency: 2, batch: 2}
    retry:
      - {when: error.status == 429, then: {max_attempts: 100}}
      - {when: response.pending is defined, then: {max_attempts: 100, backoff: none}}
`), map[string]any{"api": api.URL})
	result := w.endsAs(run, interpreter.Completed)
	require.Equal(t, 2, step(t, result, "fetch").Loop.Stats.Success)
	histories := testenv.Histories(t, w.env.Client(), run.GetID(), run.GetRunID())
	batches := lists.Filter(histories, func(history testenv.RunHistory) bool { return strings.HasSuffix(history.WorkflowID, "/fetch#1/0") })
	require.Greater(t, len(batches), 1, "the batch has not continued")
}

// TestStartsOfAWideWindow: the server records the starts of children one after the other in the history of their loop,
// so a wide window is filled in portions, but for its beginning. It is filled: all iterations run at a time. The loop awaits all of them
// in one coroutine, as each costs every workflow task.
func TestStartsOfAWideWindow(t *testing.T) {
	t.Parallel()
	const width, first, portion = 160, 100, 50
	w := newWorking(t)
	w.patience = testenv.Within(time.Minute)
	var requests atomic.Int64
	all, seen := make(chan struct{}), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == width { // more of them are of attempts whose worker was taken for dead
			close(all)
		}
		<-seen
		_, _ = fmt.Fprint(rw, `{}`)
	}))
	t.Cleanup(api.Close)
	release := sync.OnceFunc(func() { close(seen) })
	t.Cleanup(release)
	run := w.start(book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    timeout: 10m
    loop: {collection: "{{ 1..%d }}", mode: parallel, max_concurrency: %[1]d, batch: 1}
`, width)), map[string]any{"api": api.URL})
	testenv.Receive(t, all, "the requests of all iterations")
	answer, err := w.env.Client().QueryWorkflow(t.Context(), run.GetID()+"/fetch#1", "", client.QueryTypeStackTrace)
	release()
	require.NoError(t, err)
	var trace string
	require.NoError(t, answer.Get(&trace))
	require.Contains(t, trace, "coroutine ")
	require.Less(t, strings.Count(trace, "coroutine "), 10, trace)
	result := w.endsAs(run, interpreter.Completed)
	require.Equal(t, width, step(t, result, "fetch").Loop.Stats.Success)
	sent, starting, most := 0, 0, 0
	for _, history := range testenv.Histories(t, w.env.Client(), run.GetID()+"/fetch#1", "") {
		for _, event := range history.History.GetEvents() {
			switch event.GetEventType() {
			case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
				sent++
				if starting++; sent > first {
					most = max(most, starting)
				} else {
					require.Equal(t, sent, starting, "sent before the server has started any")
				}
			case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
				starting--
			default:
			}
		}
	}
	require.Equal(t, portion, most)
}
