package oracle_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// story is several runs of one playbook that keeps a state between them, and what the source
// has in each.
type story struct {
	seed      uint64
	kind      string // of the cursors: time, date, integer, text
	format    string // of the cursors; "" is that of their type
	lag       int    // in units of the cursors
	open      bool   // range_start
	asc       bool   // row_order
	onMissing string
	key       bool   // incremental.key is id
	named     bool   // incremental.state is written
	mode      string // of the sink: insert, upsert, file, http, none
	sinkAt    string // page, call, step or loop
	also      bool   // a file gets the pages too
	size      int    // rows of a page
	most      int    // pages of a call
	restart   string
	retries   bool
	shops     []string // elements, nil without a loop
	parallel  bool
	runs      []*storyRun
	token     string // where answers have one in place of cursors: at the last page or at each; "" for cursors
	sql       bool   // the source is a table and not the API
	conflict  string // on_conflict
	limit     int    // requests of the rate limit in each span, 0 for none
	per       time.Duration
}

// storyRun is one run: what the source has, and what goes wrong.
type storyRun struct {
	rows     map[string][]*versioned // by shop
	trouble  map[string]trouble5xx
	gone     map[string]int // the page that is answered with 410 once
	full     bool           // a full refresh
	later    bool           // the step behind fails
	newest   map[string]int // the number of the token that the source gives at its end, 0 for none
	overlaps bool           // starts while the run before holds the state
}

// trouble5xx is a page that is answered with 503.
type trouble5xx struct{ page, times int }

// versioned is a row of the source.
type versioned struct {
	id      int
	at      position
	form    int // how the cursor is written
	version int
}

// position is where a row is among the others. There are three more kinds of cursors.
type position int

const (
	noCursor  position = -1 // the member is absent or null
	noType    position = -2 // a cursor of another type
	farFuture position = 1 << 20
)

var firstDay = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// value is a position as requests and states have it.
func (s *story) value(at position, form int) any {
	if s.token != "" {
		return fmt.Sprintf("t%d", int(at))
	}
	return s.cursor(at, form)
}

// cursor is a position as rows have it.
func (s *story) cursor(at position, form int) any {
	switch at {
	case noCursor:
		return nil
	case noType:
		return true
	}
	if s.format != "" {
		return s.formatted(at)
	}
	switch s.kind {
	case "integer":
		if form%2 == 1 {
			return fmt.Sprint(int(at))
		}
		return int(at)
	case "text":
		return fmt.Sprintf("k%08d", int(at))
	case "date":
		if at == farFuture {
			return "9999-12-31"
		}
		return firstDay.AddDate(0, 0, int(at)).Format(time.DateOnly)
	}
	if at == farFuture {
		return "9999-12-31T00:00:00Z"
	}
	moment := firstDay.Add(time.Duration(at) * time.Hour)
	east := moment.In(time.FixedZone("", 2*60*60))
	return []string{
		moment.Format(time.RFC3339), east.Format(time.RFC3339), moment.Format("2006-01-02T15:04:05.000Z07:00"),
		east.Format(timeForms[0]), moment.Format(timeForms[1]), east.Format(timeForms[2]),
	}[form%cursorForms]
}

// cursorForms is in how many forms the cursors of rows are written.
const cursorForms = 6

// timeForms are those of times beside RFC 3339: PostgreSQL's, one without seconds, and the basic one of ISO 8601.
var timeForms = []string{"2006-01-02 15:04:05-07", "2006-01-02T15:04Z07:00", "20060102T150405Z0700"}

