package retry_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
)

// always matches every outcome.
type always struct{}

func (always) When(*playbook.Policy) (bool, error)     { return true, nil }
func (always) StopWhen(*playbook.Policy) (bool, error) { return false, nil }

func (always) RetryAfter(*playbook.Policy) (time.Duration, string, error) { return 0, "", nil }

func ptr[T any](v T) *T { return &v }

// waits asks one policy about its n-th failure.
func waits(t testing.TB, then playbook.Then, n int, failure interpreter.ErrorObject, random float64) time.Duration {
	then.Repeats, then.MaxAttempts = true, ptr(math.MaxInt)
	counters := retry.NewCounters(1)
	counters.Policies[0].Failures = n - 1
	counters.NamedInRow = n - 1
	decision, err := retry.Decide([]*playbook.Policy{{Number: 1, Then: then}},
		interpreter.Outcome{Err: &failure}, &counters, always{}, tables.Started, func() float64 { return random })
	require.NoError(t, err)
	require.Equal(t, retry.RulingRepeats, decision.Ruling)
	return decision.Delay
}

// TestWaitsProperty draws many waits of every strategy and jitter: they keep
// their bounds, their mean is that of the formula, and none overflows.
func TestWaitsProperty(t *testing.T) {
	t.Parallel()
	const samples = 100_000
	failure := interpreter.ErrorObject{Kind: interpreter.KindTimeout}
	for _, backoff := range []playbook.Backoff{playbook.Exponential, playbook.Linear, playbook.Fixed} {
		for _, jitter := range []playbook.Jitter{playbook.JitterNone, playbook.JitterProportional, playbook.JitterFull, ""} {
			t.Run(string(backoff)+"/"+string(jitter), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(1, 2))
				ratio := 0.0
				for range samples {
					initial := time.Duration(rng.Int64N(int64(10 * time.Second)))
					most := time.Hour + initial // never the bound here: see below
					n := 1 + rng.IntN(8)
					exact := initial
					switch backoff {
					case playbook.Exponential:
						exact = initial << (n - 1)
					case playbook.Linear:
						exact = initial * time.Duration(n)
					}
					wait := waits(t, playbook.Then{Backoff: backoff, Jitter: jitter, InitialDelay: &initial, MaxDelay: &most}, n, failure, rng.Float64())
					low, high := 1.0, 1.0
					switch jitter {
					case playbook.JitterProportional, "":
						low, high = 0.75, 1.25
					case playbook.JitterFull:
						low = 0
					}
					// One nanosecond for the whole number that a wait is.
					if float64(wait) < low*float64(exact)-1 || float64(wait) > high*float64(exact)+1 {
						t.Fatalf("wait %d is %s, of %s", n, wait, exact)
					}
					if exact > 0 {
						ratio += float64(wait) / float64(exact) / samples
					}
				}
				want := 1.0
				if jitter == playbook.JitterFull {
					want = 0.5
				}
				require.InEpsilon(t, want, ratio, 0.01)
			})
		}
	}
}

// TestWaitsAreBounded goes far: no number of attempts makes a wait longer than
// max_delay, or negative.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	failure := interpreter.ErrorObject{Kind: interpreter.KindTimeout}
	for _, backoff := range []playbook.Backoff{playbook.Exponential, playbook.Linear, playbook.Fixed, playbook.NoBackoff, ""} {
		for _, jitter := range []playbook.Jitter{playbook.JitterNone, playbook.JitterProportional, playbook.JitterFull} {
			for _, n := range []int{1, 2, 62, 63, 64, 65, 1023, 1024, 1025, 1_000_000, math.MaxInt32} {
				for _, initial := range []time.Duration{0, 1, time.Millisecond, time.Hour, math.MaxInt64} {
					for _, most := range []*time.Duration{nil, ptr(time.Duration(0)), ptr(time.Minute), ptr(time.Duration(math.MaxInt64))} {
						bound := max(time.Minute, initial)
						if most != nil {
							bound = *most
						}
						then := playbook.Then{Backoff: backoff, Jitter: jitter, InitialDelay: &initial, MaxDelay: most, Multiplier: ptr(1e300)}
						for _, random := range []float64{0, 0.5, math.Nextafter(1, 0)} {
							wait := waits(t, then, n, failure, random)
							if initial == 0 || backoff == playbook.NoBackoff {
								bound = 0
							}
							if wait < 0 || wait > bound {
								t.Fatalf("%s %s: wait %d is %s, at most %s, from %s", backoff, jitter, n, wait, bound, initial)
							}
						}
					}
				}
			}
		}
	}
}

