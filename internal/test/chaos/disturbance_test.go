package chaos_test

import (
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"reprise/internal/test/testenv"
)

// outage is how long a cut of the connection and a stop of the database last.
const outage = 20 * time.Second

// disturbance is something that goes wrong during a run.
type disturbance struct {
	name string
	// long is for those that take half a minute and more by themselves.
	long bool
	// fits draws a shape in which the disturbance can strike.
	fits func(r *round) shape
	// prepare gives the round a server of its own, before the run begins.
	prepare func(r *round)
	strike  func(r *round)
	// evidence is what the histories have to show; nil where the strike has seen
	// enough itself.
	evidence func(r *round, histories []testenv.RunHistory)
}

// disturbances are taken in turn. The short form leaves the long ones out.
var disturbances = []disturbance{
	{name: "worker killed in an activity", fits: anyLoop, strike: killInActivity},
	{name: "worker killed between an activity and its workflow task", fits: apart, strike: killBetween, evidence: requireTakeOver},
	{name: "worker killed during a wait", fits: waiting, strike: killInWait},
	{name: "worker killed during continue-as-new", fits: continues, strike: killInContinueAsNew, evidence: requireContinued},
	{name: "worker killed with 50 children running", fits: wide, strike: killWithChildren},
	{name: "worker killed in a sink", fits: writing, strike: killInSink},
	{name: "worker killed while dead-lettering", fits: writing, strike: killInDeadLetter},
	{name: "run paused and resumed", fits: anyLoop, strike: pauseAndResume, evidence: requirePaused},
	{name: "server killed and restarted", fits: anyLoop, prepare: func(r *round) { r.ownServer() }, strike: killServer},
	{name: "database stopped during 1,000 upserts", long: true, fits: upserts, prepare: ownDatabase, strike: stopDatabase},
	{name: "connection to the server cut", long: true, fits: anyLoop, prepare: ownConnection, strike: cutConnection},
}

// kinds are the disturbances of this form, those of the short one in an order
// that the seed has drawn.
func kinds(short bool, draw func(n int, swap func(i, j int))) []disturbance {
	if !short {
		return disturbances
	}
	var quick []disturbance
	for _, d := range disturbances {
		if !d.long {
			quick = append(quick, d)
		}
	}
	draw(len(quick), func(i, j int) { quick[i], quick[j] = quick[j], quick[i] })
	return quick
}

// anyLoop is sequential, parallel, in batches, or long enough to run in shards or
// to go on in another history.
func anyLoop(r *round) shape {
	if !r.short && r.repetition%2 == 1 {
		return longHistory(r, r.repetition-1)
	}
	shapes := []func(*round) shape{sequential, apart, batches}
	if !r.short && r.chance(6) {
		return shape{items: 410, batch: 1, pages: 1, waits: 4, failing: 40}
	}
	return shapes[r.random.IntN(len(shapes))](r)
}

func sequential(r *round) shape {
	return shape{items: r.between(8, 14), batch: []int{1, 1, 50}[r.random.IntN(3)], waits: 4}
}

// apart has an activity for every attempt.
func apart(r *round) shape {
	return shape{parallel: true, width: r.between(4, 16), batch: 1, items: r.between(24, 40), waits: 10}
}

func batches(r *round) shape {
	return shape{parallel: true, width: 100, batch: []int{5, 50}[r.random.IntN(2)], items: r.between(60, 150), waits: 20}
}

func waiting(r *round) shape {
	if r.chance(2) {
		return sequential(r)
	}
	return apart(r)
}

// continues is each of the kinds in its turn.
func continues(r *round) shape {
	if r.short {
		return longHistory(r, r.random.IntN(longHistories))
	}
	return longHistory(r, r.repetition)
}

// longHistories is how many kinds there are.
const longHistories = 6

// longHistory has one workflow whose history gets long: that of an iteration, alone
// or in a batch with others before and after it, of a step's call, or of the run.
func longHistory(r *round, kind int) shape {
	s := [longHistories]shape{
		{long: longIteration, batch: 50},
		{long: longCall, batch: 1, parallel: r.chance(2)},
		{long: longIteration, batch: 50, parallel: true},
		{long: longRun, batch: 1, parallel: r.chance(2)},
		{long: longIteration, batch: 1, parallel: r.chance(2)},
		{long: longIteration, batch: 3},
	}[kind%longHistories]
	s.width, s.items, s.waits = 4, r.between(4, 8), 2
	switch {
	case s.long == longCall:
		s.polls = r.between(190, 200)
	case s.batch > 1: // the first ten or so share an activity
		s.polls = r.between(60, 75)
	default:
		s.polls = r.between(45, 60)
	}
	return s
}

