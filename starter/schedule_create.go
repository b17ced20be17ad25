package main

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
	"reprise/workflows/protocol"
)

// scheduleOptions is the command line of schedule create and update.
type scheduleOptions struct {
	run    runOptions // what runs of it start with
	times  timeFlags
	paused bool
	note   string
	yes    bool
	// backfill has runs make up for partitions that are missing, in the place of the newest alone.
	backfill bool
	output   string
	given    func(flag string) bool
}

func (o *scheduleOptions) add(command *cobra.Command) {
	flags := command.Flags()
	o.times.add(command)
	o.run.workload.add(command)
	flags.BoolVar(&o.run.strict, "strict", false, "a run with a failed iteration is at best a partial success")
	o.run.fairness.add(command)
	flags.StringVar(&o.note, "note", "", "a note for people, such as why it is paused")
	o.run.server.add(command)
	outputFlag(command, &o.output)
	o.given = flags.Changed
}

func newScheduleCreateCommand(a *app) *cobra.Command {
	options := &scheduleOptions{}
	command := &cobra.Command{
		Use: "create NAME FILE", Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error { return a.createSchedule(args[0], args[1], options) },
	}
	options.add(command)
	command.Flags().BoolVar(&options.paused, "paused", false, "create it paused; start it with starter schedule resume")
	command.Flags().BoolVar(&options.backfill, "backfill", false, "each run runs all missing partitions, not only the newest")
	return command
}

func newScheduleUpdateCommand(a *app) *cobra.Command {
	options := &scheduleOptions{}
	command := &cobra.Command{
		Use: "update NAME [FILE]", Args: cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.updateSchedule(args[0], strings.Join(args[1:], ""), options)
		},
	}
	options.add(command)
	command.Flags().BoolVarP(&options.yes, "yes", "y", false, "do not ask for a confirmation")
	return command
}

func (o *scheduleOptions) check(name string) error {
	if err := cmp.Or(checkSchedule(name), checkNote("note", o.note)); err != nil {
		return err
	}
	return o.times.check()
}

func (a *app) createSchedule(name, file string, options *scheduleOptions) error {
	if err := options.check(name); err != nil {
		return err
	}
	options.run.workflowID = name
	planned, err := a.scheduledPlan(file, options)
	if err != nil {
		return err
	}
	times := options.times.over(planned.Schedule)
	if err := a.checkTimes(times); err != nil {
		return err
	}
	times = timetable.Settled(times)
	return a.withServer(&options.run.server, func(ctx context.Context, s *session) error {
		err := s.submit(ctx, planned, a, func(plan start.Plan) error {
			action, err := s.action(plan, nil)
			if err != nil {
				return err
			}
			_, err = s.client.ScheduleClient().Create(ctx, client.ScheduleOptions{
				ID: name, Spec: timetable.Spec(times, time.Now()), Action: action,
				Overlap: timetable.OverlapPolicy(times.Overlap), CatchupWindow: times.CatchUp, Paused: options.paused, Note: options.note,
			})
			return err
		})
		switch {
		case errors.Is(err, temporal.ErrScheduleAlreadyRunning):
			return fmt.Errorf("the schedule %s already exists; change it with %s schedule update %s FILE", name, terminal.Program(), name)
		case err != nil:
			return scheduleError("create", name, err)
		}
		return a.printSchedule(ctx, s, name, "created", options.output)
	})
}

// scheduledPlan is what runs of a new schedule start with.
func (a *app) scheduledPlan(file string, options *scheduleOptions) (start.Plan, error) {
	if options.backfill {
		workload, err := options.run.workload.read()
		if err != nil {
			return start.Plan{}, err
		}
		return a.missingPlan(file, workload, &options.run)
	}
	planned, err := a.plan(file, &options.run)
	if err == nil && planned.Partitioned {
		a.notef("note: each run handles the newest partition. A partition whose run fails, or is dropped by overlap, needs %s backfill; with --backfill, each run runs all missing partitions",
			terminal.Program())
	}
	return planned, err
}

// missingPlan is a run that runs the partitions of a playbook that are missing when it begins.
func (a *app) missingPlan(file string, workload map[string]any, run *runOptions) (start.Plan, error) {
	of, err := a.partitioned(file, workload)
	if err != nil {
		return start.Plan{}, err
	}
	if err := cmp.Or(run.fairness.check(), a.checkRead(of.book, workload, of.book.Strict)); err != nil {
		return start.Plan{}, err
	}
	options := &partitionsOptions{run: *run, concurrency: defaultBackfillConcurrency}
	options.run.local.playbooks = cmp.Or(run.local.playbooks, folderOf(file))
	plan, err := a.backfillPlan(of, nil, workload, options)
	plan.Input.Missing, plan.Input.Strict, plan.Schedule = true, run.strict, of.book.Schedule
	return plan, err
}