// TestToldWaits checks the spread above what the other side asked for.
func TestToldWaits(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	longest := waits(t, playbook.Then{MaxDelay: ptr(time.Duration(math.MaxInt64)), MaxWait: ptr(time.Duration(math.MaxInt64))},
		1_000_000, interpreter.ErrorObject{Kind: interpreter.KindHTTP, RetryAfter: ptr(1e300)}, 0.99)
	require.Equal(t, 2*365*24*time.Hour, longest, "an absurd wait does not overflow")
	for _, n := range []int{1, 2, 3, 6, 7, 20, 1000, 1_000_000} {
		for _, most := range []time.Duration{0, 10 * time.Second, time.Minute} {
			spread := min(math.Pow(2, float64(n-1))*float64(time.Second), float64(most))
			mean := 0.0
			const samples = 5_000
			for range samples {
				failure := interpreter.ErrorObject{Kind: interpreter.KindHTTP, Status: 429, RetryAfter: ptr(30.0)}
				wait := waits(t, playbook.Then{MaxDelay: &most, InitialDelay: ptr(time.Duration(0))}, n, failure, rng.Float64())
				if wait < 30*time.Second || float64(wait) > float64(30*time.Second)+spread {
					t.Fatalf("told wait %d is %s, max_delay %s", n, wait, most)
				}
				mean += float64(wait-30*time.Second) / samples
			}
			require.InDelta(t, spread/2, mean, spread/40+1, "n=%d max_delay=%s", n, most)
			exact := waits(t, playbook.Then{Jitter: playbook.JitterNone}, n,
				interpreter.ErrorObject{Kind: interpreter.KindHTTP, RetryAfter: ptr(30.0)}, 0.9)
			require.Equal(t, 30*time.Second, exact, "jitter: none waits exactly")
		}
	}
}

// TestToldTooOften bounds told waits: the 1,001st of a call exhausts the policy.
// It passes maxNamedWaits.
func TestToldTooOften(t *testing.T) {
	t.Parallel()
	counters := retry.NewCounters(1)
	policies := []*playbook.Policy{{Number: 1, Then: playbook.Then{Repeats: true, MaxAttempts: ptr(1), Jitter: playbook.JitterNone}}}
	for i := 1; i <= 1001; i++ {
		outcome := interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindHTTP, RetryAfter: ptr(1.0)}}
		decision, err := retry.Decide(policies, outcome, &counters, always{}, tables.Started, nil)
		require.NoError(t, err)
		require.Equal(t, i <= 1000, decision.Ruling == retry.RulingRepeats, "told wait %d", i)
		require.Equal(t, i > 1000, decision.Ruling.IsExhausted(), "told wait %d", i)
	}
}

// TestJitterIsUniform: waits below the cap fall evenly into their range. The
// chi-square of 20 bins stays below its 99.9 % quantile for 19 degrees of
// freedom; the source is seeded, so the figure is the same in every run.
func TestJitterIsUniform(t *testing.T) {
	t.Parallel()
	const (
		samples  = 100_000
		bins     = 20
		quantile = 43.82
	)
	failure := interpreter.ErrorObject{Kind: interpreter.KindTimeout}
	initial, most := 4*time.Second, time.Hour
	for _, backoff := range []playbook.Backoff{playbook.Exponential, playbook.Linear, playbook.Fixed} {
		for jitter, bounds := range map[playbook.Jitter][2]float64{
			playbook.JitterProportional: {0.75, 1.25}, playbook.JitterFull: {0, 1},
		} {
			t.Run(string(backoff)+"/"+string(jitter), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(3, 4))
				var counts [bins]int
				for range samples {
					wait := waits(t, playbook.Then{Backoff: backoff, Jitter: jitter, InitialDelay: &initial, MaxDelay: &most}, 1, failure, rng.Float64())
					place := (float64(wait)/float64(initial) - bounds[0]) / (bounds[1] - bounds[0])
					counts[min(int(place*bins), bins-1)]++
				}
				chi := 0.0
				for _, count := range counts {
					off := float64(count) - samples/bins
					chi += off * off / (samples / bins)
				}
				require.Less(t, chi, quantile, "%v", counts)
			})
		}
	}
}

// TestWithoutRandomnessThereIsNoJitter: waits are those of the policy, and those that the other side
// asks for.
func TestWithoutRandomnessThereIsNoJitter(t *testing.T) {
	t.Parallel()
	asked := 30.0
	for _, jitter := range []playbook.Jitter{"", playbook.JitterProportional, playbook.JitterFull, playbook.JitterNone} {
		policy := &playbook.Policy{Number: 1, Then: playbook.Then{Repeats: true, Jitter: jitter}}
		for _, row := range []struct {
			after *float64
			wait  time.Duration
		}{{nil, time.Second}, {&asked, 30 * time.Second}} {
			counters := retry.NewCounters(1)
			decision, err := retry.Decide([]*playbook.Policy{policy},
				interpreter.Outcome{Err: &interpreter.ErrorObject{Status: 503, RetryAfter: row.after}}, &counters, always{}, tables.Started, nil)
			require.NoError(t, err)
			require.Equal(t, row.wait, decision.Delay, "jitter %q", jitter)
		}
	}
}
