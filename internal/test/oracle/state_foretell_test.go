package oracle_test

import (
	"fmt"
	"slices"
)

// predictedState is what is predicted of the state of a shop.
type predictedState struct {
	watermark position // 0 is none
	moved     bool
	forms     []string // in which rows had it
	written   map[string]bool
}

// predictedRuns is what is predicted of the runs of a story so far.
type predictedRuns struct {
	*story

	states map[string]*predictedState
	stored []*versioned
	files  map[string][]string // rows of sinks that are no table
}

// ranOnce is what is predicted of one run.
type ranOnce struct {
	status string
	kind   string // of the error
	reason string // its type, where it is predicted
	result any
	asked  map[string][]string // since and page, by shop
}

func (s *story) foretell() *predictedRuns {
	p := &predictedRuns{story: s, states: map[string]*predictedState{}, files: map[string][]string{}}
	for _, shop := range s.shopsOf() {
		p.states[shop] = &predictedState{written: map[string]bool{}}
	}
	return p
}

// calling is a call of a run under way.
type calling struct {
	*predictedRuns

	run       *storyRun
	shop      string
	state     *predictedState
	found     predictedState // the state as the call found it
	from      position
	rows      []*versioned // what was collected
	largest   position     // of the pages before
	asked     []string
	fails     string // kind of the error
	truncated bool
	shown     map[int]int // how often a page was answered with 503
	gone      bool
	given     int // the token of the last answer
}

// next predicts the next run.
func (p *predictedRuns) next(run *storyRun) ranOnce {
	out := ranOnce{status: "completed", asked: map[string][]string{}}
	var calls []*calling
	failed := 0
	for _, shop := range p.shopsOf() {
		c := p.call(run, shop)
		calls = append(calls, c)
		out.asked[shop] = c.asked
		if c.fails != "" {
			failed++
			out.kind = c.fails
		}
	}
	switch share := float64(len(calls)-failed) / float64(len(calls)); {
	case failed > 0 && p.shops == nil:
		out.status = "failed"
	case share < 0.5:
		out.status, out.kind = "failed", "loop"
	case share < 0.95, slices.ContainsFunc(calls, func(c *calling) bool { return c.truncated && c.fails == "" }):
		out.status = "partial_success"
	}
	if out.status != "failed" && run.later {
		out.status, out.kind = "failed", "http"
	}
	if p.mode == "none" && out.status == "completed" {
		for _, c := range calls {
			if !c.truncated {
				c.moves(c.rows)
			}
		}
	}
	out.result = p.result(calls)
	return out
}

// result is what the step gives.
func (p *predictedRuns) result(calls []*calling) any {
	var results []any
	for _, c := range calls {
		list := []any{}
		for _, r := range c.rows {
			list = append(list, p.object(r))
		}
		if p.shops == nil {
			return list
		}
		if c.fails != "" {
			results = append(results, nil)
			continue
		}
		results = append(results, list)
	}
	return results
}

// call predicts the call of a run for a shop.
func (p *predictedRuns) call(run *storyRun, shop string) *calling {
	state := p.states[shop]
	c := &calling{predictedRuns: p, run: run, shop: shop, state: state, found: *state, shown: map[int]int{}}
	c.from = 0
	if state.moved && !run.full {
		c.from = state.watermark - position(p.lag)
	}
	c.pages()
	if c.fails != "" {
		return c
	}
	switch {
	case p.mode == "none":
	case p.sinkAt == "page":
		if !p.asc && !c.truncated {
			c.moves(c.rows)
		}
	default:
		if !c.writes(c.rows) {
			c.fails = "sink"
			return c
		}
		if !c.truncated {
			c.moves(c.rows)
		}
	}
	return c
}

// pages reads them all, and writes those that are written one by one.
func (c *calling) pages() {
	for page := 1; ; page++ {
		rows, more, restarted := c.page(page)
		if c.fails != "" {
			return
		}
		if restarted {
			page = 0
			continue
		}
		rows, c.fails = c.known(rows)
		if c.fails != "" {
			return
		}
		if c.also {
			c.notes("pages.jsonl", rows)
		}
		if c.sinkAt == "page" && c.mode != "none" {
			if !c.writes(rows) {
				c.fails = "sink"
				return
			}
			if c.asc {
				c.moves(rows)
			}
		}
		c.rows = append(c.rows, rows...)
		if c.truncated = more && page == c.most; !more || c.truncated {
			return
		}
	}
}

