package look

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/starter/cli"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// RunsOptions are the flags of list.
type RunsOptions struct {
	Server          session.ServerFlags
	Playbook, Label string
	Since           string
	Status          interpreter.Status
	Limit           int
	Output          string
	Children        bool
}

// MostRuns is the default number of runs in a list. A namespace may have 100,000; the newest come first.
const MostRuns = 20

// NewListCommand returns the command list.
func NewListCommand(a *cli.App) *cobra.Command {
	options := &RunsOptions{}
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return ListRuns(a, options) },
	}
	flags := command.Flags()
	flags.StringVar((*string)(&options.Status), "status", "", "only runs that are "+cli.OrList(interpreter.StatusesOf(interpreter.OfRun)))
	flags.StringVar(&options.Playbook, "playbook", "", "only runs of the playbook with this name")
	flags.StringVar(&options.Label, "label", "", "only runs of playbooks with this label, as NAME=VALUE")
	flags.StringVar(&options.Since, "since", "", "only runs that started after a time, such as 24h, 2026-01-31 or 2026-01-31T08:00:00Z")
	flags.IntVar(&options.Limit, "limit", MostRuns, "maximum number to list, 0 for all")
	flags.BoolVar(&options.Children, "children", false, "also child runs, which steps of other runs have started")
	options.Server.Add(command)
	cli.OutputFlag(command, &options.Output)
	return command
}

// ListRuns prints runs, newest first.
func ListRuns(a *cli.App, options *RunsOptions) error {
	if options.Limit < 0 {
		return cli.UsageError("--limit %d is less than 0, which means all", options.Limit)
	}
	if options.Status != "" {
		if err := cli.CheckChoice("--status", options.Status, interpreter.StatusesOf(interpreter.OfRun)); err != nil {
			return err
		}
	}
	if options.Label != "" && !strings.Contains(options.Label, "=") {
		return cli.UsageError("--label %q: expected NAME=VALUE", options.Label)
	}
	since, err := cli.ParseSince(options.Since, time.Now())
	if err != nil {
		return err
	}
	return session.WithServer(a, &options.Server, func(ctx context.Context, s *session.Session) error {
		return listRuns(ctx, a.Streams, s, since, options)
	})
}

func listRuns(ctx context.Context, streams cli.Streams, s *session.Session, since time.Time, options *RunsOptions) error {
	list, err := s.Runs().List(ctx, runs.Filter{
		Status: options.Status, Playbook: options.Playbook, Label: options.Label, Since: since, Limit: options.Limit, Children: options.Children,
	})
	if errors.Is(err, runs.ErrNoAttributes) {
		return cli.UsageError("%w (%s, %s), so --playbook, --label, and --status with %s do not work; "+
			"they are added by a run that is started with the right to do so; otherwise ask an administrator to add them with the type Keyword",
			err, protocol.StatusAttribute, protocol.PlaybookAttribute,
			cli.OrList(attributeStatuses()))
	}
	if err != nil {
		return err
	}
	s.Runs().SetPositions(ctx, list.Runs)
	now := time.Now()
	s.Runs().FindUnpolled(ctx, &list, now)
	list.DescribeOpen(now)
	if options.Output == "json" {
		return terminal.PrintJSON(streams.Out, list)
	}
	if err := writeRuns(streams, list, now); err != nil {
		return err
	}
	for _, build := range list.NoWorkerBuilds {
		pinned := lists.Filter(list.Runs, func(run runs.Found) bool { return !run.Ended() && run.Build != nil && *run.Build == build })
		streams.Notef("note: build %s of deployment %s has no workers; %s of it cannot continue", build.ID, build.Deployment, terminal.Count(len(pinned), "open run"))
		streams.Advisef("start one, or: %s builds retire %s", terminal.ProgramName(), terminal.ShellWord(build.ID))
	}
	for _, queue := range list.NoWorker {
		waiting := lists.Filter(list.Runs, func(run runs.Found) bool { return !run.Ended() && run.TaskQueue == queue })
		streams.Notef("note: no worker polls the task queue %q of %s", queue, terminal.Count(len(waiting), "open run"))
		streams.Advisef("%s", render.StartWorker(queue, s.Flags))
	}
	if link := s.RunsLink(); link != "" {
		streams.Notef("page: %s", link)
	}
	return nil
}

// attributeStatuses returns the statuses that only Reprise's search attribute can find.
func attributeStatuses() []interpreter.Status {
	all := lists.Filter(interpreter.Statuses(), func(info interpreter.StatusInfo) bool { return info.List.Attribute })
	return lists.Map(all, func(info interpreter.StatusInfo) interpreter.Status { return info.Status })
}

func writeRuns(streams cli.Streams, list runs.List, now time.Time) error {
	if len(list.Runs) == 0 {
		streams.Notef("no runs")
		return nil
	}
	_, err := io.WriteString(streams.Out, render.RunsTable(list.Runs, now, terminal.PaperOf(streams.Out))+"\n")
	if list.More {
		streams.Notef("and more; --limit 0 shows all")
	}
	return err
}
