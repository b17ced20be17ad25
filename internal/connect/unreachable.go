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
		broken      *serviceerror.Internal // its database is away, or it cannot read what that says
	)
	return errors.As(err, &unavailable) || errors.As(err, &late) || errors.As(err, &busy) || errors.As(err, &ended) || errors.As(err, &broken) ||
		errors.Is(err, context.DeadlineExceeded)
}

// Waits reports whether an error says that a server is there and cannot answer for
// now, such as one whose database is away. Where nothing is there, Waits is false:
// the address may be wrong.
func Waits(err error) bool {
	var none *NoServerError
	return Unreachable(err) && (!errors.As(err, &none) || none.reached)
}
