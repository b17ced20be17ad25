package schedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/program/backfill"
	"reprise/internal/program/start"
	"reprise/internal/program/timetable"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/starter/cli"
	"reprise/starter/execute"
	"reprise/starter/launch"
	"reprise/starter/load"
	"reprise/starter/session"
	"reprise/starter/wording"
	"reprise/workflows/protocol"
)

// scheduleOptions are the flags of schedule create and update.
type scheduleOptions struct {
	run    execute.RunOptions // what runs of it start with
	times  timeFlags
	paused bool
	note   string
	yes    bool
	// backfill makes scheduled runs process all missing partitions, not just the newest.
	backfill bool
	output   string
	given    func(flag string) bool
}

func (o *scheduleOptions) addFlags(command *cobra.Command) {
	flags := command.Flags()
	o.times.addFlags(command)
	o.run.Workload.AddFlags(command)
	flags.BoolVar(&o.run.Strict, "strict", false, "a run with a failed iteration is at best a partial success")
	o.run.Fairness.AddFlags(command)
	flags.StringVar(&o.note, "note", "", "a note for people, such as why it is paused")
	o.run.Server.Add(command)
	cli.OutputFlag(command, &o.output)
	o.given = flags.Changed
}

func newScheduleCreateCommand(a *cli.App) *cobra.Command {
	options := &scheduleOptions{}
	command := &cobra.Command{
		Use: "create NAME FILE", Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error { return createSchedule(a, args[0], args[1], options) },
	}
	options.addFlags(command)
	command.Flags().BoolVar(&options.paused, "paused", false, "create it paused; start it with starter schedule resume")
	command.Flags().BoolVar(&options.backfill, "backfill", false, "each run runs all missing partitions, not only the newest")
	return command
}

func newScheduleUpdateCommand(a *cli.App) *cobra.Command {
	options := &scheduleOptions{}
	command := &cobra.Command{
		Use: "update NAME [FILE]", Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			return updateSchedule(a, args[0], strings.Join(args[1:], ""), options)
		},
	}
	options.addFlags(command)
	command.Flags().BoolVarP(&options.yes, "yes", "y", false, "do not ask for a confirmation")
	return command
}

func (o *scheduleOptions) checkOptions(name string) error {
	if err := cmp.Or(checkSchedule(name), cli.CheckNote("note", o.note)); err != nil {
		return err
	}
	return o.times.checkFlags()
}

func createSchedule(a *cli.App, name, file string, options *scheduleOptions) error {
	if err := options.checkOptions(name); err != nil {
		return err
	}
	options.run.WorkflowID = name
	planned, err := scheduledPlan(a, file, options)
	if err != nil {
		return err
	}
	times := options.times.layOver(planned.Schedule)
	if err := checkTimes(a.Streams, times); err != nil {
		return err
	}
	times = timetable.SettledTimes(times)
	return session.WithServer(a, &options.run.Server, func(ctx context.Context, s *session.Session) error {
		err := SubmitSchedule(ctx, s, planned, a.Streams, func(plan start.Plan) error {
			action, err := scheduleAction(s, plan, nil)
			if err != nil {
				return err
			}
			_, err = s.Client.ScheduleClient().Create(ctx, client.ScheduleOptions{
				ID: name, Spec: timetable.ScheduleSpec(times, time.Now()), Action: action,
				Overlap: timetable.OverlapPolicy(times.Overlap), CatchupWindow: times.CatchUp, Paused: options.paused, Note: options.note,
			})
			return err
		})
		switch {
		case errors.Is(err, temporal.ErrScheduleAlreadyRunning):
			return fmt.Errorf("the schedule %s already exists; change it with %s schedule update %s FILE", name, terminal.ProgramName(), name)
		case err != nil:
			return scheduleError("create", name, err)
		}
		return printSchedule(ctx, a.Streams, s, name, "created", options.output)
	})
}

// scheduledPlan returns the plan of the runs that a new schedule starts.
func scheduledPlan(a *cli.App, file string, options *scheduleOptions) (start.Plan, error) {
	if options.backfill {
		workload, err := options.run.Workload.Read()
		if err != nil {
			return start.Plan{}, err
		}
		return missingPlan(a, file, workload, &options.run)
	}
	planned, err := execute.PlanRun(a, file, &options.run)
	if err == nil && planned.Partitioned {
		a.Notef("note: each run handles the newest partition. A partition whose run fails, or is dropped by overlap, needs %s backfill; with --backfill, each run runs all missing partitions",
			terminal.ProgramName())
	}
	return planned, err
}

