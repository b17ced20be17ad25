package ratelimit_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/ratelimit"
)

func TestLimiterSpacesTurns(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	limit := ratelimit.Limit{Key: "api", Requests: 50, PerSeconds: 1}
	var limiter ratelimit.Limiter
	for _, step := range []struct {
		name   string
		after  time.Duration
		count  int
		pause  float64
		delay  time.Duration
		expect time.Duration // of the turn after this lease, from the start
	}{
		{name: "the first turn is at once", count: 3, delay: 0, expect: 66_000 * time.Microsecond},
		{name: "the next lease queues behind it", count: 2, delay: 66_000 * time.Microsecond, expect: 110 * time.Millisecond},
		{name: "turns nobody took are not saved up", after: time.Second, count: 1, delay: 0, expect: 1_022_000 * time.Microsecond},
		{name: "a pause holds everyone", after: time.Second, count: 1, pause: 2, delay: 2 * time.Second, expect: 3_022_000 * time.Microsecond},
		{name: "a shorter pause changes nothing", after: time.Second, count: 1, pause: 1, delay: 2_022_000 * time.Microsecond, expect: 3_044_000 * time.Microsecond},
	} {
		lease := limiter.Lease(ratelimit.LeaseRequest{Limit: limit, Count: step.count, PauseSeconds: step.pause}, start.Add(step.after))
		require.Equal(t, step.delay, lease.Delay().Round(time.Microsecond), step.name)
		require.Equal(t, 22_000*time.Microsecond, lease.Interval(), step.name)
		require.Equal(t, start.Add(step.expect), limiter.Next, step.name)
	}
}

// TestLimiterLeasesAShortWayAhead: a lease is of the turns that its holder can
// use, and of no more than lie within the time it names.
func TestLimiterLeasesAShortWayAhead(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	limit := ratelimit.Limit{Key: "api", Requests: 50, PerSeconds: 1} // a turn each 22 ms
	var limiter ratelimit.Limiter
	for _, step := range []struct {
		name          string
		after         time.Duration
		count         int
		pause         float64
		soon, within  float64
		turns         int
		first, expect time.Duration // from the start
	}{
		{name: "all that were asked for", count: 3, within: 1, turns: 3, first: 0, expect: 66_000 * time.Microsecond},
		{name: "as many as there are", count: 100, within: 0.11, turns: 3, first: 66_000 * time.Microsecond, expect: 132_000 * time.Microsecond},
		{name: "none, and no turn is gone", count: 5, within: 0.1, turns: 0, first: 132_000 * time.Microsecond, expect: 132_000 * time.Microsecond},
		{name: "one that begins at the edge", count: 5, within: 0.132, turns: 1, first: 132_000 * time.Microsecond, expect: 154_000 * time.Microsecond},
		{name: "not before it can be used", after: time.Second, count: 1, soon: 0.05, within: 1.05, turns: 1, first: 1050 * time.Millisecond, expect: 1_072_000 * time.Microsecond},
		{name: "a pause beyond it", after: time.Second, count: 9, pause: 5, within: 1, turns: 0, first: 6 * time.Second, expect: 6 * time.Second},
		{name: "what is not bounded", after: 6 * time.Second, count: 1000, turns: 1000, first: 6 * time.Second, expect: 28 * time.Second},
	} {
		now := start.Add(step.after)
		lease := limiter.Lease(ratelimit.LeaseRequest{
			Limit: limit, Count: step.count, PauseSeconds: step.pause, AfterSeconds: step.soon, WithinSeconds: step.within,
		}, now)
		require.Equal(t, step.first-step.after, lease.Delay().Round(time.Microsecond), step.name)
		require.Equal(t, start.Add(step.expect), limiter.Next, step.name)
		if step.within == 0 {
			require.Nil(t, lease.Turns, step.name)
			require.Zero(t, lease.At, step.name)
			continue
		}
		require.Equal(t, step.turns, *lease.Turns, step.name)
		require.Equal(t, start.Add(step.first), lease.At, step.name)
	}
}

