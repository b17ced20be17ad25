package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// limitedLoop calls the route of the demo API that answers 429 above a rate.
const limitedLoop = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: limited}
workflow:
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/limited"
    params: {rate_limit: %d, n: "{{ n }}"}
    headers: {X-Scenario: "{{ execution_id }}"}
    %s
    loop:
      collection: "{{ 1..%d }}"
      element: n
      mode: parallel
      max_concurrency: 60
      batch: 20
    retry:
      - when: "{{ error.class == 'rate_limited' }}"
        then: {max_attempts: 3}
output: "{{ fetch.stats }}"
`

func TestRateLimitIsShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	w.work() // a second worker shares the limit
	const items, rate = 120, 40
	run := w.start(fmt.Sprintf(limitedLoop, rate, fmt.Sprintf(`rate_limit: {requests: %d, key: "{{ api }}"}`, rate-2), items), nil)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result)
	require.Equal(t, map[string]any{"total": items, "success": items, "failed": 0, "truncated": 0, "cancelled": 0}, result.Result.Data)
	refused := 0
	for _, request := range w.api.Requests(run.GetID()) {
		if request.Status == 429 {
			refused++
		}
	}
	require.LessOrEqual(t, refused, items*5/100, "answers 429 with a declared limit")
}

func TestUndeclaredRateLimitExhaustsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	const items, rate = 60, 20
	result, err := w.run(fmt.Sprintf(limitedLoop, rate, "", items), nil)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result)
	require.Equal(t, map[string]any{"total": items, "success": items, "failed": 0, "truncated": 0, "cancelled": 0}, result.Result.Data)
}