// missingPlan returns the plan of a run that processes the partitions which are missing when it starts.
func missingPlan(a *cli.App, file string, workload map[string]any, run *execute.RunOptions) (start.Plan, error) {
	of, err := execute.LoadPartitioned(a, file, workload)
	if err != nil {
		return start.Plan{}, err
	}
	if err := cmp.Or(run.Fairness.Check(), load.CheckKeysAreRead(a, of.Book, workload, of.Book.Strict)); err != nil {
		return start.Plan{}, err
	}
	options := &execute.PartitionsOptions{Run: *run, Concurrency: launch.DefaultBackfillConcurrency}
	options.Run.Local.Playbooks = cmp.Or(run.Local.Playbooks, load.FolderOf(file))
	plan, err := execute.BackfillPlan(a, of, nil, workload, options)
	plan.Input.Missing, plan.Input.Strict, plan.Schedule = true, run.Strict, of.Book.Schedule
	return plan, err
}

// printSchedule prints a schedule after a command has changed it. done is the message.
func printSchedule(ctx context.Context, streams cli.Streams, s *session.Session, name, done, output string) error {
	found, err := findSchedule(ctx, s, name)
	if err != nil {
		return err
	}
	if output == "json" {
		doc, err := scheduleDocument(ctx, s, found, 0)
		if err != nil {
			return err
		}
		return terminal.PrintJSON(streams.Out, doc)
	}
	times := timetable.Read(found.Described.Schedule)
	text := fmt.Sprintf("%s %s: it runs %s %s, %s", found.ID, done, found.Playbook, timetable.TimesInWords(times), times.Zone)
	switch next := found.Described.Info.NextActionTimes; {
	case found.Described.Schedule.State.Paused:
		text += fmt.Sprintf(", and is paused until %s schedule resume %s", terminal.ProgramName(), found.ID)
	case len(next) > 0:
		text += ", next at " + wording.TimeInZone(next[0], times.Zone)
	default:
		text += ", and no time is left"
	}
	_, err = fmt.Fprintln(streams.Out, text)
	return err
}

// revision is a schedule before and after an update.
type revision struct {
	found            *runs.Schedule
	before, after    *playbook.Schedule // settled
	input            protocol.Input     // as it is
	plan             start.Plan         // as it is to be
	sameCode         bool               // the code that the memo vouches for is that of the plan
	noteOld, noteNew string
	queue            string // to be
}

func updateSchedule(a *cli.App, name, file string, options *scheduleOptions) error {
	if err := options.checkOptions(name); err != nil {
		return err
	}
	return withSchedule(a, &options.run.Server, name, func(ctx context.Context, s *session.Session, found *runs.Schedule) error {
		r, err := newRevision(ctx, a, s, found, file, options)
		if err != nil {
			return err
		}
		changes := r.diffText()
		if changes == "" {
			renewed, err := timetable.RenewSchedule(ctx, s.Client, found.ID, time.Now())
			if err != nil {
				return scheduleError("change", found.ID, err)
			}
			if renewed {
				return printSchedule(ctx, a.Streams, s, found.ID, "knows the moves of clocks of the next years", options.output)
			}
			a.Notef("nothing to change: the schedule %s is already like this", found.ID)
			return nil
		}
		if options.output != "json" {
			if _, err := io.WriteString(a.Out, changes); err != nil {
				return err
			}
		}
		if err := a.Confirm(options.yes, fmt.Sprintf("Change the schedule %s?", found.ID)); err != nil {
			return err
		}
		if err := SubmitSchedule(ctx, s, r.plan, a.Streams, func(plan start.Plan) error { return applyRevision(ctx, s, r, plan) }); err != nil {
			return scheduleError("change", found.ID, err)
		}
		return printSchedule(ctx, a.Streams, s, found.ID, "changed", options.output)
	})
}

