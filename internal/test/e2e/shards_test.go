package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// patientAPI asks some elements for patience at their first attempt, and counts how
// many requests there are at a time.
type patientAPI struct {
	slow map[int]bool
	mu   sync.Mutex
	// asked counts the attempts of each element.
	asked       map[int]int
	under, most int
	until       int // how many elements are asked for before the slow ones are served
}

func (p *patientAPI) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	n, _ := strconv.Atoi(r.URL.Query().Get("n"))
	p.mu.Lock()
	p.asked[n]++
	p.under++
	p.most = max(p.most, p.under)
	patience := p.slow[n] && (p.asked[n] == 1 || len(p.asked) < p.until)
	p.mu.Unlock()
	takes := 20 * time.Millisecond // so that requests meet
	if n >= p.until {
		takes = 150 * takes // so that the first shard ends before the second
	}
	time.Sleep(takes)
	if patience {
		rw.Header().Set("Retry-After", "7")
		rw.WriteHeader(http.StatusTooManyRequests)
	}
	p.mu.Lock()
	p.under--
	p.mu.Unlock()
	_, _ = fmt.Fprint(rw, `{}`)
}

// TestShardsLinger: the iterations of one shard that are told to wait hold up none of
// the next, and the loop's window is never exceeded, also as they come back.
func TestShardsLinger(t *testing.T) {
	t.Parallel()
	const n, window = 64, 8
	w := newWorking(t)
	w.patience = testenv.Within(3 * time.Minute)
	slow := map[int]bool{0: true, 7: true, 20: true, 35: true, 36: true, 38: true, 39: true}
	api := &patientAPI{slow: slow, asked: map[int]int{}, until: smallLeaf + 5}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	run := w.start(book(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "{{ api }}/"
    params: {n: "{{ n }}{{ workload.ballast[:0] }}"}
    loop: {collection: "{{ 0..%d }}", element: n, mode: parallel, max_concurrency: %d, batch: 1}
    retry: [{when: error is defined, then: {max_attempts: 2, jitter: none}}]
`, n-1, window)), map[string]any{"api": server.URL, "ballast": ballast})
	loop := run.GetID() + "/fetch#1"
	var seen protocol.Progress
	require.Eventually(t, func() bool {
		return w.ask(loop, "", protocol.ProgressQuery, &seen) && len(seen.Shards) == 2
	}, testenv.Within(2*time.Minute), tick, "both shards are open")
	require.Equal(t, []string{loop + "/shard-0", loop + "/shard-40"}, seen.Shards)
	result := w.endsAs(run, interpreter.Completed)
	require.Equal(t, interpreter.LoopStats{Total: n, Success: n}, step(t, result, "fetch").Loop.Stats)
	for index := range n {
		require.Equal(t, slow[index], api.asked[index] > 1, "element %d: %d attempts", index, api.asked[index])
	}
	require.LessOrEqual(t, api.most, window)
	told := 0
	for _, history := range w.histories {
		if strings.HasSuffix(history.WorkflowID, "/shard-40") {
			for _, event := range history.History.Events {
				if event.GetWorkflowExecutionSignaledEventAttributes().GetSignalName() == protocol.ControlSignal {
					told++
				}
			}
		}
	}
	require.NotZero(t, told, "as the first shard uses less, the second hears of it")
}