func wide(r *round) shape {
	return shape{parallel: true, width: r.between(50, 60), batch: 1, items: r.between(70, 90), waits: 10}
}

// writing has sinks that are activities, or parts of those of pages and batches.
func writing(r *round) shape {
	if r.chance(3) {
		return batches(r)
	}
	s := apart(r)
	if r.chance(2) {
		s.sinks = []string{"loop"}
	}
	return s
}

func upserts(r *round) shape {
	return shape{
		parallel: true, width: 100, batch: []int{1, 10, 50}[r.random.IntN(3)], items: 1000, waits: 20,
		sinks: []string{"loop", "call"}, upsert: true,
	}
}

// killInActivity holds a request, kills the worker that made it, and once more
// where the seed says so.
func killInActivity(r *round) {
	for range r.between(1, 2) {
		r.holdRequest()
		r.kill()
		r.api.release()
		r.startWorker()
	}
}

// killBetween: the result of an activity is in history, and no workflow task
// has taken it up.
func killBetween(r *round) {
	r.dieAt(moment{What: "activity", When: "after", Nth: r.between(1, r.scenario.items/2)})
	r.startWorker()
}

// killInWait has the next worker come at once, or when the waits are over.
func killInWait(r *round) {
	waits, _ := r.scenario.dueWaits()
	r.dieAt(moment{What: "timer", When: "after", Nth: r.between(1, len(waits))})
	if r.chance(2) {
		r.until("all timers have fired", func() bool {
			return r.events(enumspb.EVENT_TYPE_TIMER_STARTED) <= r.events(enumspb.EVENT_TYPE_TIMER_FIRED)
		})
	}
	r.startWorker()
}

// killInContinueAsNew: the server has not heard of the new history, or nobody
// has looked at it.
func killInContinueAsNew(r *round) {
	when := "before"
	if r.chance(2) {
		when = "after"
	}
	r.dieAt(moment{What: "continue", When: when, Nth: 1})
	r.startWorker()
}

const children = 50

func killWithChildren(r *round) {
	r.api.hold(1)
	r.startWorker()
	r.until("50 requests are under way", func() bool { return r.api.waiting() >= children })
	require.GreaterOrEqual(r.t, r.openChildren(), children)
	r.kill()
	r.api.release()
	r.startWorker()
}

// killInSink: the write is under way, or it is done and not reported.
func killInSink(r *round) {
	if r.scenario.batch == 1 && r.scenario.sink == "loop" && r.chance(2) && r.scenario.writesAlone(false) {
		r.dieAt(moment{What: "sink", When: "before", Nth: 1})
	} else {
		r.killInWrite("rows")
	}
	r.startWorker()
}

func killInDeadLetter(r *round) {
	if r.scenario.batch == 1 && r.chance(2) && r.scenario.writesAlone(true) {
		r.dieAt(moment{What: "dead_letter", When: "before", Nth: 1})
	} else {
		r.killInWrite("dead")
	}
	r.startWorker()
}

func (r *stage) ownServer() {
	r.t.Helper()
	r.server = testenv.TemporalServer(r.t)
	r.env, r.address = r.server.Env, r.server.Address
}

// killServer holds a request while the server is away, so that there is
// something to tell it.
func killServer(r *round) {
	r.startWorker()
	r.holdNext()
	r.server.Kill()
	r.kills++
	if r.chance(2) {
		r.api.release()
	}
	r.server.Start(r.t)
	r.api.release()
}

func ownDatabase(r *round) { r.db = testenv.PostgresServer(r.t) }

func stopDatabase(r *round) {
	r.startWorker()
	some := r.between(50, 400)
	r.until("some rows are written", func() bool { return r.rows() >= some })
	r.db.Stop(r.t)
	r.pause(outage)
	r.db.Start(r.t)
	require.Less(r.t, r.rows(), r.scenario.items, "the database went away during the writes")
}

func ownConnection(r *round) {
	r.proxy = testenv.NewProxy(r.t, r.env.Address)
	r.address = r.proxy.Address()
}

func cutConnection(r *round) {
	r.startWorker()
	r.holdNext()
	r.proxy.Cut()
	r.api.release()
	r.pause(outage)
	r.proxy.Mend()
}
