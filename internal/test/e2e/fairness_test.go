package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"reprise/activities"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

const (
	places  = 2   // attempts that the worker makes at once
	walk    = 8   // attempts of the older run, one after another
	backlog = 120 // attempts of the newer run, all at once
)

// An attempt waits until the test lets it go, however slow the machine is.
var olderBook = fmt.Sprintf(`
apiVersion: reprise/v1
kind: Playbook
metadata: {name: older}
workflow:
  - step: walk
    tool: http
    url: "{{ gate }}/older"
    timeout: 1h
    loop: {collection: "{{ 1..%d }}", element: n, batch: 1}
output: "{{ walk.stats.success }}"
`, walk)

var newerBook = fmt.Sprintf(`
apiVersion: reprise/v1
kind: Playbook
metadata: {name: newer}
workflow:
  - step: flood
    tool: http
    url: "{{ gate }}/newer"
    timeout: 1h
    loop: {collection: "{{ 1..%d }}", element: n, mode: parallel, max_concurrency: %[1]d, batch: 1}
output: "{{ flood.stats.success }}"
`, backlog)

// TestAnOlderRunIsNotStarved: two runs with keys of their own, as starter run
// gives them, take turns, however much work the newer one has waiting.
func TestAnOlderRunIsNotStarved(t *testing.T) {
	t.Parallel()
	f := newFairness(t)
	older, newer := f.compete(f.id("older"), f.id("newer"))
	between := f.attemptsBetween(walk)
	t.Logf("attempts of the newer run between two of the older one: %v", between)
	// With one partition it is one, and more only where the server was slow to
	// put the older run's next attempt into the queue. Without turns, the first
	// number is the whole backlog.
	total := 0
	for _, attempts := range between {
		total += attempts
	}
	require.Len(t, between, walk-1)
	require.Less(t, total, backlog/2, "%v", between)

	f.gate.open()
	for run, attempts := range map[client.WorkflowRun]int{older: walk, newer: backlog} {
		result, err := f.outcome(run)
		require.NoError(t, err)
		require.Equal(t, attempts, result.Result.Data)
		f.requireInherited(run)
	}
}

// TestRunsWithOneKeyShareTheWorker also shows that without keys the older run
// would starve.
func TestRunsWithOneKeyShareTheWorker(t *testing.T) {
	t.Parallel()
	f := newFairness(t)
	f.compete("shared", "shared")
	between := f.attemptsBetween(2)
	t.Logf("attempts of the newer run before the second one of the older: %v", between)
	require.Greater(t, between[0], backlog/2)
}

// fairness is a world whose worker makes few attempts at once, each of which
// waits for the test.
type fairness struct {
	*world
	gate *gate
}

func newFairness(t *testing.T) *fairness {
	t.Helper()
	w := newWorld(t)
	w.replays = 1
	f := &fairness{world: w, gate: newGate(t)}
	catalogue := activities.NewCatalogue(w.resources)
	worker := host.NewWorker(w.env.Dial(t, client.Options{Logger: quiet{}}), catalogue, host.Options{
		TaskQueue: w.queue, StopTimeout: time.Second, MaxAttempts: places,
	})
	require.NoError(t, worker.Start())
	t.Cleanup(func() {
		f.gate.open()
		worker.Stop()
		require.NoError(t, catalogue.Close())
	})
	return f
}

func (f *fairness) id(name string) string { return f.queue + "-" + name }

// compete starts both runs and waits until the newer one's work is in the
// queue. The places are taken then.
func (f *fairness) compete(olderKey, newerKey string) (older, newer client.WorkflowRun) {
	f.t.Helper()
	older = f.begin("older", olderBook, olderKey)
	newer = f.begin("newer", newerBook, newerKey)
	f.awaitBacklog(backlog * 9 / 10) // the count is approximate
	return older, newer
}