// newRevision returns the update of a schedule that the file and the flags describe.
func newRevision(
	ctx context.Context, a *cli.App, s *session.Session, found *runs.Schedule, file string, options *scheduleOptions,
) (*revision, error) {
	r := &revision{found: found, before: timetable.Read(found.Described.Schedule), noteOld: found.Described.Schedule.State.Note}
	var err error
	if r.input, err = s.Runs().Schedules().Input(ctx, found); err != nil {
		return nil, err
	}
	if !options.given("task-queue") { // where the workers of its runs are
		s.TaskQueue = found.Action.TaskQueue
	}
	r.queue = s.TaskQueue
	if r.plan, err = revisedPlan(a, r, file, options); err != nil {
		return nil, err
	}
	if !options.given("priority") && !options.given("fairness-key") && !options.given("fairness-weight") {
		r.plan.Fairness = found.Action.Priority
	}
	base := r.before
	if file != "" && r.plan.Schedule != nil {
		base = r.plan.Schedule
	}
	times := options.times.layOver(base)
	r.after, r.noteNew = timetable.SettledTimes(times), r.noteOld
	if r.timesChange() { // others may have made it with what starter would not write
		if err := checkTimes(a.Streams, times); err != nil {
			return nil, err
		}
	}
	if options.given("note") {
		r.noteNew = options.note
	}
	return r, nil
}

// revisedPlan returns the new plan of the schedule's runs: the playbook from the file, else the schedule's own, and
// its workload overridden by the flags.
func revisedPlan(a *cli.App, r *revision, file string, options *scheduleOptions) (start.Plan, error) {
	if err := options.run.Fairness.Check(); err != nil {
		return start.Plan{}, err
	}
	overlay, err := options.run.Workload.Read()
	if err != nil {
		return start.Plan{}, err
	}
	workload := load.MergeWorkload(load.AsMap(r.input.Workload.Data), overlay)
	if r.input.Missing {
		return revisedBackfill(a, r, file, overlay, options)
	}
	checked, err := checkRevised(a, r, file, workload)
	if err != nil {
		return start.Plan{}, err
	}
	strict := r.input.Strict
	if options.given("strict") {
		strict = options.run.Strict
	}
	if err := load.CheckKeysAreRead(a, checked.Book, overlay, strict || checked.Book.Strict); err != nil {
		return start.Plan{}, err
	}
	revised, err := launch.NewPlan(checked, workload, r.found.Action.ID, load.FolderOf(checked.File.Name))
	revised.Fairness, revised.Input.Strict = options.run.Fairness.PrioritySettings(), strict
	return revised, err
}

// revisedBackfill is revisedPlan for a schedule whose runs process missing partitions.
func revisedBackfill(a *cli.App, r *revision, file string, overlay map[string]any, options *scheduleOptions) (start.Plan, error) {
	workload := load.AsMap(r.input.Workload.Data)
	given := load.MergeWorkload(load.AsMap(workload["given"]), overlay)
	run := options.run
	run.WorkflowID = r.found.Action.ID
	if !options.given("strict") {
		run.Strict = r.input.Strict
	}
	if file != "" {
		return missingPlan(a, file, given, &run)
	}
	revised, err := checkRevised(a, r, "", nil)
	if err != nil {
		return start.Plan{}, err
	}
	revised.Files = r.input.Files
	plan, err := launch.NewPlan(revised, backfill.BackfillWorkload(nil, given), run.WorkflowID, "")
	plan.Fairness, plan.Input.Strict, plan.Input.Missing = run.Fairness.PrioritySettings(), run.Strict, true
	return plan, err
}

// checkRevised validates the playbook of a schedule that is to change. Without a file it only parses the schedule's
// own playbook, because newer workers may accept what this starter does not know.
func checkRevised(a *cli.App, r *revision, file string, workload map[string]any) (load.CheckedPlaybook, error) {
	if file != "" {
		return load.CheckForRun(a, file, workload)
	}
	r.sameCode = true
	book, err := interpreter.LoadPlaybook(r.input.Name, r.input.Source)
	if err != nil {
		return load.CheckedPlaybook{}, fmt.Errorf("the playbook of the schedule %s cannot be read; pass its file: %w", r.found.ID, err)
	}
	return load.CheckedPlaybook{File: book.File, Book: book, Files: r.input.Files}, nil
}

