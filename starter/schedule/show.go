package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/ending"
	"reprise/internal/observe/runs"
	"reprise/internal/program/timetable"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/starter/cli"
	"reprise/starter/load"
	"reprise/starter/session"
	"reprise/starter/wording"
)

// ScheduleDocument is the JSON output of schedule list and show.
type ScheduleDocument struct {
	Name     string           `json:"name"`
	Playbook string           `json:"playbook"`
	Paused   bool             `json:"paused"`
	Note     string           `json:"note,omitempty"`
	When     string           `json:"when"` // in words, without the zone
	Cron     []string         `json:"cron,omitempty"`
	Every    string           `json:"every,omitempty"`
	Offset   string           `json:"offset,omitempty"`
	Zone     string           `json:"zone"`
	Jitter   string           `json:"jitter,omitempty"`
	Overlap  string           `json:"overlap"`
	CatchUp  string           `json:"catch_up"`
	Start    string           `json:"start,omitempty"`
	End      string           `json:"end,omitempty"`
	Next     []time.Time      `json:"next"`   // up to ten, with jitter
	Recent   []ScheduledRun   `json:"recent"` // the latest first
	Started  int              `json:"started"`
	Skipped  int              `json:"skipped"` // because of overlap
	Missed   int              `json:"missed"`  // and too old to be caught up
	Queue    string           `json:"task_queue"`
	Workload expression.Value `json:"workload,omitzero"` // of show
}

// ScheduledRun is a run that a schedule started.
type ScheduledRun struct {
	WorkflowID string             `json:"workflow_id"`
	RunID      string             `json:"run_id"`
	StartedAt  time.Time          `json:"started_at"`
	EndedAt    time.Time          `json:"ended_at,omitzero"`
	Status     interpreter.Status `json:"status"` // "" where the server has forgotten the run
	Error      string             `json:"error,omitempty"`
}

// scheduleDocument returns a schedule with up to most of its latest runs.
func scheduleDocument(ctx context.Context, s *session.Session, found *runs.Schedule, most int) (*ScheduleDocument, error) {
	times, info := timetable.Read(found.Described.Schedule), found.Described.Info
	doc := &ScheduleDocument{
		Name: found.ID, Playbook: found.Playbook, Paused: found.Described.Schedule.State.Paused, Note: found.Described.Schedule.State.Note,
		When: timetable.TimesInWords(times), Cron: times.Cron, Every: wording.ShortTime(times.Every), Offset: wording.ShortTime(times.Offset), Zone: times.Zone,
		Jitter: wording.ShortTime(times.Jitter), Overlap: times.Overlap, CatchUp: wording.ShortTime(times.CatchUp), Start: times.Start, End: times.End,
		Next: cli.OrEmpty(info.NextActionTimes), Started: info.NumActions, Skipped: info.NumActionsSkippedOverlap,
		Missed: info.NumActionsMissedCatchupWindow, Queue: found.Action.TaskQueue,
	}
	started, err := s.Runs().Schedules().Started(ctx, found, most)
	if err != nil {
		return nil, err
	}
	doc.Recent = lists.Map(started, func(one runs.StartedRun) ScheduledRun {
		return ScheduledRun{WorkflowID: one.Run.WorkflowID, RunID: one.Run.RunID, StartedAt: one.At, EndedAt: one.Run.EndedAt, Status: one.Run.Status}
	})
	return doc, nil
}

// listSchedulesOptions are the flags of schedule list.
type listSchedulesOptions struct {
	server session.ServerFlags
	limit  int
	after  string
	output string
}

// shownSchedules is the default number of schedules in a list.
const shownSchedules = 100

func newScheduleListCommand(a *cli.App) *cobra.Command {
	options := &listSchedulesOptions{}
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return listSchedules(a, options) },
	}
	command.Flags().IntVar(&options.limit, "limit", shownSchedules, "maximum number to list, 0 for all")
	command.Flags().StringVar(&options.after, "after", "", "only schedules whose names sort after this one: the next page")
	options.server.Add(command)
	cli.OutputFlag(command, &options.output)
	return command
}

// ScheduleList is the JSON output of schedule list.
type ScheduleList struct {
	Schedules []*ScheduleDocument `json:"schedules"`
	Total     int                 `json:"total"` // without the limit
	// Next is the name to pass to --after for the next page; "" on the last page.
	Next string `json:"next,omitempty"`

	left int // behind this page
}

