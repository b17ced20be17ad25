package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/testenv/testworker"
)

// TestRateLimitIsNotIdleAfterDeaths: workers die with attempts that were promised
// their turns. Whoever waits far from one comes back for those that are free.
func TestRateLimitIsNotIdleAfterDeaths(t *testing.T) {
	t.Parallel()
	const kills, each = 8, 4
	loop := paced{elements: 90, rate: 1, per: time.Second, batch: 1}
	var spawned time.Time // since when nobody was killed
	api := loop.disturbed(t, func(w *world, api *arrivals, worker *testworker.Process) {
		for n := 1; n <= kills; n++ {
			require.Eventually(t, func() bool { requests, _ := api.count(); return requests >= each*n }, patience, tick)
			worker.Kill()
			worker = spawnPatient(w)
			spawned = time.Now()
		}
	})
	// It takes Temporal 5 s to hand the limiter to another worker.
	alive := api.after(spawned)
	t.Logf("the first request %s after the last worker came, the last of %d elements %s later",
		alive.Sub(spawned).Round(time.Second), loop.elements, api.last().Sub(alive).Round(time.Second))
	for _, idle := range api.sparse(alive, 10*time.Second, 7) {
		t.Errorf("%d requests in the 10s from %s after the first one of the last worker", idle.requests, idle.from.Sub(alive).Round(100*time.Millisecond))
	}
}

// after is when the first request after a time came.
func (a *arrivals) after(since time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range a.at {
		if at.After(since) {
			return at
		}
	}
	return since
}

// last is when the last request came.
func (a *arrivals) last() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at[len(a.at)-1]
}

// sparseTime is a time with few requests.
type sparseTime struct {
	from     time.Time
	requests int
}

// sparse are the times of that length, after since and before the last request,
// with fewer requests than least.
func (a *arrivals) sparse(since time.Time, within time.Duration, least int) []sparseTime {
	a.mu.Lock()
	defer a.mu.Unlock()
	var found []sparseTime
	last := a.at[len(a.at)-1]
	for from := since; !from.Add(within).After(last); from = from.Add(within / 10) {
		n := 0
		for _, at := range a.at {
			if !at.Before(from) && at.Before(from.Add(within)) {
				n++
			}
		}
		if n < least {
			found = append(found, sparseTime{from, n})
		}
	}
	return found
}
