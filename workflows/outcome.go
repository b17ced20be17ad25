package workflows

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/interpreter"
)

// ErrNoResult says that a run ended without telling its result: it was
// terminated, or timed out.
var ErrNoResult = errors.New("the run ended without a result")

// ErrRefused says that the playbook was refused at the door; nothing of it ran.
var ErrRefused = errors.New("the worker refused the playbook")

// Outcome waits for a run and gives its result, whatever its status: that of a
// failed or cancelled run travels in the details of its failure. An error that
// wraps ErrRefused or ErrNoResult says that the run has ended without one; any
// other, that how it ended could not be learnt.
func Outcome(ctx context.Context, run client.WorkflowRun) (Result, error) {
	var result Result
	err := run.Get(ctx, &result)
	if err == nil || DetailsOf(err, &result) {
		return result, nil
	}
	var ended *temporal.WorkflowExecutionError
	if !errors.As(err, &ended) {
		return Result{}, fmt.Errorf("wait for run %s: %w", run.GetID(), err)
	}
	var application *temporal.ApplicationError
	if errors.As(err, &application) {
		if application.Type() == InvalidPlaybook {
			return Result{}, fmt.Errorf("%w:\n%s", ErrRefused, strings.TrimRight(application.Message(), "\n"))
		}
		return Result{}, fmt.Errorf("%w: %s", ErrNoResult, application.Message())
	}
	if isCancelled(err) {
		return Result{Status: interpreter.Cancelled}, nil
	}
	return Result{}, fmt.Errorf("%w: %w", ErrNoResult, err)
}
