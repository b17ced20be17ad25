package interpreter_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

func TestLimiterSpacesTurns(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	limit := interpreter.RateLimit{Key: "api", Requests: 50, PerSeconds: 1}
	var limiter interpreter.Limiter
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
		lease := limiter.Lease(interpreter.LeaseRequest{Limit: limit, Count: step.count, PauseSeconds: step.pause}, start.Add(step.after))
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
	limit := interpreter.RateLimit{Key: "api", Requests: 50, PerSeconds: 1} // a turn each 22 ms
	var limiter interpreter.Limiter
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
		lease := limiter.Lease(interpreter.LeaseRequest{
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
	for _, limit := range []interpreter.RateLimit{
		{Requests: 1, PerSeconds: 1}, {Requests: 5, PerSeconds: 1}, {Requests: 50, PerSeconds: 1}, {Requests: 7, PerSeconds: 60},
	} {
		random := rand.New(rand.NewPCG(1, uint64(limit.Requests)))
		start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		var limiter interpreter.Limiter
		var used []time.Time
		now := start
		for len(used) < 500 {
			now = now.Add(time.Duration(random.Int64N(int64(limit.Per() / 3))))
			lease := limiter.Lease(interpreter.LeaseRequest{Limit: limit, Count: 1 + random.IntN(20), AfterSeconds: random.Float64() / 10, WithinSeconds: 1}, now)
			for i := range *lease.Turns {
				if random.IntN(4) > 0 { // else its worker is dead
					late := time.Duration(random.Int64N(int64(limit.Slack())))
					used = append(used, lease.At.Add(time.Duration(i)*lease.Interval()+late))
				}
			}
		}
		slices.SortFunc(used, time.Time.Compare)
		for i := limit.Requests; i < len(used); i++ {
			require.Greater(t, used[i].Sub(used[i-limit.Requests]), limit.Per())
		}
	}
}
