// Package attempt makes the attempts of tools in activities: within their time, under rate limits, with heartbeats, with
// secrets masked, and again where their worker stops. It knows neither which tools there are nor how a call continues.
package attempt

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

	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/internal/base/heartbeat"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// StopGrace is how long a tool may take to stop once its attempt is over.
const StopGrace = 2 * time.Second

// Func is Tool.Run or Writer.Write, and the signature of an activity that makes attempts.
type Func = func(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error)

// wrapTool turns one method of a tool into an activity: it bounds the time, sends
// heartbeats, survives panics, and turns errors into non-retryable
// ApplicationErrors whose type is the kind and whose details hold the
// ErrorObject. Temporal delivers again only an attempt that its worker returns, or
// that lost its connection to the server; how often is counted here. A tool that
// waits before it acts begins by itself. The size of the result is reported too.
func (r *Runner) wrapTool(run Func, beginsItself bool) measuredFunc {
	res := r.Resources
	if !beginsItself {
		run = afterBegin(run)
	}
	return func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, int, error) {
		limit := timeLimit(in)
		ctx, secrets := tool.WithSecrets(ctx, res.Secrets)
		b := newBeginning(ctx, in)
		by := holding{run: in.ControlID, version: in.ControlVersion, step: in.Step, above: in.Parents}
		b.gate = func(ctx context.Context) (interpreter.Control, error) { return r.gate.passGate(ctx, by) }
		ctx = tool.WithCaller(tool.WithAttempt(ctx, b), in)
		err := res.Access.RefuseUnknown(ctx)
		if err == nil {
			err = r.CheckConnections(ctx, in.Sinks)
		}
		if err == nil {
			err = mayBegin(ctx, b, r.pacer, res.Payloads, in)
		}
		if err != nil {
			return endWithoutResult(ctx, ctx, err, b, in, limit, secrets)
		}
		ctx = watchOf(ctx).noteTurn(ctx)
		ended, end := context.WithCancelCause(ctx)
		defer end(nil)
		bounded, cancel := context.WithTimeoutCause(ended, limit, tool.ErrTimeout)
		defer cancel()
		releaseMemory(ctx)
		bounded, handedOver := r.memory.WithLoan(bounded)
		defer onContextEnd(ctx, handedOver)
		o := superviseRun(ctx, bounded, end, b, measureRun(res.withSecrets(run), res.Payloads.MaxBytes), in, res.Logger)
		if o.err == nil {
			o.result.Turn = b.turnSeconds()
			return o.result, o.size, nil
		}
		err = o.err
		pauseOthers(ctx, r.pacer, in, err)
		return endWithoutResult(ctx, bounded, err, b, in, limit, secrets)
	}
}

// endWithoutResult ends an attempt that returns no result: it was put off, which is itself the result
// of the activity, or activityError says why it failed.
func endWithoutResult(
	ctx, bounded context.Context, err error, b *beginning, in interpreter.ToolInput, limit time.Duration, secrets *tool.Secrets,
) (interpreter.ToolResult, int, error) {
	if off := (*putOffError)(nil); errors.As(err, &off) {
		result := interpreter.ToolResult{PutOff: &off.until}
		return result, interpreter.EncodedSize(result), nil
	}
	return interpreter.ToolResult{}, 0, activityError(ctx, bounded, err, b, in, limit, secrets)
}

// putOffError ends an attempt that is not to be made yet.
type putOffError struct {
	until interpreter.PutOff
	text  string
}

func (e *putOffError) Error() string { return e.text }

