package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// planTimeout bounds a plan, with the requests of its samples.
const planTimeout = 4 * time.Minute

// PlanWorkflow has a worker, which has the connections, find out what a run would do.
func PlanWorkflow(ctx workflow.Context, input call.PlanInput) (interpreter.PlanAnswer, error) {
	ctx = withOutbox(ctx, interpreter.RunLimits{})
	to := toTool(interpreter.PlanActivity, planTimeout, "what a run would do")
	to.tries = 1
	return send[interpreter.PlanAnswer](ctx, to, input, "what a run would do")
}
