package oracle_test

import (
	"fmt"
	"slices"
	"time"

	"reprise/internal/observe/runs"
)

// ends is a call that ends with this outcome; the policy is the one that it matched.
func (c *predictedCall) ends(out outcome, p *policy) *ended {
	if out.failure == nil {
		c.limited = out.cut
		return c.lastPage(out, p, out.cut)
	}
	if p == nil || !p.ignore {
		return c.failsWith(out, p)
	}
	data := c.data()
	if !c.got {
		var err error
		if data, err = render(p.result, c.names(out)); err != nil {
			return c.fails(c.expression())
		}
	}
	for i := range c.s.retry {
		if c.s.retry[i] == p {
			c.tallies[i].matched = true
		}
	}
	return c.written(out, data, false)
}

// exhausted is a call whose policy has used up what it may do.
func (c *predictedCall) exhausted(p *policy, out outcome) *ended {
	word := p.onExhausted
	switch {
	case out.failure != nil && word == "succeed":
		data := c.data()
		if p.result != nil && !c.got {
			var err error
			if data, err = render(p.result, c.names(out)); err != nil {
				return c.fails(c.expression())
			}
		}
		return c.written(out, data, true)
	case out.failure != nil:
		out.failure.exhausted = true
		return c.failsWith(out, p)
	case p.next != nil && word != "fail":
		c.limited = word != "succeed"
		return c.lastPage(out, p, c.limited)
	case word == "succeed": // what was polled for last is no page
		return c.succeeds(out, p, true)
	}
	if p.next != nil {
		part, failed := c.collects(c.s.collectOf(p), out.data)
		if failed != nil {
			return c.fails(failed)
		}
		if c.writes(p.page, c.pageID(), c.names(out), part) != nil { // what failed first is told, and ends the sinks
			p = nil
		}
	}
	f := &failure{kind: "exhausted", class: "final", attempt: c.all, exhausted: true}
	return c.failsWith(outcome{failure: f}, p)
}

// lastPage takes the page in that ends the call.
func (c *predictedCall) lastPage(out outcome, p *policy, truncated bool) *ended {
	by := c.used
	if by == nil {
		by = c.s.collecting()
	}
	writes := c.paged
	if writes == nil {
		for _, each := range c.s.retry {
			if each.page != nil {
				writes = each
				break
			}
		}
	}
	if p != nil && p.collect != nil {
		by = p.collect
	}
	if p != nil && p.page != nil {
		writes = p
	}
	sc := c.names(out)
	part, failed := c.collects(by, out.data)
	if failed == nil && writes != nil {
		failed = c.writes(writes.page, c.pageID(), sc, part)
	}
	if failed != nil {
		return c.fails(failed)
	}
	return c.succeeds(out, p, truncated)
}

// succeeds is a call that ends well.
func (c *predictedCall) succeeds(out outcome, p *policy, truncated bool) *ended {
	data := c.data()
	if p != nil && p.result != nil && !p.ignore {
		var err error
		if data, err = render(p.result, c.names(out)); err != nil {
			return c.fails(c.expression())
		}
	}
	return c.written(out, data, truncated)
}

// written writes what is written once per call.
func (c *predictedCall) written(out outcome, data any, truncated bool) *ended {
	if out.failure != nil {
		out = outcome{data: c.last} // it is ignored, or a success by now
	}
	out.partial = out.partial || c.limited
	sc := c.names(out)
	for i, p := range c.s.retry {
		if p.sink == nil || p.next == nil && p.collect == nil && !c.tallies[i].matched {
			continue
		}
		if failed := c.writes(p.sink, c.id, sc, data); failed != nil {
			e := c.fails(failed)
			e.data, e.truncated = data, truncated // it was got, and could not be written; the language does not say what a step's name gives then
			return e
		}
	}
	return &ended{data: data, truncated: truncated}
}

