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

// TestKeep: heartbeats go on until they are stopped, and none come where nobody waits.
func TestKeep(t *testing.T) {
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
				defer heartbeat.Keep(ctx)()
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
