package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

const (
	// heartbeatTimeout is how long a lost worker stays unnoticed.
	heartbeatTimeout = 10 * time.Second
	// timeoutSlack is what an activity has beyond the time limit that its tool
	// enforces itself.
	timeoutSlack = 15 * time.Second
	// maxTurnWait is far more than a paced attempt waits for its turn in its place,
	// before the time limit of the tool begins to run. A longer wait is the
	// workflow's.
	maxTurnWait = 10 * time.Minute
	// mostDeliveries ends what would be handed out for ever, such as the
	// activity of a tool that no worker has. How often an attempt may be lost is
	// less; the activity counts that, because only it knows which of its
	// deliveries may have acted.
	mostDeliveries = 1000
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

// delivered are the options of every activity. Temporal's own retry only hands
// one out again when its worker was lost or hands it back.
func delivered(ctx workflow.Context, limit time.Duration, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: limit,
		HeartbeatTimeout:    heartbeatTimeout,
		WaitForCancellation: true,
		Summary:             summary,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 1, MaximumAttempts: mostDeliveries,
		},
	})
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
	size, failure := measure(ctx, input, "the request of step "+input.Step)
	if failure != nil {
		return interpreter.Outcome{Err: failure}
	}
	if err := admit(ctx, size); err != nil {
		return interpreter.Outcome{Err: activityError(err)}
	}
	limit := input.Timeout() + timeoutSlack + storeSlack(ctx)
	if input.RateLimit != nil {
		limit += maxTurnWait
	}
	ctx = delivered(ctx, limit, attemptSummary(input))
	var result interpreter.ToolResult
	if err := workflow.ExecuteActivity(ctx, input.Activity(), input).Get(ctx, &result); err != nil {
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

// activityError turns what Temporal reports into the error object of the tool.
func activityError(err error) *interpreter.ErrorObject {
	var cancelled *temporal.CanceledError
	if errors.As(err, &cancelled) {
		return &interpreter.ErrorObject{
			Kind: interpreter.KindCancelled, Class: interpreter.ClassFinal, Message: "cancelled",
		}
	}
	var application *temporal.ApplicationError
	if errors.As(err, &application) {
		var object interpreter.ErrorObject
		if application.HasDetails() && application.Details(&object) == nil && object.Kind != "" {
			return &object
		}
		return &interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassRetryable,
			Type: application.Type(), Message: application.Message(),
		}
	}
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT {
		return interpreter.WorkerLost()
	}
	if timeout != nil {
		return &interpreter.ErrorObject{
			Kind: interpreter.KindTimeout, Class: interpreter.ClassRetryable,
			Message: "the attempt did not end within its time limit",
		}
	}
	if errors.Is(err, converter.ErrUnableToDecode) { // the next attempt would answer the same
		return &interpreter.ErrorObject{Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Message: err.Error()}
	}
	return &interpreter.ErrorObject{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Message: err.Error(),
	}
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
