package workflows_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/ratelimit"
)

// away is an attempt that has given up its place: it comes back at a time, for a
// turn that was promised it.
func away(back, promised time.Duration) interpreter.PutOff {
	return interpreter.PutOff{Turn: &ratelimit.Reservation{At: began.Add(back), Promised: began.Add(promised), Since: began}}
}

// TestWaitsForTurns: a wait for a turn is a timer; it is no attempt, no failure
// and nothing that a policy sees, and the attempt comes back with its turn.
func TestWaitsForTurns(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]string{
		"a call":       "",
		"an iteration": "    loop: {collection: [1, 2], element: item, mode: parallel}\n",
		"in order":     "    loop: {collection: [1, 2], element: item}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turns := map[string]int{}
			s := newStage(t, func(_ int, in interpreter.ToolInput) (any, error) {
				key := in.AttemptKey
				turns[key]++
				switch {
				case turns[key] == 1:
					require.Nil(t, in.Turn)
					return away(time.Hour, 3*time.Hour), nil
				case turns[key] == 2:
					require.Equal(t, began.Add(3*time.Hour), in.Turn.Promised)
					return away(3*time.Hour, 3*time.Hour), nil
				case in.Attempt == 1:
					return nil, unavailable()
				}
				return map[string]any{"ok": true}, nil
			})
			result, _ := s.run(fmt.Sprintf(`
  - step: fetch
    tool: http
    url: "http://x/"
    rate_limit: {requests: 1, per: 1h}
    retry: [{when: error is defined, then: {max_attempts: 2, delay: 10h, jitter: none}}]
%s`, steps))
			require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
			iterations := 1
			if steps != "" {
				iterations = 2
			}
			require.Equal(t, 2*iterations, result.Steps[0].Attempts)
			require.Len(t, s.attempts, 6*iterations)
			for key, n := range turns {
				require.Equal(t, 3, n, key)
			}
			first := slices.IndexFunc(s.attempts, func(a attempt) bool { return a.in.Turn != nil && a.in.Turn.At.Equal(began.Add(3*time.Hour)) })
			require.Equal(t, 3*time.Hour, s.times()[first].Truncate(time.Minute), "the first attempt comes back")
		})
	}
}
