package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"reprise/interpreter/ratelimit"
	"reprise/workflows"
)

// TestLimiterStaysUntilItsTurnsAreOver: one that ended before would begin
// afresh, and give the same times again.
func TestLimiterStaysUntilItsTurnsAreOver(t *testing.T) {
	t.Parallel()
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.SetStartTime(began)
	workflows.Register(env)
	lease := func(after time.Duration, want ratelimit.Lease) {
		env.RegisterDelayedCallback(func() {
			env.UpdateWorkflow(ratelimit.LeaseUpdate, "", &testsuite.TestUpdateCallback{
				OnAccept: func() {},
				OnReject: func(err error) { require.NoError(t, err) },
				OnComplete: func(given any, err error) {
					require.NoError(t, err)
					require.Equal(t, want, given)
				},
			}, ratelimit.LeaseRequest{
				Limit: ratelimit.Limit{Key: "api", Requests: 1, PerSeconds: 3600}, Count: 3, WithinSeconds: 7200,
			})
		}, after)
	}
	const interval = 3744 // seconds, with a margin of 4 %
	two, one := 2, 1
	lease(0, ratelimit.Lease{Turns: &two, At: began, IntervalSeconds: interval})
	second := began.Add(2 * interval * time.Second)
	lease(time.Hour, ratelimit.Lease{
		Turns: &one, At: second, DelaySeconds: second.Sub(began.Add(time.Hour)).Seconds(), IntervalSeconds: interval,
	})
	env.ExecuteWorkflow(ratelimit.WorkflowName, ratelimit.Limiter{})
	require.NoError(t, env.GetWorkflowError())
	require.False(t, env.Now().Before(began.Add(3*interval*time.Second)), "it ended at %s", env.Now())
}
