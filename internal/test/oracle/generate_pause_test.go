package oracle_test

import (
	"math/rand/v2"
	"time"
)

// visits is how often a person comes where policies wait for one.
const visits = 40

// pauses has policies that are exhausted wait for a person, who comes every hour: some times
// to have the attempt made again, and then to end what waits.
func (g *generator) pauses() {
	g.Rand = rand.New(rand.NewPCG(g.round.seed, 7))
	if len(g.round.steers) > 0 || g.round.apart() || g.round.awaits() {
		return
	}
	waits := false
	for _, s := range g.round.book.steps {
		for _, p := range s.retry {
			if s.oldForm == "" && p.next == nil && !p.restart && p.repeats() && !g.one(4) {
				p.onExhausted, waits = "pause", true
				p.maxAttempts = 1 + g.IntN(2) // so that it happens
			}
		}
	}
	if !waits {
		return
	}
	again := g.IntN(6)
	for i := range visits {
		verb := "skip"
		if i < again {
			verb = "retry_now"
		}
		at := time.Duration(i+1)*(time.Hour+time.Minute) + 537*time.Millisecond // when no wait ends
		g.round.steers = append(g.round.steers, steer{at, verb})
	}
}

// awaitsPerson is a call whose policy is exhausted and waits for a person. The language does
// not say how many attempts follow a retry-now: the policy has all of its own again.
func (c *predictedCall) awaitsPerson(i int, p *policy, out outcome) *ended {
	for _, s := range c.o.round.steers {
		if s.at <= c.now {
			continue
		}
		if c.now = s.at; s.verb == "retry_now" {
			c.tallies[i].failures, c.tallies[i].successes, c.tallies[i].matches = 0, 0, 0
			return nil
		}
		if out.failure == nil {
			f := &failure{kind: "exhausted", class: "final", attempt: c.all, exhausted: true} // as without the wait
			return c.failsWith(outcome{failure: f}, p)
		}
		out.failure.exhausted = true
		return c.failsWith(out, p)
	}
	panic("nobody comes:\n" + c.o.round.describe())
}
