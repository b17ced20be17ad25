package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// TestIncremental: ten runs share one state over a source that moves, while workers are killed,
// runs are terminated or meet each other, and the source fails. After a last quiet run tables
// lack and double nothing, and files lack nothing.
func TestIncremental(t *testing.T) {
	t.Parallel()
	seed := drawSeed()
	cases := incrementalCases(rand.New(rand.NewPCG(seed, 1)))
	report := newReport(t, "incremental", seed)
	for number := range report.numbers(*roundsFlag) {
		of := cases[(number-1)%len(cases)]
		report.round(t, number, of.String(), func(t *testing.T) {
			r := newIncrementalRound(t, number, seed, of, (*incrementalRound).mortal)
			began := time.Now()
			r.play()
			r.worker.Stop()
			require.Empty(t, r.faults())
			report.add(&r.stage, of.String(), fmt.Sprintf("%d runs", r.runs), time.Since(began), 0)
		})
	}
}

// TestIncrementalWithoutLag is a control: where rows are seen late and nothing is read again,
// some are lost, and the check finds it.
func TestIncrementalWithoutLag(t *testing.T) {
	t.Parallel()
	for number := 1; number <= 5; number++ {
		r := newIncrementalRound(t, number, drawSeed(), incrementalCase{sink: "postgres upsert", order: "at", where: placePage, pages: narrow})
		r.lag, r.source.late = "0s", 3*late
		r.startWorker()
		for range 6 {
			r.await("a row is seen before one that is dated earlier", r.source.changeUntilLate)
			r.finish(r.start())
		}
		r.source.rest()
		r.finish(r.start())
		r.worker.Stop()
		if faults := r.faults(); len(faults) > 0 {
			t.Log(faults[0])
			return
		}
	}
	require.Fail(t, "rows that are seen late are never missed")
}

// incrementalCase is what a round is about.
type incrementalCase struct {
	sink  string // tool and mode
	order string // of the source, "token" for one that gives tokens
	where string // of the sink
	loop  bool
	batch int
	alone bool
	again bool // the sink tries again while the database is away
	pages pageShape
	skews bool // the clock is another one for each worker
}

func (t incrementalCase) String() string {
	text := fmt.Sprintf("%s per %s, %s", t.sink, t.where, t.order)
	if t.loop {
		text += fmt.Sprintf(", loop of batch %d", t.batch)
	}
	if t.alone {
		text += ", pages alone"
	}
	if t.again {
		text += ", tried again"
	}
	if t.pages != narrow {
		text += fmt.Sprintf(", pages of %d rows", t.pages.rows)
	}
	if t.skews {
		text += ", clocks apart"
	}
	return text
}

func (t incrementalCase) isPostgres() bool { return strings.HasPrefix(t.sink, "postgres") }

var incrementalSinks = map[string]string{
	"postgres insert": "tool: postgres, auth: pg, table: kept, mode: insert, key: [shop, id, version]",
	"postgres upsert": "tool: postgres, auth: pg, table: kept, mode: upsert, key: [shop, id]",
	"sqlite insert":   "tool: sqlite, path: kept.db, table: kept, mode: insert, key: [shop, id, version]",
	"sqlite upsert":   "tool: sqlite, path: kept.db, table: kept, mode: upsert, key: [shop, id]",
	kindFile:          "tool: file, path: kept.jsonl",
}

