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
	"go.temporal.io/sdk/worker"

	"reprise/activities"
	"reprise/internal/observe/ending"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows"
)

var queuesFlag = flag.Int("oracle.queues", 2, "how many sets of runs that share concurrency keys are run on a server")

// crowd is a set of runs that share keys, begun one after another.
type crowd struct {
	seed      uint64
	playbooks []admission
	runs      []member
	order     []int // random numbers that choose who ends next
}

// admission is what a playbook says of the runs that may be open at once.
type admission struct {
	shared bool
	named  string // the shared key; without it the key is a template
	limit  int
}

// member is a run of a crowd.
type member struct{ playbook, tenant int }

func newCrowd(seed uint64) *crowd {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 8))}
	c := &crowd{seed: seed}
	limit := 1 + g.IntN(2)
	for range 1 + g.IntN(3) { // the limits of one shared key are the same: which one counts is not said
		c.playbooks = append(c.playbooks, admission{shared: g.one(2), named: "all", limit: limit})
	}
	for range 3 + g.IntN(5) {
		c.runs = append(c.runs, member{playbook: g.IntN(len(c.playbooks)), tenant: g.IntN(2)})
		c.order = append(c.order, g.IntN(1000))
	}
	return c
}

// key is what the run counts at.
func (c *crowd) key(m member) string {
	if c.playbooks[m.playbook].shared {
		return "shared"
	}
	return fmt.Sprintf("%d of %d", m.tenant, m.playbook)
}

// source is a playbook whose only step is one request, which ends when the API says so.
func (c *crowd) source(name string, i int) string {
	p := c.playbooks[i]
	says := fields{{"key", bare(`"{{ workload.tenant }}"`)}, {"limit", p.limit}}
	if p.shared {
		says = fields{{"shared", bare(name + "-" + p.named)}, {"limit", p.limit}}
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

// floor is the API where runs work until they are released.
type floor struct {
	mu       sync.Mutex
	working  []int // in the order in which they came
	released map[int]chan struct{}
}

func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var i int
	id := r.Header.Get("X-Run")
	_, _ = fmt.Sscanf(id[strings.LastIndex(id, "-")+1:], "%d", &i)
	f.mu.Lock()
	f.working = append(f.working, i)
	released := f.released[i]
	f.mu.Unlock()
	select {
	case <-released:
	case <-r.Context().Done():
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte("{}"))
}

// came are the runs that have come to work so far.
func (f *floor) came() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.working)
}

// crowding is a crowd on a server.
type crowding struct {
	*crowd

	t       *testing.T
	env     *testenv.Env
	name    string
	url     string
	floor   *floor
	started []client.WorkflowRun
	open    []int // predicted
	queued  []int
	came    []int // all that came to work
}

// TestConcurrency begins random sets of runs, one after another, and has them end in a random
// order: at no time are more open than their key lets, and those that wait come in turn.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	for _, seed := range seedsWith(t, nil, *queuesFlag) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newCrowd(seed).onServer(t)
		})
	}
}

func (c *crowd) onServer(t *testing.T) {
	t.Helper()
	env := testenv.Temporal(t)
	w := &crowding{crowd: c, t: t, env: env, name: env.NewTaskQueue(), floor: &floor{released: map[int]chan struct{}{}}}
	for i := range c.runs {
		w.floor.released[i] = make(chan struct{})
	}
	server := httptest.NewServer(w.floor)
	defer server.Close()
	w.url = server.URL
	catalogue := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{}, Directory: t.TempDir()})
	works := host.NewWorker(env.Dial(t, client.Options{Logger: quiet{}}), catalogue, host.Options{TaskQueue: w.name, StopTimeout: time.Second})
	require.NoError(t, works.Start())
	defer func() {
		works.Stop()
		require.NoError(t, catalogue.Close())
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range c.runs {
		w.begins(ctx, i)
	}
	for _, n := range c.order {
		w.finishes(ctx, w.open[n%len(w.open)])
	}
}

