package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
)

const (
	// timeoutSlack is what an activity has beyond the time limit that its tool
	// enforces itself.
	timeoutSlack = 15 * time.Second
	// maxTurnWait is far more than a paced attempt waits for its turn within its
	// activity, before the time limit of the tool begins to run. A longer wait is the
	// workflow's.
	maxTurnWait = 10 * time.Minute
)

// storeSlack is how long an attempt may wait for the payload store, before it
// and after it.
func storeSlack(ctx workflow.Context) time.Duration {
	if outboxOf(ctx).limits.OffloadAbove == 0 {
		return 0
	}
	return 2*interpreter.StorePatience + time.Minute
}

// attempt runs a tool once.
func attempt(ctx workflow.Context, input interpreter.ToolInput) interpreter.Outcome {
	limit := input.Timeout() + timeoutSlack + storeSlack(ctx)
	if input.RateLimit != nil {
		limit += maxTurnWait
	}
	controls := controlsOf(ctx)
	input.ControlID, input.ControlVersion = controls.run, controls.Version
	input.Parents = (&call.Nesting{Parents: controls.parents}).Brief()
	to := toTool(input.Activity(), limit, attemptSummary(input))
	result, err := send[interpreter.ToolResult](ctx, to, input, "the request of step "+input.Step)
	if err != nil {
		return interpreter.Outcome{Err: AttemptError(err)}
	}
	return result.Outcome()
}

// attemptSummary is what Temporal's UI shows beside the activity.
func attemptSummary(input interpreter.ToolInput) string {
	name := input.Step
	if input.Place != "" {
		name = input.Place
	}
	return fmt.Sprintf("%s page %d attempt %d", indexed(name, input.Index), input.Page, input.Attempt)
}

// indexed names an iteration in summaries; without one it is the name alone.
func indexed(name string, index *int) string {
	if index == nil {
		return name
	}
	return fmt.Sprintf("%s[%d]", name, *index)
}

// nameOf is the step of a call, with the index of its iteration.
func nameOf(machine *call.Call) string {
	of := machine.Config()
	return indexed(of.Step.Name, of.Index)
}

// stream draws from a deterministic source of its own, in [0, 1), so that what
// one call draws does not depend on the others; nil in a rehearsal.
func stream(ctx workflow.Context, name string) func() float64 {
	if rehearsalOf(ctx) != nil {
		return nil
	}
	return func() float64 {
		const mantissa = 53 // bits that a float64 holds exactly
		return float64(workflow.GetRandomStream(ctx, "reprise/"+name).Uint64()>>(64-mantissa)) / (1 << mantissa)
	}
}

func budget(ctx workflow.Context) *expression.Budget {
	return expression.NewBudget(expression.DecisionLimits, workflow.Now(ctx))
}