// errMoved is the error for a schedule that somebody else changed at the same time.
var errMoved = errors.New("it has been changed meanwhile; check the difference again")

// applyRevision updates the schedule on the server, unless it has changed since it was read.
func applyRevision(ctx context.Context, s *session.Session, r *revision, plan start.Plan) error {
	return handleOf(ctx, s, r.found).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(now client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			if !now.Description.Info.LastUpdateAt.Equal(r.found.Described.Info.LastUpdateAt) {
				return nil, errMoved
			}
			next := now.Description.Schedule
			if renewed := timetable.RenewedSpec(next, time.Now()); renewed != nil {
				next.Spec = renewed
			}
			if r.timesChange() {
				spec := timetable.ScheduleSpec(r.after, time.Now())
				next.Spec = &spec
				next.Policy.Overlap, next.Policy.CatchupWindow = timetable.OverlapPolicy(r.after.Overlap), r.after.CatchUp
			}
			next.State.Note = r.noteNew
			var memo map[string]any
			if r.sameCode {
				memo = r.found.Action.Memo
			}
			var err error
			next.Action, err = scheduleAction(s, plan, memo)
			return &client.ScheduleUpdate{Schedule: &next}, err
		},
	})
}

func (r *revision) timesChange() bool {
	return strings.Join(timeLines(r.before), "\n") != strings.Join(timeLines(r.after), "\n")
}

// diffText returns the changes as unified diffs of the settings and of the playbook; "" if there are none.
func (r *revision) diffText() string {
	before := settings{
		id:    r.found.Action.ID,
		times: r.before, playbook: r.found.Playbook, queue: r.found.Action.TaskQueue, priority: r.found.Action.Priority,
		note: r.noteOld, input: r.input,
	}
	after := settings{
		id:    r.found.Action.ID,
		times: r.after, playbook: r.plan.Playbook, queue: r.queue, priority: r.plan.Priority(), note: r.noteNew, input: r.plan.Input,
	}
	text := string(diff.Diff(r.found.ID+" as it is", []byte(before.settingsText()), r.found.ID+" to be", []byte(after.settingsText())))
	text += string(diff.Diff(r.input.Name+" as it is", []byte(r.input.Source), r.plan.Input.Name+" to be", []byte(r.plan.Input.Source)))
	return dropHeaders(text)
}

// dropHeaders removes the header lines of a diff.
func dropHeaders(text string) string {
	lines := lists.Filter(slices.Collect(strings.Lines(text)), func(line string) bool { return !strings.HasPrefix(line, "diff ") })
	return strings.Join(lines, "")
}

// settings are the settings of a schedule, except the text of its playbook.
type settings struct {
	id              string             // of the runs, without the time
	times           *playbook.Schedule // settled
	playbook, queue string
	priority        temporal.Priority
	note            string
	input           protocol.Input
}

// settingsText returns the settings, one per line.
func (s settings) settingsText() string {
	lines := append([]string{"playbook: " + s.playbook}, timeLines(s.times)...)
	lines = append(lines, "task_queue: "+s.queue)
	if s.priority.PriorityKey != 0 {
		lines = append(lines, fmt.Sprintf("priority: %d", s.priority.PriorityKey))
	}
	if s.priority.FairnessKey != start.FairnessKey(s.id) {
		lines = append(lines, "fairness_key: "+s.priority.FairnessKey)
	}
	if s.priority.FairnessWeight != 0 {
		lines = append(lines, fmt.Sprintf("fairness_weight: %v", s.priority.FairnessWeight))
	}
	if s.note != "" {
		lines = append(lines, "note: "+terminal.Shorten(s.note, protocol.MaxSaid))
	}
	if s.input.Missing {
		lines = append(lines, "backfill: true")
	}
	if s.input.Strict {
		lines = append(lines, "strict: true")
	}
	values := load.AsMap(s.input.Workload.Data)
	for _, key := range cli.SortedKeys(values) {
		value := expression.Text(values[key])
		if text, ok := values[key].(string); ok {
			value = strconv.Quote(text)
		}
		lines = append(lines, "workload."+key+": "+value)
	}
	return strings.Join(lines, "\n") + "\n"
}
