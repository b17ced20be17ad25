package keeper

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/queue"
	"reprise/interpreter/ratelimit"
)

// TestBoundsOfServices passes maxLease and mostDelivering.
func TestBoundsOfServices(t *testing.T) {
	t.Parallel()
	request := ratelimit.LeaseRequest{Limit: ratelimit.Limit{Key: "api", Requests: 1, PerSeconds: 1}, Count: maxLease}
	require.NoError(t, validLease(request))
	request.Count++
	require.ErrorContains(t, validLease(request), "1 to 10000 slots, not 10001")

	k := &queueKeeper{queue: &queue.Queue{Messages: make([]queue.Message, 1)}, delivering: mostDelivering - 1}
	require.True(t, k.mayDeliver())
	k.delivering++
	require.False(t, k.mayDeliver(), "the message waits")
}
