package look

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/observe/stats"
	"reprise/starter/cli"
	"reprise/starter/session"
)

// statsOptions are the flags of stats.
type statsOptions struct {
	server   session.ServerFlags
	playbook string
	last     int
	output   string
}

// NewStatsCommand returns the command stats.
func NewStatsCommand(a *cli.App) *cobra.Command {
	options := &statsOptions{}
	command := &cobra.Command{
		Use: "stats [RUN]...", RunE: func(command *cobra.Command, args []string) error {
			if err := options.checkOptions(command, args); err != nil {
				return err
			}
			return session.WithServer(a, &options.server, func(ctx context.Context, s *session.Session) error {
				return showStats(ctx, a.Streams, s, options, args)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.playbook, "playbook", "", "the latest runs of the playbook with this name")
	flags.IntVar(&options.last, "last", MostRuns, "how many runs of --playbook")
	options.server.Add(command)
	cli.OutputFlag(command, &options.output)
	return command
}

func (o *statsOptions) checkOptions(command *cobra.Command, ids []string) error {
	switch {
	case o.playbook != "" && len(ids) > 0:
		return cli.UsageError("--playbook and IDs exclude each other")
	case o.playbook == "" && command.Flags().Changed("last"):
		return cli.UsageError("--last needs --playbook")
	case o.last < 1:
		return cli.UsageError("--last %d is less than 1", o.last)
	}
	for _, id := range ids {
		if err := cli.CheckRun(id, ""); err != nil {
			return err
		}
	}
	return nil
}

func showStats(ctx context.Context, streams cli.Streams, s *session.Session, options *statsOptions, ids []string) error {
	found, err := chosenRuns(ctx, streams, s, options, ids)
	if err != nil {
		return err
	}
	c := newCollection(streams, s, stats.NewCollector(nil))
	defer c.closeProgress()
	for i, run := range found {
		if _, err := c.readRun(ctx, run, fmt.Sprintf("%d of %d", i+1, len(found)), nil); err != nil {
			return err
		}
	}
	if err := c.childRuns(ctx); err != nil {
		return err
	}
	sums := c.into.Stats()
	if options.output == "json" {
		return terminal.PrintJSON(streams.Out, sums)
	}
	render.PrintStats(streams.Out, sums, terminal.PaperOf(streams.Out))
	return nil
}

// chosenRuns returns the runs to summarize, each once.
func chosenRuns(ctx context.Context, streams cli.Streams, s *session.Session, options *statsOptions, ids []string) ([]runs.Found, error) {
	if options.playbook != "" {
		list, err := s.Runs().List(ctx, runs.Filter{Playbook: options.playbook, Limit: options.last})
		if errors.Is(err, runs.ErrNoAttributes) {
			return nil, cli.UsageError("%w, so --playbook does not work; name the runs", err)
		}
		if err == nil && len(list.Runs) == 0 {
			err = cli.UsageError("there are no runs of the playbook %q on %s, namespace %s; %s list shows runs",
				options.playbook, s.Address, s.Namespace, terminal.ProgramName())
		}
		for i, run := range list.Runs { // the list may know another history of the run than its first
			if list.Runs[i], err = s.Runs().Find(ctx, run.WorkflowID, run.RunID); err != nil {
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
		run, err := session.FindRun(ctx, streams, s, id, "")
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