// incrementalCases are all of them, in an order that is drawn, the sinks in turn.
func incrementalCases(random *rand.Rand) []incrementalCase {
	sinks := slices.Sorted(maps.Keys(incrementalSinks))
	bySink := map[string][]incrementalCase{}
	for _, sink := range sinks {
		for _, order := range []string{"at", "id", "token"} {
			for _, where := range []string{placePage, placeEnd} {
				for _, loop := range []bool{false, true} {
					bySink[sink] = append(bySink[sink], incrementalCase{
						sink: sink, order: order, where: where, loop: loop, batch: 1 + random.IntN(2), alone: random.IntN(2) == 0,
						again: random.IntN(2) == 0 && strings.HasPrefix(sink, "postgres"), pages: drawPages(random, sink, order),
						skews: random.IntN(3) == 0,
					})
				}
			}
		}
		all := bySink[sink]
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	random.Shuffle(len(sinks), func(i, j int) { sinks[i], sinks[j] = sinks[j], sinks[i] })
	var cases []incrementalCase
	for at := range bySink[sinks[0]] {
		for _, sink := range sinks {
			cases = append(cases, bySink[sink][at])
		}
	}
	return cases
}

// drawPages has most rounds that keep blocks reach them: those of inserts whose source has an order.
func drawPages(random *rand.Rand, sink, order string) pageShape {
	share := 6
	if order == "at" && strings.HasSuffix(sink, "insert") {
		share = 2
	}
	if random.IntN(share) > 0 {
		return narrow
	}
	return widePages(random)
}

// incrementalRound is ten runs on one state.
type incrementalRound struct {
	stage

	of     incrementalCase
	source *clocked
	lag    string
	runs   int
}

// skewedBy is more than the time between two runs.
const skewedBy = 15 * time.Second

// late is how long after it is made a row may be seen. The lag covers that, the second that the clock of the source leaves
// out, how long before they are made its rows are dated, and how far the server's clock is ahead of the source's: by that
// clock the watermark is never later than the start of its call, and a call that is killed and continued lasts longer than the rest.
const late, lag = 1500 * time.Millisecond, 3 * time.Second

func newIncrementalRound(
	t *testing.T, number int, seed uint64, of incrementalCase, prepare ...func(*incrementalRound),
) *incrementalRound {
	t.Helper()
	covers := lag + of.pages.dated
	if of.skews {
		covers += skewedBy
	}
	r := &incrementalRound{stage: newStage(t, number, seed), of: of, lag: covers.String()}
	for _, prepare := range prepare {
		prepare(r)
	}
	if r.db == nil {
		r.db = testenv.Postgres(t)
	}
	r.queue = r.env.NewTaskQueue()
	shops := []string{"a"}
	if of.loop {
		shops = []string{"a", "b", "c"}
	}
	r.source = newClocked(t, rand.New(rand.NewPCG(seed, uint64(number)+1000)), late, of.pages, shops...)
	r.requests = r.source.count
	r.made = func() string { return fmt.Sprintf("%d requests were made", r.requests()) }
	table := "CREATE TABLE kept (shop text, id bigint, version bigint, at text"
	if strings.HasSuffix(of.sink, "upsert") {
		table += ", PRIMARY KEY (shop, id)"
	}
	r.db.Exec(t, table+")")
	r.createSQLite("kept.db", table+")")
	return r
}

const incrementalText = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: NAME}
workload: {api: "", shops: [], shop: ""}
workflow:
  - step: fetch
    tool: http
    url: "{{ api }}/{{ shop }}"
    params: {PARAMS}
    LOOP
    incremental: {INCREMENTAL}
    retry:
      - when: "{{ error.class == 'retryable' }}"
        then: {max_attempts: 2, delay: 100ms, jitter: none}
      - when: "{{ response.next }}"
        then: {max_attempts: 1000, ALONE next_call: {params: {after: "{{ response.next }}"}}, collect: {path: rows}, PAGE_SINK}
    STEP_SINK