// mayBegin checks that the run is not paused, and waits for the payload store and for a turn
// of the rate limit. The error says why the attempt is not made.
func mayBegin(ctx context.Context, b *beginning, pacer *pacer, payloads Payloads, in interpreter.ToolInput) error {
	switch {
	case !b.hosted && b.delivery.State.IsExhausted(in.Lost):
		return errSpent
	case WorkerStopping(ctx):
		return ErrReleased
	}
	control, err := b.gate(ctx)
	if err != nil {
		return err
	}
	if err := payloads.awaitStore(ctx, in); err != nil {
		return err
	}
	limit := control.TuningOf(in.Step).Rate.OverrideLimit(in.RateLimit, in)
	if limit == nil {
		return nil
	}
	if turns := WorkerOf(ctx).Turns; turns != nil {
		if turn := turns.ReserveTurn(*limit, in); turn != nil {
			return awayError(*turn, limit.Key, turn.At.Sub(NewClock(ctx).Now()))
		}
		return nil
	}
	since := time.Now()
	recordTurnWait(ctx, true)
	defer recordTurnWait(ctx, false)
	if err := pacer.awaitTurn(ctx, *limit, in, b); err != nil {
		return err
	}
	watchOf(ctx).noteWait(since)
	b.turn = time.Since(since)
	return nil
}

// onContextEnd calls done when the activity's context ends, because by then the outcome of the
// attempt is on its way to Temporal. A call inside a Drive calls done itself.
func onContextEnd(ctx context.Context, done func()) {
	of, hosted := ctx.Value(callKey{}).(*callContext)
	switch {
	case hosted:
		of.holdMemory(ctx, done)
	case !activity.IsActivity(ctx) || IsHosted(ctx):
		done()
	default:
		context.AfterFunc(ctx, done)
	}
}

// measureRun wraps a function so that its result is measured within the time limit of the attempt.
func measureRun(run Func, most int) measuredFunc {
	return func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, int, error) {
		defer memory.MarkDone(ctx)
		result, err := run(ctx, in)
		if err != nil {
			return interpreter.ToolResult{}, 0, err
		}
		result = tool.SecretsOf(ctx).MaskResult(result)
		size, err := checkSize(result, in, most)
		return result, size, err
	}
}

// afterBegin wraps a tool that acts from the start: it begins the attempt first.
func afterBegin(run Func) Func {
	return func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		if err := tool.BeginAttempt(ctx); err != nil {
			return interpreter.ToolResult{}, err
		}
		return run(ctx, in)
	}
}

// measuredFunc is a Func that returns the size of its result.
type measuredFunc func(context.Context, interpreter.ToolInput) (interpreter.ToolResult, int, error)

// plainFunc returns the function as Temporal calls it.
func (f measuredFunc) plainFunc() Func {
	return func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		result, _, err := f(ctx, in)
		return result, err
	}
}

// pauseOthers pauses all attempts under the same rate limit after a server asked one of them to
// wait, so that each need not find out by itself.
func pauseOthers(ctx context.Context, pacer *pacer, in interpreter.ToolInput, err error) {
	if failure, ok := errors.AsType[*tool.Error](err); ok && in.RateLimit != nil && failure.RetryAfter != nil {
		pacer.pauseLimit(ctx, *in.RateLimit, *failure.RetryAfter)
	}
}

// timeLimit returns the timeout of the input, which has none only in tests of tools.
func timeLimit(in interpreter.ToolInput) time.Duration {
	if in.TimeoutSeconds > 0 && in.TimeoutSeconds < math.MaxInt64/float64(time.Second) {
		return in.Timeout()
	}
	return playbook.TraitsOf(in.Tool).Timeout
}

type outcome struct {
	result interpreter.ToolResult
	size   int
	err    error
}

// superviseRun runs the attempt in its own goroutine and sends heartbeats, so that a tool that
// ignores its context cannot block the activity. Once the worker stops, an attempt that has not
// begun ends; one that has begun may run for the worker's grace period. end cancels bounded.
func superviseRun(
	ctx, bounded context.Context, end context.CancelCauseFunc, b *beginning, run measuredFunc, in interpreter.ToolInput, logger *slog.Logger,
) outcome {
	done := make(chan outcome, 1)
	go protectRun(bounded, run, in, logger, done)
	ticks, stop := heartbeatTicks(ctx)
	defer stop()
	ended, stopping := bounded.Done(), stopChannel(ctx)
	var graceOver, abandoned <-chan time.Time
	for {
		select {
		case o := <-done:
			return o
		case <-ticks:
			b.delivery.beatUnlessReported(ctx)
		case <-stopping:
			stopping, graceOver = nil, time.After(WorkerOf(ctx).StopGrace)
			if b.withdrawAttempt() {
				end(ErrReleased)
			}
		case <-graceOver:
			end(ErrCut)
		case <-ended:
			ended, abandoned = nil, time.After(StopGrace)
		case <-abandoned:
			tool.Logger(ctx, logger, in).Warn("a tool did not stop in time and was abandoned", "tool", in.Tool)
			return outcome{err: bounded.Err()}
		}
	}
}

