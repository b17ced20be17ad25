package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/activities"
	"reprise/internal/test/testenv"
	"reprise/internal/test/testenv/testworker"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// patience is how long a run may stand still.
var patience = testenv.Within(4 * time.Minute)

// tick is how often a round looks, and beat how often it asks the server.
const tick, beat = 20 * time.Millisecond, 250 * time.Millisecond

// stage is where a run is played: the servers, a worker that may be killed, and
// the run.
type stage struct {
	t      *testing.T
	number int
	random *rand.Rand

	env       *testenv.Env
	server    *testenv.Server // set where it is the round's own
	proxy     *testenv.Proxy  // set where there is one
	address   string          // of the server, for workers
	db        *testenv.Database
	dir       string
	variables []string // of the worker's environment
	queue     string
	worker    *testworker.Process
	run       client.WorkflowRun
	asked     time.Time // when the server was asked last whether the run has ended
	kills     int
	killed    int // process ID of the last worker killed

	requests func() int    // how many have come to the API
	made     func() string // the same for people
}

// round is one run of a scenario and what goes wrong in it.
type round struct {
	stage

	short       bool
	repetition  int // how often the disturbance has had its turn before
	disturbance disturbance
	scenario    *scenario
	api         *api
	halts       []halt
}

func newStage(t *testing.T, number int, seed uint64) stage {
	t.Helper()
	s := stage{
		t: t, number: number, env: testenv.Temporal(t), dir: t.TempDir(),
		random: rand.New(rand.NewPCG(seed, uint64(number))),
	}
	s.address = s.env.Address
	return s
}

func newRound(t *testing.T, number int, short bool, seed uint64, d disturbance, repetition int) *round {
	t.Helper()
	r := &round{stage: newStage(t, number, seed), short: short, disturbance: d, repetition: repetition}
	if d.prepare != nil {
		d.prepare(r)
	}
	if r.db == nil {
		r.db = testenv.Postgres(t)
	}
	r.queue = r.env.NewTaskQueue()
	r.scenario = newScenario(r.random, d.fits(r))
	r.api = newAPI(t, r.scenario.all())
	r.requests = r.api.count
	r.made = func() string { return fmt.Sprintf("%d of %d attempts were made", r.api.count(), r.scenario.attempts()) }
	r.db.Exec(t, r.scenario.tables())
	return r
}

// between draws from low to high, both included.
func (r *stage) between(low, high int) int { return low + r.random.IntN(max(high-low, 0)+1) }

// chance is true once in n times.
func (r *stage) chance(n int) bool { return r.random.IntN(n) == 0 }

// start starts the run. No worker has seen it yet.
func (r *round) start() {
	r.t.Helper()
	r.begin(r.scenario.playbook(), map[string]any{"api": r.api.url, "items": r.scenario.collection()})
}

// begin starts the run of a playbook.
func (r *stage) begin(source string, inputs map[string]any) {
	r.t.Helper()
	workload, err := expression.Canonical(inputs)
	require.NoError(r.t, err)
	r.run, err = r.env.Client().ExecuteWorkflow(r.t.Context(),
		client.StartWorkflowOptions{ID: fmt.Sprintf("chaos-%d-%s", r.number, r.queue), TaskQueue: r.queue},
		protocol.PlaybookWorkflowName,
		protocol.Input{Name: "chaos.yaml", Source: source, Workload: expression.Of(workload)})
	require.NoError(r.t, err)
}

// startWorker starts a worker, which may have to end itself.
func (r *stage) startWorker(env ...string) {
	r.t.Helper()
	connections := activities.Connections{}
	if r.db != nil {
		connections["pg"] = r.db.URL
	}
	r.worker = testworker.Start(r.t, testworker.Options{
		Address: r.address, Namespace: r.env.Namespace, TaskQueue: r.queue, Directory: r.dir,
		Connections: connections, Env: slices.Concat(r.variables, env),
	})
}

// kill ends the worker with SIGKILL.
func (r *stage) kill() {
	r.t.Helper()
	r.worker.Kill()
	r.wasKilled()
}