func (f *fairness) begin(name, source, key string) client.WorkflowRun {
	f.t.Helper()
	workload, err := expression.Canonical(map[string]any{"gate": f.gate.url})
	require.NoError(f.t, err)
	run, err := f.env.Client().ExecuteWorkflow(f.t.Context(), client.StartWorkflowOptions{
		ID: f.id(name), TaskQueue: f.queue, Priority: temporal.Priority{FairnessKey: key},
	}, protocol.PlaybookWorkflowName, protocol.Input{
		Name: name + ".yaml", Source: source, Workload: expression.Of(workload),
	})
	require.NoError(f.t, err)
	return run
}

func (f *fairness) awaitBacklog(n int) {
	f.t.Helper()
	request := &workflowservice.DescribeTaskQueueRequest{
		Namespace: f.env.Namespace, TaskQueue: &taskqueue.TaskQueue{Name: f.queue},
		TaskQueueType: enums.TASK_QUEUE_TYPE_ACTIVITY, ReportStats: true,
	}
	require.Eventually(f.t, func() bool {
		queue, err := f.env.Client().WorkflowService().DescribeTaskQueue(f.t.Context(), request)
		return err == nil && queue.GetStats().GetApproximateBacklogCount() >= int64(n)
	}, patience, tick, "the newer run's work does not come into the queue")
}

// attemptsBetween lets one attempt after another end until the older run has
// made some, and counts those of the newer run in between. Nothing of the newer
// run ends before the older one's next attempt waits for a place: what is
// counted is the server's choice, and not who was slow.
func (f *fairness) attemptsBetween(attempts int) []int {
	f.t.Helper()
	var between []int
	var held []*arrival
	for made, count := 0, 0; made < attempts; {
		next := f.gate.next()
		if next.path == "/older" {
			if made > 0 {
				between = append(between, count)
			}
			made, count = made+1, 0
			close(next.answer)
			continue
		}
		count++
		if held = append(held, next); len(held) == places {
			f.awaitScheduled(made)
			close(held[0].answer)
			held = held[1:]
		}
	}
	for _, arrival := range held {
		close(arrival.answer)
	}
	return between
}

// awaitScheduled waits until the older run wants to make its attempt of an index.
func (f *fairness) awaitScheduled(index int) {
	f.t.Helper()
	id := fmt.Sprintf("%s/walk#1/%d", f.id("older"), index)
	require.Eventually(f.t, func() bool {
		iteration, err := f.env.Client().DescribeWorkflowExecution(f.t.Context(), id, "")
		return err == nil && len(iteration.GetPendingActivities()) > 0
	}, patience, tick, "%s makes no attempt", id)
}

// requireInherited: nothing below a run has settings of its own, and the server
// gave every workflow those of the run.
func (f *fairness) requireInherited(run client.WorkflowRun) {
	f.t.Helper()
	want := &commonpb.Priority{FairnessKey: run.GetID()}
	for _, history := range testenv.Histories(f.t, f.env.Client(), run.GetID(), run.GetRunID()) {
		started := history.History.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
		require.True(f.t, proto.Equal(want, started.GetPriority()), "%s: %v", history, started.GetPriority())
		for _, event := range history.History.GetEvents() {
			require.Nil(f.t, event.GetActivityTaskScheduledEventAttributes().GetPriority(), "%s", history)
		}
	}
}

// gate is an API that answers when the test says so.
type gate struct {
	t        *testing.T
	url      string
	arrivals chan *arrival
	opened   chan struct{}
	open     func() // answers everybody from now on
}

// arrival is a request that waits for its answer.
type arrival struct {
	path   string
	answer chan struct{}
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{t: t, arrivals: make(chan *arrival), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	server := httptest.NewServer(g)
	g.url = server.URL
	t.Cleanup(func() {
		g.open()
		server.Close()
	})
	return g
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := &arrival{path: r.URL.Path, answer: make(chan struct{})}
	select {
	case g.arrivals <- a:
	case <-g.opened:
	case <-r.Context().Done():
		return
	}
	select {
	case <-a.answer:
		w.WriteHeader(http.StatusNoContent)
	case <-g.opened:
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done():
	}
}

// next is the request that arrives next.
func (g *gate) next() *arrival {
	g.t.Helper()
	select {
	case a := <-g.arrivals:
		return a
	case <-time.After(patience):
		require.Fail(g.t, "no attempt is made")
		return nil
	}
}
