package tool

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"

	"go.temporal.io/sdk/activity"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// Attempt makes attempts of a tool. It is safe for concurrent use.
type Attempt interface {
	// Begin is called right before the tool acts. An error says that it must not.
	Begin(ctx context.Context) error
	// MarkAnswered is called once the other side has certainly received what the tool sent.
	MarkAnswered()
	// MarkReceiving is called before the tool reads much data at once.
	MarkReceiving(ctx context.Context)
	// MarkProgress is called after a part of a long attempt is permanently done. done has the
	// rows so far, which the next delivery of the attempt does not repeat; nil where no row was written since.
	MarkProgress(ctx context.Context, done *interpreter.HostedStep)
	// Propagate adds the request headers that identify the attempt to the other side.
	Propagate(ctx context.Context, headers http.Header)
}

type attemptKey struct{}

// WithAttempt makes the host of an attempt available to the tool through the context.
func WithAttempt(ctx context.Context, host Attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, host)
}

// AttemptOf returns the host of the attempt, nil outside of an attempt.
func AttemptOf(ctx context.Context) Attempt {
	host, _ := ctx.Value(attemptKey{}).(Attempt)
	return host
}

// BeginAttempt is called by tools right before they act. On error the attempt must not act, and the
// tool returns the error unchanged.
func BeginAttempt(ctx context.Context) error {
	if host := AttemptOf(ctx); host != nil {
		return host.Begin(ctx)
	}
	return nil
}

// MarkAnswered is called by tools once the other side has certainly received what they sent.
func MarkAnswered(ctx context.Context) {
	if host := AttemptOf(ctx); host != nil {
		host.MarkAnswered()
	}
}

// AwaitMemory is called by a tool before it reads much data at once. If the worker is lost then,
// the data may be the cause.
func AwaitMemory(ctx context.Context) {
	if host := AttemptOf(ctx); host != nil {
		host.MarkReceiving(ctx)
	}
}

// MarkProgress is called by a tool after a part of a long attempt is permanently done. If the
// worker is lost later, that part was not the cause.
func MarkProgress(ctx context.Context, done *interpreter.HostedStep) {
	if host := AttemptOf(ctx); host != nil {
		host.MarkProgress(ctx, done)
	}
}

// Propagate adds the request headers that identify the attempt to the other side.
func Propagate(ctx context.Context, headers http.Header) {
	if host := AttemptOf(ctx); host != nil {
		host.Propagate(ctx, headers)
	}
}

// ErrTimeout is the cause of a context that ended with the attempt's time.
var ErrTimeout = errors.New("the attempt's time is up")

// IsContextError distinguishes the error of a context that ended from one the tool
// found by itself just before.
func IsContextError(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, ErrTimeout)
}

// Logger returns the logger of an attempt: every record names the attempt and its run, without
// the attempt's secrets. It is created on demand, because most attempts log nothing.
func Logger(ctx context.Context, worker *slog.Logger, in interpreter.ToolInput) *slog.Logger {
	fields := call.LogFields(in.Step, in.Visit, in.Index, in.Place, in.Page, in.Attempt, in.OperationKey)
	if activity.IsActivity(ctx) {
		id := activity.GetInfo(ctx).WorkflowExecution.ID
		fields = append(fields, "run", cmp.Or(in.ControlID, id), "workflow", id)
	}
	return slog.New(SecretsOf(ctx).Handler(worker.Handler())).With(fields...)
}
