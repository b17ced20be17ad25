package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

const fetch = `
  - step: fetch
    tool: http
    url: "http://x/{{ item | default('') }}"
    retry:
`

func TestWaits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy string
		answer play
		status string
		at     []time.Duration // of the attempts
	}{
		"hours of exponential backoff": {
			"{when: error is defined, then: {max_attempts: 6, initial_delay: 1h, max_delay: 8h, jitter: none}}",
			always(unavailable()), "failed", hours(0, 1, 3, 7, 15, 23),
		},
		"linear": {
			"{when: error is defined, then: {max_attempts: 5, backoff: linear, initial_delay: 1h, max_delay: 3h, jitter: none}}",
			always(unavailable()), "failed", hours(0, 1, 3, 6, 9),
		},
		"fixed, until it works": {
			"{when: error is defined, then: {max_attempts: 50, delay: 10h, jitter: none}}",
			until(3, unavailable()), "completed", hours(0, 10, 20, 30),
		},
		"told to wait: uses no attempt": {
			"{when: error is defined, then: {max_attempts: 1, max_wait: 3h, jitter: none}}",
			until(4, rateLimited(2*time.Hour)), "completed", hours(0, 2, 4, 6, 8),
		},
		"told to wait longer than max_wait": {
			"{when: error is defined, then: {max_attempts: 5, max_wait: 1h, jitter: none}}",
			always(rateLimited(2 * time.Hour)), "failed", hours(0),
		},
		"told to wait longer than the default max_wait": {
			"{when: error is defined, then: {max_attempts: 5, jitter: none}}",
			always(rateLimited(time.Hour + time.Second)), "failed", hours(0),
		},
		"max_elapsed": {
			"{when: error is defined, then: {max_attempts: 50, delay: 4h, max_elapsed: 10h, jitter: none}}",
			always(unavailable()), "failed", hours(0, 4, 8),
		},
		"max_elapsed ends exactly with a wait": {
			"{when: error is defined, then: {max_attempts: 50, delay: 4h, max_elapsed: 8h, jitter: none}}",
			always(unavailable()), "failed", hours(0, 4, 8),
		},
		"told to wait past max_elapsed": {
			"{when: error is defined, then: {max_attempts: 5, max_wait: 9h, max_elapsed: 5h, jitter: none}}",
			always(rateLimited(3 * time.Hour)), "failed", hours(0, 3),
		},
		"polling": {
			"{when: response.ok is not defined, then: {max_attempts: 24, delay: 1h}}",
			func(n int, _ interpreter.ToolInput) (any, error) {
				if n < 4 {
					return map[string]any{"pending": n}, nil
				}
				return map[string]any{"ok": true}, nil
			}, "completed", hours(0, 1, 2, 3),
		},
		"a wait between pages": {
			"{when: response.next < 3, then: {delay: 2h, next_call: {params: {page: '{{ response.next }}'}}, collect: {}}}",
			func(n int, _ interpreter.ToolInput) (any, error) { return map[string]any{"next": n}, nil },
			"completed", hours(0, 2, 4),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, test.answer)
			result, took := s.run(fetch + "      - " + test.policy)
			require.EqualValues(t, test.status, result.Status, "%+v", result.Error)
			require.Equal(t, test.at, s.times())
			require.Equal(t, test.at[len(test.at)-1], took, "nothing waits at the end")
			require.Len(t, s.timers, len(test.at)-1)
			if result.Error != nil {
				require.True(t, result.Error.Exhausted)
			}
			operations := map[string]bool{}
			for i, attempt := range s.attempts {
				operations[attempt.in.OperationKey] = true
				require.Equal(t, i+1, attempt.in.Attempt)
			}
			if name != "a wait between pages" && name != "polling" {
				require.Len(t, operations, 1, "every attempt of a request has its operation key")
			}
		})
	}
}

// TestJitter: a wait is at least three quarters and less than five quarters of
// the delay, never over max_delay, and two calls draw different numbers.
func TestJitter(t *testing.T) {
	t.Parallel()
	s := newStage(t, always(unavailable()))
	s.run(`
  - step: fetch
    tool: http
    url: http://x
    loop: {collection: [1, 2, 3], mode: parallel}
    retry:
      - {when: error is defined, then: {max_attempts: 20, initial_delay: 1h, max_delay: 1h, backoff: fixed}}
`)
	require.Len(t, s.attempts, 3*20)
	different, before := map[time.Duration]bool{}, map[int]time.Duration{}
	for _, attempt := range s.attempts {
		if last, has := before[*attempt.in.Index]; has {
			wait := attempt.at - last
			require.GreaterOrEqual(t, wait, 45*time.Minute)
			require.LessOrEqual(t, wait, time.Hour)
			different[wait] = true
		}
		before[*attempt.in.Index] = attempt.at
	}
	require.Greater(t, len(different), 19)
}