// protectRun makes the attempt and returns its outcome, whatever happens. A panic
// becomes an error; its stack goes to the worker's log and not to the history.
func protectRun(ctx context.Context, run measuredFunc, in interpreter.ToolInput, logger *slog.Logger, done chan<- outcome) {
	var o outcome
	answered := false // stays where the goroutine ends without a return and without a panic
	defer func() {
		r := recover()
		if r == nil && !answered {
			o.err = tool.Errorf("tool %q ended without a result", in.Tool)
		}
		if r != nil {
			tool.Logger(ctx, logger, in).Error("a tool panicked", "tool", in.Tool,
				"panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			o.err = tool.Errorf("tool %q panicked: %v", in.Tool, r)
		}
		done <- o
	}()
	o.result, o.size, o.err = run(ctx, in)
	answered = true
}

// heartbeatTicks returns the ticks at which an attempt sends a heartbeat; none for an attempt
// within an activity that sends its own.
func heartbeatTicks(ctx context.Context) (<-chan time.Time, func()) {
	if !activity.IsActivity(ctx) || IsHosted(ctx) {
		return nil, func() {}
	}
	return heartbeat.Ticker(ctx)
}

// checkSize refuses a result of more than most bytes of JSON, which Temporal or
// the payload store would not take. Temporal refuses in a way that repeats the
// attempt.
func checkSize(result interpreter.ToolResult, in interpreter.ToolInput, most int) (int, error) {
	size, err := sizeOfResult(result)
	if err != nil {
		return size, tool.Errorf("step %q: the result of tool %q cannot be written as JSON: %w", in.Step, in.Tool, err)
	}
	if size > most {
		return size, tool.TooLargeErrorf("step %q: the result of one attempt has %d bytes of JSON, the limit is %d; request less at a time",
			in.Step, size, most)
	}
	return size, nil
}

// errSpent is the cause of an attempt that is not made again.
var errSpent = errors.New("the attempt was dispatched too often")

// activityError says why the attempt ended: the worker's stop, a
// cancel, a server that was out of reach, its own time, or the tool. For an
// attempt inside a Drive the first and the third end the Drive.
func activityError(
	ctx, bounded context.Context, err error, b *beginning, in interpreter.ToolInput, limit time.Duration, secrets *tool.Secrets,
) error {
	switch cause := stopCause(ctx, bounded, b, err); {
	case errors.Is(err, errSpent):
		object := b.delivery.State.ExhaustedFailure(in.Lost)
		object.Attempt, object.Page = in.Attempt, in.Page
		return ApplicationError(object)
	case cause != nil && b.hosted:
		return cause
	case cause != nil:
		b.delivery.RecordReturn(ctx, errors.Is(cause, ErrCut))
		return RedeliveryError(cause)
	case IsRunCancelled(ctx):
		return ctx.Err() // the activity ends as canceled
	case ctx.Err() != nil && (tool.IsContextError(err) || !b.hasBegun()):
		return RedeliveryError(ErrDisconnected)
	}
	if errors.Is(context.Cause(bounded), tool.ErrTimeout) && tool.IsContextError(err) {
		err = withRequestOf(err, timeoutError(err, in, limit))
	}
	if turn := b.turnSeconds(); turn > 0 {
		return ApplicationError(errorObject(err, in, secrets), turn)
	}
	return ApplicationError(errorObject(err, in, secrets))
}

// withRequestOf adds the request that one error names to another error.
func withRequestOf(of, err error) error {
	var requested *tool.RequestError
	if !errors.As(of, &requested) {
		return err
	}
	return &tool.RequestError{URL: requested.URL, Params: requested.Params, Err: err}
}

// timeoutError returns the error of an attempt whose time is over.
func timeoutError(err error, in interpreter.ToolInput, limit time.Duration) *tool.Error {
	e := &tool.Error{
		Kind: interpreter.KindTimeout, Class: interpreter.ClassRetryable,
		Message: fmt.Sprintf("step %q: the attempt took longer than its timeout of %s", in.Step, limit),
	}
	if _, ok := errors.AsType[*memory.WaitError](err); ok {
		e.Message += fmt.Sprintf("; it waited for memory that other attempts of its worker used (%s)", memory.Variable)
	}
	if waited, ok := errors.AsType[*tool.TokenWaitError](err); ok {
		e.Message += fmt.Sprintf("; it waited for a token of connection %q", waited.Connection)
	}
	return e
}

// stopCause returns ErrReleased or ErrCut if the attempt ended because its worker stops, else
// nil.
func stopCause(ctx, bounded context.Context, b *beginning, err error) error {
	switch cause := context.Cause(bounded); {
	case errors.Is(err, ErrReleased), WorkerStopping(ctx) && !b.hasBegun():
		return ErrReleased
	case errors.Is(cause, ErrCut) && tool.IsContextError(err), WorkerStopped(ctx):
		return ErrCut
	}
	return nil
}

// ErrDisconnected ends an attempt that the server may have assigned to another worker.
var ErrDisconnected = errors.New("the worker lost its connection to the server during the attempt")

// RedeliveryError returns the failure of a delivery that Temporal repeats. It needs nobody's attention.
func RedeliveryError(cause error) error { return DelayedRedeliveryError(0, undeliveredError(cause)) }

// RedeliveryWhenBack is RedeliveryError of a delivery whose destination has been away for so long.
func RedeliveryWhenBack(away time.Duration, cause error) error {
	return DelayedRedeliveryError(NextDelivery(away), undeliveredError(cause))
}

// undeliveredError returns the error of an activity that Temporal delivers again. It does not count as a
// failed attempt.
func undeliveredError(cause error) interpreter.ErrorObject {
	return interpreter.ErrorObject{Kind: interpreter.KindWorkerLost, Class: interpreter.ClassRetryable, Message: cause.Error()}
}

// NextDelivery returns how long Temporal waits before it delivers the activity again. The delay grows
// while a destination is unreachable, so that recallPatience ends before the activity reaches 1000
// deliveries, the most it gets.
func NextDelivery(away time.Duration) time.Duration {
	return min(max(away/60, time.Second), 15*time.Second)
}

// DelayedRedeliveryError is RedeliveryError after a delay; 0 means the retry interval of the activity.
func DelayedRedeliveryError(delay time.Duration, object interpreter.ErrorObject) error {
	return temporal.NewApplicationErrorWithOptions(object.Message, string(object.Kind), temporal.ApplicationErrorOptions{
		Details: []any{object}, Category: temporal.ApplicationErrorCategoryBenign, NextRetryDelay: delay,
	})
}

// IsRunCancelled reports whether the run was cancelled. A context also ends when its worker stops or
// when the server is unreachable.
func IsRunCancelled(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return temporal.IsCanceledError(cause) || errors.Is(cause, context.Canceled)
}

// WorkerStopped reports whether a context ended with its worker.
func WorkerStopped(ctx context.Context) bool {
	return ctx.Err() != nil && !temporal.IsCanceledError(context.Cause(ctx)) && WorkerStopping(ctx)
}

// ApplicationError returns the failure of an attempt, which Temporal does not make
// again.
func ApplicationError(object *interpreter.ErrorObject, further ...any) error {
	return temporal.NewApplicationErrorWithOptions(object.Message, string(object.Kind), temporal.ApplicationErrorOptions{
		NonRetryable: true,
		Details:      append([]any{*object}, further...),
	})
}
