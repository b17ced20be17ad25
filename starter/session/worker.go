package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/program/localserver"
	"reprise/internal/program/start"
	"reprise/interpreter"
	"reprise/starter/cli"
)

// WithWorker calls work with a server that has a worker. If there is none and bringsUp is set, it starts both. why
// says what the worker is needed for.
func WithWorker(a *cli.App, server *ServerFlags, local *LocalFlags, bringsUp bool, why string, work func(context.Context, *Session) error) error {
	ctx := a.Interrupts.Graceful
	s, err := server.ConnectExisting(ctx)
	if err == nil && s == nil && bringsUp {
		a.Notef("starting a local Temporal server and a worker")
		a.Interrupts.EndsInOrder()
		s, err = local.StartLocal(ctx, localserver.Options{}, *server)
	} else if err == nil && s == nil {
		s, err = server.connectStored(ctx) // which says how to name one
	}
	if err != nil {
		if ctx.Err() != nil {
			return start.ErrInterrupted
		}
		return err
	}
	defer func() { s.End(a.Interrupts.Now.Err() != nil) }()
	s.noteStore(ctx, a.Streams)
	if err := s.NeedsWorker(ctx, why); err != nil {
		return err
	}
	return work(ctx, s)
}

// NeedsWorker returns an error if no worker polls the session's task queue. why says what the worker is needed for.
func (s *Session) NeedsWorker(ctx context.Context, why string) error {
	if s.worker != nil {
		return nil
	}
	workers, err := s.Runs().Workers(ctx, s.TaskQueue)
	if err == nil && workers.Count == 0 {
		err = cli.WithStatus(exitcode.NoServer, fmt.Errorf("no worker polls task queue %q, and %s", s.TaskQueue, why))
	}
	return err
}

// workerTimeout bounds how long a command waits for a worker's result.
const workerTimeout = 5 * time.Minute

// OnWorker executes a workflow on behalf of the command, and returns its result. what is the prefix of errors.
func OnWorker[T any](ctx context.Context, s *Session, id, workflow, what string, input any) (result T, err error) {
	run, err := s.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: s.TaskQueue, WorkflowExecutionTimeout: workerTimeout,
	}, workflow, input)
	if err == nil {
		err = run.Get(ctx, &result)
	}
	var failure interpreter.ErrorObject
	var refused *temporal.ApplicationError
	var late *temporal.TimeoutError
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return result, start.ErrInterrupted
	case errors.As(err, &refused) && refused.HasDetails() && refused.Details(&failure) == nil && failure.Message != "":
		return result, fmt.Errorf("%s: %s", what, failure.Message)
	case errors.As(err, &refused):
		return result, fmt.Errorf("%s: %s", what, refused.Message())
	case errors.As(err, &late):
		return result, fmt.Errorf("the worker did not respond within %s", terminal.Duration(workerTimeout))
	}
	return result, fmt.Errorf("%s: %w", what, err)
}