// printSchedule prints a schedule after a command.
func (a *app) printSchedule(ctx context.Context, s *session, name, done, output string) error {
	found, err := s.schedule(ctx, name)
	if err != nil {
		return err
	}
	if output == "json" {
		doc, err := s.scheduleDocument(ctx, found, 0)
		if err != nil {
			return err
		}
		return terminal.PrintJSON(a.Out, doc)
	}
	times := timetable.Read(found.Described.Schedule)
	text := fmt.Sprintf("%s %s: it runs %s %s, %s", found.ID, done, found.Playbook, timesInWords(times), times.Zone)
	switch next := found.Described.Info.NextActionTimes; {
	case found.Described.Schedule.State.Paused:
		text += fmt.Sprintf(", and is paused until %s schedule resume %s", terminal.Program(), found.ID)
	case len(next) > 0:
		text += ", next at " + inZone(next[0], times.Zone)
	default:
		text += ", and no time is left"
	}
	_, err = fmt.Fprintln(a.Out, text)
	return err
}

// revision is a schedule as it is and as it is to be.
type revision struct {
	found            *runs.Schedule
	before, after    *playbook.Schedule // settled
	input            protocol.Input     // as it is
	plan             start.Plan         // as it is to be
	sameCode         bool               // the code that the memo vouches for is that of the plan
	noteOld, noteNew string
	queue            string // to be
}

func (a *app) updateSchedule(name, file string, options *scheduleOptions) error {
	if err := options.check(name); err != nil {
		return err
	}
	return a.withSchedule(&options.run.server, name, func(ctx context.Context, s *session, found *runs.Schedule) error {
		r, err := a.revise(ctx, s, found, file, options)
		if err != nil {
			return err
		}
		changes := r.diff()
		if changes == "" {
			renewed, err := timetable.Renew(ctx, s.client, found.ID, time.Now())
			if err != nil {
				return scheduleError("change", found.ID, err)
			}
			if renewed {
				return a.printSchedule(ctx, s, found.ID, "knows the moves of clocks of the next years", options.output)
			}
			a.notef("nothing to change: the schedule %s is already like this", found.ID)
			return nil
		}
		if options.output != "json" {
			if _, err := io.WriteString(a.Out, changes); err != nil {
				return err
			}
		}
		if err := a.confirm(options.yes, fmt.Sprintf("Change the schedule %s?", found.ID)); err != nil {
			return err
		}
		if err := s.submit(ctx, r.plan, a, func(plan start.Plan) error { return s.change(ctx, r, plan) }); err != nil {
			return scheduleError("change", found.ID, err)
		}
		return a.printSchedule(ctx, s, found.ID, "changed", options.output)
	})
}

// revise finds out what a schedule is to be.
func (a *app) revise(
	ctx context.Context, s *session, found *runs.Schedule, file string, options *scheduleOptions,
) (*revision, error) {
	r := &revision{found: found, before: timetable.Read(found.Described.Schedule), noteOld: found.Described.Schedule.State.Note}
	var err error
	if r.input, err = s.runs().ScheduledInput(ctx, found); err != nil {
		return nil, err
	}
	if !options.given("task-queue") { // where the workers of its runs are
		s.taskQueue = found.Action.TaskQueue
	}
	r.queue = s.taskQueue
	if r.plan, err = a.revisedPlan(r, file, options); err != nil {
		return nil, err
	}
	if !options.given("priority") && !options.given("fairness-key") && !options.given("fairness-weight") {
		r.plan.Fairness = found.Action.Priority
	}
	base := r.before
	if file != "" && r.plan.Schedule != nil {
		base = r.plan.Schedule
	}
	times := options.times.over(base)
	r.after, r.noteNew = timetable.Settled(times), r.noteOld
	if r.timesChange() { // others may have made it with what starter would not write
		if err := a.checkTimes(times); err != nil {
			return nil, err
		}
	}
	if options.given("note") {
		r.noteNew = options.note
	}
	return r, nil
}

// revisedPlan is what runs start with: the playbook of the file, else that of the
// schedule, and its workload with the values of the flags over it.
func (a *app) revisedPlan(r *revision, file string, options *scheduleOptions) (start.Plan, error) {
	if err := options.run.fairness.check(); err != nil {
		return start.Plan{}, err
	}
	overlay, err := options.run.workload.read()
	if err != nil {
		return start.Plan{}, err
	}
	workload := merged(asMap(r.input.Workload.Data), overlay)
	if r.input.Missing {
		return a.revisedBackfill(r, file, overlay, options)
	}
	checked, err := a.checkRevised(r, file, workload)
	if err != nil {
		return start.Plan{}, err
	}
	strict := r.input.Strict
	if options.given("strict") {
		strict = options.run.strict
	}
	if err := a.checkRead(checked.book, overlay, strict || checked.book.Strict); err != nil {
		return start.Plan{}, err
	}
	revised, err := newPlan(checked, workload, r.found.Action.ID, folderOf(checked.file.Name))
	revised.Fairness, revised.Input.Strict = options.run.fairness.settings(), strict
	return revised, err
}

