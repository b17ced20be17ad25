package main

import (
	"context"

	"github.com/spf13/cobra"

	"reprise/internal/runs"
)

const followLong = `Take up following a run where starter run --detach or Ctrl-C left it: with the same
output, to its end. A run that has ended is reported at once.

` + idHelp + `

Ctrl-C only stops following; the run goes on.

Exit status, as of starter run: 0 completed, 1 failed or cancelled, 2 wrong usage, no
such run, or a playbook that the worker refused, 3 no server or the end is unknown,
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
			return a.withRun(flags, args, func(ctx context.Context, s *session, found runs.Found) error {
				run := s.client.GetWorkflow(ctx, found.WorkflowID, found.RunID)
				if link := s.link(run.GetID(), run.GetRunID()); link != "" {
					a.notef("%s: %s", run.GetID(), link)
				}
				return a.follow(s, run, output)
			})
		},
	}
	flags.add(command)
	outputFlag(command, &output)
	return command
}
