package oracle_test

import (
	"slices"
	"time"
)

// parts are what can be left out of a round, in an order that its seed decides.
func (r *round) parts() []func() {
	all := []func(){func() { r.book.output = nil }}
	if len(r.steers) < visits { // else somebody has to come
		all = append(all, func() { r.steers = nil })
	}
	return append(all, r.book.parts()...)
}

func (g *graph) parts() (all []func()) {
	for i := len(g.steps) - 1; i > 0; i-- {
		s := g.steps[i]
		all = append(all, func() { g.without(s) })
	}
	for _, s := range g.steps {
		all = append(all, s.parts()...)
	}
	return all
}

// without leaves a step out, and the ways to it.
func (g *graph) without(gone *step) {
	g.steps = slices.DeleteFunc(g.steps, func(s *step) bool { return s == gone })
	for _, s := range g.steps {
		for i := range s.next {
			s.next[i].targets = slices.DeleteFunc(slices.Clone(s.next[i].targets), func(t target) bool { return t.step == gone.name })
		}
		s.next = slices.DeleteFunc(s.next, func(e entry) bool { return len(e.targets) == 0 })
	}
	if output, ok := g.output.(fields); ok {
		g.output = slices.DeleteFunc(slices.Clone(output), func(f field) bool { return f.name == gone.name })
	}
}

func (s *step) parts() []func() {
	all := []func(){
		func() { s.oldForm = "" }, func() { s.entry = false }, func() { s.sink = nil }, func() { s.idempotency = "" }, func() { s.collect = nil }, func() { s.rows, s.where = "", nil }, func() {
			s.vars = nil // by which its visits are counted
			s.next = slices.DeleteFunc(s.next, func(e entry) bool { return e.targets[0].step == s.name })
		},
	}
	for _, each := range append(s.callSinks(), s.sink) {
		all = append(all, func() { each.seesLess() })
	}
	for _, p := range s.retry {
		all = append(all, func() { s.retry = slices.DeleteFunc(s.retry, func(each *policy) bool { return each == p }) })
		all = append(all, func() { p.sink = nil }, func() { p.page = nil }, func() { p.stop = nil }, func() { p.onExhausted = "" },
			func() { p.endOnRepeat = false }, func() { p.onePerAct = false }, func() { p.collect = nil }, func() { p.maxElapsed = 0 },
			func() { p.list = nil }, func() { p.retryAfter = nil })
	}
	if l := s.loop; l != nil {
		all = append(all, func() { l.batch = nil }, func() { l.budget = nil }, func() { l.sink = nil }, func() { l.parallel = false },
			func() { l.completed, l.partial = 0, 0 })
		if list, ok := l.collection.([]any); ok {
			for n := len(list) - 1; n > 0; n-- {
				all = append(all, func() { l.collection = list[:min(n, len(l.collection.([]any)))] })
			}
		}
	}
	if s.below != nil {
		all = append(all, s.below.parts()...)
	}
	return all
}

// seesLess leaves out of a sink what it sees beside the result.
func (s *sink) seesLess() {
	if s == nil {
		return
	}
	if args, ok := s.args.(fields); ok {
		s.args = slices.DeleteFunc(slices.Clone(args), func(f field) bool { return f.name == "also" || f.name == "element" })
	}
}

// shrink leaves out of a round what the disagreement does not need.
func shrink(seed uint64, build func(uint64) *round, found func(*round) disagreements) (*round, disagreements) {
	var gone []int
	last := build(seed)
	d := found(last)
	until := time.Now().Add(*shrinkFlag)
	for i := range last.parts() {
		if time.Now().After(until) {
			break
		}
		r := build(seed)
		parts := r.parts()
		for _, n := range gone {
			parts[n]()
		}
		parts[i]()
		if now := found(r); len(now) > 0 && !now.refused() {
			gone, last, d = append(gone, i), r, now
		}
	}
	return last, d
}
