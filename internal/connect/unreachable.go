package connect

import (
	"context"
	"errors"

	"go.temporal.io/api/serviceerror"
)

// Unreachable reports whether an error says that the server could not be asked,
// or did not answer: what was asked for is not known, and may be later.
func Unreachable(err error) bool {
	var (
		unavailable *serviceerror.Unavailable
		late        *serviceerror.DeadlineExceeded
		busy        *serviceerror.ResourceExhausted
		ended       *serviceerror.Canceled
	)
	return errors.As(err, &unavailable) || errors.As(err, &late) || errors.As(err, &busy) || errors.As(err, &ended) ||
		errors.Is(err, context.DeadlineExceeded)
}
