package attempt_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/ratelimit"
)

// TestLateRequestsDoNotBunch: a request that takes its time to get a connection
// arrives late, and no window holds more than the limit because of it.
func TestLateRequestsDoNotBunch(t *testing.T) {
	t.Parallel()

	limit := ratelimit.Limit{Key: "api", Requests: 5, PerSeconds: 1}

	var (
		mu       sync.Mutex
		arrivals []time.Time
		dials    atomic.Int32
	)

	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()

		arrivals = append(arrivals, time.Now())
	}))
	t.Cleanup(server.Close)

	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) <= 2 {
			time.Sleep(300 * time.Millisecond) // the network, not the test, takes this time
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	catalogue := activities.NewCatalogue(activities.Resources{HTTP: activities.HTTPOptions{Transport: transport}})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })

	all := catalogue.Attempts.Activities()
	run := all[slices.IndexFunc(all, func(a attempt.Activity) bool { return a.Name == "http" })].Run

	var group errgroup.Group

	for range 14 {
		group.Go(func() error {
			_, err := run(t.Context(), tooltest.CompleteInput(interpreter.ToolInput{
				RateLimit: &limit, Fields: map[string]expression.Value{"url": expression.Of(server.URL)},
			}, "http"))
			return err
		})
	}

	require.NoError(t, testenv.WaitResult(t, group.Wait, "the end of the attempts"))
	require.Len(t, arrivals, 14)

	for i := limit.Requests; i < len(arrivals); i++ {
		require.Greater(t, arrivals[i].Sub(arrivals[i-limit.Requests]), limit.Period(), "requests %d to %d", i-limit.Requests, i)
	}
}
