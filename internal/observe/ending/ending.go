// Package ending reads how a run ended, for the programs that started it: the command line and
// tests. Workflows do not use it.
package ending

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// ErrNoResult means that a run ended without a result: it was terminated or timed out.
var ErrNoResult = errors.New("the run ended without a result")

// ErrRefused means that validation refused the playbook, so nothing of it ran.
var ErrRefused = errors.New("the worker refused the playbook")

// ChildReader returns what reads the end of the child run that a failure comes from, with two calls to the server, for
// render.EndedRun.ReadChild.
func ChildReader(ctx context.Context, reader *runs.Reader) func(*interpreter.ErrorObject) *render.EndedRun {
	return func(failure *interpreter.ErrorObject) *render.EndedRun {
		id, _ := failure.FailedRun()
		if id == "" {
			return nil
		}
		end, err := runs.ReadEnd(ctx, reader, id)
		if err != nil {
			return nil
		}
		return &render.EndedRun{WorkflowID: id, Result: end.Result, Partition: end.Partition, Book: end.Book, ReadChild: ChildReader(ctx, reader)}
	}
}

// WaitForResult waits for a run and returns its result, whatever its status: the result of a failed or cancelled run is in the
// details of its failure. An error that wraps ErrRefused or ErrNoResult means that the run ended without a result; any
// other error, that its result could not be read.
func WaitForResult(ctx context.Context, run client.WorkflowRun) (protocol.Result, error) {
	var result protocol.Result
	err := run.Get(ctx, &result)
	if err == nil || protocol.DecodeDetails(err, &result) {
		return result, nil
	}
	if _, ok := errors.AsType[*temporal.WorkflowExecutionError](err); !ok {
		return protocol.Result{}, fmt.Errorf("wait for run %s: %w", run.GetID(), err)
	}
	if application, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		if application.Type() == protocol.InvalidPlaybook || application.Type() == interpreter.UnknownPlaybook {
			return protocol.Result{}, fmt.Errorf("%w:\n%s", ErrRefused, strings.TrimRight(application.Message(), "\n"))
		}
		return protocol.Result{}, fmt.Errorf("%w: %s", ErrNoResult, application.Message())
	}
	if _, ok := errors.AsType[*temporal.CanceledError](err); ok {
		return protocol.Result{Status: interpreter.Cancelled}, nil
	}
	return protocol.Result{}, fmt.Errorf("%w: %w", ErrNoResult, err)
}