// TestLimitHoldsAcrossWorkers: workers lease turns and use them as late as they
// may, or die and use none; whatever they do, no time of the limit's length
// holds more requests than it allows.
func TestLimitHoldsAcrossWorkers(t *testing.T) {
	t.Parallel()
	for _, limit := range []ratelimit.Limit{
		{Requests: 1, PerSeconds: 1}, {Requests: 5, PerSeconds: 1}, {Requests: 50, PerSeconds: 1}, {Requests: 7, PerSeconds: 60},
	} {
		random := rand.New(rand.NewPCG(1, uint64(limit.Requests)))
		start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		var limiter ratelimit.Limiter
		var used []time.Time
		now := start
		for len(used) < 500 {
			now = now.Add(time.Duration(random.Int64N(int64(limit.Period() / 3))))
			lease := limiter.Lease(ratelimit.LeaseRequest{Limit: limit, Count: 1 + random.IntN(20), AfterSeconds: random.Float64() / 10, WithinSeconds: 1}, now)
			for i := range *lease.Turns {
				if random.IntN(4) > 0 { // else its worker is dead
					late := time.Duration(random.Int64N(int64(limit.SlotTolerance())))
					used = append(used, lease.At.Add(time.Duration(i)*lease.Interval()+late))
				}
			}
		}
		slices.SortFunc(used, time.Time.Compare)
		for i := limit.Requests; i < len(used); i++ {
			require.Greater(t, used[i].Sub(used[i-limit.Requests]), limit.Period())
		}
	}
}

// asking is one request for turns, and what it is to get.
type asking struct {
	name            string
	after           time.Duration // from the start
	count           int
	due, fresh      int
	before          bool // by a holder that knows no promises
	pause, asked    float64
	turns           int
	first, next     time.Duration // from the start
	promised        int
	promise, behind time.Duration // the first promise, and the end of all
}

// TestLimiterPromisesTurns: who gets no turn is promised one, and who asks later
// goes behind, unless nobody comes for what was promised.
func TestLimiterPromisesTurns(t *testing.T) {
	t.Parallel()
	const s, ms = time.Second, time.Millisecond
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	limit := ratelimit.Limit{Key: "api", Requests: 1, PerSeconds: 1} // a turn each 1.1 s
	for name, askings := range map[string][]asking{
		"those who are promised go first": {
			{name: "one turn within the second, two promises", count: 3, fresh: 3, turns: 1, first: 0, next: 1100 * ms, promised: 2, promise: 1100 * ms, behind: 3300 * ms},
			{name: "who comes later goes behind", after: 500 * ms, count: 1, fresh: 1, first: 1100 * ms, next: 1100 * ms, promised: 1, promise: 3300 * ms, behind: 4400 * ms},
			{name: "whose time is to come gets no second promise", after: 600 * ms, count: 2, first: 1100 * ms, next: 1100 * ms, behind: 4400 * ms},
			{name: "whose time has come gets its turn", after: 600 * ms, count: 2, due: 1, fresh: 1, turns: 1, first: 1100 * ms, next: 2200 * ms, promised: 1, promise: 4400 * ms, behind: 5500 * ms},
			{name: "a holder of before asks as before", after: 1500 * ms, count: 2, before: true, turns: 1, first: 2200 * ms, next: 3300 * ms, behind: 5500 * ms},
		},
		"behind the promised there is room": {
			{name: "a promise", count: 2, fresh: 2, turns: 1, first: 0, next: 1100 * ms, promised: 1, promise: 1100 * ms, behind: 2200 * ms},
			{name: "who holds the last one is no bar to others", after: 1200 * ms, count: 2, due: 1, fresh: 1, turns: 1, first: 1200 * ms, next: 2300 * ms, promised: 1, promise: 2300 * ms, behind: 3400 * ms},
			{name: "all were served", after: 4 * s, count: 1, fresh: 1, turns: 1, first: 4 * s, next: 5100 * ms, behind: 3400 * ms},
		},
		"nobody comes": {
			{name: "many promises", count: 501, fresh: 501, turns: 1, first: 0, next: 1100 * ms, promised: 500, promise: 1100 * ms, behind: 551_100 * ms},
			{name: "they hold for the grace", after: 6 * s, count: 1, fresh: 1, first: 6 * s, next: 6 * s, promised: 1, promise: 551_100 * ms, behind: 552_200 * ms},
			{name: "and no longer: who is there is promised anew", after: 11 * s, count: 3, fresh: 1, turns: 1, first: 11 * s, next: 12_100 * ms, promised: 2, promise: 12_100 * ms, behind: 14_300 * ms},
		},
		"an answer asks for patience": {
			{name: "all wait", count: 1, fresh: 1, pause: 60, first: 60 * s, next: 60 * s, promised: 1, promise: 60 * s, behind: 61_100 * ms},
			{name: "and again", after: 61 * s, count: 1, due: 1, pause: 60, first: 121 * s, next: 121 * s, behind: 61_100 * ms},
		},
		"an answer asks for a year": {
			{name: "the others wait for minutes", count: 1, fresh: 1, pause: 300, asked: 31_536_000, first: 300 * s, next: 300 * s, promised: 1, promise: 300 * s, behind: 301_100 * ms},
			{name: "it is told more than once", after: 100 * s, count: 1, pause: 200, asked: 31_535_900, first: 300 * s, next: 300 * s, behind: 301_100 * ms},
			{name: "another is told so: it waits alone", after: 301 * s, count: 1, due: 1, pause: 300, asked: 31_536_000, turns: 1, first: 301 * s, next: 302_100 * ms, behind: 301_100 * ms},
			{name: "less is heard", after: 302 * s, count: 1, fresh: 1, pause: 30, first: 332 * s, next: 332 * s, promised: 1, promise: 332 * s, behind: 333_100 * ms},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var limiter ratelimit.Limiter
			for _, step := range askings {
				now := start.Add(step.after)
				lease := limiter.Lease(ratelimit.LeaseRequest{
					Limit: limit, Count: step.count, Due: step.due, Fresh: step.fresh, Promises: !step.before, WithinSeconds: 1,
					PauseSeconds: step.pause, AskedSeconds: step.asked,
				}, now)
				require.Equal(t, step.turns, *lease.Turns, step.name)
				require.Equal(t, start.Add(step.first), lease.At, step.name)
				require.Equal(t, start.Add(step.next), limiter.Next, step.name)
				require.Equal(t, step.promised, lease.Promised, step.name)
				if step.promised > 0 {
					require.Equal(t, start.Add(step.promise), lease.Promise, step.name)
				}
				if step.behind > 0 {
					require.Equal(t, start.Add(step.behind), limiter.Promised, step.name)
				}
			}
		})
	}
}