// begins starts a run, and waits until it works or waits.
func (w *crowding) begins(ctx context.Context, i int) {
	w.t.Helper()
	m := w.runs[i]
	id := fmt.Sprintf("%s-%d", w.name, i)
	run, err := w.env.Client().ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: w.name}, workflows.PlaybookWorkflowName, workflows.Input{
		Name: "oracle.yaml", Source: w.source(w.name, m.playbook),
		Workload: expression.Of(map[string]any{"api": w.url, "tenant": fmt.Sprintf("t%d", m.tenant)}),
	})
	require.NoError(w.t, err)
	w.started = append(w.started, run)
	if w.free(m) {
		w.works(i)
		return
	}
	w.queued = append(w.queued, i)
	require.Eventually(w.t, func() bool {
		is, err := w.env.Client().DescribeWorkflowExecution(ctx, id, run.GetRunID())
		return err == nil && is.GetWorkflowExecutionInfo().GetHistoryLength() > 3 && len(is.GetPendingActivities()) == 0 && is.GetPendingWorkflowTask() == nil
	}, patience, 20*time.Millisecond, "run %d does not wait: %s", i, w.says())
	w.agrees()
}

// free says that the key of a run has a slot left.
func (w *crowding) free(m member) bool {
	n := 0
	for _, i := range w.open {
		if w.key(w.runs[i]) == w.key(m) {
			n++
		}
	}
	return n < w.playbooks[m.playbook].limit
}

// works waits until a run that has a slot works.
func (w *crowding) works(i int) {
	w.t.Helper()
	w.open, w.came = append(w.open, i), append(w.came, i)
	require.Eventually(w.t, func() bool { return len(w.floor.came()) >= len(w.came) }, patience, 10*time.Millisecond, "run %d does not come: %s", i, w.says())
	w.agrees()
}

// finishes has a run end; the one that has waited longest for its key follows.
func (w *crowding) finishes(ctx context.Context, i int) {
	w.t.Helper()
	close(w.floor.released[i])
	result, err := ending.Of(ctx, w.started[i])
	require.NoError(w.t, err, w.says())
	require.Equal(w.t, "completed", string(result.Status), "run %d: %v; %s", i, result.Error, w.says())
	histories := testenv.Histories(w.t, w.env.Client(), w.started[i].GetID(), w.started[i].GetRunID())
	require.NoError(w.t, testenv.Replay(histories, func(r worker.WorkflowReplayer) { workflows.Register(r) }, 1,
		testenv.StoredIn(testenv.PayloadStore(w.t))))
	w.open = slices.DeleteFunc(w.open, func(each int) bool { return each == i })
	next := slices.IndexFunc(w.queued, func(each int) bool { return w.key(w.runs[each]) == w.key(w.runs[i]) })
	if next < 0 {
		w.agrees()
		return
	}
	first := w.queued[next]
	w.queued = slices.Delete(w.queued, next, next+1)
	w.works(first)
}

// agrees fails the test where others came to work than predicted, or in another order.
func (w *crowding) agrees() {
	w.t.Helper()
	require.Equal(w.t, w.came, w.floor.came(), w.says())
}

// says describes the crowd and what is predicted of it now.
func (w *crowding) says() string {
	var b strings.Builder
	for i := range w.playbooks {
		b.WriteString(w.source("oracle", i))
	}
	for i, m := range w.runs {
		fmt.Fprintf(&b, "# run %d: playbook %d, tenant %d, key %s\n", i, m.playbook, m.tenant, w.key(m))
	}
	fmt.Fprintf(&b, "# open %v, queued %v\n", w.open, w.queued)
	return b.String() + fmt.Sprintf("# alone: go test ./internal/test/oracle -run '^TestConcurrency$' -oracle.seed=%d -oracle.queues=1", w.seed)
}
