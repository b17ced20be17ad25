package chaos_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"reprise/internal/program/demoapi"
	"reprise/internal/test/testenv"
)

// TestMoving: rows of a source are inserted, updated and deleted between any two reads
// while workers are killed. Sinks and result hold the same, which the API delivered on
// one path.
func TestMoving(t *testing.T) {
	t.Parallel()
	seed := drawSeed()
	cases := movingCases(rand.New(rand.NewPCG(seed, 0)))
	report := newReport(t, "moving", seed)
	for number := range report.numbers(*roundsFlag) {
		of := cases[(number-1)%len(cases)]
		report.round(t, number, of.String(), func(t *testing.T) {
			r := newMovingRound(t, number, seed, of)
			t.Log(r.movement)
			r.begin(r.movement.playbook(), r.movement.workload(r.api.URL()))
			r.strike(*roundsFlag <= shortForm)
			took := r.outcome()
			r.worker.Stop()
			report.add(&r.stage, of.String(), r.movement.String(), took, r.surplus())
		})
	}
}

// movingCase is the sink that a round is about.
type movingCase struct {
	sink

	alone bool // an activity for every page
}

func (t movingCase) String() string {
	if t.alone {
		return t.sink.String() + ", pages alone"
	}
	return t.sink.String() + ", pages together"
}

// sink is one of a moving round.
type sink struct{ place, kind string }

func (s sink) String() string { return s.kind + " per " + s.place }

// table is the name of what the sink writes to.
func (s sink) table() string { return "rows_" + s.place }

// Where a sink stands.
const (
	placePage = "page" // retry[].then.per_iteration
	placeCall = "call" // retry[].then.sink
	placeEnd  = "end"  // loop.sink, or the sink on a step without a loop
)

// holds says how what a sink holds is compared with what it should.
type holds int

const (
	rowsOnce     holds = iota // each row as often as it was delivered
	lastVersions              // the last version of each row
	rowsByKey                 // the rows of each operation key
	bodiesByKey               // the first body of each key
)

func (s sink) holds() holds {
	switch {
	case strings.HasSuffix(s.kind, "upsert"):
		return lastVersions
	case strings.HasSuffix(s.kind, "statement"):
		return rowsByKey
	case s.kind == kindHTTP || s.kind == kindPython:
		return bodiesByKey
	}
	return rowsOnce
}

const (
	kindFile   = "file"
	kindHTTP   = "http"
	kindPython = "python"
)

// sinkKinds are what each kind says after the tool's name; TABLE, ROWS, and ITEM
// are filled in.
var sinkKinds = map[string]string{
	"postgres insert": "tool: postgres, auth: pg, table: TABLE, mode: insert, args: ROWS",
	"postgres upsert": "tool: postgres, auth: pg, table: TABLE, mode: upsert, key: [collection, id], args: ROWS",
	"sqlite insert":   "tool: sqlite, path: rows.db, table: TABLE, mode: insert, args: ROWS",
	"sqlite upsert":   "tool: sqlite, path: rows.db, table: TABLE, mode: upsert, key: [collection, id], args: ROWS",
	kindFile:          "tool: file, path: TABLE.jsonl, args: ROWS",
	kindHTTP: `tool: http, url: "{{ api }}/api/v1/writes?other_body=keep", ` +
		`args: {place: TABLE, item: "{{ item.name }}", rows: ROWS}`,
	kindPython: `tool: python, args: {key: "{{ operation_key }}", item: "{{ item.name }}", rows: ROWS}, ` +
		`code: "import json, os\ndef main(**line):\n    out = os.open('TABLE.py', os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n` +
		`    os.write(out, (json.dumps(line) + '\\n').encode())"`,
	"postgres statement": `tool: postgres, auth: pg, args: {rows: ROWS}, statement: "INSERT INTO TABLE (op, collection, id, version) ` +
		`SELECT {{ operation_key }}::text, r.collection, r.id, r.version FROM jsonb_to_recordset({{ tojson(args.rows) }}::jsonb) ` +
		`AS r(collection text, id bigint, version bigint) ON CONFLICT DO NOTHING"`,
	"sqlite statement": `tool: sqlite, path: rows.db, args: {rows: ROWS}, statement: "INSERT INTO TABLE (op, collection, id, version) ` +
		`SELECT {{ operation_key }}, r.value ->> '$.collection', r.value ->> '$.id', r.value ->> '$.version' ` +
		`FROM json_each({{ args.rows }}) AS r WHERE true ON CONFLICT DO NOTHING"`,
}