// failsWith is a call that ends with the failure of an attempt.
func (c *predictedCall) failsWith(out outcome, p *policy) *ended {
	if out.failure.page == 0 {
		out.failure.page = c.page
	}
	sc := c.names(out)
	e := c.fails(out.failure)
	if p != nil {
		_ = c.writes(p.sink, c.id, sc, c.collected()) // what failed first is told
	}
	return e
}

func (c *predictedCall) collected() any {
	if c.got {
		return c.pages
	}
	return nil
}

// fails is a call that ends badly. Its error has what was collected.
func (c *predictedCall) fails(f *failure) *ended {
	if c.got {
		f.collected, f.has = c.pages, true
	}
	return &ended{failure: f}
}

// writes writes to a sink, with its own policies.
func (c *predictedCall) writes(s *sink, id string, sc scope, result any) *failure {
	if s == nil {
		return nil
	}
	at, failed := c.o.writes(s, id, sc.with(scope{"result": result}), c.now)
	c.now = at
	if failed != nil {
		failed.attempt = c.all
	}
	return failed
}

// writes is one write, and when it ended.
func (o *oracle) writes(s *sink, id string, sc scope, at time.Duration) (time.Duration, *failure) {
	args, err := render(s.args, sc)
	if err != nil {
		return at, &failure{kind: "expression", class: "final", deaf: true}
	}
	if args, err = s.shaped(args, sc); err != nil {
		return at, &failure{kind: "expression", class: "final", deaf: true}
	}
	if s.tool == "file" || s.tool == "sqlite" {
		at = o.holds(at)
		o.emits(sinksAction + " started")
		o.emits(sinksAction + " completed")
		o.emits(runs.SinkCompleted)
		if s.tool == "sqlite" {
			o.writesRows(s, args)
			return at, nil
		}
		o.files[s.path] = append(o.files[s.path], canonical(normal(args)))
		return at, nil
	}
	to, err := render(s.url, sc)
	if err != nil {
		return at, &failure{kind: "expression", class: "final", deaf: true}
	}
	below := &step{name: s.place, tool: "http", method: "POST", url: literal{to}, body: literal{normal(args)}, retry: s.retry, writes: true}
	c := &predictedCall{o: o, s: below, scope: sc, id: id + " sink " + s.place, now: at, tallies: make([]tally, len(s.retry))}
	e := c.run()
	if e.failure != nil {
		o.emits(runs.SinkFailed)
		return c.now, &failure{kind: "sink", class: e.failure.class, status: e.failure.status, exhausted: e.failure.exhausted, deaf: true}
	}
	o.emits(runs.SinkCompleted)
	return c.now, nil
}

// iteration is how one element of a loop ended.
type iteration struct {
	ended
	element any
	begun   bool
}

// elements are those of a loop, in order; it is false where the collection is none.
func (l *loop) elements(sc scope) ([]any, bool) {
	collection, err := render(l.collection, sc)
	if err != nil {
		return nil, false
	}
	if list, ok := collection.([]any); ok {
		return list, true
	}
	pairs, ok := collection.(map[string]any)
	if !ok {
		return nil, false
	}
	all := make([]any, 0, len(pairs))
	for key, value := range pairs {
		all = append(all, map[string]any{"key": key, "value": value})
	}
	slices.SortFunc(all, func(a, b any) int {
		x, y := a.(map[string]any)["key"].(string), b.(map[string]any)["key"].(string)
		if x < y {
			return -1
		}
		return 1
	})
	return all, true
}

// loop runs a step once per element.
func (o *oracle) loop(s *step, sc scope, id string, at time.Duration) stepEnded {
	elements, ok := s.loop.elements(sc)
	if !ok { // anything else fails the step
		return stepEnded{status: "failed", failure: &failure{kind: "expression", class: "final"}, at: at}
	}
	all := make([]iteration, len(elements))
	now, last, spent := at, at, false
	endedSoFar, failedSoFar := 0, 0
	for i, element := range elements {
		all[i].element = element
		if spent {
			continue
		}
		from := now
		if s.loop.parallel {
			from = at
		}
		all[i].begun = true
		all[i].ended = o.iteration(s, sc, element, i, len(elements), id, from)
		now = all[i].at
		last = max(last, now)
		endedSoFar++
		if all[i].failure != nil {
			failedSoFar++
		}
		if b := s.loop.budget; b != nil && endedSoFar >= b.samples && float64(failedSoFar) > b.rate*float64(endedSoFar) {
			spent = true
		}
	}
	o.crowded = o.crowded || s.loop.crowded(len(elements))
	return s.aggregate(all, spent, last)
}

