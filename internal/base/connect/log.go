package connect

import (
	"context"
	"errors"
	"log/slog"

	"go.temporal.io/sdk/temporal"
)

// activityError is what the SDK says of every activity that ends with an error,
// as an error of its worker.
const activityError = "Activity error."

// decided quiets what the SDK says of attempts that failed: policies decide about
// those, and the worker logs what they decided. Any other error stays one.
type decided struct{ slog.Handler }

func (d decided) Handle(ctx context.Context, record slog.Record) error {
	if record.Message == activityError && isOutcome(record) {
		if !d.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		record.Level = slog.LevelDebug
	}
	return d.Handler.Handle(ctx, record)
}

// WithAttrs keeps what Handle does.
func (d decided) WithAttrs(attrs []slog.Attr) slog.Handler {
	return decided{d.Handler.WithAttrs(attrs)}
}

// WithGroup keeps what Handle does.
func (d decided) WithGroup(name string) slog.Handler { return decided{d.Handler.WithGroup(name)} }

// isOutcome reports whether the error of a record is the outcome of an attempt,
// which Temporal does not make again, or a cancel.
func isOutcome(record slog.Record) (is bool) {
	record.Attrs(func(attr slog.Attr) bool {
		err, isError := attr.Value.Any().(error)
		if !isError {
			return true
		}
		var outcome *temporal.ApplicationError
		is = temporal.IsCanceledError(err) || errors.As(err, &outcome) && outcome.NonRetryable() && outcome.HasDetails()
		return false
	})
	return is
}
