package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/observe/stats"
)

// statsOptions is the command line of stats.
type statsOptions struct {
	server   serverFlags
	playbook string
	last     int
	output   string
}

func newStatsCommand(a *app) *cobra.Command {
	options := &statsOptions{}
	command := &cobra.Command{
		Use: "stats [RUN]...", RunE: func(command *cobra.Command, args []string) error {
			if err := options.check(command, args); err != nil {
				return err
			}
			return a.withServer(&options.server, func(ctx context.Context, s *session) error {
				return a.stats(ctx, s, options, args)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.playbook, "playbook", "", "the latest runs of the playbook with this name")
	flags.IntVar(&options.last, "last", mostRuns, "how many of them")
	options.server.add(command)
	outputFlag(command, &options.output)
	return command
}

func (o *statsOptions) check(command *cobra.Command, ids []string) error {
	switch {
	case o.playbook != "" && len(ids) > 0:
		return usageError("--playbook and IDs exclude each other")
	case o.playbook == "" && command.Flags().Changed("last"):
		return usageError("--last needs --playbook")
	case o.last < 1:
		return usageError("--last %d is less than 1", o.last)
	}
	for _, id := range ids {
		if err := checkRun(id, ""); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) stats(ctx context.Context, s *session, options *statsOptions, ids []string) error {
	found, err := a.chosen(ctx, s, options, ids)
	if err != nil {
		return err
	}
	c := a.newCollection(s, stats.NewCollector(nil))
	defer c.close()
	for i, run := range found {
		if _, err := c.run(ctx, run, fmt.Sprintf("%d of %d", i+1, len(found)), nil); err != nil {
			return err
		}
	}
	if err := c.childRuns(ctx); err != nil {
		return err
	}
	sums := c.into.Stats()
	if options.output == "json" {
		return terminal.PrintJSON(a.Out, sums)
	}
	render.Stats(a.Out, sums, terminal.PaperOf(a.Out))
	return nil
}

// chosen are the runs to sum up, each once.
func (a *app) chosen(ctx context.Context, s *session, options *statsOptions, ids []string) ([]runs.Found, error) {
	if options.playbook != "" {
		list, err := s.runs().List(ctx, runs.Filter{Playbook: options.playbook, Limit: options.last})
		if errors.Is(err, runs.ErrNoAttributes) {
			return nil, usageError("%w, so --playbook does not work; name the runs", err)
		}
		if err == nil && len(list.Runs) == 0 {
			err = usageError("there are no runs of the playbook %q on %s, namespace %s; %s list shows runs",
				options.playbook, s.address, s.namespace, terminal.Program())
		}
		for i, run := range list.Runs { // the list may know another history of the run than its first
			if list.Runs[i], err = s.runs().Find(ctx, run.WorkflowID, run.RunID); err != nil {
				return nil, err
			}
		}
		return list.Runs, err
	}
	if len(ids) == 0 {
		ids = []string{""}
	}
	var all []runs.Found
	known := map[string]bool{}
	for _, id := range ids {
		run, err := a.find(ctx, s, id, "")
		if err != nil {
			return nil, err
		}
		if !known[run.RunID] {
			all = append(all, run)
		}
		known[run.RunID] = true
	}
	return all, nil
}
