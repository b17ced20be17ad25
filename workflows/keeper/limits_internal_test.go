package keeper

import (
	"fmt"
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

	k := &queueService{queue: &queue.Queue{Messages: make([]queue.Message, 1)}, delivering: mostDelivering - 1}
	require.True(t, k.mayDeliver())
	k.delivering++
	require.False(t, k.mayDeliver(), "the message waits")
}

// TestQueuesCheckSomeAtATime passes mostChecked and mostCheckedWaiting: each check is a request, and every run with a slot gets one.
func TestQueuesCheckSomeAtATime(t *testing.T) {
	t.Parallel()
	k := &queueService{queue: &queue.Queue{}}
	member := func(kind string, i int) queue.Entry {
		return queue.Entry{Member: queue.Member{WorkflowID: fmt.Sprint(kind, i)}}
	}
	for i := range mostChecked + 50 {
		k.queue.Holders = append(k.queue.Holders, member("holder", i))
	}
	for i := range mostCheckedWaiting + 5 {
		k.queue.Waiting = append(k.queue.Waiting, member("waiting", i))
	}
	checked := map[string]int{}
	for range 3 {
		members := k.nextMembers()
		require.Len(t, members, mostChecked+mostCheckedWaiting)
		for _, one := range members {
			checked[one.WorkflowID]++
		}
	}
	for _, holder := range k.queue.Holders {
		require.Equal(t, 2, checked[holder.WorkflowID], holder.WorkflowID)
	}
	require.Equal(t, 3, checked["waiting0"])
	require.NotContains(t, checked, fmt.Sprint("waiting", mostCheckedWaiting))
}