// movingCases has every sink at every place in an order that is drawn: pages
// twice, since they are fetched together and alone. Those of pages that come in
// an activity with others are first.
func movingCases(random *rand.Rand) []movingCase {
	kinds := slices.Sorted(maps.Keys(sinkKinds))
	random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	var cases, rest []movingCase
	for _, kind := range kinds {
		cases = append(cases, movingCase{sink: sink{placePage, kind}})
		rest = append(rest, movingCase{sink: sink{placePage, kind}, alone: true},
			movingCase{sink: sink{placeCall, kind}, alone: random.IntN(2) == 0}, movingCase{sink: sink{placeEnd, kind}, alone: random.IntN(2) == 0})
	}
	random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	return append(cases, rest...)
}

// movement is the playbook of a moving round and the collections that it reads.
type movement struct {
	of movingCase
	paging

	sinks    []sink
	elements []element
	loop     bool // else a step without one, with one element
	width    int  // max_concurrency, 0 for a sequential loop
	batch    int
}

// element is one collection and how reads of it fail.
type element struct {
	name     string
	seed     int
	rows     int // at the start
	failFrom int // reads of what comes after this fail for good, 0 for none
	status   int // with this
	flaky    int // this read of the collection fails, and can be made again; 0 for none
}

func (m *movement) String() string {
	text := "no loop"
	if m.loop {
		text = fmt.Sprintf("%d items, sequential, batch %d", len(m.elements), m.batch)
		if m.width > 0 {
			text = fmt.Sprintf("%d items, parallel %d, batch %d", len(m.elements), m.width, m.batch)
		}
	}
	if m.offset {
		text += ", offset"
	}
	if !m.collect {
		text += ", no collect"
	}
	for _, other := range m.sinks[1:] {
		text += ", " + other.String()
	}
	return text
}

func newMovement(random *rand.Rand, t movingCase) *movement {
	m := &movement{of: t, sinks: []sink{t.sink}, loop: random.IntN(4) > 0, batch: []int{1, 3, 10}[random.IntN(3)]}
	m.offset, m.collect = random.IntN(4) == 0, random.IntN(4) > 0
	elements := 1
	if m.loop {
		elements = 4 + random.IntN(7)
		if random.IntN(3) > 0 {
			m.width = 2 + random.IntN(9)
		}
	} else {
		m.batch = 1
	}
	if random.IntN(2) == 0 {
		m.sinks = append(m.sinks, m.another(random))
	}
	for i := range elements {
		made := element{
			name: fmt.Sprintf("c%d", i), seed: 1 + random.IntN(1_000_000), rows: 9 + random.IntN(8),
			status: http.StatusServiceUnavailable,
		}
		if !m.loop {
			made.rows += 12
		}
		switch {
		case m.loop && i > 0 && random.IntN(4) == 0 && 3*m.failing() < elements:
			made.failFrom = 1 + random.IntN(made.rows*10/2)
			if m.offset {
				made.failFrom = 1 + random.IntN(made.rows/2)
			}
			if random.IntN(2) == 0 {
				made.status = http.StatusNotFound
			}
		case random.IntN(4) == 0:
			made.flaky = 1 + random.IntN(3)
		}
		m.elements = append(m.elements, made)
	}
	return m
}

// another is a second sink at another place.
func (m *movement) another(random *rand.Rand) sink {
	places := slices.DeleteFunc([]string{placePage, placeCall, placeEnd}, func(place string) bool { return place == m.of.place })
	kinds := slices.Sorted(maps.Keys(sinkKinds))
	return sink{places[random.IntN(len(places))], kinds[random.IntN(len(kinds))]}
}

func (m *movement) failing() int {
	n := 0
	for _, e := range m.elements {
		if e.failFrom > 0 {
			n++
		}
	}
	return n
}

// pageSize is the limit of every read.
const pageSize = 3

// usualReads is how many reads there are in most runs, or more: half of the rows
// are always left.
func (m *movement) usualReads() int {
	n := 0
	for _, e := range m.elements {
		if e.failFrom > 0 {
			n++
		} else {
			n += (e.rows/2 + pageSize - 1) / pageSize
		}
	}
	return n
}

func (m *movement) workload(api string) map[string]any {
	items := make([]any, len(m.elements))
	for i, e := range m.elements {
		item := map[string]any{"name": e.name, "seed": e.seed, "rows": e.rows, "status": e.status}
		if e.failFrom > 0 {
			item["fail_from"] = e.failFrom
		}
		if e.flaky > 0 {
			item["fail_pages"] = e.flaky
		}
		items[i] = item
	}
	if m.loop {
		return map[string]any{"api": api, "items": items}
	}
	return map[string]any{"api": api, "item": items[0]}
}

const movingText = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: moving}
workload: {api: "", INPUT}
workflow:
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/moving/{{ item.name }}"
    params: {limit: 3, FIRST, seed: "{{ item.seed }}", rows: "{{ item.rows }}", fail_from: "{{ item.fail_from }}",
      fail_pages: "{{ item.fail_pages }}", fail_status: "{{ item.status }}"}
    headers: {X-Attempt: "{{ attempt_key }}"}
    LOOP
    retry:
      - when: "{{ error.class == 'retryable' }}"
        then: {max_attempts: 3, delay: 1s, jitter: none}
      - when: "{{ response.more }}"
        then:
          max_attempts: 100
          ALONE
          next_call: {params: {NEXT}}
          COLLECT
          PAGE_SINK
          CALL_SINK
    STEP_SINK
