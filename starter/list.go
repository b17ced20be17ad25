package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"reprise/internal/runs"
	"reprise/interpreter"
	"reprise/workflows"
)

// runsOptions is the command line of list.
type runsOptions struct {
	server          serverFlags
	playbook, since string
	status          interpreter.Status
	limit           int
	output          string
	children        bool
}

// mostRuns is how many runs a list shows unless told otherwise.
const mostRuns = 20

func newListCommand(a *app) *cobra.Command {
	options := &runsOptions{}
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List runs",
		Long: `List runs: those that go on, the newest first, then those that have ended, the last
to end first. It takes one call to the server for each hundred.

A run that is queued waits for its turn under the concurrency key of its playbook; its
place stands beside that. Places take one more call for each key, of 20 at most.

Failed iterations are counted when their loop has ended. A run that was terminated
or timed out has failed. Runs that steps of other runs have started are left out
unless --children is given.`,
		Example: `  starter list
  starter list --status failed --since 24h
  starter list --playbook patients --limit 100
  starter list --output json | jq -r '.runs[].workflow_id'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.list(options) },
	}
	flags := command.Flags()
	flags.StringVar((*string)(&options.status), "status", "", "only runs that are "+orList(interpreter.StatusesOf(interpreter.OfRun)))
	flags.StringVar(&options.playbook, "playbook", "", "only runs of the playbook with this name")
	flags.StringVar(&options.since, "since", "", "only runs that were started since a time, such as 24h, 2026-01-31 or 2026-01-31T08:00:00Z")
	flags.IntVar(&options.limit, "limit", mostRuns, "how many at most, 0 for all")
	flags.BoolVar(&options.children, "children", false, "also runs that steps of other runs have started")
	options.server.add(command)
	outputFlag(command, &options.output)
	return command
}

func (a *app) list(options *runsOptions) error {
	if err := checkOutput(options.output); err != nil {
		return err
	}
	if options.limit < 0 {
		return usageError("--limit %d is less than 0, which stands for all", options.limit)
	}
	if options.status != "" {
		if err := choice("--status", options.status, interpreter.StatusesOf(interpreter.OfRun)); err != nil {
			return err
		}
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
		Status: options.status, Playbook: options.playbook, Since: since, Limit: options.limit, Children: options.children,
	})
	if errors.Is(err, runs.ErrNoAttributes) {
		return usageError("%w (%s, %s), so --playbook, and --status with %s, cannot choose; "+
			"a run that is started by who may add them adds them, else an administrator has to, with the type Keyword",
			err, workflows.StatusAttribute, workflows.PlaybookAttribute,
			orList(byAttribute()))
	}
	if err != nil {
		return err
	}
	s.runs().Places(ctx, list.Runs)
	if options.output == "json" {
		return printJSON(a.Out, list)
	}
	return a.writeRuns(list, time.Now())
}

// byAttribute are the statuses that take our search attribute to find.
func byAttribute() []interpreter.Status {
	var all []interpreter.Status
	for _, info := range interpreter.Statuses() {
		if info.List.Attribute {
			all = append(all, info.Status)
		}
	}
	return all
}

func (a *app) writeRuns(list runs.List, now time.Time) error {
	if len(list.Runs) == 0 {
		a.notef("no runs")
		return nil
	}
	_, err := io.WriteString(a.Out, runsTable(list.Runs, now, paperOf(a.Out).width)+"\n")
	if list.More {
		a.notef("and more; --limit 0 shows all")
	}
	return err
}

// runsTable fits a terminal. The ID is what other commands want, so other columns
// go first, and it is cut last; they take its beginning.
func runsTable(list []runs.Found, now time.Time, width int) string {
	rendered := ""
	for _, columns := range [][]string{
		{"run", "playbook", "status", "started", "time", "failed"},
		{"run", "status", "started", "time", "failed"},
		{"run", "status", "time", "failed"},
		{"run", "status"},
	} {
		if rendered = runsWith(list, columns, now, 0); text.LongestLineLen(rendered) <= width {
			return rendered
		}
	}
	over := text.LongestLineLen(rendered) - width
	longest := 0
	for _, run := range list {
		longest = max(longest, text.StringWidth(visible(run.WorkflowID)))
	}
	return runsWith(list, []string{"run", "status"}, now, max(longest-over, 1))
}

// runsWith is the table with some columns, and with IDs cut to a width unless
// that is 0.
func runsWith(list []runs.Found, columns []string, now time.Time, idWidth int) string {
	head := make([]any, len(columns))
	for i, name := range columns {
		head[i] = name
	}
	rows := newTable(head...)
	for _, run := range list {
		id, end := visible(run.WorkflowID), run.EndedAt
		if idWidth > 0 {
			id = text.Snip(id, idWidth, "…")
		}
		if end.IsZero() {
			end = now
		}
		cells := map[string]string{
			"run": id, "playbook": text.Snip(visible(run.Playbook), 30, "…"), "status": statusCell(run),
			"started": run.StartedAt.Local().Format("01-02 15:04"), "time": roughly(end.Sub(run.StartedAt)), "failed": number(run.DeadLetters),
		}
		row := make(table.Row, len(columns))
		for i, name := range columns {
			row[i] = cells[name]
		}
		rows.AppendRow(row)
	}
	return rows.Render()
}

// statusCell is the status of a run, with its place where it waits for its turn.
func statusCell(run runs.Found) string {
	if run.Queue == nil || run.Queue.Place == 0 || run.Status != interpreter.Queued {
		return string(run.Status)
	}
	return fmt.Sprintf("%s %d", run.Status, run.Queue.Place)
}

// roughly is a time in two units, for eyes.
func roughly(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	d = d.Round(time.Hour)
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
