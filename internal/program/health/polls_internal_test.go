package health

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
)

// polling makes polls of a record, each of which ends with an error, nil for a task.
func polling(ctx context.Context, t *testing.T, p *Polls, request any, end error) {
	t.Helper()
	err := p.InterceptPoll(ctx, "/temporal.api.workflowservice.v1.WorkflowService/PollActivityTaskQueue", request, nil, nil,
		func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return end })
	require.Equal(t, end, err, "the caller gets what the server said")
}

// TestRefusedPolls: a worker whose polls the server refuses is not ready until one is accepted: it ended well, or it has
// been open for longer than a refusal takes.
func TestRefusedPolls(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := NewPolls()
	p.now = func() time.Time { return at }
	denied := errors.New("request unauthorized")
	require.NoError(t, p.lastRefusal(), "nothing has been refused yet")
	polling(t.Context(), t, p, &workflowservice.PollActivityTaskQueueRequest{}, denied)
	require.ErrorContains(t, p.lastRefusal(), "PollActivityTaskQueue: ")
	require.ErrorIs(t, p.lastRefusal(), denied)
	polling(t.Context(), t, p, &workflowservice.RecordActivityTaskHeartbeatRequest{}, nil)
	require.Error(t, p.lastRefusal(), "other requests say nothing about polls")
	polling(t.Context(), t, p, &workflowservice.PollWorkflowTaskQueueRequest{}, nil)
	require.NoError(t, p.lastRefusal())
	polling(t.Context(), t, p, &workflowservice.PollWorkflowTaskQueueRequest{}, denied)
	number := p.beginPoll()
	at = at.Add(settledPoll - time.Millisecond)
	require.Error(t, p.lastRefusal(), "a refusal may still come")
	at = at.Add(time.Millisecond)
	require.NoError(t, p.lastRefusal(), "the server has accepted it")
	p.endPoll(number, errors.New("unavailable"))
	require.Error(t, p.lastRefusal())
	require.Equal(t, "the Temporal server refuses polls", p.Dependency().Reason)
	require.Error(t, p.Dependency().Err(t.Context()))
}

// TestPollsOpenBeforeARefusal: polls that were open before say nothing about what is refused since.
func TestPollsOpenBeforeARefusal(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := NewPolls()
	p.now = func() time.Time { return at }
	p.beginPoll()
	at = at.Add(time.Second)
	polling(t.Context(), t, p, &workflowservice.PollActivityTaskQueueRequest{}, errors.New("no database"))
	at = at.Add(time.Hour)
	require.Error(t, p.lastRefusal())
}

// TestPollsOfAWorkerThatStops: polls that end with their worker were not refused.
func TestPollsOfAWorkerThatStops(t *testing.T) {
	t.Parallel()
	p := NewPolls()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	polling(ctx, t, p, &workflowservice.PollActivityTaskQueueRequest{}, context.Canceled)
	require.NoError(t, p.lastRefusal())
}

// TestReasonOfUnreadiness: a server that is away also fails polls; the reason is that it is away.
func TestReasonOfUnreadiness(t *testing.T) {
	t.Parallel()
	s := &Server{logger: slog.New(slog.DiscardHandler)}
	options := s.ClientOptions(client.Options{})
	require.Len(t, options.ConnectionOptions.DialOptions, 1)
	failing := func(context.Context) error { return errors.New("connection refused") }
	s.polls.Check = failing
	require.Equal(t, "the Temporal server refuses polls", s.missingReason(t.Context()))
	s.AddDependency(&Dependency{Reason: "the Temporal server does not respond", Check: failing})
	require.Equal(t, "the Temporal server does not respond", s.missingReason(t.Context()))
}
