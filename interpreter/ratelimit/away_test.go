package ratelimit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/ratelimit"
)

// TestCallsBackWhoIsAway: turns that nobody takes are for those that wait elsewhere,
// the soonest first, as many as fill them for a while.
func TestCallsBackWhoIsAway(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	limit := ratelimit.Limit{Key: "api", Requests: 1, PerSeconds: 1} // a turn each 1.1 s
	at := func(seconds float64) time.Time {
		return start.Add(time.Duration(seconds * float64(time.Second))).Round(time.Millisecond)
	}
	away := func(from, to int, first float64) (all []ratelimit.Away) {
		for i := from; i < to; i++ {
			all = append(all, ratelimit.Away{Workflow: fmt.Sprint("w", i), Step: "fetch", Index: &i, At: at(first + 1.1*float64(i-from))})
		}
		return all
	}
	lease := func(l *ratelimit.Limiter, seconds float64) {
		l.Lease(ratelimit.LeaseRequest{Limit: limit, Count: 1, Due: 1, Promises: true, WithinSeconds: 1}, at(seconds))
	}
	var limiter ratelimit.Limiter
	require.Zero(t, limiter.CallAt())
	limiter.NoteAway(away(0, 3, 60))
	require.Empty(t, limiter.Away, "nobody has asked this limiter")

	lease(&limiter, 0)
	limiter.NoteAway(away(30, 60, 113))
	limiter.NoteAway(away(0, 30, 80))
	require.Equal(t, at(2.1), limiter.CallAt(), "a second after the turn that nobody takes")
	require.Empty(t, limiter.CallBack(at(2)))
	called := limiter.CallBack(at(2.1))
	require.Len(t, called, 19, "for 20 s")
	require.Equal(t, away(0, 19, 80), called, "the soonest first")
	require.Len(t, limiter.Away, 41)
	require.Equal(t, at(4.1), limiter.CallAt(), "they need time to come")

	lease(&limiter, 3) // they have come
	require.Empty(t, limiter.CallBack(at(4.1)))
	for second := 4; second < 18; second++ {
		lease(&limiter, float64(second))
		require.Empty(t, limiter.CallBack(at(float64(second))))
	}
	require.Len(t, limiter.CallBack(at(18)), 19, "the next ones come before those have had their turns")

	again := limiter.Away[0]
	again.At = at(200)
	limiter.NoteAway([]ratelimit.Away{again})
	require.Len(t, limiter.Away, 22, "who has gone away again is there once")
	require.Equal(t, again.Workflow, limiter.Away[21].Workflow)
	lease(&limiter, 150)
	limiter.Lease(ratelimit.LeaseRequest{Limit: limit, Count: 1, PauseSeconds: 5, Promises: true, WithinSeconds: 1}, at(150))
	require.Empty(t, limiter.CallBack(at(150)), "the others come by themselves")
	require.Len(t, limiter.Away, 1)
}

// TestNobodyIsCalledInOrder: who comes for each turn is not disturbed.
func TestNobodyIsCalledInOrder(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	limit := ratelimit.Limit{Key: "api", Requests: 10, PerSeconds: 10}
	var limiter ratelimit.Limiter
	for n := range 100 {
		now := start.Add(time.Duration(n) * limit.Interval())
		limiter.Lease(ratelimit.LeaseRequest{Limit: limit, Count: 1, Due: 1, Promises: true, WithinSeconds: 1}, now)
		limiter.NoteAway([]ratelimit.Away{{Workflow: fmt.Sprint(n), Step: "s", At: now.Add(time.Hour)}})
		require.Empty(t, limiter.CallBack(now))
	}
	require.Len(t, limiter.Away, 100)
}

// TestReportsThatNoWorkerSends passes mostAway and maxAwayName.
func TestReportsThatNoWorkerSends(t *testing.T) {
	t.Parallel()
	one := ratelimit.Away{Workflow: "run", Step: "fetch"}
	require.NoError(t, ratelimit.CheckAway([]ratelimit.Away{one}))
	for _, away := range [][]ratelimit.Away{
		slices.Repeat([]ratelimit.Away{one}, 1001), {{Step: "fetch"}}, {{Workflow: strings.Repeat("w", 1990), Step: "fetch-step-"}},
	} {
		require.Error(t, ratelimit.CheckAway(away))
	}
}

// TestCallsForFastLimits passes mostCalled: a limit of thousands calls that many at once.
func TestCallsForFastLimits(t *testing.T) {
	t.Parallel()
	const mostCalled = 100
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var limiter ratelimit.Limiter
	limiter.Lease(ratelimit.LeaseRequest{Limit: ratelimit.Limit{Key: "api", Requests: 1000, PerSeconds: 1}, Count: 1, Due: 1, Promises: true, WithinSeconds: 1}, start)
	var away []ratelimit.Away
	for i := range 3 * mostCalled {
		away = append(away, ratelimit.Away{Workflow: fmt.Sprint("w", i), Step: "fetch", At: start.Add(time.Hour)})
	}
	limiter.NoteAway(away)
	require.Len(t, limiter.CallBack(start.Add(time.Minute)), mostCalled)
	require.Len(t, limiter.Away, 2*mostCalled)
}
