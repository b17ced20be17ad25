package main

import (
	"encoding/json"
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/stats"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// heldAPI refuses the first request of each path with 503, and holds the third page of
// the last one until it is released.
type heldAPI struct {
	*httptest.Server
	release  chan struct{}
	mu       sync.Mutex
	requests int
	once     sync.Once
	refused  map[string]bool
}

func newHeldAPI(t *testing.T) *heldAPI {
	t.Helper()
	api := &heldAPI{release: make(chan struct{}), refused: map[string]bool{}}
	api.Server = httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
		api.mu.Lock()
		api.requests++
		first := !api.refused[r.URL.Path]
		api.refused[r.URL.Path] = true
		api.mu.Unlock()
		switch {
		case first:
			w.WriteHeader(nethttp.StatusServiceUnavailable)
		case r.URL.Path == "/6" && r.URL.Query().Get("page") == "3":
			<-api.release
			fallthrough
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"rows": [%q]}`, r.URL.RawQuery)
		}
	}))
	t.Cleanup(api.Close)
	t.Cleanup(api.let)
	return api
}

// let releases what is held.
func (h *heldAPI) let() { h.once.Do(func() { close(h.release) }) }

func (h *heldAPI) served() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.requests
}

// TestFiguresOfChildRuns: the figures of a run have those of its child runs, whatever
// number of runs is between, while they run and after their end.
func TestFiguresOfChildRuns(t *testing.T) {
	t.Parallel()
	fetch := func(indent string) string {
		return strings.ReplaceAll(`workflow:
  - step: fetch
    tool: http
    url: "API/{{ n }}"
    params: {page: 1}
    retry:
      - {when: error is defined, then: {max_attempts: 3, initial_delay: 0.2}}
      - {when: "{{ _retry.page < 3 }}", then: {next_call: {params: {page: "{{ _retry.page + 1 }}"}}, collect: {path: rows}}}`, "\n", "\n"+indent)
	}
	each := "\n  - step: each\n    tool: playbook\n    loop: {in: [1, 2, 3, 4, 5, 6], iterator: n, mode: parallel%s}\n    workload: {n: \"{{ n }}\"}\n    %s\n"
	for name, row := range map[string]struct {
		book     string
		children int
	}{
		"in a loop":  {fmt.Sprintf(each, ", batch: 1", fetch("    ")), 6},
		"in batches": {fmt.Sprintf(each, ", batch: 3", fetch("    ")), 6},
		"two levels": {fmt.Sprintf(each, "", "workflow:\n      - step: inner\n        tool: playbook\n        workload: {n: \"{{ n }}\"}\n        "+fetch("        ")), 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, api := newDesk(t), newHeldAPI(t)
			id := d.start(strings.ReplaceAll(row.book, "API", api.URL))
			read := func() (s stats.Stats) {
				require.NoError(t, json.Unmarshal([]byte(d.does("stats", id, "--output", "json")), &s))
				return s
			}
			var last stats.Stats
			for until := time.Now().Add(testenv.Within(20 * time.Second)); api.served() < 24 || last.AttemptsMade < 24 || last.ChildRuns.Running != row.children/6; {
				last = read()
				require.True(t, time.Now().Before(until), "%d requests: %+v", api.served(), last)
			}
			require.Equal(t, 24, last.AttemptsMade)
			require.Equal(t, row.children, last.ChildRuns.Runs)
			require.Equal(t, row.children/6, last.ChildRuns.Running)
			require.Contains(t, d.does("stats", id), fmt.Sprintf("with %d child runs, %d of them running\n", row.children, row.children/6))
			if name == "two levels" {
				require.Contains(t, d.does("stats", id), "note: 2 child runs: still open, so these are the figures so far\n")
			}
			api.let()
			require.Equal(t, interpreter.Completed, d.ends(id).Status)
			last = read()
			require.Equal(t, 24, api.served())
			require.Equal(t, 24, last.AttemptsMade)
			require.Equal(t, stats.ChildRunCounts{Runs: row.children}, last.ChildRuns)
			require.Equal(t, 6, last.Errors[0].Attempts)
			require.Equal(t, 503, last.Errors[0].Status)
			require.Greater(t, last.WaitSeconds, 1.0)
			children := 0
			for _, of := range last.Steps {
				children += of.ChildRuns
				if of.Step == "fetch" {
					require.True(t, of.InChildRuns)
					require.Equal(t, []int{6, 6, 6, 24}, []int{of.Items, of.Success, of.Retries, of.AttemptsMade})
				}
			}
			require.Equal(t, row.children, children)
			require.Len(t, last.Runs, 1)
			require.Contains(t, d.does("report", id, "-o", "-"), "<b>24</b><span>attempts</span>")
			require.Contains(t, d.does("stats", id), " in 24 attempts, ")
		})
	}
}

// TestStatusOfTurnsInActivities: what an activity that hosts a batch waits for is known while it
// waits.
func TestStatusOfTurnsInActivities(t *testing.T) {
	t.Parallel()
	d, api := newDesk(t), newHeldAPI(t)
	id := d.start(strings.ReplaceAll(`
  - step: fetch
    tool: http
    url: "API/{{ n }}"
    rate_limit: {requests: 1, per: 1s, key: "API"}
    retry: [{when: error is defined, then: {max_attempts: 3, delay: 0.1}}]
    loop: {collection: [1, 2, 3, 4, 5, 6, 7, 8], element: n, mode: parallel, batch: 4}
`, "API", api.URL))
	require.Eventually(t, func() bool {
		for _, step := range d.status(id, "--step", "fetch").Steps {
			for _, waits := range step.Waits {
				if waits.Reason == interpreter.ReasonTurn && waits.NextRetryAt.IsZero() {
					return true
				}
			}
		}
		return false
	}, testenv.Within(20*time.Second), 100*time.Millisecond)
	d.does("cancel", id)
	d.ends(id)
}
