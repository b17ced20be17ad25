package oracle_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/ending"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

var queuesFlag = flag.Int("oracle.queues", 2, "how many sets of runs that share concurrency keys are run on a server")

// runSet is a set of runs that share concurrency keys, started one after another.
type runSet struct {
	seed      uint64
	playbooks []concurrency
	runs      []queuedRun
	order     []int // random numbers that choose which run ends next
}

// concurrency is what a playbook says of the runs that may be open at once.
type concurrency struct {
	shared bool
	name   string // of the shared key; without it the key is a template
	limit  int
}

// queuedRun is a run of a set.
type queuedRun struct{ playbook, tenant int }

func newRunSet(seed uint64) *runSet {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 8))}
	c := &runSet{seed: seed}
	limit := 1 + g.IntN(2)
	for range 1 + g.IntN(3) { // the limits of one shared key are the same: which one counts is not said
		c.playbooks = append(c.playbooks, concurrency{shared: g.one(2), name: "all", limit: limit})
	}
	for range 3 + g.IntN(5) {
		c.runs = append(c.runs, queuedRun{playbook: g.IntN(len(c.playbooks)), tenant: g.IntN(2)})
		c.order = append(c.order, g.IntN(1000))
	}
	return c
}

// key is what the run counts at.
func (c *runSet) key(m queuedRun) string {
	if c.playbooks[m.playbook].shared {
		return "shared"
	}
	return fmt.Sprintf("%d of %d", m.tenant, m.playbook)
}

// source is a playbook whose only step is one request, which ends when the API says so.
func (c *runSet) source(name string, i int) string {
	p := c.playbooks[i]
	says := fields{{"key", bare(`"{{ workload.tenant }}"`)}, {"limit", p.limit}}
	if p.shared {
		says = fields{{"shared", bare(name + "-" + p.name)}, {"limit", p.limit}}
	}
	return yaml(fields{
		{"apiVersion", bare("reprise/v1")},
		{"kind", bare("Playbook")},
		{"metadata", fields{{"name", bare(fmt.Sprintf("%s-%d", name, i))}}},
		{"workload", fields{{"api", ""}, {"tenant", ""}}},
		{"concurrency", says},
		{"workflow", []any{fields{
			{"step", bare("work")}, {"tool", bare("http")}, {"url", bare(`"{{ api }}/work"`)}, {"headers", runHeader}, {"timeout", bare("4m")},
		}}},
	})
}

// heldRequests is an API that answers the request of a run once that is released.
type heldRequests struct {
	mu       sync.Mutex
	arrived  []int // runs, in the order of their requests
	released map[int]chan struct{}
}

func (h *heldRequests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var i int
	id := r.Header.Get("X-Run")
	_, _ = fmt.Sscanf(id[strings.LastIndex(id, "-")+1:], "%d", &i)
	h.mu.Lock()
	h.arrived = append(h.arrived, i)
	released := h.released[i]
	h.mu.Unlock()
	select {
	case <-released:
	case <-r.Context().Done():
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte("{}"))
}

// requests are the runs that have made their requests so far.
func (h *heldRequests) requests() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.arrived)
}

// runSetOnServer is a set of runs on a server.
type runSetOnServer struct {
	*runSet

	t       *testing.T
	env     *testenv.Env
	name    string // of its task queue, with which the IDs of its runs begin
	url     string
	api     *heldRequests
	started []client.WorkflowRun
	// What is predicted: the runs that have a slot, those that wait for one, and all that have made their requests.
	running, queued, requested []int
}

// TestConcurrency starts random sets of runs, one after another, and has them end in a random
// order: at no time are more running than their key lets, and those that wait follow in turn.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	for _, seed := range seedsWith(t, nil, *queuesFlag) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newRunSet(seed).onServer(t)
		})
	}
}

