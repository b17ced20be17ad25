package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/connect"
	"reprise/internal/base/sleep"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
)

// statusOptions is the command line of status.
type statusOptions struct {
	run    runFlags
	follow bool
	step   string
	output string
}

func newStatusCommand(a *app) *cobra.Command {
	options := &statusOptions{}
	command := &cobra.Command{
		Use: "status [RUN [STEP]]", Args: cobra.MaximumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if options.follow && options.output == "json" {
				return usageError("--follow is for people; %s events --follow --output jsonl is for programs", terminal.Program())
			}
			return a.showStatus(args, options)
		},
	}
	command.Flags().BoolVar(&options.follow, "follow", false, "show the status until the run has ended")
	renamedFlag(command, "watch", "follow")
	command.Flags().StringVar(&options.step, "step", "", "also the iterations of this step; same as STEP")
	options.run.add(command)
	outputFlag(command, &options.output)
	return command
}

// showStatus shows the status of the run that arguments name.
func (a *app) showStatus(args []string, options *statusOptions) error {
	args, err := stepOf(args, &options.step)
	if err != nil {
		return err
	}
	return a.withRun(&options.run, args, func(ctx context.Context, s *session, found runs.Found) error {
		return a.status(ctx, s, found, options)
	})
}

func (a *app) status(ctx context.Context, s *session, found runs.Found, options *statusOptions) error {
	status, err := s.status(ctx, found, options.step)
	if err != nil {
		return err
	}
	if options.output == "json" {
		return terminal.PrintJSON(a.Out, status)
	}
	if options.follow && !found.Ended() {
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

// watchInterval is the shortest pause between two polls of status --follow.
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
		if sleep.For(ctx, pollInterval(watchInterval, time.Since(since), time.Since(status.At))) != nil {
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
