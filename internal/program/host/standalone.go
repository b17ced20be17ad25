package host

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"reprise/activities/attempt"
	"reprise/interpreter"
)

// refuseStandalone refuses activities that a client has started by themselves: no validated run has made their input.
type refuseStandalone struct {
	interceptor.WorkerInterceptorBase
}

// InterceptActivity is called for each activity.
func (*refuseStandalone) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &ofWorkflows{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type ofWorkflows struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity runs an activity of a workflow.
func (o *ofWorkflows) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	if activity.GetInfo(ctx).WorkflowExecution.ID == "" {
		return nil, attempt.ApplicationError(&interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true, Type: "invalid_input",
			Message: "the activity was started by a client, and not by a run: start a run of a playbook",
		})
	}
	return o.Next.ExecuteActivity(ctx, in)
}
