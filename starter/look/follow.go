package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/sleep"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/starter/cli"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// cancelPatience is how long a cancelled run may take to end.
const cancelPatience = 10 * time.Second

// outcome is the result of a run, or why it has none or is unknown.
type outcome struct {
	result protocol.Result
	err    error
}

// FollowOptions are the options of following a run.
type FollowOptions struct {
	Output string // table or json
	Quiet  bool   // show no progress, and send no queries to the run
	// SkipFails says that a run that is skipped has not done what the command is for.
	SkipFails bool
}

// AddFlags adds the flags to a command.
func (o *FollowOptions) AddFlags(command *cobra.Command) {
	command.Flags().BoolVarP(&o.Quiet, "quiet", "q", false, "show no progress: wait for the end without queries to the run")
	cli.OutputFlag(command, &o.Output)
}

// FollowRun shows the progress of a run, waits for its end, and prints its result.
func FollowRun(a *cli.App, s *session.Session, run client.WorkflowRun, options FollowOptions) error {
	return followWith(a, s, run, options, newContact(contactPatience))
}

func followWith(a *cli.App, s *session.Session, run client.WorkflowRun, options FollowOptions, link *contact) error {
	output := options.Output
	ctx, cancel := context.WithCancel(a.Interrupts.Now)
	defer cancel()
	ended := make(chan outcome, 1)
	go func() { ended <- link.awaitOutcome(ctx, run) }()
	stop := cli.RunInBackground(ctx, func(ctx context.Context) { watchObserver(ctx, a.Streams, newObserver(s, run), options.Quiet, link) })
	select {
	case end := <-ended:
		stop()
		if s.Server != nil && output == "table" {
			defer a.Advisef("The local server stops now; %s dev keeps one running, so that runs can be looked at later.", terminal.ProgramName())
		}
		return reportEnd(a, s, run, end, options)
	case <-s.ServerExited():
		stop()
		return reportEnd(a, s, run, outcome{err: s.LostError()}, options)
	case <-a.Interrupts.Graceful.Done():
		stop()
	}
	if s.Server == nil {
		return stopFollowing(a.Streams, s, run, link.isLost(), output)
	}
	a.Notef("cancelling the run; press Ctrl-C again to exit at once")
	end := cancelRun(ctx, s, run, ended)
	if a.Interrupts.Now.Err() != nil {
		return cli.WithStatus(exitcode.Interrupted, errors.New("exited before the run had ended"))
	}
	return reportEnd(a, s, run, end, options)
}

// cancelRun cancels a run and waits for its end for up to cancelPatience.
func cancelRun(ctx context.Context, s *session.Session, run client.WorkflowRun, ended <-chan outcome) outcome {
	ctx, cancel := context.WithTimeout(ctx, cancelPatience)
	defer cancel()
	if err := s.Client.CancelWorkflow(ctx, run.GetID(), run.GetRunID()); err != nil {
		return outcome{err: fmt.Errorf("cancel the run: %w", err)}
	}
	select {
	case end := <-ended:
		return end
	case <-s.ServerExited():
		return outcome{err: errors.New("the local Temporal server ended before the cancelled run did")}
	case <-ctx.Done(): // of no interest if the user left
		return outcome{result: protocol.Result{
			Status:   interpreter.Cancelled,
			Warnings: []string{fmt.Sprintf("the run did not end within %s after it was cancelled; its server was stopped", cancelPatience)},
		}}
	}
}

// stopFollowing prints how to resume following a run. lost is set if the server does not respond.
func stopFollowing(streams cli.Streams, s *session.Session, run client.WorkflowRun, lost bool, output string) error {
	doc := unfinishedDocument(s, run)
	if lost {
		doc.Status = statusUnknown
		streams.Notef("stopped following; the server does not respond, so the status of the run is unknown")
	} else {
		streams.Notef("stopped following; the run continues")
	}
	printHints(streams, s, run)
	if output == "json" {
		if err := terminal.PrintJSON(streams.Out, doc); err != nil {
			return err
		}
	}
	return cli.WithStatus(exitcode.Interrupted, cli.ErrSaid)
}

// printHints prints how to find a run again.
func printHints(streams cli.Streams, s *session.Session, run client.WorkflowRun) {
	if link := s.PageOf(run.GetID(), run.GetRunID()); link != "" {
		streams.Advisef("  page:     %s", link)
	}
	for _, command := range [][2]string{{"follow:", "follow"}, {"status:", "status"}, {"cancel:", "cancel"}} {
		streams.Advisef("  %-9s %s %s %s%s", command[0], terminal.ProgramName(), command[1], terminal.ShellWord(run.GetID()), s.Flags)
	}
}

// watchObserver shows the run's progress until ctx ends; with quiet only whether the server responds.
func watchObserver(ctx context.Context, streams cli.Streams, observer *observer, quiet bool, link *contact) {
	screen := newProgress(streams)
	defer screen.close()
	address, since := observer.session.Address, time.Now()
	pace, look := PaceOf(observer.session, streams.ErrTerminal()), observer.observeSteps
	if quiet {
		look = func(ctx context.Context) ([]line, error) { return nil, checkServer(ctx, observer.session.Client) }
	}
	for wait := pace.First; sleep.For(ctx, wait) == nil; {
		began := time.Now()
		lines, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case !connect.IsUnreachable(err):
			if link.recordAnswer() {
				screen.close()
				streams.Notef("the server at %s is back", address)
			}
		case link.recordSilence():
			screen.close()
			streams.Notef("lost the server at %s, reconnecting; the run continues", address)
		}
		if err == nil {
			screen.showLines(lines)
		}
		if wait = link.pollPause(); wait == 0 {
			wait = pace.Pause(time.Since(since), time.Since(began))
		}
	}
}

// NewFollowCommand returns the command follow.
func NewFollowCommand(a *cli.App) *cobra.Command {
	flags, options := &session.RunFlags{}, FollowOptions{}
	command := &cobra.Command{
		Use: "follow [RUN]", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return followFound(a, flags, args, options) },
	}
	flags.Add(command)
	options.AddFlags(command)
	return command
}

// followFound follows a run. It waits until the server can describe it.
func followFound(a *cli.App, flags *session.RunFlags, args []string, options FollowOptions) error {
	link, there := newContact(contactPatience), false
	for {
		err := session.WithRun(a, flags, args, func(ctx context.Context, s *session.Session, found runs.Found) error {
			there = true
			run := s.Client.GetWorkflow(ctx, found.WorkflowID, found.RunID)
			s.TaskQueue = cmp.Or(found.TaskQueue, s.TaskQueue) // its workers are those that answer
			if link := s.PageOf(run.GetID(), run.GetRunID()); link != "" {
				a.Notef("%s: %s", run.GetID(), link)
			}
			return FollowRun(a, s, run, options)
		})
		if there || !connect.MustWait(err) || link.isOver() {
			return err
		}
		if link.recordSilence() {
			a.Notef("%s; trying again", err)
		}
		if sleep.For(a.Interrupts.Graceful, link.pollPause()) != nil {
			return cli.WithStatus(exitcode.Interrupted, errors.New("interrupted before the server described the run"))
		}
	}
}
