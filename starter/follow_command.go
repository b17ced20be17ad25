package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"reprise/internal/base/connect"
	"reprise/internal/observe/runs"
)

const followLong = `Take up following a run where starter run --detach or Ctrl-C left it: with the same
output, to its end. A run that has ended is reported at once.

` + idHelp + `

Ctrl-C only stops following; the run goes on.

Exit status, as of starter run: 0 completed, 1 failed or cancelled, 2 wrong usage, no
such run, or a playbook that the worker refused, 3 no server or the end is unknown (a
server that is there and cannot answer is asked again for ten minutes),
4 partial success, 130 stopped following.`

func newFollowCommand(a *app) *cobra.Command {
	flags, output := &runFlags{}, ""
	command := &cobra.Command{
		Use: "follow [ID]", Short: "Follow a run that is under way", Long: followLong,
		Example: `  starter follow
  starter follow patients-7x2k
  starter follow patients-7x2k --output json | jq .result`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			return a.followFound(flags, args, output)
		},
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
			return withStatus(exitInterrupted, errors.New("left before the server could tell of the run"))
		}
	}
}