// TestToldWaitsSpread: what is added to a told wait doubles its range each time.
func TestToldWaitsSpread(t *testing.T) {
	t.Parallel()
	s := newStage(t, until(8, rateLimited(time.Minute)))
	result, _ := s.run(fetch + "      - {when: error is defined, then: {max_attempts: 1, max_delay: 10s}}")
	require.EqualValues(t, "completed", result.Status)
	require.Len(t, s.timers, 8)
	added := time.Duration(0)
	for n, wait := range s.timers {
		require.GreaterOrEqual(t, wait, time.Minute)
		require.LessOrEqual(t, wait, time.Minute+min(time.Second<<n, 10*time.Second))
		added += wait - time.Minute
	}
	require.Positive(t, added)
}

func TestToldToWaitMoreThanThousandTimes(t *testing.T) {
	t.Parallel()
	s := newStage(t, always(rateLimited(time.Second)))
	result, took := s.run(fetch + "      - {when: error is defined, then: {max_attempts: 2, jitter: none}}")
	require.EqualValues(t, "failed", result.Status)
	require.True(t, result.Error.Exhausted)
	require.Len(t, s.attempts, 1001)
	require.Equal(t, 1000*time.Second, took)
}

// TestTimeoutOfTheRun: it counts from the start and ends waits.
func TestTimeoutOfTheRun(t *testing.T) {
	t.Parallel()
	for name, loop := range map[string]string{"call": "", "loop": "    loop: {collection: [1, 2, 3], mode: parallel, max_concurrency: 2}\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, always(unavailable()))
			result, took := s.run("timeout: 100m\nworkflow:\n" + `
  - step: fetch
    tool: http
    url: http://x
` + loop + `
    retry:
      - {when: error is defined, then: {max_attempts: 100, delay: 30m, jitter: none}}
    sink: {tool: http, url: http://sink}
`)
			require.EqualValues(t, "failed", result.Status)
			require.Equal(t, interpreter.KindTimeout, result.Error.Kind)
			require.Equal(t, "the run did not end within its timeout of 1h40m0s", result.Error.Message)
			require.Equal(t, 100*time.Minute, took)
			require.EqualValues(t, "cancelled", result.Steps[0].Status)
			require.Empty(t, s.written)
			calls := 1
			if loop != "" {
				calls = 3 // who waits holds no place
				require.Equal(t, interpreter.LoopStats{Total: 3, Cancelled: 3}, result.Steps[0].Loop.Stats)
			}
			require.Len(t, s.attempts, 4*calls)
		})
	}
}

func TestTimeoutThatIsNotReached(t *testing.T) {
	t.Parallel()
	s := newStage(t, until(2, unavailable()))
	result, took := s.run("timeout: 100m\nworkflow:\n" + `
  - step: fetch
    tool: http
    url: http://x
    retry:
      - {when: error is defined, then: {max_attempts: 100, delay: 30m, jitter: none}}
`)
	require.EqualValues(t, "completed", result.Status)
	require.Equal(t, time.Hour, took, "the run does not wait for its timeout")
}

// TestCancelInAWait: the wait ends, and nothing is attempted or written again.
func TestCancelInAWait(t *testing.T) {
	t.Parallel()
	s := newStage(t, always(unavailable()))
	var progress protocol.Progress
	s.env.RegisterDelayedCallback(func() {
		answer, err := s.env.QueryWorkflow(protocol.ProgressQuery)
		require.NoError(t, err)
		require.NoError(t, answer.Get(&progress))
		s.env.CancelWorkflow()
	}, 90*time.Minute)
	result, took := s.run(fetch + `
      - {when: error is defined, then: {max_attempts: 100, delay: 1h, jitter: none, sink: {tool: http, url: http://sink}}}
    sink: {tool: http, url: http://sink}
    next: {step: after}
  - {step: after, tool: http, url: http://after}
`)
	require.EqualValues(t, "cancelled", result.Status)
	require.Equal(t, 90*time.Minute, took)
	require.Equal(t, hours(0, 1), s.times())
	require.Empty(t, s.written)
	require.EqualValues(t, "cancelled", result.Steps[0].Status)
	require.Equal(t, 2, result.Steps[0].Attempts)
	require.EqualValues(t, "skipped", result.Steps[1].Status)
	require.Len(t, progress.Steps, 1)
	require.EqualValues(t, "retry_pending", progress.Steps[0].Status)
	require.Equal(t, "fetch: attempt 3 of 100 after 1h0m0s: HTTP 503", progress.Steps[0].Waiting)
	require.True(t, began.Add(2*time.Hour).Equal(progress.Steps[0].NextRetryAt))
}

