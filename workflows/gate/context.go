package gate

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter/call"
	"reprise/interpreter/expression"
)

// WithIndex returns a step's name with the index of an iteration, as in fetch[3], for summaries in Temporal's UI.
// Without an index it returns the name.
func WithIndex(name string, index *int) string {
	if index == nil {
		return name
	}
	return fmt.Sprintf("%s[%d]", name, *index)
}

// CallName returns the step of a call, with the index of its iteration.
func CallName(machine *call.Call) string {
	of := machine.Config()
	return WithIndex(of.Step.Name, of.Index)
}

// RandomStream returns a deterministic source of random numbers in [0, 1), for the jitter of one call. Each name
// has a separate stream, so that in a replay each call gets the same numbers, whatever other calls draw. It returns
// nil in tests that skip time, whose waits have no jitter.
func RandomStream(ctx workflow.Context, name string) func() float64 {
	if RehearsalOf(ctx) != nil {
		return nil
	}
	return func() float64 {
		const mantissa = 53 // bits that a float64 holds exactly
		return float64(workflow.GetRandomStream(ctx, "reprise/"+name).Uint64()>>(64-mantissa)) / (1 << mantissa)
	}
}

// ExpressionBudget returns the budget for the expressions of one decision.
func ExpressionBudget(ctx workflow.Context) *expression.Budget {
	return expression.NewBudget(expression.DecisionLimits, workflow.Now(ctx))
}

// Logger returns the worker's logger with the run ID as a field. It logs nothing during a replay.
func Logger(ctx workflow.Context) log.Logger {
	info := workflow.GetInfo(ctx)
	run := info.WorkflowExecution.ID
	if info.RootWorkflowExecution != nil {
		run = info.RootWorkflowExecution.ID
	}
	return log.With(workflow.GetLogger(ctx), "run", run)
}

// AfterWait calls do after a time, unless drop is called first. The summary explains the timer in Temporal's UI.
func AfterWait(ctx workflow.Context, wait time.Duration, summary string, do func(workflow.Context)) (drop workflow.CancelFunc) {
	timed, drop := workflow.WithCancel(ctx)
	workflow.Go(timed, func(ctx workflow.Context) {
		if workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: summary}).Get(ctx, nil) == nil {
			do(ctx)
		}
	})
	return drop
}

// AwaitDespiteCancel waits for a condition even if the workflow is cancelled. The condition must become true soon.
func AwaitDespiteCancel(ctx workflow.Context, condition func() bool) {
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	_ = workflow.Await(disconnected, condition) // its error says that it was cancelled
}
