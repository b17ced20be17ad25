package main

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
	"reprise/workflows/protocol"
)

// runsOptions is the command line of list.
type runsOptions struct {
	server          serverFlags
	playbook, label string
	since           string
	status          interpreter.Status
	limit           int
	output          string
	children        bool
}

// mostRuns is how many runs a list shows by default.
const mostRuns = 20

func newListCommand(a *app) *cobra.Command {
	options := &runsOptions{}
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.list(options) },
	}
	flags := command.Flags()
	flags.StringVar((*string)(&options.status), "status", "", "only runs that are "+orList(interpreter.StatusesOf(interpreter.OfRun)))
	flags.StringVar(&options.playbook, "playbook", "", "only runs of the playbook with this name")
	flags.StringVar(&options.label, "label", "", "only runs of playbooks with this label, as NAME=VALUE")
	flags.StringVar(&options.since, "since", "", "only runs that started after a time, such as 24h, 2026-01-31 or 2026-01-31T08:00:00Z")
	flags.IntVar(&options.limit, "limit", mostRuns, "maximum number to list, 0 for all")
	flags.BoolVar(&options.children, "children", false, "also child runs, which steps of other runs have started")
	options.server.add(command)
	outputFlag(command, &options.output)
	return command
}

func (a *app) list(options *runsOptions) error {
	if options.limit < 0 {
		return usageError("--limit %d is less than 0, which means all", options.limit)
	}
	if options.status != "" {
		if err := choice("--status", options.status, interpreter.StatusesOf(interpreter.OfRun)); err != nil {
			return err
		}
	}
	if options.label != "" && !strings.Contains(options.label, "=") {
		return usageError("--label %q: expected NAME=VALUE", options.label)
	}
	since, err := parseSince(options.since, time.Now())
	if err != nil {
		return err
	}
	return a.withServer(&options.server, func(ctx context.Context, s *session) error {
		return a.listRuns(ctx, s, since, options)
	})
}

func (a *app) listRuns(ctx context.Context, s *session, since time.Time, options *runsOptions) error {
	list, err := s.runs().List(ctx, runs.Filter{
		Status: options.status, Playbook: options.playbook, Label: options.label, Since: since, Limit: options.limit, Children: options.children,
	})
	if errors.Is(err, runs.ErrNoAttributes) {
		return usageError("%w (%s, %s), so --playbook, --label, and --status with %s do not work; "+
			"they are added by a run that is started with the right to do so; otherwise ask an administrator to add them with the type Keyword",
			err, protocol.StatusAttribute, protocol.PlaybookAttribute,
			orList(byAttribute()))
	}
	if err != nil {
		return err
	}
	s.runs().Positions(ctx, list.Runs)
	s.runs().FindUnpolled(ctx, &list, time.Now())
	if options.output == "json" {
		return terminal.PrintJSON(a.Out, list)
	}
	if err := a.writeRuns(list, time.Now()); err != nil {
		return err
	}
	for _, queue := range list.NoWorker {
		waiting := lists.Filter(list.Runs, func(run runs.Found) bool { return !run.Ended() && run.TaskQueue == queue })
		a.notef("note: no worker polls the task queue %q of %s", queue, terminal.Count(len(waiting), "open run"))
		a.advisef("%s", render.StartWorker(queue, s.flags))
	}
	if link := s.runsLink(); link != "" {
		a.notef("in the web UI: %s", link)
	}
	return nil
}

// byAttribute are the statuses that take our search attribute to find.
func byAttribute() []interpreter.Status {
	all := lists.Filter(interpreter.Statuses(), func(info interpreter.StatusInfo) bool { return info.List.Attribute })
	return lists.Map(all, func(info interpreter.StatusInfo) interpreter.Status { return info.Status })
}

func (a *app) writeRuns(list runs.List, now time.Time) error {
	if len(list.Runs) == 0 {
		a.notef("no runs")
		return nil
	}
	_, err := io.WriteString(a.Out, render.Runs(list.Runs, now, terminal.PaperOf(a.Out))+"\n")
	if list.More {
		a.notef("and more; --limit 0 shows all")
	}
	return err
}