// page reads one page, with all attempts it needs.
func (c *calling) page(page int) (rows []*versioned, more, restarted bool) {
	trouble := c.run.trouble[c.shop]
	for attempt := 1; ; attempt++ {
		c.asked = append(c.asked, fmt.Sprintf("%d page %d", c.from, page))
		switch {
		case c.run.gone[c.shop] == page && !c.gone:
			c.gone = true
			c.rows, c.largest = nil, 0
			if c.restart == "full" {
				c.from = 0
			}
			return nil, false, true
		case trouble.page == page && c.shown[page] < trouble.times:
			c.shown[page]++
			if !c.retries || attempt == 2 {
				c.fails = "http"
				return nil, false, false
			}
			continue
		}
		rows, more = c.pageOf(c.run, c.shop, c.from, page)
		c.given = c.tokenOf(c.run, c.shop, rows, more)
		return rows, more, false
	}
}

// answers says that the source answers a row.
func (s *story) answers(r *versioned, from position) bool {
	if s.token != "" {
		return r.at >= from // a token is that of the position behind what was answered
	}
	return r.at < 0 || r.at > from || r.at == from && !s.open
}

// known looks at the cursors of a page.
func (c *calling) known(rows []*versioned) (left []*versioned, fails string) {
	if c.token != "" {
		return rows, ""
	}
	largest := c.largest
	for _, r := range rows {
		switch {
		case r.at == noType, r.at == noCursor && c.onMissing == "fail":
			return nil, "incremental"
		case r.at == noCursor && c.onMissing == "exclude":
			continue
		case r.at != noCursor && c.asc && r.at < c.largest-position(c.lag):
			c.state.watermark, c.state.moved, c.state.forms = c.found.watermark, c.found.moved, c.found.forms
			return nil, "incremental"
		}
		largest = max(largest, r.at)
		left = append(left, r)
	}
	c.largest = largest
	return left, ""
}

// identity is what a row that comes again is known by.
func (s *story) identity(r *versioned) string {
	if s.key {
		return fmt.Sprintf("%d at %d", r.id, r.at)
	}
	return canonical(s.object(r))
}

// writes writes rows to the sink; all of them or none.
func (c *calling) writes(rows []*versioned) bool {
	if !c.table() {
		if c.mode != "none" {
			c.notes(c.mode, rows)
		}
		return true
	}
	var fresh []*versioned
	met := map[string]bool{}
	for _, r := range rows {
		id := c.identity(r)
		if c.mode == "insert" && (c.state.written[id] || met[id]) { // the language does not say it of rows without a cursor
			continue
		}
		met[id] = true
		fresh = append(fresh, r)
	}
	if slices.ContainsFunc(fresh, func(r *versioned) bool { return r.version == refusedVersion }) {
		return false
	}
	for _, r := range fresh {
		c.state.written[c.identity(r)] = true
		if c.mode == "upsert" {
			c.stored = slices.DeleteFunc(c.stored, func(old *versioned) bool { return old.id == r.id })
		}
		c.stored = append(c.stored, r)
	}
	return true
}

func (p *predictedRuns) notes(name string, rows []*versioned) {
	for _, r := range rows {
		p.files[name] = append(p.files[name], canonical(p.object(r)))
	}
}

// moves moves the watermark behind rows that are written.
func (c *calling) moves(rows []*versioned) {
	if c.token != "" {
		c.movesToken()
		return
	}
	for _, r := range rows {
		if r.at < 0 || r.at == farFuture || c.state.moved && r.at < c.state.watermark {
			continue
		}
		if !c.state.moved || r.at > c.state.watermark {
			c.state.forms = nil
		}
		c.state.watermark, c.state.moved = r.at, true
		c.state.forms = append(slices.Clone(c.state.forms), fmt.Sprint(c.cursor(r.at, r.form)))
	}
}