// TestCancelInALoop: what has ended stays, the rest counts as cancelled.
func TestCancelInALoop(t *testing.T) {
	t.Parallel()
	s := newStage(t, func(_ int, in interpreter.ToolInput) (any, error) {
		switch *in.Index {
		case 0:
			return "fine", nil
		case 1:
			return nil, failure(interpreter.ErrorObject{Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Status: 404})
		}
		return nil, unavailable()
	})
	s.env.RegisterDelayedCallback(s.env.CancelWorkflow, 90*time.Minute)
	result, took := s.run(`
  - step: fetch
    tool: http
    url: http://x
    loop: {collection: [0, 1, 2, 3, 4, 5], mode: parallel, max_concurrency: 2}
    retry:
      - {when: error.status == 503, then: {max_attempts: 100, delay: 1h, jitter: none}}
    sink: {tool: http, url: http://sink}
`)
	require.EqualValues(t, "cancelled", result.Status)
	require.Equal(t, 90*time.Minute, took)
	require.Equal(t, interpreter.LoopStats{Total: 6, Success: 1, Failed: 1, Cancelled: 4}, result.Steps[0].Loop.Stats)
	require.Len(t, s.attempts, 6+4, "who waits holds no place: all begin, and four try again")
	require.Empty(t, s.written, "no sink after a cancel")
}

// TestWaitingReleasesTheSlot: while three iterations of a window of three
// wait, the others go on; who comes back takes a place before it attempts.
func TestWaitingReleasesTheSlot(t *testing.T) {
	t.Parallel()
	for _, batch := range []string{"", ", batch: 3"} {
		s := newStage(t, func(_ int, in interpreter.ToolInput) (any, error) {
			if *in.Index < 3 && in.Attempt == 1 {
				return nil, unavailable()
			}
			return *in.Index, nil
		})
		result, took := s.run(`
  - step: fetch
    tool: http
    url: http://x
    loop: {collection: [0, 1, 2, 3, 4, 5, 6, 7, 8], mode: parallel, max_concurrency: 3` + batch + `}
    retry:
      - {when: error is defined, then: {max_attempts: 3, delay: 60s, jitter: none}}
`)
		require.EqualValues(t, "completed", result.Status)
		require.Equal(t, 60*time.Second, took)
		require.Len(t, s.attempts, 12)
		for i, attempt := range s.attempts {
			want := time.Duration(0)
			if i >= 9 {
				want = 60 * time.Second
				require.Equal(t, 2, attempt.in.Attempt)
				require.Less(t, *attempt.in.Index, 3)
			}
			require.Equal(t, want, attempt.at, "attempt %d", i)
		}
		require.Equal(t, interpreter.LoopStats{Total: 9, Success: 9}, result.Steps[0].Loop.Stats)
	}
}

// TestLoopsAndWaits: a sequential loop adds its waits up, a parallel one does
// not.
func TestLoopsAndWaits(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]time.Duration{
		"sequential": 6 * time.Hour, "parallel": 2 * time.Hour, "sequential, batch: 2": 6 * time.Hour,
		"parallel, batch: 3": 2 * time.Hour,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			seen := map[int]int{}
			s := newStage(t, func(_ int, in interpreter.ToolInput) (any, error) {
				if seen[*in.Index]++; seen[*in.Index] <= 2 {
					return nil, unavailable()
				}
				return *in.Index, nil
			})
			result, took := s.run(`
  - step: fetch
    tool: http
    url: http://x
    loop: {collection: [a, b, c], mode: ` + mode + `}
    retry:
      - {when: error is defined, then: {max_attempts: 3, delay: 1h, jitter: none}}
`)
			require.EqualValues(t, "completed", result.Status)
			require.Equal(t, want, took)
			require.Len(t, s.attempts, 9)
		})
	}
}
