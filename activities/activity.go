package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// StopGrace is how long a tool may take to stop once its attempt is over.
const StopGrace = 2 * time.Second

// maxHeartbeatInterval is how often an attempt shows that it is alive, at
// least. A heartbeat is also how it learns that its run was cancelled.
const maxHeartbeatInterval = 2 * time.Second

// errTimeout is the cause of a context that ended with the attempt's time.
var errTimeout = errors.New("the attempt's time is over")

// attempt is Tool.Run or Writer.Write.
type attempt func(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error)

// wrap turns one method of a tool into an activity: it bounds the time, sends
// heartbeats, survives panics, and turns errors into non-retryable
// ApplicationErrors whose type is the kind and whose details hold the
// ErrorObject. Only an attempt that ended because its worker stops is left to
// Temporal to deliver again. It tells the size of a result too.
func wrap(run attempt, pacer *pacer, res Resources) measuredFunc {
	return func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, resultSize, error) {
		limit := timeLimit(in)
		ctx, secrets := withSecrets(ctx)

		if err := res.Payloads.awaitStore(ctx, in); err != nil {
			return interpreter.ToolResult{}, resultSize{}, activityError(ctx, ctx, err, in, limit, secrets)
		}

		if in.RateLimit != nil {
			if err := pacer.await(ctx, *in.RateLimit); err != nil {
				return interpreter.ToolResult{}, resultSize{}, activityError(ctx, ctx, err, in, limit, secrets)
			}
		}

		bounded, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()

		var size resultSize

		result, err := supervise(ctx, bounded, run, in, res.Logger)
		if err == nil {
			size, err = checkSize(result, in, res.Payloads.MaxBytes)
		}

		if err == nil {
			return result, size, nil
		}

		tellOthers(ctx, pacer, in, err)

		return interpreter.ToolResult{}, resultSize{}, activityError(ctx, bounded, err, in, limit, secrets)
	}
}

// measuredFunc is an ActivityFunc that tells the size of its result.
type measuredFunc func(context.Context, interpreter.ToolInput) (interpreter.ToolResult, resultSize, error)

// plain is the function as Temporal calls it.
func (f measuredFunc) plain() ActivityFunc {
	return func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		result, _, err := f(ctx, in)

		return result, err
	}
}

// tellOthers lets an attempt that was told to wait hold back all those that
// share its rate limit, instead of each finding out for itself.
func tellOthers(ctx context.Context, pacer *pacer, in interpreter.ToolInput, err error) {
	var failure *Error
	if in.RateLimit != nil && errors.As(err, &failure) && failure.RetryAfter != nil {
		pacer.told(ctx, *in.RateLimit, *failure.RetryAfter)
	}
}

// timeLimit is that of the input, which says none only in tests of tools.
func timeLimit(in interpreter.ToolInput) time.Duration {
	if in.TimeoutSeconds > 0 && in.TimeoutSeconds < math.MaxInt64/float64(time.Second) {
		return in.Timeout()
	}

	return playbook.DefaultTimeout(in.Tool)
}

type outcome struct {
	result interpreter.ToolResult
	err    error
}

// supervise runs the attempt in a goroutine of its own, so that a tool that
// does not look at its context cannot hold the activity, and sends heartbeats
// meanwhile.
func supervise(ctx, bounded context.Context, run attempt, in interpreter.ToolInput, logger *slog.Logger) (interpreter.ToolResult, error) {
	done := make(chan outcome, 1)
	go protect(bounded, run, in, logger, done)

	heartbeat, stop := heartbeats(ctx)
	defer stop()

	ended := bounded.Done()

	var abandoned <-chan time.Time

	for {
		select {
		case o := <-done:
			return o.result, o.err
		case <-heartbeat:
			activity.RecordHeartbeat(ctx)
		case <-ended:
			ended, abandoned = nil, time.After(StopGrace)
		case <-abandoned:
			logger.Warn("a tool did not stop and was left behind", "tool", in.Tool, "step", in.Step)

			return interpreter.ToolResult{}, bounded.Err()
		}
	}
}