// positionOf is the position that a request or a state names.
func (s *story) positionOf(text string) (position, error) {
	if s.token != "" {
		var n int
		_, err := fmt.Sscanf(text, "t%d", &n)
		return position(n), err
	}
	if s.format != "" {
		return s.positionOfFormatted(text)
	}
	switch s.kind {
	case "integer":
		var n int
		_, err := fmt.Sscanf(text, "%d", &n)
		return position(n), err
	case "text":
		var n int
		_, err := fmt.Sscanf(text, "k%d", &n)
		return position(n), err
	case "date":
		day, err := time.Parse(time.DateOnly, text)
		return position(day.Sub(firstDay) / (24 * time.Hour)), err
	}
	moment, err := time.Parse(time.RFC3339Nano, text)
	for _, form := range timeForms {
		if found, failed := time.Parse(form, text); failed == nil {
			moment, err = found, nil
		}
	}
	return position(moment.Sub(firstDay) / time.Hour), err
}

// object is the row as the source answers it.
func (s *story) object(r *versioned) map[string]any {
	o := map[string]any{"id": r.id, "at": s.cursor(r.at, r.form), "v": r.version}
	if r.at == noCursor && r.form%2 == 1 {
		delete(o, "at")
	}
	return o
}

// refusedVersion is the one that the table does not let in.
const refusedVersion = 99

// shopsOf are the elements, or one that is none.
func (s *story) shopsOf() []string {
	if s.shops == nil {
		return []string{"only"}
	}
	return s.shops
}

func (s *story) table() bool { return s.mode == "insert" || s.mode == "upsert" }

// newStory makes a story. The same seed makes the same one.
func newStory(seed uint64) *story {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 5))}
	s := &story{
		seed: seed, kind: pick(g, "time", "time", "date", "integer", "text"), asc: g.one(2), size: 1 + g.IntN(3), most: 100,
		onMissing: pick(g, "fail", "include", "exclude"), key: g.one(2), named: g.one(4), retries: g.one(2),
		mode: pick(g, "insert", "insert", "insert", "upsert", "upsert", "file", "http", "none"), sinkAt: pick(g, "page", "page", "call", "step"),
	}
	if s.kind != "text" && g.one(2) {
		s.lag = 1 + g.IntN(4)
	}
	s.open = s.lag > 0 && g.one(3)
	if g.one(3) {
		s.shops, s.parallel = []string{"a", "b", "c"}[:1+g.IntN(3)], g.one(2)
		if s.sinkAt == "step" {
			s.sinkAt = "loop"
		}
	}
	s.also = s.table() && s.sinkAt != "page" && g.one(4)
	if g.one(5) {
		s.most = 1 + g.IntN(3)
	}
	if g.one(3) && !s.also && (s.mode == "upsert" || s.sinkAt != "page" && s.mode != "insert") {
		s.restart = pick(g, "true", "full")
	}
	g.tellings(s)
	return s
}

// tellings are the runs: rows are added, changed and removed between them.
func (g *generator) tellings(s *story) {
	have := map[string][]*versioned{}
	next, clock := map[string]int{}, map[string]int{}
	for range 3 + g.IntN(2) {
		one := &storyRun{rows: map[string][]*versioned{}, trouble: map[string]trouble5xx{}, gone: map[string]int{}}
		for i, shop := range s.shopsOf() {
			have[shop] = g.changed(s, have[shop], 1000*i, next, clock, shop)
			one.rows[shop] = g.answered(s, have[shop])
			if g.one(4) {
				one.trouble[shop] = trouble5xx{1 + g.IntN(3), pick(g, 1, 1, 100)}
			}
			if s.restart != "" && g.one(2) {
				one.gone[shop] = 1 + g.IntN(3)
			}
		}
		one.full = len(s.runs) > 0 && s.mode != "insert" && g.one(5)
		one.later = g.one(5)
		s.runs = append(s.runs, one)
	}
}

