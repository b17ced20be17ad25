package cli

import (
	"errors"
	"fmt"

	"reprise/internal/base/connect"
	"reprise/internal/base/exitcode"
	"reprise/internal/program/start"
)

// StatusError carries an exit status to Main. An empty message means that
// everything has been said.
type StatusError struct {
	Status int
	err    error
}

func (e *StatusError) Error() string { return e.err.Error() }

func (e *StatusError) Unwrap() error { return e.err }

// ErrSaid ends a command whose output already says everything.
var ErrSaid = errors.New("")

// WithStatus returns an error with the exit status of the command.
func WithStatus(status int, err error) error { return &StatusError{Status: status, err: err} }

// StatusOf returns the exit status of a command that ended with an error.
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

// UsageError returns a mistake in what the user entered.
func UsageError(format string, args ...any) error {
	return WithStatus(exitcode.Usage, fmt.Errorf(format, args...))
}
