package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"reprise/internal/base/connect"
	"reprise/internal/observe/runs"
)

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
			if link := s.link(run.GetID(), run.GetRunID()); link != "" {
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
		if !pause(a.interrupts.graceful, link.pause()) {
			return withStatus(exitInterrupted, errors.New("interrupted before the server described the run"))
		}
	}
}
