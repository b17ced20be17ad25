package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/connect"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
)

// statusOptions is the command line of status.
type statusOptions struct {
	run    runFlags
	watch  bool
	step   string
	output string
}

const statusLong = `Say where a run is: its steps with their states, what they wait for and why.

` + idHelp + `

The states are pending, running, retry_pending, paused, completed, partial_success,
failed, cancelled and skipped. An attempt is numbered from 1, with how many a
request gets that goes on failing. With --step the iterations of that step are
listed which failed, wait or are under way, with what the runs of other playbooks
wait for that they have started.

It asks the run and its loops, not the histories of iterations, in ten calls to the
server at most, however large the loop is; --step takes one more for each child of the
loop that is open, and for each such run. Exit status: 0 whatever the run's state is, 2 where there is no
such run or step, 3 no server.`

func newStatusCommand(a *app) *cobra.Command {
	options := &statusOptions{}
	command := &cobra.Command{
		Use: "status [ID]", Short: "Say where a run is and what it waits for", Long: statusLong,
		Example: `  starter status
  starter status patients-7x2k --watch
  starter status patients --step fetch
  starter status patients-7x2k --output json | jq '.steps[] | select(.status == "retry_pending")'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkOutput(options.output); err != nil {
				return err
			}
			if options.watch && options.output == "json" {
				return usageError("--watch is for eyes; %s events --follow --output jsonl is for programs", terminal.Program())
			}
			return a.withRun(&options.run, args, func(ctx context.Context, s *session, found runs.Found) error {
				return a.status(ctx, s, found, options)
			})
		},
	}
	command.Flags().BoolVar(&options.watch, "watch", false, "go on until the run has ended")
	command.Flags().StringVar(&options.step, "step", "", "also the iterations of this step")
	options.run.add(command)
	outputFlag(command, &options.output)
	return command
}

func (a *app) status(ctx context.Context, s *session, found runs.Found, options *statusOptions) error {
	status, err := s.status(ctx, found, options.step)
	if err != nil {
		return err
	}
	if options.output == "json" {
		return terminal.PrintJSON(a.Out, status)
	}
	if options.watch && !found.Ended() {
		return a.watchStatus(ctx, s, status, options)
	}
	render.Status(a.Out, status, terminal.PaperOf(a.Out))
	return nil
}

// status reads the status of a run, with the iterations of a step unless that is "".
func (s *session) status(ctx context.Context, found runs.Found, step string) (*runs.Status, error) {
	status, err := s.runs().Status(ctx, found, time.Now())
	if err != nil || step == "" || len(status.Steps) == 0 {
		return status, err
	}
	if err := knownStep(step, status.Names()); err != nil {
		return nil, err
	}
	for _, visit := range status.Visits(step) {
		s.runs().Iterations(ctx, status, visit)
	}
	return status, nil
}

// watchInterval is the shortest pause between two polls of status --watch.
const watchInterval = 2 * time.Second

// watchStatus shows where the run is until it has ended: on a terminal in one
// place, else whenever something has changed.
func (a *app) watchStatus(ctx context.Context, s *session, status *runs.Status, options *statusOptions) error {
	shown, since := newWatchScreen(a.Streams), time.Now()
	for {
		shown.show(status)
		if status.Ended() {
			return nil
		}
		if !pause(ctx, pollInterval(watchInterval, time.Since(since), time.Since(status.At))) {
			return withStatus(exitInterrupted, errSaid)
		}
		found, err := s.runs().Find(ctx, status.WorkflowID, status.RunID)
		var next *runs.Status
		if err == nil {
			next, err = s.status(ctx, found, options.step)
		}
		switch {
		case err == nil:
			status = next
		case ctx.Err() != nil:
			return withStatus(exitInterrupted, errSaid)
		case !connect.Unreachable(err):
			return err
		}
	}
}
