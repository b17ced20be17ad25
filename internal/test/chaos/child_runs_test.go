package chaos_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/deadletter"
	"reprise/internal/observe/ending"
	"reprise/internal/observe/runs"
	"reprise/internal/program/demoapi"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// TestMovingChildRuns: the elements of a loop are playbooks of several steps with sinks,
// that read a source whose rows move between any two reads. Some fail in their last
// steps while workers are killed; then they are run again, and workers are killed
// again. Together these runs have written what they have read, once.
func TestMovingChildRuns(t *testing.T) {
	t.Parallel()
	seed := drawSeed()
	report := newReport(t, "moving below", seed)
	rounds := *roundsFlag
	if rounds == shortForm {
		rounds = shortBelow
	}
	for number := range report.numbers(rounds) {
		b := newBelow(rand.New(rand.NewPCG(seed, uint64(number)<<32)))
		report.round(t, number, b.shape(), func(t *testing.T) {
			r := newBelowRound(t, number, seed, b)
			t.Log(b)
			r.begin(b.playbook(), b.workload(r.api.URL()))
			took := r.play()
			report.add(&r.stage, b.shape(), b.String(), took, 0)
		})
	}
}

// shortBelow is how many rounds the short form has.
const shortBelow = 2

// below is the playbook of a round.
type below struct {
	names  []string
	seeds  []int
	rows   []int
	broken []int // elements that fail until the source is repaired
	flaky  []int // elements whose first attempt fails
	width  int   // max_concurrency, 0 for a sequential loop
	batch  int
	inner  int  // playbooks between the loop and the steps
	split  bool // a loop below writes each row by itself
	stop   string
	kinds  [2]string // of sinks: that of the pages, and that of the call
}

// belowSinks are what pages and calls are written to.
var belowSinks = []string{"postgres insert", "sqlite insert", kindFile, "postgres statement", kindHTTP}

func newBelow(random *rand.Rand) *below {
	b := &below{
		batch: []int{1, 2, 5}[random.IntN(3)], inner: random.IntN(3), split: random.IntN(2) == 0,
		stop:  []string{"", "", "", "terminate", "cancel"}[random.IntN(5)],
		kinds: [2]string{belowSinks[random.IntN(len(belowSinks))], belowSinks[random.IntN(len(belowSinks))]},
	}
	if random.IntN(4) > 0 {
		b.width = 2 + random.IntN(5)
	}
	for i := range 4 + random.IntN(4) {
		b.names, b.seeds = append(b.names, fmt.Sprintf("c%d", i)), append(b.seeds, 1+random.IntN(1_000_000))
		b.rows = append(b.rows, 5+random.IntN(8))
		switch random.IntN(3) {
		case 0:
			b.broken = append(b.broken, i)
		case 1:
			b.flaky = append(b.flaky, i)
		}
	}
	if len(b.broken) == 0 {
		b.broken = []int{len(b.names) - 1}
		b.flaky = slices.DeleteFunc(b.flaky, func(i int) bool { return i == len(b.names)-1 })
	}
	return b
}

func (b *below) shape() string {
	shape := fmt.Sprintf("%d down", 1+b.inner)
	if b.split {
		shape += " and a loop"
	}
	if b.stop != "" {
		shape += ", " + b.stop
	}
	return shape
}

func (b *below) String() string {
	return fmt.Sprintf("%d elements, width %d, batch %d, broken %v, flaky %v, %s per page, %s per call",
		len(b.names), b.width, b.batch, b.broken, b.flaky, b.kinds[0], b.kinds[1])
}

func (b *below) workload(api string) map[string]any {
	items := make([]any, len(b.names))
	for i, name := range b.names {
		items[i] = map[string]any{"name": name, "seed": b.seeds[i], "rows": b.rows[i], "index": i, "flaky": slices.Contains(b.flaky, i)}
	}
	broken := make([]any, len(b.broken))
	for i, index := range b.broken {
		broken[i] = index
	}
	return map[string]any{"api": api, "items": items, "broken": broken}
}

const belowHead = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: below}
workload: {api: "", items: [], broken: []}
workflow:
  - step: each
    tool: playbook
    loop:
      in: "{{ items }}"
      iterator: item
      batch: BATCH
      MODE
      thresholds: {completed: 1, partial_success: 0}
    RETRIES
    workload: {item: "{{ item }}", api: "{{ api }}", broken: "{{ item.index in broken }}"}
    workflow:`

// belowSteps are the steps of an element.
const belowSteps = `
- step: fetch
  tool: http
  url: "{{ api }}/api/v1/moving/{{ item.name }}"
  params: {limit: 3, after: null, seed: "{{ item.seed }}", rows: "{{ item.rows }}"}
  headers: {X-Attempt: "{{ attempt_key }}"}
  retry:
    - when: "{{ error.class == 'retryable' }}"
      then: {max_attempts: 3, delay: 1s, jitter: none}
    - when: "{{ response.more }}"
      then:
        max_attempts: 100
        next_call: {params: {after: "{{ response.next }}"}}
        collect: {path: rows}
        PAGE_SINK
        CALL_SINK
  next: post
