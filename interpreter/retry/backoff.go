package retry

import (
	"cmp"
	"math"
	"time"

	"reprise/interpreter/playbook"
	"reprise/interpreter/ratelimit"
)

// maxNamedWaits bounds how often one call waits because the server requested it. Such waits do not count against
// max_attempts, so a server could otherwise delay a call forever.
const maxNamedWaits = 1000

// backoff is the wait schedule of a policy, with all defaults filled in. It is pure: delayAfter computes exact
// waits, and applyJitter gets its random number as an argument.
type backoff struct {
	strategy   playbook.Backoff
	initial    time.Duration
	max        time.Duration
	multiplier float64
	jitter     playbook.Jitter
}

// newBackoff returns the schedule of a policy for a failure or a success. Pages are fetched without a wait unless
// the author sets one. A poll without a configured wait waits as after a failure, but without jitter, since polling
// at once would only burden the server.
func newBackoff(then *playbook.Then, failure bool) backoff {
	b := backoff{
		strategy:   then.Backoff,
		initial:    valueOr(then.InitialDelay, playbook.DefaultInitialDelay),
		multiplier: valueOr(then.Multiplier, playbook.DefaultMultiplier),
		jitter:     then.Jitter,
	}
	b.strategy = cmp.Or(b.strategy, playbook.Exponential)
	if then.Delay != nil {
		b.strategy, b.initial = playbook.Fixed, *then.Delay
	}
	if !failure && then.NextCall != nil && !hasWait(then) {
		b.strategy = playbook.NoBackoff
	}
	b.max = valueOr(then.MaxDelay, max(playbook.DefaultMaxDelay, b.initial))
	if b.jitter == "" {
		b.jitter = playbook.JitterNone
		if failure {
			b.jitter = playbook.JitterProportional
		}
	}
	return b
}

// hasWait reports whether the policy sets any key that configures waits.
func hasWait(then *playbook.Then) bool {
	return len(then.Delays) > 0 || then.Multiplier != nil || then.Backoff != ""
}

func valueOr[T any](pointer *T, fallback T) T {
	if pointer == nil {
		return fallback
	}
	return *pointer
}

// delayAfter returns the wait after the n-th match, n from 1, before jitter. It is exact and never overflows,
// however large n is.
func (b backoff) delayAfter(n int) time.Duration {
	switch b.strategy {
	case playbook.NoBackoff:
		return 0
	case playbook.Fixed:
		return min(b.initial, b.max)
	case playbook.Linear:
		return b.boundDelay(float64(b.initial) * float64(n))
	case playbook.Exponential:
	}
	return b.boundDelay(float64(b.initial) * math.Pow(b.multiplier, float64(n-1)))
}

func (b backoff) boundDelay(nanoseconds float64) time.Duration {
	if b.initial == 0 {
		return 0 // also where a growth beyond all bounds makes 0 · ∞ of it
	}
	if nanoseconds >= float64(b.max) {
		return b.max
	}
	return time.Duration(nanoseconds)
}

// applyJitter applies jitter; random is in [0, 1). Proportional jitter returns U[0.75, 1.25) · delay, but at most
// max_delay; full jitter returns U[0, delay) (AWS Architecture Blog, "Exponential Backoff And Jitter").
func (b backoff) applyJitter(delay time.Duration, random float64) time.Duration {
	switch b.jitter {
	case playbook.JitterProportional:
		return b.boundDelay(float64(delay) * (0.75 + 0.5*random))
	case playbook.JitterFull:
		return time.Duration(float64(delay) * random)
	case playbook.JitterNone:
	}
	return delay
}

// namedWait returns the n-th consecutive wait that the server requested: at least the requested time, plus jitter,
// so that callers with the same time do not come back together.
func (b backoff) namedWait(retryAfter time.Duration, n int, random float64) time.Duration {
	if b.jitter == playbook.JitterNone {
		return retryAfter
	}
	spread := math.Min(math.Pow(2, float64(n-1))*float64(time.Second), float64(b.max))
	return retryAfter + ratelimit.ToDuration(random*spread/float64(time.Second))
}