func (c *runSet) onServer(t *testing.T) {
	t.Helper()
	env := testenv.Temporal(t)
	w := &runSetOnServer{runSet: c, t: t, env: env, name: env.NewTaskQueue(), api: &heldRequests{released: map[int]chan struct{}{}}}
	for i := range c.runs {
		w.api.released[i] = make(chan struct{})
	}
	server := httptest.NewServer(w.api)
	defer server.Close()
	w.url = server.URL
	defer startWorker(t, env, w.name, t.TempDir())()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range c.runs {
		w.start(ctx, i)
	}
	for _, n := range c.order {
		w.end(ctx, w.running[n%len(w.running)])
	}
}

// start starts a run, and waits until it has made its request, or waits for a slot.
func (w *runSetOnServer) start(ctx context.Context, i int) {
	w.t.Helper()
	m := w.runs[i]
	run := startRun(ctx, w.t, w.env, w.name, fmt.Sprintf("%s-%d", w.name, i), protocol.Input{
		Name: "oracle.yaml", Source: w.source(w.name, m.playbook),
		Workload: expression.Of(map[string]any{"api": w.url, "tenant": fmt.Sprintf("t%d", m.tenant)}),
	})
	w.started = append(w.started, run)
	if w.hasSlot(m) {
		w.awaitRequest(i)
		return
	}
	w.queued = append(w.queued, i)
	require.Eventually(w.t, func() bool { return isIdle(ctx, w.env, run) }, patience, 20*time.Millisecond, "run %d does not wait: %s", i, w.describe())
	w.compare()
}

// hasSlot reports whether the key of a run has a slot left.
func (w *runSetOnServer) hasSlot(m queuedRun) bool {
	n := 0
	for _, i := range w.running {
		if w.key(w.runs[i]) == w.key(m) {
			n++
		}
	}
	return n < w.playbooks[m.playbook].limit
}

// awaitRequest waits for the request of a run that has a slot.
func (w *runSetOnServer) awaitRequest(i int) {
	w.t.Helper()
	w.running, w.requested = append(w.running, i), append(w.requested, i)
	require.Eventually(w.t, func() bool { return len(w.api.requests()) >= len(w.requested) }, patience, 10*time.Millisecond,
		"run %d makes no request: %s", i, w.describe())
	w.compare()
}

// end has a run end; the one that has waited longest for its key follows.
func (w *runSetOnServer) end(ctx context.Context, i int) {
	w.t.Helper()
	close(w.api.released[i])
	result, err := ending.WaitForResult(ctx, w.started[i])
	require.NoError(w.t, err, w.describe())
	require.Equal(w.t, "completed", string(result.Status), "run %d: %v; %s", i, result.Error, w.describe())
	replay(w.t, w.env, w.started[i])
	w.running = slices.DeleteFunc(w.running, func(each int) bool { return each == i })
	next := slices.IndexFunc(w.queued, func(each int) bool { return w.key(w.runs[each]) == w.key(w.runs[i]) })
	if next < 0 {
		w.compare()
		return
	}
	first := w.queued[next]
	w.queued = slices.Delete(w.queued, next, next+1)
	w.awaitRequest(first)
}

// compare fails the test where other runs have made their requests than predicted, or in another order.
func (w *runSetOnServer) compare() {
	w.t.Helper()
	require.Equal(w.t, w.requested, w.api.requests(), w.describe())
}

// describe is the set, and what is predicted of it now.
func (w *runSetOnServer) describe() string {
	var b strings.Builder
	for i := range w.playbooks {
		b.WriteString(w.source("oracle", i))
	}
	for i, m := range w.runs {
		fmt.Fprintf(&b, "# run %d: playbook %d, tenant %d, key %s\n", i, m.playbook, m.tenant, w.key(m))
	}
	fmt.Fprintf(&b, "# running %v, queued %v\n", w.running, w.queued)
	return b.String() + fmt.Sprintf("# alone: go test ./internal/test/oracle -run '^TestConcurrency$' -oracle.seed=%d -oracle.queues=1", w.seed)
}