`

func (r *incrementalRound) playbook() string {
	sink, fill := incrementalSinks[r.of.sink], map[string]string{}
	if r.of.again {
		sink += ", " + sinkRetry
	}
	sink = "sink: {" + sink + "}"
	fill["PARAMS"] = `since: "{{ incremental.value }}", order: ` + r.of.order
	fill["INCREMENTAL"] = `cursor_path: at, initial_value: "2020-01-01T00:00:00Z", lag: ` + r.lag
	switch r.of.order {
	case "at":
		fill["INCREMENTAL"] += ", row_order: asc"
	case "token":
		fill["PARAMS"], fill["INCREMENTAL"] = `token: "{{ incremental.value }}"`, `token: "{{ response.token }}"`
	}
	if r.of.alone {
		fill["ALONE"] = "pages_per_activity: 1,"
	}
	end := "STEP_SINK"
	if r.of.loop {
		end = "END_SINK"
		fill["LOOP"] = fmt.Sprintf("loop: {collection: \"{{ shops }}\", element: shop, mode: parallel, batch: %d, END_SINK}", r.of.batch)
	}
	if r.of.where == placePage {
		fill["PAGE_SINK"] = "per_iteration: {" + sink + "}"
		if r.of.loop { // one of no consequence: the loop needs none
			fill["END_SINK"] = ""
		}
	} else {
		fill[end] = sink
	}
	text := strings.ReplaceAll(incrementalText, "NAME", fmt.Sprintf("incremental-%d-%s", r.number, r.queue))
	for _, name := range []string{"PARAMS", "LOOP", "INCREMENTAL", "ALONE", "PAGE_SINK", "STEP_SINK", "END_SINK"} {
		text = strings.ReplaceAll(text, name, fill[name])
	}
	return strings.NewReplacer(", }", "}").Replace(text)
}

// start starts another run on the state.
func (r *incrementalRound) start() client.WorkflowRun {
	r.t.Helper()
	r.runs++
	shops := make([]any, len(r.source.shops))
	for i, shop := range r.source.shops {
		shops[i] = shop
	}
	workload, err := expression.Canonical(map[string]any{"api": r.source.URL, "shops": shops, "shop": "a"})
	require.NoError(r.t, err)
	run, err := r.env.Client().ExecuteWorkflow(r.t.Context(),
		client.StartWorkflowOptions{ID: fmt.Sprintf("incremental-%d-%s-%d", r.number, r.queue, r.runs), TaskQueue: r.queue},
		protocol.PlaybookWorkflowName,
		protocol.Input{Name: "incremental.yaml", Source: r.playbook(), Workload: expression.Of(workload)})
	require.NoError(r.t, err)
	r.run = run
	return run
}

// finish waits for the end of a run, which has to be a good one.
func (r *incrementalRound) finish(run client.WorkflowRun) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	var result protocol.Result
	if err := run.Get(ctx, &result); ctx.Err() != nil {
		progress, _ := r.progress(run)
		require.Fail(r.t, "the run does not end", "%s: %+v", run.GetID(), progress)
	} else {
		require.NoError(r.t, err)
	}
}

// play is the ten runs. What goes wrong in each is drawn.
func (r *incrementalRound) play() {
	r.t.Helper()
	strikes := r.strikes()
	r.startWorker()
	for range 9 {
		next := strikes[r.random.IntN(len(strikes))]
		r.t.Log(next.name)
		next.strike()
		r.source.busy()
	}
	r.source.rest()
	r.ensureWorker()
	r.finish(r.start())
}

// startWorker starts a worker, whose clock may be ahead of that of the one before, or behind it.
func (r *incrementalRound) startWorker() {
	r.t.Helper()
	if !r.of.skews {
		r.stage.startWorker()
		return
	}
	r.stage.startWorker(skewed(time.Duration(r.between(-1, 1)) * skewedBy)...)
}

// incrementalStrike is something that goes wrong in a run or behind it.
type incrementalStrike struct {
	name   string
	strike func()
}

// strikes are those of which each run has one.
func (r *incrementalRound) strikes() []incrementalStrike {
	inRun, behind := incrementalStrike{"worker killed in a run", r.killInRun}, incrementalStrike{"worker killed behind a run", r.killBehindRun}
	terminated := incrementalStrike{"run terminated", r.terminate}
	server := incrementalStrike{"server killed in a run", r.killServerInRun}
	strikes := []incrementalStrike{
		inRun, inRun, behind, terminated, terminated,
		{"two runs", r.meet},
		{"run terminated while another waits for its state", r.terminateAndMeet},
		{"source fails", r.sourceFails},
		{"worker frozen", r.freeze},
		{"nothing", func() { r.finish(r.start()) }},
		server, server,
		{"server killed behind a run", r.killServerBehindRun},
	}
	if r.of.isPostgres() {
		write := incrementalStrike{"database killed in a write", r.killDatabaseInWrite}
		strikes = append(strikes, incrementalStrike{"database killed in a run", r.killDatabaseInRun}, write, write,
			incrementalStrike{"database killed behind a run", r.killDatabaseBehindRun})
	}
	return strikes
}

// held starts a run and returns once one of its first requests is held. It reports false
// where the run has ended before.
func (r *incrementalRound) held() (run client.WorkflowRun, release func(), is bool) {
	release = r.source.stop(r.between(0, 2+2*len(r.source.shops)))
	run = r.start()
	r.await("a request is under way, or the run ends", func() bool { return r.source.held() > 0 || r.ended() })
	return run, release, r.source.held() > 0
}

func (r *incrementalRound) killInRun() {
	run, release, _ := r.held()
	r.kill()
	release()
	r.await("the held request is answered", func() bool { return r.source.held() == 0 })
	r.source.overtake()
	r.startWorker()
	r.finish(run)
}

func (r *incrementalRound) killBehindRun() {
	r.finish(r.start())
	r.kill()
	r.startWorker()
}

func (r *incrementalRound) terminate() {
	run, release, is := r.held()
	defer release()
	if is {
		require.NoError(r.t, r.env.Client().TerminateWorkflow(r.t.Context(), run.GetID(), "", "for the test"))
	}
}

// meet has two runs at once: one waits for the other.
func (r *incrementalRound) meet() {
	first, second := r.start(), r.start()
	r.finish(first)
	r.finish(second)
}

// sourceFails ends a run as failed in the midst of its pages.
func (r *incrementalRound) sourceFails() {
	run, release, _ := r.held()
	r.source.fail(true)
	release()
	r.await("the run ends", r.ended)
	r.source.fail(false)
	_ = run.Get(r.t.Context(), nil) // it may have been done before
}

// frozen is how long a worker stands still at most: it may hold a lock that others wait for.
const frozen = time.Minute

// freeze has a worker stand still while it reads a page, until others have finished the run and
// made another one: what it writes then is old.
func (r *incrementalRound) freeze() {
	run, release, is := r.held()
	if !is {
		release()
		return
	}
	still := r.worker
	require.NoError(r.t, syscall.Kill(still.PID(), syscall.SIGSTOP))
	release()
	r.startWorker()
	thaw := time.Now().Add(frozen)
	runs := []client.WorkflowRun{run}
	if r.endsBefore(thaw) {
		r.source.busy()
		runs = append(runs, r.start())
		r.endsBefore(thaw)
	}
	require.NoError(r.t, syscall.Kill(still.PID(), syscall.SIGCONT))
	time.Sleep(500 * time.Millisecond) // in which it writes
	still.Kill()
	for _, run := range runs {
		if strings.HasPrefix(r.of.sink, "sqlite") { // whose file it may have locked, in the midst of a write
			r.endWithout(run)
			continue
		}
		r.finish(run)
	}
}

// endsBefore reports whether the run that was started last ends before a time.
func (r *incrementalRound) endsBefore(until time.Time) (ended bool) {
	r.t.Helper()
	r.await("the run ends, or its time is over", func() bool {
		ended = r.ended()
		return ended || time.Now().After(until)
	})
	return ended
}

// faults says what the destination lacks or doubles.
func (r *incrementalRound) faults() []string {
	r.t.Helper()
	var faults []string
	times := map[string]int{}
	held := map[string]version{}
	for _, row := range r.destinationRows() {
		if times[row.key()]++; times[row.key()] > 1 && r.of.sink != kindFile {
			faults = append(faults, "doubled: "+row.key())
		}
		if !r.source.versions[row.key()] {
			faults = append(faults, "never there: "+row.key())
		}
		held[fmt.Sprintf("%s/%d", row.Shop, row.ID)] = row
	}
	for _, shop := range r.source.shops {
		for _, row := range r.source.visible(shop) {
			at, there := held[fmt.Sprintf("%s/%d", shop, row.ID)]
			switch {
			case strings.HasSuffix(r.of.sink, "upsert") && there && at.Version != row.Version:
				faults = append(faults, fmt.Sprintf("old: %s in place of %s", at.key(), row.key()))
			case times[row.key()] == 0:
				faults = append(faults, "lacks: "+row.key())
			}
		}
	}
	return faults
}

// destinationRows are the rows of the destination.
func (r *incrementalRound) destinationRows() []version {
	r.t.Helper()
	const query = "SELECT id, version, at, shop FROM kept"
	var rows []version
	switch {
	case r.of.sink == kindFile:
		return lines[version](&r.stage, "kept.jsonl")
	case r.of.isPostgres():
		convert(r.t, r.db.Query(r.t, query), &rows)
		return rows
	}
	db := r.sqlite("kept.db")
	defer func() { require.NoError(r.t, db.Close()) }()
	found, err := db.QueryContext(r.t.Context(), query)
	require.NoError(r.t, err)
	defer func() { require.NoError(r.t, found.Close()) }()
	for found.Next() {
		var row version
		require.NoError(r.t, found.Scan(&row.ID, &row.Version, &row.At, &row.Shop))
		rows = append(rows, row)
	}
	require.NoError(r.t, found.Err())
	return rows
}
