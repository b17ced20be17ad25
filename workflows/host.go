package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

const (
	// timeoutSlack is what an activity has beyond the time limit that its tool
	// enforces itself.
	timeoutSlack = 15 * time.Second
	// maxTurnWait is far more than a paced attempt waits for its turn in its place,
	// before the time limit of the tool begins to run. A longer wait is the
	// workflow's.
	maxTurnWait = 10 * time.Minute
)

// waiter is told when a call begins and, with nil, ends a wait, for progress.
type waiter func(call *interpreter.Call, wait *interpreter.Wait, until time.Time)

// drive takes a call to its end: it runs what the call asks for and tells it
// what came of it. carry is nil where the call stays in the workflow.
func drive(ctx workflow.Context, call *interpreter.Call, waiting waiter, carry *carrier) interpreter.CallResult {
	driveUntil(ctx, call, waiting, carry, func(*interpreter.Wait) bool { return false })
	return *call.State.Result
}

// driveUntil drives a call to its end, or to the point at which leave says that
// it goes on elsewhere. leave is asked before a wait, and with nil before
// everything else.
func driveUntil(
	ctx workflow.Context, call *interpreter.Call, waiting waiter, carry *carrier, leave func(*interpreter.Wait) bool,
) {
	apart, alone := carry != nil && call.Detachable(), false
	for {
		if ctx.Err() != nil && !call.Finished() {
			call.Cancel(workflow.Now(ctx))
			return
		}
		if call.Begun() && !call.Waits() && !call.Finished() && leave(nil) {
			return
		}
		if apart && !alone && call.TurnsPage() {
			further, err := carry.turnPages(ctx, call)
			if err != nil {
				call.Cancel(workflow.Now(ctx))
				return
			}
			alone = !further
			continue
		}
		command := call.Next(workflow.Now(ctx))
		alone = false
		switch command.Kind {
		case interpreter.DoAttempt:
			outcome := attempt(ctx, command.Input)
			if outcome.Err != nil && outcome.Err.Kind == interpreter.KindCancelled {
				call.Cancel(workflow.Now(ctx))
				return
			}
			call.Attempted(outcome, workflow.Now(ctx))
			logVerdict(ctx, call)
		case interpreter.DoWait:
			if leave(&command.Wait) {
				return
			}
			if err := wait(ctx, call, command.Wait, waiting); err != nil {
				call.Cancel(workflow.Now(ctx))
				return
			}
			call.Waited()
			alone = true // the page after a wait is usually followed by another wait
		case interpreter.DoSink:
			call.SinkDone(drive(ctx, command.Sink, waiting, nil), workflow.Now(ctx))
		case interpreter.DoFinish:
			return
		}
	}
}

// logVerdict tells the worker's log what was decided about an attempt that failed.
func logVerdict(ctx workflow.Context, call *interpreter.Call) {
	switch verdict := call.Verdict(); {
	case verdict == nil:
	case verdict.Ended:
		workflow.GetLogger(ctx).Warn(verdict.Message(), verdict.Fields()...)
	default:
		workflow.GetLogger(ctx).Info(verdict.Message(), verdict.Fields()...)
	}
}

// wait is a durable timer whose summary says what it waits for.
func wait(ctx workflow.Context, call *interpreter.Call, wait interpreter.Wait, waiting waiter) error {
	if waiting != nil {
		waiting(call, &wait, workflow.Now(ctx).Add(wait.Delay))
		defer waiting(call, nil, time.Time{})
	}
	return workflow.NewTimerWithOptions(ctx, wait.Delay, workflow.TimerOptions{Summary: wait.Summary}).Get(ctx, nil)
}

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
	to := toTool(input.Activity(), limit, attemptSummary(input))
	result, err := send[interpreter.ToolResult](ctx, to, input, "the request of step "+input.Step)
	if err != nil {
		return interpreter.Outcome{Err: activityError(err)}
	}
	return interpreter.Outcome{Data: result.Data.Data, Meta: result.Meta}
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

// stream draws from a deterministic source of its own, in [0, 1), so that what
// one call draws does not depend on the others.
func stream(ctx workflow.Context, name string) func() float64 {
	return func() float64 {
		const mantissa = 53 // bits that a float64 holds exactly
		return float64(workflow.GetRandomStream(ctx, "reprise/"+name).Uint64()>>(64-mantissa)) / (1 << mantissa)
	}
}

func budget(ctx workflow.Context) *expression.Budget {
	return expression.NewBudget(expression.DecisionLimits, workflow.Now(ctx))
}
