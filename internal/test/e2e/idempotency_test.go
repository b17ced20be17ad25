package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWritesHaveOneEffectEach writes to an API that stores what it is sent and
// then closes the connection without an answer, in a fifth of all calls.
func TestWritesHaveOneEffectEach(t *testing.T) {
	t.Parallel()
	const items = 400
	w := newWorld(t)
	w.work()
	run := w.start(fmt.Sprintf(`
apiVersion: reprise/v1
kind: Playbook
metadata: {name: writes}
workflow:
  - step: write
    tool: http
    method: POST
    url: "{{ api }}/api/v1/writes"
    params: {drop_every: 5}
    headers: {X-Scenario: "{{ execution_id }}"}
    body: {n: "{{ n }}"}
    loop:
      collection: "{{ 1..%d }}"
      element: n
      mode: parallel
      max_concurrency: 100
      batch: 50
    retry:
      - when: "{{ error.class == 'retryable' }}"
        then: {max_attempts: 3, delay: 0.1s}
output: "{{ write.stats }}"
`, items), nil)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, map[string]any{"total": items, "success": items, "failed": 0, "truncated": 0, "cancelled": 0}, result.Result.Data)
	effects := map[int]int{}
	for _, write := range w.api.Writes(run.GetID()) {
		body, ok := write.Body.(map[string]any)
		require.True(t, ok)
		effects[int(body["n"].(float64))]++
	}
	require.Len(t, effects, items, "every item is there")
	for n, count := range effects {
		require.Equal(t, 1, count, "effects of item %d", n)
	}
}
