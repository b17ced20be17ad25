package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/base/sleep"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

const (
	// followInterval is the shortest pause between two polls of a run, and longestPause
	// the longest one.
	followInterval = 500 * time.Millisecond
	longestPause   = 15 * time.Second
	// cancelPatience is how long a cancelled run may take to end in order.
	cancelPatience = 10 * time.Second
)

// outcome is how a run ended, or why that has no result or is not known.
type outcome struct {
	result protocol.Result
	err    error
}

// follow shows a run's progress, waits for its end and reports it.
func (a *app) follow(s *session, run client.WorkflowRun, output string) error {
	return a.followWith(s, run, output, newContact(contactPatience))
}

func (a *app) followWith(s *session, run client.WorkflowRun, output string, link *contact) error {
	ctx, cancel := context.WithCancel(a.interrupts.now)
	defer cancel()
	ended := make(chan outcome, 1)
	go func() { ended <- link.outcome(ctx, run) }()
	stop := beside(ctx, func(ctx context.Context) { a.watch(ctx, newObserver(s, run), link) })
	select {
	case end := <-ended:
		stop()
		if s.server != nil && output == "table" {
			defer a.advisef("The local server stops now; %s dev keeps one running, so that runs can be looked at later.", terminal.Program())
		}
		return a.report(s, run, end, output)
	case <-s.lost():
		stop()
		return a.report(s, run, outcome{err: s.lostError()}, output)
	case <-a.interrupts.graceful.Done():
		stop()
	}
	if s.server == nil {
		return a.stopFollowing(s, run, link.isLost(), output)
	}
	a.notef("cancelling the run; press Ctrl-C again to exit at once")
	end := cancelled(ctx, s, run, ended)
	if a.interrupts.now.Err() != nil {
		return withStatus(exitInterrupted, errors.New("exited before the run had ended"))
	}
	return a.report(s, run, end, output)
}

// cancelled cancels a run and waits for its end, for a while.
func cancelled(ctx context.Context, s *session, run client.WorkflowRun, ended <-chan outcome) outcome {
	ctx, cancel := context.WithTimeout(ctx, cancelPatience)
	defer cancel()
	if err := s.client.CancelWorkflow(ctx, run.GetID(), run.GetRunID()); err != nil {
		return outcome{err: fmt.Errorf("cancel the run: %w", err)}
	}
	select {
	case end := <-ended:
		return end
	case <-s.lost():
		return outcome{err: errors.New("the local Temporal server ended before the cancelled run did")}
	case <-ctx.Done(): // of no interest if the user left
		return outcome{result: protocol.Result{
			Status:   interpreter.Cancelled,
			Warnings: []string{fmt.Sprintf("the run did not end within %s after it was cancelled; its server was stopped", cancelPatience)},
		}}
	}
}

// stopFollowing prints how to continue with a run that is no longer followed; lost says that
// its server does not answer.
func (a *app) stopFollowing(s *session, run client.WorkflowRun, lost bool, output string) error {
	doc := s.unfinished(run)
	if lost {
		doc.Status = statusUnknown
		a.notef("stopped following; the server does not respond, so the status of the run is unknown")
	} else {
		a.notef("stopped following; the run continues")
	}
	a.hints(s, run)
	if output == "json" {
		if err := terminal.PrintJSON(a.Out, doc); err != nil {
			return err
		}
	}
	return withStatus(exitInterrupted, errSaid)
}

// hints print how to find a run again.
func (a *app) hints(s *session, run client.WorkflowRun) {
	if link := s.pageOf(run.GetID(), run.GetRunID()); link != "" {
		a.advisef("  page:     %s", link)
	}
	for _, command := range [][2]string{{"follow:", "follow"}, {"status:", "status"}, {"cancel:", "cancel"}} {
		a.advisef("  %-9s %s %s %s%s", command[0], terminal.Program(), command[1], terminal.ShellWord(run.GetID()), s.flags)
	}
}

// pollInterval is how long to wait before the next poll of a run that was watched for
// some time already; the last poll took that long. Queries cost the server, and
// Temporal Cloud bills them: a run that has taken long is not polled twice a second. So
// pauses are a quarter of that time. A poll of a large loop may take long; the pauses
// grow with it, so that it never is most of the load.
func pollInterval(least, watched, took time.Duration) time.Duration {
	const part, load = 4, 4
	return max(least, min(watched/part, longestPause), load*took)
}

// watch shows what the observer sees until ctx ends.
func (a *app) watch(ctx context.Context, observer *observer, link *contact) {
	screen := newProgress(a.Streams)
	defer screen.close()
	address, since := observer.session.address, time.Now()
	for wait := followInterval / 2; sleep.For(ctx, wait) == nil; {
		began := time.Now()
		lines, err := observer.observe(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case !connect.Unreachable(err):
			if link.answered() {
				screen.close()
				a.notef("the server at %s is back", address)
			}
		case link.unanswered():
			screen.close()
			a.notef("lost the server at %s, reconnecting; the run continues", address)
		}
		if err == nil {
			screen.show(lines)
		}
		if wait = link.pause(); wait == 0 {
			wait = pollInterval(followInterval, time.Since(since), time.Since(began))
		}
	}
}

func newFollowCommand(a *app) *cobra.Command {
	flags, output := &runFlags{}, ""
	command := &cobra.Command{
		Use: "follow [RUN]", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.followFound(flags, args, output) },
	}
	flags.add(command)
	outputFlag(command, &output)
	return command
}

// followFound follows a run once the server can describe it.
func (a *app) followFound(flags *runFlags, args []string, output string) error {
	link, there := newContact(contactPatience), false
	for {
		err := a.withRun(flags, args, func(ctx context.Context, s *session, found runs.Found) error {
			there = true
			run := s.client.GetWorkflow(ctx, found.WorkflowID, found.RunID)
			s.taskQueue = cmp.Or(found.TaskQueue, s.taskQueue) // its workers are those that answer
			if link := s.pageOf(run.GetID(), run.GetRunID()); link != "" {
				a.notef("%s: %s", run.GetID(), link)
			}
			return a.follow(s, run, output)
		})
		if there || !connect.Waits(err) || link.isOver() {
			return err
		}
		if link.unanswered() {
			a.notef("%s; trying again", err)
		}
		if sleep.For(a.interrupts.graceful, link.pause()) != nil {
			return withStatus(exitInterrupted, errors.New("interrupted before the server described the run"))
		}
	}
}
