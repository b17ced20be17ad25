package cli

import (
	"errors"
	"fmt"

	"reprise/internal/base/connect"
	"reprise/internal/base/exitcode"
	"reprise/internal/program/start"
)

// StatusError is an error with an exit status for Main. An empty message means that there is nothing more to print.
type StatusError struct {
	Status int
	err    error
}

func (e *StatusError) Error() string { return e.err.Error() }

func (e *StatusError) Unwrap() error { return e.err }

// ErrSaid ends a command whose output already describes the failure.
var ErrSaid = errors.New("")

// WithStatus returns an error that sets the exit status of the command.
func WithStatus(status int, err error) error { return &StatusError{Status: status, err: err} }

// StatusOf returns the exit status for the error of a command.
func StatusOf(err error) int {
	var stated *StatusError
	switch {
	case errors.Is(err, ErrInterrupted):
		return exitcode.Interrupted
	case errors.As(err, &stated):
		return stated.Status
	case errors.Is(err, start.ErrInterrupted):
		return exitcode.Interrupted
	case connect.IsUnreachable(err):
		return exitcode.NoServer
	}
	return exitcode.Failed
}

// UsageError returns an error for a mistake in the command line.
func UsageError(format string, args ...any) error {
	return WithStatus(exitcode.Usage, fmt.Errorf(format, args...))
}