// protect makes the attempt and tells its outcome, whatever happens. A panic
// becomes an error; its stack goes to the worker's log and not to the history.
func protect(ctx context.Context, run attempt, in interpreter.ToolInput, logger *slog.Logger, done chan<- outcome) {
	var o outcome

	answered := false // stays where the goroutine ends without a return and without a panic

	defer func() {
		r := recover()
		if r == nil && !answered {
			o.err = toolErrorf("tool %q ended without an answer", in.Tool)
		}

		if r != nil {
			logger.Error("a tool panicked", "tool", in.Tool, "step", in.Step,
				"panic", fmt.Sprint(r), "stack", string(debug.Stack()))

			o.err = toolErrorf("tool %q panicked: %v", in.Tool, r)
		}

		done <- o
	}()

	o.result, o.err = run(ctx, in)
	answered = true
}

// heartbeats ticks three times per heartbeat timeout and at least every 2 s;
// never where nobody waits for heartbeats.
func heartbeats(ctx context.Context) (<-chan time.Time, func()) {
	if !activity.IsActivity(ctx) || isHosted(ctx) {
		return nil, func() {}
	}

	limit := activity.GetInfo(ctx).HeartbeatTimeout
	if limit <= 0 {
		return nil, func() {}
	}

	ticker := time.NewTicker(max(min(limit/3, maxHeartbeatInterval), time.Millisecond))

	return ticker.C, ticker.Stop
}

// checkSize refuses a result of more than most bytes of JSON, which Temporal or
// the payload store would not take. Temporal refuses in a way that repeats the
// attempt.
func checkSize(result interpreter.ToolResult, in interpreter.ToolInput, most int) (resultSize, error) {
	size, err := sizeOfResult(result)
	if err != nil {
		return size, toolErrorf("step %q: the result of tool %q cannot be written as JSON: %w", in.Step, in.Tool, err)
	}

	if size.all > most {
		return size, tooLargef("step %q: the result of one attempt is %d bytes of JSON, the limit is %d; ask for less at a time",
			in.Step, size.all, most)
	}

	return size, nil
}

// activityError says why the attempt ended: its own time, somebody's cancel,
// the worker's stop, or the tool.
func activityError(ctx, bounded context.Context, err error, in interpreter.ToolInput, limit time.Duration, secrets *secretSet) error {
	if workerStopped(ctx) {
		return applicationError(&interpreter.ErrorObject{
			Kind: interpreter.KindWorkerLost, Class: interpreter.ClassRetryable,
			Message: "the worker was stopped during the attempt", Attempt: in.Attempt, Page: in.Page,
		}, false)
	}

	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err() // the activity ends as canceled
	}

	if bounded.Err() != nil && isContextError(err) {
		err = &Error{
			Kind: interpreter.KindTimeout, Class: interpreter.ClassRetryable,
			Message: fmt.Sprintf("step %q: the attempt took longer than its timeout of %s", in.Step, limit),
		}
	}

	return applicationError(errorObject(err, in, secrets), true)
}

// workerStopped tells a context that ended with its worker from one whose run
// was cancelled.
func workerStopped(ctx context.Context) bool {
	if ctx.Err() == nil || !activity.IsActivity(ctx) || temporal.IsCanceledError(context.Cause(ctx)) {
		return false
	}

	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return true
	default:
		return false
	}
}

// isContextError tells the error of a context that ended from one the tool
// found by itself just before.
func isContextError(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, errTimeout)
}

func applicationError(object *interpreter.ErrorObject, final bool) error {
	return temporal.NewApplicationErrorWithOptions(object.Message, object.Kind, temporal.ApplicationErrorOptions{
		NonRetryable: final,
		Details:      []any{*object},
	})
}