// revisedBackfill is revisedPlan for a schedule whose runs run what is missing.
func (a *app) revisedBackfill(r *revision, file string, overlay map[string]any, options *scheduleOptions) (start.Plan, error) {
	workload := asMap(r.input.Workload.Data)
	given := merged(asMap(workload["given"]), overlay)
	run := options.run
	run.workflowID = r.found.Action.ID
	if !options.given("strict") {
		run.strict = r.input.Strict
	}
	if file != "" {
		return a.missingPlan(file, given, &run)
	}
	revised, err := a.checkRevised(r, "", nil)
	if err != nil {
		return start.Plan{}, err
	}
	revised.files = r.input.Files
	plan, err := newPlan(revised, backfill.Workload(nil, given), run.workflowID, "")
	plan.Fairness, plan.Input.Strict, plan.Input.Missing = run.fairness.settings(), run.strict, true
	return plan, err
}

// checkRevised checks the playbook of a schedule that is to change. The schedule's own
// playbook is not checked against this starter: workers may know more.
func (a *app) checkRevised(r *revision, file string, workload map[string]any) (checked, error) {
	if file != "" {
		return a.checkForRun(file, workload)
	}
	r.sameCode = true
	book, err := interpreter.Load(r.input.Name, r.input.Source)
	if err != nil {
		return checked{}, fmt.Errorf("the playbook of the schedule %s cannot be read; pass its file: %w", r.found.ID, err)
	}
	return checked{file: book.File, book: book, files: r.input.Files}, nil
}

// errMoved says that somebody else was faster.
var errMoved = errors.New("it has been changed meanwhile; check the difference again")

// change has the server take a revision, unless the schedule has changed since it was
// read.
func (s *session) change(ctx context.Context, r *revision, plan start.Plan) error {
	return s.handle(ctx, r.found).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(now client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			if !now.Description.Info.LastUpdateAt.Equal(r.found.Described.Info.LastUpdateAt) {
				return nil, errMoved
			}
			next := now.Description.Schedule
			if renewed := timetable.Renewed(next, time.Now()); renewed != nil {
				next.Spec = renewed
			}
			if r.timesChange() {
				spec := timetable.Spec(r.after, time.Now())
				next.Spec = &spec
				next.Policy.Overlap, next.Policy.CatchupWindow = timetable.OverlapPolicy(r.after.Overlap), r.after.CatchUp
			}
			next.State.Note = r.noteNew
			var memo map[string]any
			if r.sameCode {
				memo = r.found.Action.Memo
			}
			var err error
			next.Action, err = s.action(plan, memo)
			return &client.ScheduleUpdate{Schedule: &next}, err
		},
	})
}

func (r *revision) timesChange() bool {
	return strings.Join(timeLines(r.before), "\n") != strings.Join(timeLines(r.after), "\n")
}

// diff is what changes, as unified diffs of the settings and of the playbook; "" for
// nothing.
func (r *revision) diff() string {
	before := settings{
		id:    r.found.Action.ID,
		times: r.before, playbook: r.found.Playbook, queue: r.found.Action.TaskQueue, priority: r.found.Action.Priority,
		note: r.noteOld, input: r.input,
	}
	after := settings{
		id:    r.found.Action.ID,
		times: r.after, playbook: r.plan.Playbook, queue: r.queue, priority: r.plan.Priority(), note: r.noteNew, input: r.plan.Input,
	}
	text := string(diff.Diff(r.found.ID+" as it is", []byte(before.text()), r.found.ID+" to be", []byte(after.text())))
	text += string(diff.Diff(r.input.Name+" as it is", []byte(r.input.Source), r.plan.Input.Name+" to be", []byte(r.plan.Input.Source)))
	return headless(text)
}

// headless drops the lines in which a diff repeats its own command.
func headless(text string) string {
	lines := lists.Filter(slices.Collect(strings.Lines(text)), func(line string) bool { return !strings.HasPrefix(line, "diff ") })
	return strings.Join(lines, "")
}

// settings is what a schedule says beside the text of its playbook.
type settings struct {
	id              string             // of the runs, without the time
	times           *playbook.Schedule // settled
	playbook, queue string
	priority        temporal.Priority
	note            string
	input           protocol.Input
}

// text has a line for each setting.
func (s settings) text() string {
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
		lines = append(lines, "note: "+terminal.Shorten(s.note, mostNote))
	}
	if s.input.Missing {
		lines = append(lines, "backfill: true")
	}
	if s.input.Strict {
		lines = append(lines, "strict: true")
	}
	values := asMap(s.input.Workload.Data)
	for _, key := range sortedKeys(values) {
		value := expression.Text(values[key])
		if text, ok := values[key].(string); ok {
			value = strconv.Quote(text)
		}
		lines = append(lines, "workload."+key+": "+value)
	}
	return strings.Join(lines, "\n") + "\n"
}
