package hosting_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"reprise/activities"
	"reprise/interpreter"
)

// elsewhere says that the server's clock is ahead of that of this machine.
type elsewhere struct {
	interceptor.WorkerInterceptorBase
	interceptor.ActivityOutboundInterceptorBase
	ahead time.Duration
}

func (e *elsewhere) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &elsewhereInbound{interceptor.ActivityInboundInterceptorBase{Next: next}, e}
}

type elsewhereInbound struct {
	interceptor.ActivityInboundInterceptorBase
	elsewhere *elsewhere
}

func (e *elsewhereInbound) Init(outbound interceptor.ActivityOutboundInterceptor) error {
	e.elsewhere.Next = outbound
	return e.Next.Init(e.elsewhere)
}

// GetInfo has the times that a server with another clock would send.
func (e *elsewhere) GetInfo(ctx context.Context) activity.Info {
	info := e.Next.GetInfo(ctx)
	info.ScheduledTime, info.StartedTime = info.ScheduledTime.Add(e.ahead), time.Now().Add(e.ahead)
	return info
}

// TestHostedCallsGoByTheServersClock: what a call notes in an activity and what it
// notes in its workflow is by one clock, or a policy's max_elapsed would be over
// at once on a worker whose clock is behind.
func TestHostedCallsGoByTheServersClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		p := &player{answer: func(_ context.Context, in interpreter.ToolInput) (any, error) {
			if param(in, "item") == "a" {
				return nil, status(503)
			}
			return nil, status(404)
		}}
		stage := newStage(t, p, activities.Resources{})
		stage.env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&elsewhere{ahead: ahead}}})
		calls := stage.drive(driveInput("", "", "a", "b"))
		near := func(at time.Time) {
			t.Helper()
			require.WithinDuration(t, time.Now().Add(ahead), at, 10*time.Minute)
		}
		require.NotNil(t, calls[0].State, "it waits")
		near(calls[0].State.StartedAt)
		near(calls[0].State.Counters.Policies[0].FailuresSince)
		require.NotNil(t, calls[1].Result, "it has failed")
		near(calls[1].Result.Meta.EndedAt)
		near(calls[1].Result.Error.At)
	}
}
