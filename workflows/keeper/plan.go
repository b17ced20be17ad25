package keeper

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/gate"
)

// planTimeout bounds a plan, including its sample requests.
const planTimeout = 4 * time.Minute

// PlanWorkflow lets a worker, which has the connections, determine what a run would do.
func PlanWorkflow(ctx workflow.Context, input call.PlanInput) (interpreter.PlanAnswer, error) {
	ctx = gate.WithOutbox(ctx, interpreter.RunLimits{})
	to := gate.ToTool(interpreter.PlanActivity, planTimeout, "what a run would do")
	to.Tries = 1
	return gate.Send[interpreter.PlanAnswer](ctx, to, input, "what a run would do")
}
