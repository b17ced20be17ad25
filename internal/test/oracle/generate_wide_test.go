package oracle_test

import (
	"math/rand/v2"
	"time"
)

// newRound makes a round, and gives it what narrow rounds do not have. Its additions
// are drawn apart, so that a seed keeps what its narrow round was found for.
func newRound(seed uint64) *round {
	g := narrow(seed)
	g.round.wide = true
	g.Rand = rand.New(rand.NewPCG(seed, 2))
	g.widen(g.round.book)
	defer func() {
		g.moreWords()
		g.scopes()
		g.tables()
		g.shapes()
		g.pauses()
		g.Rand = rand.New(rand.NewPCG(seed, 9))
		g.requestedWaits(g.round.book)
		g.contributions()
	}()
	if g.one(8) && len(g.round.steers) == 0 && !g.round.apart() && !g.round.awaits() {
		g.round.steers = []steer{{time.Duration(g.IntN(6))*time.Second + 700*time.Millisecond, "skip"}}
	}
	return g.round
}

// widen adds to the policies of a playbook, and to those below it.
func (g *generator) widen(book *graph) {
	for _, s := range book.steps {
		for _, p := range s.retry {
			switch {
			case p.polls():
				g.widenPoll(s, p)
			case p.next != nil:
				g.widenPages(s, p)
			case p.onExhausted == "succeed" && g.one(2):
				p.result = pick[any](g, []any{}, fields{{"gave", name("error.status")}}, fields{{"after", name("_retry.count")}})
			}
		}
		g.widenSinks(s)
		if s.below != nil {
			g.depth++
			g.widen(s.below)
			g.depth--
		}
	}
}

// polls says that a policy asks the same again after a success.
func (p *policy) polls() bool {
	return p.next == nil && p.maxAttempts > 0 && p.jitter == "" && !p.restart && !p.ignore
}

// widenPoll lets a poll succeed that is given up, and write.
func (g *generator) widenPoll(s *step, p *policy) {
	if g.one(4) {
		p.onExhausted = "succeed"
	}
	if p.onExhausted == "succeed" && g.one(3) {
		p.result = fields{{"last", name("response.state")}, {"page", name("response.page")}}
	}
	if g.one(4) && p.onExhausted != "continue" {
		p.sink = g.givesUp(s)
	}
}

// widenPages gives pages that must be complete a sink, and those that end another result.
func (g *generator) widenPages(s *step, p *policy) {
	if p.onExhausted == "fail" && p.sink == nil && g.one(2) {
		p.sink = g.givesUp(s)
	}
	if g.one(6) && p.onExhausted != "continue" {
		p.result = fields{{"last", name("response.page")}, {"kept", filter{of: name("pages")}}}
	}
}

// givesUp is a sink that says whether the call has failed.
func (g *generator) givesUp(s *step) *sink {
	made := g.sink(s.who, true)
	made.args = fields{{"v", name("result")}, {"kind", name("error.kind")}, {"count", name("_retry.count")}}
	return made
}

// widenSinks has sinks say whether there is an error.
func (g *generator) widenSinks(s *step) {
	all := []*sink{s.sink}
	if s.loop != nil {
		all = append(all, s.loop.sink)
	}
	seen := map[*sink]bool{}
	for _, p := range s.retry {
		all = append(all, p.sink, p.page)
	}
	for _, each := range all {
		if each == nil || seen[each] || !g.one(4) {
			continue
		}
		seen[each] = true
		if args, ok := each.args.(fields); ok {
			each.args = append(args, field{"failed", defined{of: name("error")}})
		}
	}
}

// awaits says that an attempt waits for an answer from outside.
func (r *round) awaits() bool {
	for _, s := range r.book.steps {
		if s.tool == "webhook" {
			return true
		}
	}
	return false
}