// changed is what the source has by the next run.
func (g *generator) changed(s *story, had []*versioned, base int, next, clock map[string]int, shop string) []*versioned {
	var all []*versioned
	for _, r := range had {
		c := *r
		switch {
		case r.at == noType || r.version == refusedVersion || r.at < 0 && g.one(2): // somebody has mended it
			clock[shop] += g.IntN(2)
			c.at, c.version = position(clock[shop]), r.version%refusedVersion+1
		case g.one(6):
			clock[shop] += g.IntN(3)
			c.at, c.version = position(clock[shop]), r.version+1
		case g.one(12):
			continue
		}
		if g.one(4) {
			c.form = g.IntN(cursorForms)
		}
		all = append(all, &c)
	}
	for range g.IntN(cursorForms) {
		clock[shop] += g.IntN(3)
		next[shop]++
		r := &versioned{id: base + next[shop], at: position(clock[shop]), form: g.IntN(cursorForms), version: 1}
		switch {
		case g.one(10):
			r.at = max(0, r.at-position(g.IntN(cursorForms))) // it comes late
		case g.one(12):
			r.at = noCursor
		case g.one(40) && s.kind != "text":
			r.at = noType
		case g.one(25) && (s.kind == "time" || s.kind == "date"):
			r.at = farFuture
		case g.one(25) && s.table():
			r.version = refusedVersion
		}
		all = append(all, r)
	}
	return all
}