// dieAt starts a worker and returns once the moment has come at which it ends
// itself.
func (r *stage) dieAt(m moment) {
	r.t.Helper()
	r.t.Logf("the worker dies %s", m)
	r.startWorker(m.env()...)
	r.until("the worker dies "+m.String(), func() bool {
		select {
		case <-r.worker.Done():
			return true
		default:
			return false
		}
	})
	r.wasKilled()
}

func (r *stage) wasKilled() {
	r.t.Helper()
	require.True(r.t, r.worker.Killed(), "the worker ended otherwise: %v", r.worker.Err())
	r.kills++
	r.killed = r.worker.PID()
}

// holdRequest has a worker make requests until one is held: the first time any
// of the first half, then one of the next.
func (r *round) holdRequest() {
	r.t.Helper()
	if r.worker != nil {
		r.holdNext()
		return
	}
	r.api.hold(r.between(1, r.scenario.attempts()/2))
	r.startWorker()
	r.awaitHeld()
}

// holdNext waits until a request is held, one of the next few.
func (r *round) holdNext() {
	r.t.Helper()
	most := max((r.scenario.attempts()-r.api.count())/2, 1)
	r.api.hold(r.api.count() + r.between(1, most))
	r.awaitHeld()
}

func (r *round) awaitHeld() {
	r.t.Helper()
	r.until("a request is under way", func() bool { return r.api.waiting() > 0 })
}

// killInWrite kills the worker while a sink waits for a table.
func (r *stage) killInWrite(table string) {
	r.t.Helper()
	r.t.Logf("the worker dies in a write to %s", table)
	unlock := r.db.LockTable(r.t, table)
	defer unlock()
	r.startWorker()
	r.until("a sink waits for the table "+table, func() bool { return r.db.CountWaiting(r.t, table) > 0 })
	r.kill()
}

// pause waits for d, or until the run has ended.
func (r *stage) pause(d time.Duration) {
	r.t.Helper()
	over := time.Now().Add(d)
	r.until("the outage is over", func() bool { return time.Now().After(over) })
}

// until waits for something that has to happen while the run goes on.
func (r *stage) until(what string, happened func() bool) {
	r.t.Helper()
	r.await(what, func() bool {
		if happened() {
			return true
		}
		require.False(r.t, r.ended(), "the run ended before this: %s", what)
		return false
	})
}

// await waits for something as long as the run makes requests, and for patience
// beyond the last.
func (r *stage) await(what string, happened func() bool) {
	r.t.Helper()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for requests, moved := r.requests(), time.Now(); !happened(); {
		<-ticker.C
		r.noticeWorker()
		if now := r.requests(); now != requests {
			requests, moved = now, time.Now()
		}
		require.Less(r.t, time.Since(moved), patience, "%s: no request since %s, %s",
			what, moved.Format(time.TimeOnly), r.made())
	}
}

// noticeWorker fails where the worker has ended otherwise than by being killed: the
// run would stand still, and nobody would know why.
func (r *stage) noticeWorker() {
	r.t.Helper()
	if r.worker == nil {
		return
	}
	select {
	case <-r.worker.Done():
		require.True(r.t, r.worker.Killed(), "the worker has ended by itself: %v", r.worker.Err())
	default:
	}
}

// ended reports whether the run is over. It asks the server once a beat; one
// that does not answer cannot tell.
func (r *stage) ended() bool {
	if time.Since(r.asked) < beat {
		return false
	}
	r.asked = time.Now()
	described, err := r.env.Client().DescribeWorkflowExecution(r.t.Context(), r.run.GetID(), "")
	return err == nil && described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// openChildren counts the iterations that the server says are running.
func (r *stage) openChildren() int {
	described, err := r.env.Client().DescribeWorkflowExecution(r.t.Context(), r.run.GetID()+"/fetch#1", "")
	require.NoError(r.t, err)
	return len(described.GetPendingChildren())
}

// events counts those of a type in all histories of the run.
func (r *stage) events(wanted enumspb.EventType) int {
	n := 0
	for _, history := range testenv.Histories(r.t, r.env.Client(), r.run.GetID(), r.run.GetRunID()) {
		for _, event := range history.History.GetEvents() {
			if event.GetEventType() == wanted {
				n++
			}
		}
	}
	return n
}

func (r *round) rows() int {
	return int(r.db.Query(r.t, "SELECT count(*) AS n FROM rows")[0]["n"].(int64))
}
