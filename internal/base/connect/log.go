package connect

import (
	"context"
	"errors"
	"log/slog"

	"go.temporal.io/sdk/temporal"
)

// activityError is the message that the SDK logs, as an error, for every activity that fails.
const activityError = "Activity error."

// quietHandler logs failed attempts at debug level: the SDK logs them as errors, but policies decide about them, and the
// worker logs the decision. Other errors stay errors.
type quietHandler struct{ slog.Handler }

func (d quietHandler) Handle(ctx context.Context, record slog.Record) error {
	if record.Message == activityError && isOutcome(record) {
		if !d.Enabled(ctx, slog.LevelDebug) {
			return nil
		}
		record.Level = slog.LevelDebug
	}
	return d.Handler.Handle(ctx, record)
}

// WithAttrs keeps the filter of Handle.
func (d quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{d.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the filter of Handle.
func (d quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{d.Handler.WithGroup(name)}
}

// isOutcome reports whether a record's error is the outcome of an attempt, which Temporal does not retry, or a
// cancellation.
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
