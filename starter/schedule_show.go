package main

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
)

// scheduleDocument is what schedule list and show print as JSON.
type scheduleDocument struct {
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
	Recent   []scheduledRun   `json:"recent"` // the latest first
	Started  int              `json:"started"`
	Skipped  int              `json:"skipped"` // because of overlap
	Missed   int              `json:"missed"`  // and too old to be caught up
	Queue    string           `json:"task_queue"`
	Workload expression.Value `json:"workload,omitzero"` // of show
}

// scheduledRun is a run that a schedule has started.
type scheduledRun struct {
	WorkflowID string             `json:"workflow_id"`
	RunID      string             `json:"run_id"`
	StartedAt  time.Time          `json:"started_at"`
	EndedAt    time.Time          `json:"ended_at,omitzero"`
	Status     interpreter.Status `json:"status"` // "" where the server has forgotten the run
	Error      string             `json:"error,omitempty"`
}

// scheduleDocument is a schedule with its last runs, at most so many.
func (s *session) scheduleDocument(ctx context.Context, found *runs.Schedule, most int) (*scheduleDocument, error) {
	times, info := timetable.Read(found.Described.Schedule), found.Described.Info
	doc := &scheduleDocument{
		Name: found.ID, Playbook: found.Playbook, Paused: found.Described.Schedule.State.Paused, Note: found.Described.Schedule.State.Note,
		When: timesInWords(times), Cron: times.Cron, Every: shortTime(times.Every), Offset: shortTime(times.Offset), Zone: times.Zone,
		Jitter: shortTime(times.Jitter), Overlap: times.Overlap, CatchUp: shortTime(times.CatchUp), Start: times.Start, End: times.End,
		Next: orEmpty(info.NextActionTimes), Started: info.NumActions, Skipped: info.NumActionsSkippedOverlap,
		Missed: info.NumActionsMissedCatchupWindow, Queue: found.Action.TaskQueue,
	}
	started, err := s.runs().Started(ctx, found, most)
	if err != nil {
		return nil, err
	}
	doc.Recent = lists.Map(started, func(one runs.Started) scheduledRun {
		return scheduledRun{WorkflowID: one.Run.WorkflowID, RunID: one.Run.RunID, StartedAt: one.At, EndedAt: one.Run.EndedAt, Status: one.Run.Status}
	})
	return doc, nil
}

// listSchedulesOptions is the command line of schedule list.
type listSchedulesOptions struct {
	server serverFlags
	limit  int
	after  string
	output string
}

// mostSchedules is how many schedules a list shows by default.
const mostSchedules = 100

func newScheduleListCommand(a *app) *cobra.Command {
	options := &listSchedulesOptions{}
	command := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.listSchedules(options) },
	}
	command.Flags().IntVar(&options.limit, "limit", mostSchedules, "maximum number to list, 0 for all")
	command.Flags().StringVar(&options.after, "after", "", "only schedules whose names sort after this one: the next page")
	options.server.add(command)
	outputFlag(command, &options.output)
	return command
}

// scheduleList is what schedule list prints as JSON.
type scheduleList struct {
	Schedules []*scheduleDocument `json:"schedules"`
	Total     int                 `json:"total"` // without the limit
	// Next is the name behind which the next page begins, for --after; "" on the last one.
	Next string `json:"next,omitempty"`

	left int // behind this page
}

func (a *app) listSchedules(options *listSchedulesOptions) error {
	if options.limit < 0 {
		return usageError("--limit %d is less than 0, which means all", options.limit)
	}
	return a.withServer(&options.server, func(ctx context.Context, s *session) error {
		page, err := s.runs().Schedules(ctx, options.after, options.limit)
		if err != nil {
			return err
		}
		list := scheduleList{Schedules: []*scheduleDocument{}, Total: page.Total, left: page.Left}
		if page.Left > 0 {
			list.Next = page.Last
		}
		for _, one := range page.Schedules {
			doc, err := s.scheduleDocument(ctx, one, 1)
			if err != nil {
				return err
			}
			list.Schedules = append(list.Schedules, doc)
		}
		if options.output == "json" {
			return terminal.PrintJSON(a.Out, list)
		}
		return a.writeSchedules(list)
	})
}

func (a *app) writeSchedules(list scheduleList) error {
	if len(list.Schedules) == 0 {
		a.notef("no %sschedules", map[bool]string{true: "more "}[list.Total > 0])
		return nil
	}
	_, err := io.WriteString(a.Out, schedulesTable(list.Schedules, terminal.PaperOf(a.Out))+"\n")
	if list.left > 0 {
		a.notef("and %d more; --after %s shows the next, --limit 0 all", list.left, terminal.ShellWord(list.Next))
	}
	return err
}

// shortColumns say less than those whose name they have.
var shortColumns = map[string]string{"shortly": "when", "due": "next"}

