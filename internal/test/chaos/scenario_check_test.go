package chaos_test

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhatIsDue: the figures that rounds are held to, for one item.
func TestWhatIsDue(t *testing.T) {
	t.Parallel()
	script := []answer{
		{Status: http.StatusOK, Pending: true},
		{Status: http.StatusTooManyRequests, RetryAfter: 5 * time.Second},
		{Status: http.StatusServiceUnavailable},
		{Status: http.StatusOK, Page: 1, More: true},
		{Status: http.StatusOK, Page: 2, More: true},
		{Status: http.StatusNotFound},
	}
	var requests, asked []int
	var waits []time.Duration
	for attempt := 1; attempt <= len(script); attempt++ {
		requests = append(requests, requestOf(script, attempt))
		asked = append(asked, pageOf(script, attempt))
		waits = append(waits, waitAfter(script, attempt))
	}
	require.Equal(t, []int{1, 2, 2, 2, 3, 4}, requests)
	require.Equal(t, []int{1, 1, 1, 1, 2, 3}, asked)
	require.Equal(t, []time.Duration{0, 5 * time.Second, 2 * time.Second, 0, 0, 0}, waits)

	well := []answer{{Status: http.StatusServiceUnavailable}, {Status: http.StatusOK, Page: 1}}
	s := &scenario{shape: shape{items: 2}, sink: "page", scripts: [][]answer{well, script}}
	require.Equal(t, []failure{{item: 1, status: 404, attempts: 6}}, s.failures())
	require.Equal(t, []any{pageRows(0, 1), nil}, s.results())
	require.Len(t, s.written(), len(rowsOf(0, 1))+len(rowsOf(1, 1))+len(rowsOf(1, 2)))
	due, least := s.dueWaits()
	require.Equal(t, []time.Duration{2 * time.Second, 5 * time.Second, 2 * time.Second}, due)
	require.Equal(t, 9*time.Second, least, "in sequence")
	s.parallel, s.sink = true, "loop"
	_, least = s.dueWaits()
	require.Equal(t, 7*time.Second, least, "side by side")
	require.Len(t, s.written(), len(rowsOf(0, 1)))

	require.True(t, s.writesAlone(true))
	require.True(t, s.writesAlone(false))
	s.scripts[1] = []answer{{Status: http.StatusOK, Page: 1, More: true}, {Status: http.StatusNotFound}}
	require.False(t, s.writesAlone(true), "one activity makes the attempts and writes the dead letter")
}

// TestScenariosFitTheirPolicies: what a seed draws never goes beyond what the
// playbook repeats, so that items end as their scripts say.
func TestScenariosFitTheirPolicies(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := newScenario(random, shape{parallel: seed%2 == 0, batch: 1, items: 4 + int(seed)%30, waits: 12})
		require.LessOrEqual(t, s.failed(), s.items/3)
		require.False(t, s.fails(0))
		require.True(t, s.fails(1))
		require.False(t, s.fails(s.items-1))
		waits, _ := s.dueWaits()
		require.NotEmpty(t, waits)
		for _, script := range s.scripts {
			counted := 0
			for attempt, said := range script {
				switch {
				case said.Status == http.StatusOK:
					counted = 0
				case said.RetryAfter == 0:
					counted++
				}
				if attempt+1 < len(script) {
					require.Less(t, counted, maxAttempts, "seed %d: %+v", seed, script)
				}
			}
		}
	}
}