output: "{{ fetch }}"
`

const movingLoopText = `loop:
      collection: "{{ items }}"
      batch: BATCH
      MODE
      dead_letter:
        sink: {tool: postgres, auth: pg, table: dead, RETRY, args: {item: "{{ result.index }}", status: "{{ error.status }}",
          attempts: "{{ result.attempts }}", collected: "{{ error.collected }}"}}
      END_SINK`

// playbook is the source.
func (m *movement) playbook() string {
	fill := map[string]string{"INPUT": "item: {}", "FIRST": "after: null", "NEXT": `after: "{{ response.next }}"`, "COLLECT": "collect: {path: rows}"}
	if m.offset {
		fill["FIRST"], fill["NEXT"] = "offset: 0", `offset: "{{ response.next_offset }}"`
	}
	if !m.collect {
		fill["COLLECT"] = ""
	}
	if m.of.alone {
		fill["ALONE"] = "pages_per_activity: 1"
	}
	end := "STEP_SINK"
	if m.loop {
		fill["INPUT"], fill["LOOP"], fill["MODE"], end = "items: []", movingLoopText, "mode: sequential", "END_SINK"
		if m.width > 0 {
			fill["MODE"] = fmt.Sprintf("mode: parallel\n      max_concurrency: %d", m.width)
		}
	}
	for _, s := range m.sinks {
		switch s.place {
		case placePage:
			fill["PAGE_SINK"] = "per_iteration: {" + m.sink(s) + "}"
		case placeCall:
			fill["CALL_SINK"] = m.sink(s)
		case placeEnd:
			fill[end] = m.sink(s)
		}
	}
	text := movingText
	for _, name := range []string{ // in this order: texts hold further names
		"INPUT", "FIRST", "LOOP", "MODE", "ALONE", "NEXT", "COLLECT", "PAGE_SINK", "CALL_SINK", "STEP_SINK", "END_SINK",
	} {
		text = strings.ReplaceAll(text, name, fill[name])
	}
	return strings.NewReplacer("BATCH", fmt.Sprint(m.batch), "RETRY", sinkRetry).Replace(text)
}

func (m *movement) sink(s sink) string {
	rows := `"{{ result }}"`
	if !m.collect {
		rows = `"{{ result.rows }}"`
	}
	return "sink: {" + strings.NewReplacer("TABLE", s.table(), "ROWS", rows).Replace(sinkKinds[s.kind]) + ", RETRY}"
}

// tables creates those of the sinks in one database or the other.
func (m *movement) tables(tool string) string {
	var text strings.Builder
	for _, s := range m.sinks {
		if !strings.HasPrefix(s.kind, tool) {
			continue
		}
		columns := map[holds]string{
			rowsOnce: "", lastVersions: ", PRIMARY KEY (collection, id)", rowsByKey: ", op text, PRIMARY KEY (op, id, version)",
		}[s.holds()]
		fmt.Fprintf(&text, "CREATE TABLE %s (collection text, id bigint, version bigint%s);\n", s.table(), columns)
	}
	return text.String()
}

// movingRound is one run of a movement.
type movingRound struct {
	stage

	movement *movement
	api      *demoapi.Server
}

func newMovingRound(t *testing.T, number int, seed uint64, of movingCase) *movingRound {
	t.Helper()
	r := &movingRound{stage: newStage(t, number, seed), api: testenv.DemoAPI(t)}
	r.db, r.queue = testenv.Postgres(t), r.env.NewTaskQueue()
	r.movement = newMovement(r.random, of)
	r.requests = func() int { return r.api.CountRequests("", "/") }
	r.made = func() string { return fmt.Sprintf("%d requests were made", r.requests()) }
	r.db.Exec(t, r.movement.tables("postgres")+
		"CREATE TABLE dead (item bigint, status bigint, attempts bigint, collected jsonb)")
	r.createSQLite("rows.db", r.movement.tables("sqlite"))
	return r
}

// surplus is how many reads were answered beyond the number that a path has at
// most: those of pages that were read before.
func (r *movingRound) surplus() int {
	n := 0
	for _, e := range r.movement.elements {
		asked := map[[2]int]bool{}
		for _, answer := range r.api.MovingAnswers("", e.name) {
			place := [2]int{answer.After, answer.Offset}
			if answer.Status == http.StatusOK && asked[place] {
				n++
			}
			asked[place] = asked[place] || answer.Status == http.StatusOK
		}
	}
	return n
}