// crowded says that iterations wait for others: when they begin is not predicted. Where
// a whole batch does not fit the language does not say whether a smaller one may begin.
func (l *loop) crowded(n int) bool {
	places := l.places()
	batch, _ := l.batch.(int)
	return l.parallel && (n > places || batch > 1 && (n+batch-1)/batch > max(1, places/batch))
}

func (l *loop) places() int {
	if l.concurrency > 0 {
		return l.concurrency
	}
	return 10
}

func (o *oracle) iteration(s *step, sc scope, element any, i, size int, id string, at time.Duration) ended {
	sc = sc.with(scope{
		s.loop.element: element,
		"_loop":        map[string]any{"index": i, "count": i + 1, "size": size},
	})
	id = fmt.Sprintf("%s index %d", id, i)
	if o.below == 0 {
		o.item.index = i
		defer func() { o.item.index = -1 }()
	}
	o.emits(runs.IterationStarted)
	e := o.elementOf(s, sc, id, at)
	if e.failure != nil {
		o.emits(runs.IterationFailed)
	} else {
		o.emits(runs.IterationCompleted)
	}
	return e
}

// elementOf is the call of an iteration and the sink behind it.
func (o *oracle) elementOf(s *step, sc scope, id string, at time.Duration) ended {
	e := o.call(s, sc, id, at)
	if e.failure != nil || s.loop.sink == nil {
		return e
	}
	until, failed := o.writes(s.loop.sink, id, sc.with(e.seen).with(scope{"result": e.data}), e.at)
	e.at = until
	if failed != nil {
		e.failure, e.data = e.sinkFailed(failed), nil
	}
	return e
}

// sinkFailed is the failure of a sink behind the call: it tells what was collected too.
func (e ended) sinkFailed(f *failure) *failure {
	f.attempt, f.collected, f.has = e.attempts, e.collected, e.has
	return f
}

// aggregate is the result of a loop.
func (s *step) aggregate(all []iteration, spent bool, at time.Duration) stepEnded {
	results, errs := []any{}, []any{}
	success, failed, truncated, cancelled := 0, 0, 0, 0
	partial := false
	for i, it := range all {
		results = append(results, it.data)
		switch {
		case !it.begun:
			cancelled++
		case it.failure != nil:
			failed++
			errs = append(errs, map[string]any{
				"index": i, "element": it.element, "error": it.failure.object(), "attempts": it.attempts,
			})
			results[i] = nil
		default:
			success++
			partial = partial || it.partial
		}
		if it.truncated && it.failure == nil {
			truncated++
		}
	}
	if s.loop.statsOnly {
		results = []any{}
	}
	stats := map[string]any{
		"total": len(all), "success": success, "failed": failed, "truncated": truncated, "cancelled": cancelled,
	}
	e := stepEnded{data: map[string]any{"results": results, "errors": errs, "stats": stats}, at: at, loop: stats}
	e.status = s.loop.status(success, len(all))
	if partial && e.status == "completed" {
		e.status = "partial_success"
	}
	if spent {
		e.status = "failed"
	}
	if e.status == "failed" {
		e.failure = &failure{kind: "loop", class: "final"}
	}
	return e
}

func (l *loop) status(success, total int) string {
	completed, partial := 0.95, 0.5
	if l.completed > 0 {
		completed = l.completed
	}
	if l.partial > 0 {
		partial = l.partial
	}
	share := 1.0
	if total > 0 {
		share = float64(success) / float64(total)
	}
	switch {
	case share >= completed:
		return "completed"
	case share >= partial:
		return "partial_success"
	}
	return "failed"
}
