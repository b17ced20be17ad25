package interpreter_test

import (
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
		{name: "the first turn is at once", count: 3, delay: 0, expect: 62_400 * time.Microsecond},
		{name: "the next lease queues behind it", count: 2, delay: 62_400 * time.Microsecond, expect: 104 * time.Millisecond},
		{name: "turns nobody took are not saved up", after: time.Second, count: 1, delay: 0, expect: 1_020_800 * time.Microsecond},
		{name: "a pause holds everyone", after: time.Second, count: 1, pause: 2, delay: 2 * time.Second, expect: 3_020_800 * time.Microsecond},
		{name: "a shorter pause changes nothing", after: time.Second, count: 1, pause: 1, delay: 2_020_800 * time.Microsecond, expect: 3_041_600 * time.Microsecond},
	} {
		lease := limiter.Lease(interpreter.LeaseRequest{Limit: limit, Count: step.count, PauseSeconds: step.pause}, start.Add(step.after))
		require.Equal(t, step.delay, lease.Delay().Round(time.Microsecond), step.name)
		require.Equal(t, 20_800*time.Microsecond, lease.Interval(), step.name)
		require.Equal(t, start.Add(step.expect), limiter.Next, step.name)
	}
}