- step: post
  tool: http
  method: POST
  url: "{{ api }}/api/v1/writes?other_body=keep"
  body: {place: posted, item: "{{ item.name }}", rows: "{{ fetch }}"}
  next: NEXT
SPLIT
- step: finish
  tool: http
  url: "{{ api }}/status/{{ 404 if broken else 200 }}"
  next: [{when: "{{ item.flaky }}", step: shaky}, {else: {step: out}}]
- {step: shaky, tool: http, url: "{{ api }}/flaky", params: {times: 1, key: "{{ item.name }}"}, next: out}
- {step: out, tool: http, url: "{{ api }}/echo", vars: {rows: "{{ fetch }}"}}
`

const belowSplit = `- step: rows
  tool: http
  loop:
    in: "{{ fetch }}"
    iterator: row
    mode: parallel
    max_concurrency: 3
    thresholds: {completed: 1, partial_success: 1}
  method: POST
  url: "{{ api }}/api/v1/writes?other_body=keep"
  params: {last: "{{ 1 if broken and _loop.count == _loop.size else 0 }}"}
  body: {place: row, item: "{{ item.name }}", rows: ["{{ row }}"]}
  next: finish
`

func (b *below) playbook() string {
	steps := strings.NewReplacer(
		"PAGE_SINK", "per_iteration: {"+belowSink(b.kinds[0], "rows_page")+"}", "CALL_SINK", belowSink(b.kinds[1], "rows_call"),
	).Replace(belowSteps)
	next, split := "finish", ""
	if b.split {
		next, split = "rows", belowSplit
	}
	steps = strings.NewReplacer("NEXT", next, "SPLIT\n", split).Replace(steps)
	indent := "      "
	text := belowHead
	for range b.inner {
		text += "\n" + indent + "- step: through\n" + indent + "  tool: playbook\n" +
			indent + `  workload: {item: "{{ item }}", api: "{{ api }}", broken: "{{ broken }}"}` + "\n" + indent + "  workflow:"
		indent += "    "
	}
	text += strings.ReplaceAll(strings.TrimRight(steps, "\n"), "\n", "\n"+indent) + "\n"
	mode := "mode: sequential"
	if b.width > 0 {
		mode = fmt.Sprintf("mode: parallel\n      max_concurrency: %d", b.width)
	}
	retries := ""
	if len(b.flaky) > 0 {
		retries = `retry: [{when: "{{ error.body.error.status == 503 }}", then: {max_attempts: 3, delay: 10ms}}]`
	}
	return strings.NewReplacer("BATCH", fmt.Sprint(b.batch), "MODE", mode, "RETRIES", retries, "RETRY", sinkRetry).Replace(text)
}

func belowSink(kind, table string) string {
	text := strings.NewReplacer("TABLE", table, "ROWS", `"{{ result }}"`).Replace(sinkKinds[kind])
	return "sink: {" + text + ", RETRY}"
}

// belowRound is one run of it with its reprocesses.
type belowRound struct {
	movingRound

	below *below
}

func newBelowRound(t *testing.T, number int, seed uint64, b *below) *belowRound {
	t.Helper()
	m := &movement{sinks: []sink{{placePage, b.kinds[0]}, {placeCall, b.kinds[1]}}}
	m.collect = true
	for _, name := range b.names {
		m.elements = append(m.elements, element{name: name, rows: 9})
	}
	r := &belowRound{below: b, movingRound: movingRound{stage: newStage(t, number, seed), api: testenv.DemoAPI(t), movement: m}}
	r.db, r.queue = testenv.Postgres(t), r.env.NewTaskQueue()
	r.requests = func() int { return r.api.CountRequests("", "/") }
	r.made = func() string { return fmt.Sprintf("%d requests were made", r.requests()) }
	r.db.Exec(t, m.tables("postgres"))
	r.createSQLite("rows.db", r.movement.tables("sqlite"))
	return r
}

// play runs it, repairs the source, and runs what is left again until nothing is.
func (r *belowRound) play() time.Duration {
	r.t.Helper()
	began := time.Now()
	origin := r.run
	r.strikeBelow()
	if r.below.stop != "" {
		r.stopBelow()
	}
	r.await("the run ends", r.ended)
	for again := 1; ; again++ {
		letters := r.letters(origin)
		if len(letters) == 0 {
			break
		}
		require.LessOrEqual(r.t, again, 3, "%d iterations are left: %s", len(letters), letters[0].Error.Message)
		r.t.Logf("reprocess %d of %d iterations", again, len(letters))
		r.startAgain(origin, letters, map[string]any{"broken": []any{}})
		if again == 1 {
			r.strikeBelow()
		}
		r.await("the reprocess ends", r.ended)
		_, err := ending.WaitForResult(r.t.Context(), r.run)
		require.NoError(r.t, err)
	}
	r.checkUnion()
	for _, run := range []client.WorkflowRun{origin, r.run} {
		histories := testenv.Histories(r.t, r.env.Client(), run.GetID(), "")
		if r.below.stop != "terminate" || run != origin {
			r.checkHistories(histories)
		}
	}
	r.worker.Stop()
	return time.Since(began)
}

// strikeBelow kills the worker while something is under way.
func (r *belowRound) strikeBelow() {
	r.t.Helper()
	for range r.between(1, 2) {
		r.ensureWorker()
		at := r.requests() + r.between(1, 6*len(r.below.names))
		r.t.Logf("the worker dies at request %d", at)
		died := false
		r.await("more requests are made, or the run ends", func() bool {
			died = r.requests() >= at
			return died || r.ended()
		})
		if !died {
			break
		}
		r.kill()
	}
	r.ensureWorker()
}

// stopBelow ends the run from outside, wherever it is.
func (r *belowRound) stopBelow() {
	r.t.Helper()
	at := r.requests() + r.between(1, 6*len(r.below.names))
	stops := false
	r.await("more requests are made, or the run ends", func() bool {
		stops = r.requests() >= at
		return stops || r.ended()
	})
	if !stops {
		return
	}
	r.t.Logf("the run is to %s at request %d", r.below.stop, at)
	if r.below.stop == "cancel" {
		require.NoError(r.t, r.env.Client().CancelWorkflow(r.t.Context(), r.run.GetID(), ""))
		return
	}
	require.NoError(r.t, r.env.Client().TerminateWorkflow(r.t.Context(), r.run.GetID(), "", "for the test"))
}

func (r *stage) reader() *deadletter.Reader {
	return &deadletter.Reader{Reader: runs.Reader{Client: r.env.Client(), Store: testenv.PayloadStore(r.t)}}
}

// letters are the iterations that are left.
func (r *stage) letters(origin client.WorkflowRun) []deadletter.Letter {
	r.t.Helper()
	chain, err := r.reader().Chain(r.t.Context(), origin.GetID(), "")
	require.NoError(r.t, err)
	return chain.Select(deadletter.Filter{Cancelled: true})
}

// startAgain starts the next reprocess, with a workload that is changed.
func (r *stage) startAgain(origin client.WorkflowRun, letters []deadletter.Letter, changed map[string]any) {
	r.t.Helper()
	chain, err := r.reader().Chain(r.t.Context(), origin.GetID(), "")
	require.NoError(r.t, err)
	input := chain.Origin.Input.WithoutParent()
	values, err := expression.Canonical(expression.MergeMaps(input.Workload.Data, changed))
	require.NoError(r.t, err)
	input.Workload = expression.Of(values)
	book, err := interpreter.LoadPlaybook(input.Name, input.Source)
	require.NoError(r.t, err)
	input.Reprocess, err = r.reader().PlanReprocess(r.t.Context(), chain, letters, book)
	require.NoError(r.t, err)
	r.run, err = r.env.Client().ExecuteWorkflow(r.t.Context(), client.StartWorkflowOptions{
		ID: deadletter.RoundID(chain.Origin.WorkflowID, chain.Origin.RunID, input.Reprocess.Origin.Round), TaskQueue: r.queue,
	}, protocol.PlaybookWorkflowName, input)
	require.NoError(r.t, err)
	r.asked = time.Time{}
}

// checkUnion: what each element has posted is what its sinks hold, once.
func (r *belowRound) checkUnion() {
	r.t.Helper()
	bodies, rows := map[string][]posted{}, map[string][]demoapi.MovingRow{}
	for _, write := range r.api.Writes("") {
		var b posted
		convert(r.t, write.Body, &b)
		if b.Place != "posted" && b.Place != "row" {
			continue
		}
		require.Empty(r.t, write.Others, "%s of %s came with other bodies under one key: %+v", b.Place, b.Item, write)
		if b.Place == "row" {
			rows[b.Item] = append(rows[b.Item], b.Rows...)
		} else {
			bodies[b.Item] = append(bodies[b.Item], b)
		}
	}
	sinks := r.written()
	for _, name := range r.below.names {
		require.Len(r.t, bodies[name], 1, "%s is posted once", name)
		want := sorted(bodies[name][0].Rows)
		for _, s := range r.movement.sinks {
			held := sinks[s][name]
			require.Empty(r.t, held.trouble, "%s in %s", name, s)
			var got []demoapi.MovingRow
			for _, write := range held.writes {
				got = append(got, write...)
			}
			r.requireRows(want, got, fmt.Sprintf("%s in %s", name, s))
		}
		if r.below.split {
			r.requireRows(want, rows[name], name+", row by row")
		}
	}
}

func (r *belowRound) requireRows(want, got []demoapi.MovingRow, what string) {
	r.t.Helper()
	encode := func(rows []demoapi.MovingRow) []string {
		texts := make([]string, len(rows))
		for i, row := range rows {
			text, err := json.Marshal(row)
			require.NoError(r.t, err)
			texts[i] = string(text)
		}
		slices.Sort(texts)
		return texts
	}
	require.Equal(r.t, encode(want), encode(got), what)
}
