package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"

	"reprise/internal/test/testenv/testworker"
)

// TestRateLimitIsNotIdleAfterDeaths: workers die with attempts that were promised their
// turns. Calls that wait for a later turn are called back for those that are free. With
// -soak there are more, and no 10 s may have fewer than 7 requests, which wants an idle
// machine.
func TestRateLimitIsNotIdleAfterDeaths(t *testing.T) {
	t.Parallel()
	const each = 4
	kills, loop := 3, paced{elements: 30, rate: 1, per: time.Second, batch: 1}
	if *soak {
		kills, loop.elements = 8, 90
	}
	var spawned time.Time // since when nobody was killed
	var told func() string
	api := loop.disturbed(t, func(w *world, api *arrivals, worker *testworker.Process) {
		for n := 1; n <= kills; n++ {
			require.Eventually(t, func() bool { requests, _ := api.count(); return requests >= each*n }, patience, tick)
			worker.Kill()
			worker = spawnPatient(w)
			spawned = time.Now()
		}
		told = func() string { return limiterUpdates(w, spawned) }
	})
	if t.Failed() {
		return
	}
	// It takes Temporal 5 s to hand the limiter to another worker.
	alive := api.after(spawned)
	t.Logf("the first request %s after the last worker came, the last of %d elements %s later",
		alive.Sub(spawned).Round(time.Second), loop.elements, api.last().Sub(alive).Round(time.Second))
	defer func() {
		if t.Failed() {
			t.Log(told())
		}
	}()
	if !*soak {
		return
	}
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

// limiterUpdates is what the limiter of a world was asked, and whom it called, since a time.
func limiterUpdates(w *world, since time.Time) string {
	w.t.Helper()
	var b strings.Builder
	for _, limiter := range limiters(w) {
		id := limiter.GetExecution()
		events := w.env.Client().GetWorkflowHistory(context.WithoutCancel(w.t.Context()), id.GetWorkflowId(), id.GetRunId(), false,
			enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			event, err := events.Next()
			require.NoError(w.t, err)
			if at := event.GetEventTime().AsTime(); at.After(since) {
				fmt.Fprintf(&b, "%6.1f %s%s%s%s%s\n", at.Sub(since).Seconds(), strings.TrimPrefix(event.GetEventType().String(), "EVENT_TYPE_"),
					payloads(event.GetWorkflowExecutionSignaledEventAttributes().GetInput()),
					payloads(event.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput().GetArgs()),
					payloads(event.GetWorkflowExecutionUpdateCompletedEventAttributes().GetOutcome().GetSuccess()),
					payloads(event.GetSignalExternalWorkflowExecutionInitiatedEventAttributes().GetInput()))
			}
		}
	}
	return b.String()
}

// payloads are values as text.
func payloads(all *commonpb.Payloads) string {
	var b strings.Builder
	for _, one := range all.GetPayloads() {
		fmt.Fprintf(&b, " %s", one.GetData())
	}
	return b.String()
}
