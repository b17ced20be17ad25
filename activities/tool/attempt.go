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

// Attempt is what makes an attempt of a tool. It is safe for concurrent use.
type Attempt interface {
	// Begin is called right before the tool acts. An error says that it must not.
	Begin(ctx context.Context) error
	// Answered is called once the other side surely has what the tool sent.
	Answered()
	// Receives is called before the tool reads much at once.
	Receives(ctx context.Context)
	// Progressed is called once more of a long attempt is done permanently, so that whoever makes it again need not do it: rows is how
	// many rows that is by now.
	Progressed(ctx context.Context, rows int64)
	// Propagate adds to the headers of a request what identifies to the other side the
	// attempt.
	Propagate(ctx context.Context, headers http.Header)
}

type attemptKey struct{}

// WithAttempt gives the host of an attempt to its tool.
func WithAttempt(ctx context.Context, host Attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, host)
}

// AttemptOf is the host of an attempt, nil outside of one.
func AttemptOf(ctx context.Context) Attempt {
	host, _ := ctx.Value(attemptKey{}).(Attempt)
	return host
}

// Begin is called by tools right before they act. An error says that the attempt must
// not act; the tool returns it as it is.
func Begin(ctx context.Context) error {
	if host := AttemptOf(ctx); host != nil {
		return host.Begin(ctx)
	}
	return nil
}

// Answered is called by tools once the other side surely has what they sent.
func Answered(ctx context.Context) {
	if host := AttemptOf(ctx); host != nil {
		host.Answered()
	}
}

// Receives is called by tools before they read much at once: should the worker be lost
// then, this may be why.
func Receives(ctx context.Context) {
	if host := AttemptOf(ctx); host != nil {
		host.Receives(ctx)
	}
}

// Progressed is called by tools once more of a long attempt is done permanently: a worker that is lost then is lost by something else.
func Progressed(ctx context.Context, rows int64) {
	if host := AttemptOf(ctx); host != nil {
		host.Progressed(ctx, rows)
	}
}

// Propagate adds to the headers of a request what identifies to the other side the attempt.
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

// Logger is the logger of an attempt: every record says which attempt of
// which run it is about, and holds none of the attempt's secrets. It is made where
// there is something to log, which is seldom.
func Logger(ctx context.Context, worker *slog.Logger, in interpreter.ToolInput) *slog.Logger {
	fields := call.LogFields(in.Step, in.Visit, in.Index, in.Place, in.Page, in.Attempt, in.OperationKey)
	if activity.IsActivity(ctx) {
		id := activity.GetInfo(ctx).WorkflowExecution.ID
		fields = append(fields, "run", cmp.Or(in.ControlID, id), "workflow", id)
	}
	return slog.New(SecretsOf(ctx).Handler(worker.Handler())).With(fields...)
}
