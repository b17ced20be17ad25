package heartbeat_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/heartbeat"
)

// TestStartSending: heartbeats go on until they are stopped, and none come where nobody waits.
func TestStartSending(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]time.Duration{"some": 30 * time.Millisecond, "none": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
			seen := make(chan struct{}, 1)
			env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) {
				select {
				case seen <- struct{}{}:
				default:
				}
			})
			env.RegisterActivityWithOptions(func(ctx context.Context) error {
				defer heartbeat.StartSending(ctx)()
				if limit > 0 {
					<-seen
				}
				return nil
			}, activity.RegisterOptions{Name: "work"})
			env.ExecuteWorkflow(func(ctx workflow.Context) error {
				ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: limit})
				return workflow.ExecuteActivity(ctx, "work").Get(ctx, nil)
			})
			require.NoError(t, env.GetWorkflowError())
			require.Empty(t, seen)
		})
	}
}

// TestIntervals: a fifth of the timeout that the workflow has set. An attempt of ten minutes at 10 s sends at most 60.
func TestIntervals(t *testing.T) {
	t.Parallel()
	for limit, want := range map[time.Duration][2]time.Duration{
		0: {2 * time.Second, time.Second}, 10 * time.Second: {2 * time.Second, time.Second},
		50 * time.Second: {10 * time.Second, 10 * time.Second}, 300 * time.Second: {heartbeat.Longest, heartbeat.Longest},
	} {
		env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
		env.RegisterActivityWithOptions(func(ctx context.Context) ([2]time.Duration, error) {
			return [2]time.Duration{heartbeat.Interval(ctx), heartbeat.ProgressInterval(ctx)}, nil
		}, activity.RegisterOptions{Name: "work"})
		env.ExecuteWorkflow(func(ctx workflow.Context) (found [2]time.Duration, err error) {
			ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: limit})
			return found, workflow.ExecuteActivity(ctx, "work").Get(ctx, &found)
		})
		require.NoError(t, env.GetWorkflowError())
		var found [2]time.Duration
		require.NoError(t, env.GetWorkflowResult(&found))
		require.Equal(t, want, found, limit)
	}
}