func listSchedules(a *cli.App, options *listSchedulesOptions) error {
	if options.limit < 0 {
		return cli.UsageError("--limit %d is less than 0, which means all", options.limit)
	}
	return session.WithServer(a, &options.server, func(ctx context.Context, s *session.Session) error {
		page, err := s.Runs().Schedules().List(ctx, options.after, options.limit)
		if err != nil {
			return err
		}
		list := ScheduleList{Schedules: []*ScheduleDocument{}, Total: page.Total, left: page.Left}
		if page.Left > 0 {
			list.Next = page.Last
		}
		for _, one := range page.Schedules {
			doc, err := scheduleDocument(ctx, s, one, 1)
			if err != nil {
				return err
			}
			list.Schedules = append(list.Schedules, doc)
		}
		if options.output == "json" {
			return terminal.PrintJSON(a.Out, list)
		}
		return writeSchedules(a.Streams, list)
	})
}

func writeSchedules(streams cli.Streams, list ScheduleList) error {
	if len(list.Schedules) == 0 {
		streams.Notef("no %sschedules", map[bool]string{true: "more "}[list.Total > 0])
		return nil
	}
	_, err := io.WriteString(streams.Out, schedulesTable(list.Schedules, terminal.PaperOf(streams.Out))+"\n")
	if list.left > 0 {
		streams.Notef("and %d more; --after %s shows the next, --limit 0 all", list.left, terminal.ShellWord(list.Next))
	}
	return err
}

// shortColumns maps the columns with abbreviated cells to their titles.
var shortColumns = map[string]string{"shortly": "when", "due": "next"}

// schedulesTable returns a table of schedules that fits a terminal.
func schedulesTable(list []*ScheduleDocument, paper terminal.Paper) string {
	names := lists.Map(list, func(one *ScheduleDocument) string { return terminal.EscapeInvisible(one.Name) })
	sets := [][]string{
		{"schedule", "playbook", "when", "zone", "next", "last run", "no run"},
		{"schedule", "when", "zone", "next", "last run", "no run"},
		{"schedule", "when", "zone", "due", "last run", "no run"},
		{"schedule", "when", "due", "last run", "no run"},
		{"schedule", "shortly", "due", "last run", "no run"},
		{"schedule", "due", "last run", "no run"},
		{"schedule", "due", "last run"},
		{"schedule", "due"},
	}
	if !slices.ContainsFunc(list, func(one *ScheduleDocument) bool { return one.Skipped+one.Missed > 0 }) {
		sets = lists.Map(sets, func(set []string) []string {
			return lists.Filter(set, func(name string) bool { return name != "no run" })
		})
	}
	return terminal.FitColumns(paper.Width, names, sets, func(columns, names []string) string {
		head := lists.Map(columns, func(name string) any { return cmp.Or(shortColumns[name], name) })
		rows := terminal.NewTable(head...)
		for i, one := range list {
			rows.AppendRow(terminal.TableRow(columns, one.listCells(names[i], paper)))
		}
		return rows.Render()
	})
}

// layoutOf returns the time layout of a list: with seconds if the times of the schedule need them.
func (d *ScheduleDocument) layoutOf() string {
	every, err := time.ParseDuration(d.Every)
	within := func(at time.Time) bool { return at.Second() != 0 }
	if err == nil && every%time.Minute != 0 || d.Jitter == "" && slices.ContainsFunc(d.Next, within) {
		return "01-02 15:04:05Z"
	}
	return "01-02 15:04Z"
}

// timesWithoutRun returns how many times of the schedule had no run, and why; "" for none.
func (d *ScheduleDocument) timesWithoutRun() string {
	var all []string
	if d.Missed > 0 {
		all = append(all, fmt.Sprintf("%d missed", d.Missed))
	}
	if d.Skipped > 0 {
		all = append(all, fmt.Sprintf("%d skipped", d.Skipped))
	}
	return strings.Join(all, ", ")
}

// listCells returns the cells of a schedule in a list, by column.
func (d *ScheduleDocument) listCells(name string, paper terminal.Paper) map[string]string {
	due, last := "never again", ""
	switch {
	case d.Paused:
		due = "paused"
	case len(d.Next) > 0:
		due = d.Next[0].UTC().Format(d.layoutOf())
	}
	next := due
	if d.Paused && d.Note != "" {
		next += ": " + paper.Shorten(d.Note, 30)
	}
	if len(d.Recent) > 0 {
		last = d.Recent[0].StartedAt.UTC().Format(d.layoutOf()) + " " + string(d.Recent[0].Status)
	}
	return map[string]string{
		"schedule": name, "playbook": paper.Shorten(d.Playbook, 30), "when": paper.Shorten(d.When, 40), "shortly": terminal.Shorten(d.When, 16),
		"zone": terminal.EscapeInvisible(d.Zone), "next": next, "due": due, "last run": last,
		"no run": d.timesWithoutRun(),
	}
}

