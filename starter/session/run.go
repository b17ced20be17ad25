package session

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/deadletter"
	"reprise/internal/observe/runs"
	"reprise/internal/program/rollout"
	"reprise/internal/program/steer"
	"reprise/starter/cli"
)

// DeadLetters returns a reader of dead letters.
func (s *Session) DeadLetters() *deadletter.Reader {
	return &deadletter.Reader{Reader: runs.Reader{Client: s.Client, Store: s.Store}}
}

// RunFlags are the flags that select a run to read.
type RunFlags struct {
	Server ServerFlags
	RunID  string
}

// Add adds the flags to a command.
func (f *RunFlags) Add(command *cobra.Command) {
	command.Flags().StringVarP(&f.RunID, "run-id", "r", "", "run ID, if several runs had the workflow ID; default: the latest")
	f.Server.Add(command)
}

// Runs returns a reader of runs.
func (s *Session) Runs() *runs.Reader {
	return &runs.Reader{Client: s.Client, Store: s.Store, Namespace: s.Namespace}
}

// Deployment finds the worker deployment with a name; with "" that of the session's task queue.
func (s *Session) Deployment(ctx context.Context, name string) (*rollout.Deployment, error) {
	deployment, err := rollout.FindDeployment(ctx, s.Runs(), name, s.TaskQueue)
	if _, none := errors.AsType[*rollout.NoDeploymentError](err); none {
		return nil, cli.WithStatus(exitcode.Usage, err)
	}
	return deployment, err
}

// WithServer calls work with a connection to a permanent server. ctx ends when the command is interrupted.
func WithServer(a *cli.App, server *ServerFlags, work func(context.Context, *Session) error) error {
	ctx := a.Interrupts.Graceful
	s, err := server.connectStored(ctx)
	if err != nil {
		return err
	}
	defer s.End(false)
	s.noteStore(ctx, a.Streams)
	return work(ctx, s)
}

// NeedsStore returns an error, and ends the session, if the payload store is known to be unavailable.
func (s *Session) NeedsStore(ctx context.Context) error {
	err := s.Store.UnavailableReason(ctx)
	if err == nil {
		return nil
	}
	s.End(false)
	return cli.WithStatus(exitcode.Usage, err)
}

// noteStore prints a note if the payload store is unavailable; most commands work without it.
func (s *Session) noteStore(ctx context.Context, streams cli.Streams) {
	if err := s.Store.UnavailableReason(ctx); err != nil {
		streams.Notef("note: %v; large values of runs cannot be read or written here", err)
	}
}

// WithRun calls work with the run that the arguments select.
func WithRun(a *cli.App, flags *RunFlags, args []string, work func(context.Context, *Session, runs.Found) error) error {
	id := strings.Join(args, "")
	if len(args) > 0 || flags.RunID != "" {
		if id == "" && flags.RunID != "" {
			return cli.UsageError("--run-id needs an ID")
		}
		if err := cli.CheckRun(id, flags.RunID); err != nil {
			return err
		}
	}
	return WithServer(a, &flags.Server, func(ctx context.Context, s *Session) error {
		found, err := FindRun(ctx, a.Streams, s, id, flags.RunID)
		if err != nil {
			return err
		}
		s.TaskQueue = found.TaskQueue
		return work(ctx, s, found)
	})
}

// FindRun finds a run. For an empty ID it is the newest run, whose name is printed.
func FindRun(ctx context.Context, streams cli.Streams, s *Session, id, runID string) (runs.Found, error) {
	found, err := s.Runs().Find(ctx, id, runID)
	if err == nil && id == "" {
		streams.Notef("the newest run: %s", found.WorkflowID)
	}
	return found, FindError(streams, s, err)
}

// FindError adds to an error about a run that was not found what would work.
func FindError(streams cli.Streams, s *Session, err error) error {
	var unknown *runs.UnknownError
	var ambiguous *runs.AmbiguousError
	switch {
	case errors.As(err, &unknown) && unknown.ID == "":
		return cli.UsageError("%w on %s, namespace %s; start one with %s run FILE", err, s.Address, s.Namespace, terminal.ProgramName())
	case errors.As(err, &unknown) && unknown.Nearest == "":
		return cli.UsageError("%w on %s, namespace %s; %s list shows the existing ones", err, s.Address, s.Namespace, terminal.ProgramName())
	case errors.Is(err, runs.ErrNotFound), errors.As(err, &ambiguous):
		return cli.UsageError("%w", err)
	}
	return err
}

// Dispatcher returns a sender of commands to runs on the session's server.
func (s *Session) Dispatcher() *steer.Dispatcher {
	return &steer.Dispatcher{Client: s.Client, Namespace: s.Namespace, Runs: s.Runs()}
}
