package workflows_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestShardsDoNotWaitForTheSlowest: where one iteration of a shard waits for hours,
// the rest of the loop is done meanwhile; it is in the loop's result in its place.
func TestShardsDoNotWaitForTheSlowest(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string][]int{
		"the first":                       {0},
		"the last of a shard":             {399},
		"one of each shard":               {3, 401, 805},
		"more than the window has places": {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waited := map[int]bool{}
			s := newStage(t, func(_ int, in interpreter.ToolInput) (any, error) {
				if index := *in.Index; slices.Contains(slow, index) && !waited[index] {
					waited[index] = true
					return nil, rateLimited(time.Hour)
				}
				return *in.Index, nil
			})
			result, took := s.run(`
  - step: each
    tool: http
    url: http://x
    loop: {collection: "{{ 1..810 }}", mode: parallel, max_concurrency: 10, batch: 1}
    retry: [{when: error is defined, then: {max_attempts: 2, jitter: none}}]
output: "{{ [each.stats, each.results == 0..809] }}"
`)
			require.Equal(t, "completed", string(result.Status), "%+v", result.Error)
			require.Less(t, took, 2*time.Hour)
			stats := map[string]any{"total": 810, "success": 810, "failed": 0, "truncated": 0, "cancelled": 0}
			require.Equal(t, []any{stats, true}, result.Result.Data)
			first := map[int]time.Duration{}
			for _, attempt := range s.attempts {
				if _, is := first[*attempt.in.Index]; !is {
					first[*attempt.in.Index] = attempt.at
				}
			}
			require.Len(t, first, 810)
			for index, at := range first {
				require.Less(t, at, time.Hour, "iteration %d began after those that wait", index)
			}
		})
	}
}

// TestShardsThatDoNotLinger: a failure budget is that of the whole loop, so each shard
// begins with all that came before; so does one with a single place.
func TestShardsThatDoNotLinger(t *testing.T) {
	t.Parallel()
	for _, words := range []string{
		"mode: parallel, max_concurrency: 10, failure_budget: {rate: 0.5, min_samples: 500}",
		"mode: parallel, max_concurrency: 1", "mode: sequential",
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, func(_ int, in interpreter.ToolInput) (any, error) {
				if *in.Index == 399 && in.Attempt == 1 {
					return nil, rateLimited(time.Hour)
				}
				return *in.Index, nil
			})
			result, _ := s.run(fmt.Sprintf(`
  - step: each
    tool: http
    url: http://x
    loop: {collection: "{{ 1..420 }}", batch: 1, %s}
    retry: [{when: error is defined, then: {max_attempts: 2, jitter: none}}]
`, words))
			require.Equal(t, "completed", string(result.Status), "%+v", result.Error)
			for _, attempt := range s.attempts {
				require.Equal(t, *attempt.in.Index >= 400 || *attempt.in.Index == 399 && attempt.in.Attempt == 2, attempt.at >= time.Hour,
					"iteration %d began after %s", *attempt.in.Index, attempt.at)
			}
		})
	}
}