// answered are rows in the order in which they are answered.
func (g *generator) answered(s *story, all []*versioned) []*versioned {
	all = slices.Clone(all)
	if s.asc && !g.one(5) {
		slices.SortStableFunc(all, func(a, b *versioned) int { return int(a.at - b.at) })
	} else {
		g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return all
}

// source is the playbook.
func (s *story) source(name string) string {
	fetch := fields{{"step", bare("fetch")}}
	fetch = append(append(fetch, s.request()...), field{"incremental", s.incremental(name)}, field{"retry", s.policies()})
	if s.shops != nil {
		fetch = append(fetch, field{"loop", s.loop()})
	}
	if s.sinkAt == "step" && s.mode != "none" {
		fetch = append(fetch, field{"sink", s.sink()})
	}
	fetch = append(fetch, field{"next", bare("later")})
	steps := []any{fetch, fields{{"step", bare("later")}, {"tool", bare("http")}, {"url", bare(`"{{ api }}/later"`)}, {"headers", runHeader}}}
	if s.table() {
		key := ""
		if s.mode == "upsert" {
			key = " PRIMARY KEY"
		}
		create := fmt.Sprintf("CREATE TABLE IF NOT EXISTS orders (id INTEGER%s, at, v INTEGER CHECK (v <> %d))", key, refusedVersion)
		steps = append([]any{fields{{"step", bare("prepare")}, {"tool", bare("sqlite")}, {"path", bare("rows.db")}, {"statement", create}, {"next", bare("fetch")}}}, steps...)
	}
	if s.conflict != "" {
		next := steps[0].(fields)[0].value
		steps = append([]any{fields{{"step", bare("begin")}, {"tool", bare("http")}, {"url", bare(`"{{ api }}/begin"`)}, {"headers", runHeader}, {"next", next}}}, steps...)
	}
	return yaml(fields{
		{"apiVersion", bare("reprise/v1")},
		{"kind", bare("Playbook")},
		{"metadata", fields{{"name", bare(name)}}},
		{"workload", fields{{"api", ""}}},
		{"output", fields{{"fetch", bare(`"{{ fetch }}"`)}}},
		{"workflow", steps},
	})
}

// runHeader names the run that makes a request.
var runHeader = fields{{"X-Run", bare(`"{{ execution_id }}"`)}}

// request is what the step asks of its source.
func (s *story) request() fields {
	if s.sql {
		return s.query()
	}
	f := fields{{"tool", bare("http")}, {"url", mixed{"{{ api }}/src/", s.shopName()}}, {"headers", runHeader}}
	if s.conflict != "" {
		f = append(f, field{"timeout", bare("4m")})
	}
	if s.limit > 0 {
		f = append(f, field{"rate_limit", fields{{"requests", s.limit}, {"per", bare(s.per.String())}}})
	}
	return append(f, field{"params", fields{{"since", bare(`"{{ incremental.value }}"`)}}})
}

// incremental is what the playbook says of its state.
func (s *story) incremental(name string) fields {
	section := fields{{"cursor_path", bare("at")}, {"initial_value", s.value(0, 0)}, {"type", bare(s.kind)}}
	if s.token != "" {
		section = fields{{"token", bare(`"{{ response.token }}"`)}, {"initial_value", s.value(0, 0)}}
	}
	if s.format != "" {
		section = append(section, field{"format", s.format})
	}
	if s.conflict == "fail" || s.conflict != "" && s.named { // queue is the default
		section = append(section, field{"on_conflict", bare(s.conflict)})
	}
	switch {
	case s.lag > 0 && s.kind == "time":
		section = append(section, field{"lag", bare(fmt.Sprint(s.lag, "h"))})
	case s.lag > 0:
		section = append(section, field{"lag", s.lag})
	}
	if s.open {
		section = append(section, field{"range_start", bare("open")})
	}
	if s.asc {
		section = append(section, field{"row_order", bare("asc")})
	}
	if s.onMissing != "fail" {
		section = append(section, field{"on_missing", bare(s.onMissing)})
	}
	if s.key {
		section = append(section, field{"key", bare("id")})
	}
	if s.named {
		section = append(section, field{"state", s.stateTemplate(name)})
	}
	return section
}

func (s *story) shopName() any {
	if s.shops == nil {
		return "only"
	}
	return "{{ shop }}"
}

func (s *story) stateTemplate(name string) any {
	if s.shops == nil {
		return name + "/kept"
	}
	return name + "/kept/{{ shop }}"
}

// stateName is the name of the state of a shop, and of the workflow that may keep it.
func (s *story) stateName(name, shop string) (state, group string) {
	state, group = name+"/fetch", name+"/fetch"
	if s.named {
		state = name + "/kept"
	}
	if s.shops != nil {
		state += "/" + shop
	}
	if s.named {
		group = state
	}
	return state, group
}

func (s *story) loop() fields {
	f := fields{{"collection", bare("[" + strings.Join(s.shops, ", ") + "]")}, {"element", bare("shop")}}
	if s.parallel {
		f = append(f, field{"mode", bare("parallel")})
	}
	if s.sinkAt == "loop" && s.mode != "none" {
		f = append(f, field{"sink", s.sink()})
	}
	return f
}

// policies begin again, try again, and go from page to page.
func (s *story) policies() []any {
	var all []any
	if s.restart != "" {
		all = append(all, fields{{"when", bare(`"{{ error.status == 410 }}"`)}, {"then", fields{{"restart", bare(s.restart)}}}})
	}
	if s.retries {
		all = append(all, fields{{"when", bare(`"{{ error.class == 'retryable' }}"`)}, {"then", fields{{"max_attempts", 2}, {"delay", bare("10ms")}}}})
	}
	when, then := s.paging()
	if s.also {
		then = append(then, field{"per_iteration", fields{{"sink", fields{{"tool", bare("file")}, {"path", bare("pages.jsonl")}}}}})
	}
	switch {
	case s.mode == "none":
	case s.sinkAt == "page":
		then = append(then, field{"per_iteration", fields{{"sink", s.sink()}}})
	case s.sinkAt == "call":
		then = append(then, field{"sink", s.sink()})
	}
	return append(all, fields{{"when", when}, {"then", then}})
}

func (s *story) sink() fields {
	switch s.mode {
	case "insert":
		return fields{{"tool", bare("sqlite")}, {"path", bare("rows.db")}, {"table", bare("orders")}}
	case "upsert":
		return fields{{"tool", bare("sqlite")}, {"path", bare("rows.db")}, {"table", bare("orders")}, {"mode", bare("upsert")}, {"key", bare("id")}}
	case "file":
		return fields{{"tool", bare("file")}, {"path", bare("orders.jsonl")}}
	}
	return fields{{"tool", bare("http")}, {"method", bare("POST")}, {"url", bare(`"{{ api }}/in"`)}, {"body", bare(`"{{ result }}"`)}}
}