// TestPromisesAreHonored: attempts on many workers ask for more turns than there
// are, and come back, late at times, when their turns were promised. Each gets its
// turn about then, whoever came meanwhile, and no window holds more than the limit.
func TestPromisesAreHonored(t *testing.T) {
	t.Parallel()
	const attempts, tick = 300, 50 * time.Millisecond
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	limit := ratelimit.Limit{Key: "api", Requests: 2, PerSeconds: 1}
	random := rand.New(rand.NewPCG(3, 4))
	type attempt struct{ back, promised, turn time.Time }
	var limiter ratelimit.Limiter
	var all []*attempt
	served := 0
	for now := start; served < attempts; now = now.Add(tick) {
		require.Less(t, now.Sub(start), 10*time.Minute, "%d of %d were served", served, attempts)
		if len(all) < attempts && random.IntN(5) == 0 { // four a second
			all = append(all, &attempt{back: now})
		}
		for _, i := range random.Perm(len(all)) { // each on a worker of its own
			a := all[i]
			if !a.turn.IsZero() || now.Before(a.back) {
				continue
			}
			request := ratelimit.LeaseRequest{Limit: limit, Count: 1, Promises: true, WithinSeconds: 1}
			if a.promised.IsZero() {
				request.Fresh = 1
			} else {
				request.Due = 1
			}
			lease := limiter.Lease(request, now)
			switch {
			case *lease.Turns == 1:
				a.turn = lease.At
				served++
			case lease.Promised == 1:
				a.promised = lease.Promise
				a.back = lease.Promise.Add(-2*time.Second + time.Duration(random.Int64N(int64(3*time.Second))))
			}
		}
	}
	turns := make([]time.Time, 0, attempts)
	for i, a := range all {
		turns = append(turns, a.turn)
		if !a.promised.IsZero() {
			require.Less(t, a.turn.Sub(a.promised), 5*time.Second, "attempt %d", i)
		}
	}
	slices.SortFunc(turns, time.Time.Compare)
	for i := limit.Requests; i < len(turns); i++ {
		require.Greater(t, turns[i].Sub(turns[i-limit.Requests]), limit.Period())
	}
}
