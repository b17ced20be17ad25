// Package look has the commands that show runs: `status`, `list`, `follow`, `events`, `logs`,
// `stats`, `report`.
package look

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/connect"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/sleep"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/starter/cli"
	"reprise/starter/session"
)

// StatusOptions are the flags of status.
type StatusOptions struct {
	Run    session.RunFlags
	follow bool
	Step   string
	Output string
}

// NewStatusCommand returns the command status.
func NewStatusCommand(a *cli.App) *cobra.Command {
	options := &StatusOptions{}
	command := &cobra.Command{
		Use: "status [RUN [STEP]]", Args: cobra.MaximumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if options.follow && options.Output == "json" {
				return cli.UsageError("--follow is for people; %s events --follow --output jsonl is for programs", terminal.ProgramName())
			}
			return ShowStatus(a, args, options)
		},
	}
	command.Flags().BoolVar(&options.follow, "follow", false, "show the status until the run has ended")
	cli.RenamedFlag(command, "watch", "follow")
	command.Flags().StringVar(&options.Step, "step", "", "also the iterations of this step; same as STEP")
	options.Run.Add(command)
	cli.OutputFlag(command, &options.Output)
	return command
}

// ShowStatus prints the status of the run that the arguments select.
func ShowStatus(a *cli.App, args []string, options *StatusOptions) error {
	args, err := cli.StepOf(args, &options.Step)
	if err != nil {
		return err
	}
	return session.WithRun(a, &options.Run, args, func(ctx context.Context, s *session.Session, found runs.Found) error {
		return printStatus(ctx, a.Streams, s, found, options)
	})
}

func printStatus(ctx context.Context, streams cli.Streams, s *session.Session, found runs.Found, options *StatusOptions) error {
	status, err := ReadStatus(ctx, s, found, options.Step)
	if err != nil {
		return err
	}
	if options.Output == "json" {
		return terminal.PrintJSON(streams.Out, status)
	}
	if options.follow && !found.Ended() {
		return watchStatus(ctx, streams, s, status, options)
	}
	render.PrintStatus(streams.Out, status, terminal.PaperOf(streams.Out))
	return nil
}

// ReadStatus reads the status of a run, with the iterations of a step unless step is "".
func ReadStatus(ctx context.Context, s *session.Session, found runs.Found, step string) (*runs.Status, error) {
	status, err := s.Runs().Status(ctx, found, time.Now())
	if err != nil || step == "" || len(status.Steps) == 0 {
		return status, err
	}
	if err := cli.KnownStep(step, status.Names()); err != nil {
		return nil, err
	}
	for _, visit := range status.Visits(step) {
		s.Runs().AddIterations(ctx, status, visit)
	}
	return status, nil
}

// watchInterval is the shortest pause between polls of status --follow, which read more than those of follow.
const watchInterval = 2 * time.Second

// watchStatus shows the status until the run has ended: redrawn at a terminal, else whenever something changes.
func watchStatus(ctx context.Context, streams cli.Streams, s *session.Session, status *runs.Status, options *StatusOptions) error {
	shown, since := newWatchScreen(streams), time.Now()
	pace := PaceOf(s, shown.live != nil)
	pace.Least = max(pace.Least, watchInterval)
	for {
		shown.showStatus(status)
		if status.Ended() {
			return nil
		}
		if sleep.For(ctx, pace.Pause(time.Since(since), time.Since(status.At))) != nil {
			return cli.WithStatus(exitcode.Interrupted, cli.ErrSaid)
		}
		found, err := s.Runs().Find(ctx, status.WorkflowID, status.RunID)
		var next *runs.Status
		if err == nil {
			next, err = ReadStatus(ctx, s, found, options.Step)
		}
		switch {
		case err == nil:
			status = next
		case ctx.Err() != nil:
			return cli.WithStatus(exitcode.Interrupted, cli.ErrSaid)
		case !connect.IsUnreachable(err):
			return err
		}
	}
}