// showScheduleOptions are the flags of schedule show.
type showScheduleOptions struct {
	server session.ServerFlags
	output string
}

func newScheduleShowCommand(a *cli.App) *cobra.Command {
	options := &showScheduleOptions{}
	command := &cobra.Command{
		Use: "show NAME", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return withSchedule(a, &options.server, args[0], func(ctx context.Context, s *session.Session, found *runs.Schedule) error {
				return showSchedule(ctx, a.Streams, s, found, options.output)
			})
		},
	}
	options.server.Add(command)
	cli.OutputFlagOf(command, &options.output, ": the playbook", "table", "json", "yaml")
	return command
}

// mostRecent bounds how many runs of a schedule can be shown, because the server remembers no more.
const mostRecent = 10

func showSchedule(ctx context.Context, streams cli.Streams, s *session.Session, found *runs.Schedule, output string) error {
	input, err := s.Runs().Schedules().Input(ctx, found)
	if err != nil {
		return err
	}
	if output == "yaml" {
		_, err := io.WriteString(streams.Out, input.Source)
		return err
	}
	doc, err := scheduleDocument(ctx, s, found, mostRecent)
	if err != nil {
		return err
	}
	doc.Workload = input.Workload
	for i := range doc.Recent {
		if one := &doc.Recent[i]; one.Status == interpreter.Failed {
			if one.Error, err = failureText(ctx, s, *one); err != nil {
				return err
			}
		}
	}
	return streams.ShowDocument(output, doc, doc.documentText(terminal.PaperOf(streams.Out).Width))
}

// failureText returns why a run failed.
func failureText(ctx context.Context, s *session.Session, run ScheduledRun) (string, error) {
	result, err := ending.WaitForResult(ctx, s.Client.GetWorkflow(ctx, run.WorkflowID, run.RunID))
	switch {
	case errors.Is(err, ending.ErrRefused), errors.Is(err, ending.ErrNoResult):
		return err.Error(), nil
	case err != nil:
		return "", err
	case result.Error != nil:
		return result.Error.Message, nil
	}
	return "", nil
}

// documentText returns the schedule for people.
func (d *ScheduleDocument) documentText(width int) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			terminal.WriteWrapped(&b, fmt.Sprintf("%-12s %s\n", name, terminal.Shorten(value, 2000)), width)
		}
	}
	line("schedule", d.Name)
	line("playbook", d.Playbook)
	line("when", d.When+", "+d.Zone)
	line("cron", strings.Join(d.Cron, " | "))
	line("jitter", d.Jitter)
	line("from", d.Start)
	line("until", d.End)
	line("overlap", d.Overlap)
	line("catch up", d.CatchUp)
	line("task queue", d.Queue)
	if values := load.AsMap(d.Workload.Data); len(values) > 0 {
		line("workload", expression.Text(values))
	}
	state := "active"
	if d.Paused {
		state = "paused"
	}
	line("state", state)
	line("note", d.Note)
	line("so far", fmt.Sprintf("%s, %d skipped, %d missed", terminal.Count(d.Started, "run"), d.Skipped, d.Missed))
	b.WriteString(d.timesText())
	b.WriteString(d.recentText(width))
	return b.String()
}

func (d *ScheduleDocument) timesText() string {
	if len(d.Next) == 0 {
		return "\nno next time\n"
	}
	title := "\nnext\n"
	if d.Paused {
		title = "\nnext, once it is resumed\n"
	}
	var b strings.Builder
	b.WriteString(title)
	for _, at := range d.Next {
		b.WriteString("  " + wording.TimeInZone(at, d.Zone) + "\n")
	}
	return b.String()
}

func (d *ScheduleDocument) recentText(width int) string {
	if len(d.Recent) == 0 {
		return "\nno run yet\n"
	}
	var b strings.Builder
	b.WriteString("\nlast runs\n")
	for _, run := range d.Recent {
		status := cmp.Or(string(run.Status), "forgotten by the server")
		if !run.EndedAt.IsZero() {
			status += " after " + terminal.Duration(run.EndedAt.Sub(run.StartedAt))
		}
		terminal.WriteWrapped(&b, fmt.Sprintf("  %s  %s\n", terminal.EscapeInvisible(run.WorkflowID), status), width)
		if run.Error != "" {
			terminal.WriteWrapped(&b, "    "+terminal.Shorten(run.Error, 500)+"\n", width)
		}
	}
	return b.String()
}