// schedulesTable is a table of schedules that fits a terminal.
func schedulesTable(list []*scheduleDocument, paper terminal.Paper) string {
	names := lists.Map(list, func(one *scheduleDocument) string { return terminal.Visible(one.Name) })
	return terminal.FitColumns(paper.Width, names, [][]string{
		{"schedule", "playbook", "when", "zone", "next", "last run"},
		{"schedule", "when", "zone", "next", "last run"},
		{"schedule", "when", "zone", "due", "last run"},
		{"schedule", "when", "due", "last run"},
		{"schedule", "shortly", "due", "last run"},
		{"schedule", "due", "last run"},
		{"schedule", "due"},
	}, func(columns, names []string) string {
		head := lists.Map(columns, func(name string) any { return cmp.Or(shortColumns[name], name) })
		rows := terminal.NewTable(head...)
		for i, one := range list {
			rows.AppendRow(terminal.Row(columns, one.cells(names[i], paper)))
		}
		return rows.Render()
	})
}

// layout is that of the times in a list: with seconds where runs of a minute differ by
// them, or begin within one.
func (d *scheduleDocument) layout() string {
	every, err := time.ParseDuration(d.Every)
	within := func(at time.Time) bool { return at.Second() != 0 }
	if err == nil && every%time.Minute != 0 || d.Jitter == "" && slices.ContainsFunc(d.Next, within) {
		return "01-02 15:04:05Z"
	}
	return "01-02 15:04Z"
}

// cells are the columns of a list.
func (d *scheduleDocument) cells(name string, paper terminal.Paper) map[string]string {
	due, last := "never again", ""
	switch {
	case d.Paused:
		due = "paused"
	case len(d.Next) > 0:
		due = d.Next[0].UTC().Format(d.layout())
	}
	next := due
	if d.Paused && d.Note != "" {
		next += ": " + paper.Shorten(d.Note, 30)
	}
	if len(d.Recent) > 0 {
		last = d.Recent[0].StartedAt.UTC().Format(d.layout()) + " " + string(d.Recent[0].Status)
	}
	return map[string]string{
		"schedule": name, "playbook": paper.Shorten(d.Playbook, 30), "when": paper.Shorten(d.When, 40), "shortly": terminal.Shorten(d.When, 16),
		"zone": terminal.Visible(d.Zone), "next": next, "due": due, "last run": last,
	}
}

// showScheduleOptions is the command line of schedule show.
type showScheduleOptions struct {
	server serverFlags
	output string
}

func newScheduleShowCommand(a *app) *cobra.Command {
	options := &showScheduleOptions{}
	command := &cobra.Command{
		Use: "show NAME", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.withSchedule(&options.server, args[0], func(ctx context.Context, s *session, found *runs.Schedule) error {
				return a.showSchedule(ctx, s, found, options.output)
			})
		},
	}
	options.server.add(command)
	outputFlagOf(command, &options.output, ": the playbook", "table", "json", "yaml")
	return command
}

// mostRecent is how many runs the server remembers.
const mostRecent = 10

func (a *app) showSchedule(ctx context.Context, s *session, found *runs.Schedule, output string) error {
	input, err := s.runs().ScheduledInput(ctx, found)
	if err != nil {
		return err
	}
	if output == "yaml" {
		_, err := io.WriteString(a.Out, input.Source)
		return err
	}
	doc, err := s.scheduleDocument(ctx, found, mostRecent)
	if err != nil {
		return err
	}
	doc.Workload = input.Workload
	for i := range doc.Recent {
		if one := &doc.Recent[i]; one.Status == interpreter.Failed {
			if one.Error, err = s.failure(ctx, *one); err != nil {
				return err
			}
		}
	}
	return a.show(output, doc, doc.text(terminal.PaperOf(a.Out).Width))
}

// failure says why a run has failed.
func (s *session) failure(ctx context.Context, run scheduledRun) (string, error) {
	result, err := ending.Of(ctx, s.client.GetWorkflow(ctx, run.WorkflowID, run.RunID))
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

// text renders all of it for people.
func (d *scheduleDocument) text(width int) string {
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
	if values := asMap(d.Workload.Data); len(values) > 0 {
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

func (d *scheduleDocument) timesText() string {
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
		b.WriteString("  " + inZone(at, d.Zone) + "\n")
	}
	return b.String()
}

func (d *scheduleDocument) recentText(width int) string {
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
		terminal.WriteWrapped(&b, fmt.Sprintf("  %s  %s\n", terminal.Visible(run.WorkflowID), status), width)
		if run.Error != "" {
			terminal.WriteWrapped(&b, "    "+terminal.Shorten(run.Error, 500)+"\n", width)
		}
	}
	return b.String()
}

// inZone is a time for eyes in a time zone, UTC where this machine does not know it.
func inZone(at time.Time, zone string) string {
	location, err := time.LoadLocation(zone)
	if err != nil {
		location = time.UTC
	}
	return at.In(location).Format("2006-01-02 15:04:05 MST")
}
