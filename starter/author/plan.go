package author

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/program/backfill"
	"reprise/internal/program/timetable"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
	"reprise/starter/cli"
	"reprise/starter/load"
	"reprise/starter/session"
)

// planOptions are the flags of plan.
type planOptions struct {
	server      session.ServerFlags
	local       session.LocalFlags
	workload    load.WorkloadFlags
	partition   string
	fullRefresh []string
	sample      bool
	output      string
}

// NewPlanCommand returns the command plan.
func NewPlanCommand(a *cli.App) *cobra.Command {
	o := &planOptions{}
	command := &cobra.Command{
		Use: "plan FILE", Args: load.RequireOneFile, RunE: func(_ *cobra.Command, args []string) error { return showPlan(a, args[0], o) },
	}
	o.workload.AddFlags(command)
	command.Flags().BoolVar(&o.sample, "sample", false, "make the first request of GET steps, to find the columns of their rows")
	command.Flags().StringVar(&o.partition, "partition", "", "key of the partition that the run would handle; default: the newest that is complete")
	command.Flags().StringSliceVar(&o.fullRefresh, "full-refresh", nil,
		"plan a run that reads everything again: all steps with incremental, or those of `=STEP,STEP`")
	command.Flags().Lookup("full-refresh").NoOptDefVal = load.EveryStep
	o.server.Add(command)
	o.local.AddFlags(command)
	cli.OutputFlag(command, &o.output)
	return command
}

// planDocument is the JSON output of plan.
type planDocument struct {
	Playbook    string                 `json:"playbook"`
	Last        *lastRun               `json:"last_run"` // nil for none
	Running     []runs.Found           `json:"running"`
	Concurrency *plannedSlot           `json:"concurrency,omitempty"`
	Partitions  *plannedPartitions     `json:"partitions,omitempty"`
	Schedules   []plannedSchedule      `json:"schedules"`
	Steps       []interpreter.StepPlan `json:"steps"`
	Warnings    []string               `json:"warnings,omitempty"`
	// Notes describe what could not be determined.
	Notes []string `json:"notes,omitempty"`
	// Problems counts the problems that would make a run fail.
	Problems int `json:"problems"`
}

// lastRun is the latest run of the playbook.
type lastRun struct {
	runs.Found

	// Diff is the change of the playbook since that run, as a unified diff; "" if there is none.
	Diff string `json:"diff"`
}

// plannedSlot describes whether a run would start immediately or wait in the queue of its concurrency group.
type plannedSlot struct {
	Key        string              `json:"key"`
	Limit      int                 `json:"limit"`
	OnConflict playbook.OnConflict `json:"on_conflict"`
	Running    int                 `json:"running"`
	Waiting    int                 `json:"waiting"`
	Holders    []string            `json:"holders,omitempty"` // some of Running
}

// plannedPartitions are the completed partitions, and the partition that a run would process.
type plannedPartitions struct {
	Run    string                   `json:"run"`
	Counts map[partition.Status]int `json:"counts"`
	tally  string
}

// plannedSchedule is a schedule that starts runs of the playbook.
type plannedSchedule struct {
	Name   string      `json:"name"`
	When   string      `json:"when"`
	Zone   string      `json:"zone"`
	Paused bool        `json:"paused"`
	Next   []time.Time `json:"next"`
}

func showPlan(a *cli.App, name string, o *planOptions) error {
	workload, err := o.workload.Read()
	if err != nil {
		return err
	}
	checked, err := load.CheckPlaybook(a, name, workload, playbook.Limits{})
	if err != nil {
		return err
	}
	if errs := checked.Found.Errors(); len(errs) > 0 {
		_, _ = fmt.Fprint(a.Err, checked.File.FormatFirst(errs, playbook.MaxShown))
		return cli.WithStatus(exitcode.Failed, &load.ProblemsError{Name: name, Problems: load.ProblemsOf(errs), Total: len(errs)})
	}
	if err := load.CheckKeysAreRead(a, checked.Book, workload, checked.Book.Strict); err != nil {
		return err
	}
	o.local.Playbooks = cmp.Or(o.local.Playbooks, load.FolderOf(name))
	input, err := planInput(a.Streams, checked, workload, o)
	if err != nil {
		return err
	}
	return session.WithWorker(a, &o.server, &o.local, true, "a plan is made by one", func(ctx context.Context, s *session.Session) error {
		doc, err := planRun(ctx, s, checked, input)
		if err != nil {
			return err
		}
		err = a.ShowDocument(o.output, doc, doc.planText(time.Now(), terminal.PaperOf(a.Out).Width, o.sample))
		if err == nil && doc.Problems > 0 {
			return cli.WithStatus(exitcode.Failed, cli.ErrSaid)
		}
		return err
	})
}

// planInput returns the input of the worker's plan.
func planInput(streams cli.Streams, checked load.CheckedPlaybook, workload map[string]any, o *planOptions) (call.PlanInput, error) {
	book := checked.Book
	values, err := expression.Canonical(load.MergeWorkload(book.Workload, workload))
	if err != nil {
		return call.PlanInput{}, cli.UsageError("the workload: %w", err)
	}
	empty, now := expression.Of(map[string]any{}), time.Now()
	id := "reprise-plan/" + uuid.NewString()
	run := interpreter.RunInfo{WorkflowID: id, RunID: id, StartedAt: now, Playbook: book.Name}
	if run.Partition, err = book.RunPartition(o.partition, now); err != nil {
		return call.PlanInput{}, cli.UsageError("the run has no partition: %w", err)
	}
	run.FullRefresh, err = load.RefreshedSteps(streams, book, o.fullRefresh)
	return call.PlanInput{
		Task: call.Task{
			Name: checked.File.Name, Run: run, Data: interpreter.Data{Workload: expression.Of(values), Vars: empty, Steps: empty},
		},
		Script: call.Script{Source: string(checked.File.Bytes()), Files: checked.Files},
		Sample: o.sample,
	}, err
}

// planRun collects what a run would do.
func planRun(ctx context.Context, s *session.Session, of load.CheckedPlaybook, input call.PlanInput) (*planDocument, error) {
	doc := &planDocument{Playbook: of.Book.Name, Running: []runs.Found{}, Schedules: []plannedSchedule{}}
	answer, err := session.OnWorker[interpreter.PlanAnswer](ctx, s, input.Task.Run.WorkflowID, interpreter.PlanWorkflow, "plan "+input.Task.Name, input)
	if err != nil {
		return nil, err
	}
	if answer.Count > 0 {
		return nil, cli.WithStatus(exitcode.Failed, fmt.Errorf("the worker finds the playbook invalid:\n%s", answer.Problems))
	}
	doc.Steps, doc.Warnings = answer.Steps, answer.Warnings
	if s.Server != nil {
		doc.Notes = append(doc.Notes, "the plan was made with a local server, which has no runs, schedules or states; use --address for another one")
	}
	for _, gather := range []func(context.Context, *session.Session, load.CheckedPlaybook, call.PlanInput, *planDocument) error{
		planRuns, planSlot, planPartitions, planSchedules,
	} {
		if err := gather(ctx, s, of, input, doc); err != nil {
			return nil, err
		}
	}
	doc.Problems = len(doc.allProblems())
	return doc, nil
}

// mostPlanned bounds how many runs are read to find the playbook's: a server without the search attributes lists the
// runs of all playbooks.
const mostPlanned = 100

// planRuns adds the running runs of the playbook to doc, and how the playbook differs from that of the latest run.
func planRuns(ctx context.Context, s *session.Session, checked load.CheckedPlaybook, input call.PlanInput, doc *planDocument) error {
	list, err := s.Runs().List(ctx, runs.Filter{Playbook: checked.Book.Name, Limit: mostPlanned})
	if errors.Is(err, runs.ErrNoAttributes) {
		list, err = s.Runs().List(ctx, runs.Filter{Limit: mostPlanned})
		list.Runs = slices.DeleteFunc(list.Runs, func(run runs.Found) bool { return run.Playbook != checked.Book.Name })
	}
	if err != nil {
		return err
	}
	s.Runs().SetPositions(ctx, list.Runs)
	var last *runs.Found
	for i := range list.Runs {
		run := &list.Runs[i]
		if !run.Ended() {
			doc.Running = append(doc.Running, *run)
		}
		if run.Origin == "" && (last == nil || run.StartedAt.After(last.StartedAt)) {
			last = run
		}
	}
	if last == nil {
		return nil
	}
	before, err := s.Runs().Input(ctx, last.WorkflowID, last.RunID)
	if err != nil {
		doc.Notes = append(doc.Notes, fmt.Sprintf("the playbook of the last run cannot be read: %v", err))
		return nil
	}
	doc.Last = &lastRun{Found: *last}
	doc.Last.Diff, err = playbookDiff(last.WorkflowID, before.Source, input.Task.Name, input.Script.Source)
	if err != nil {
		doc.Notes = append(doc.Notes, fmt.Sprintf("the playbook cannot be compared with that of the last run: %v", err))
	}
	return nil
}

// planSlot adds to doc whether a run would wait in the queue of its concurrency group.
func planSlot(ctx context.Context, s *session.Session, checked load.CheckedPlaybook, input call.PlanInput, doc *planDocument) error {
	concurrency := checked.Book.Concurrency
	if concurrency == nil {
		return nil
	}
	scope := interpreter.NewScope(checked.Book, input.Task.Run, input.Task.Data)
	name, err := queue.NameOf(checked.Book, scope, expression.NewBudget(expression.DecisionLimits, time.Now()))
	if err != nil {
		doc.Notes = append(doc.Notes, fmt.Sprintf("concurrency: %v", err))
		return nil
	}
	status, err := s.Runs().QueueStatus(ctx, name)
	if err != nil {
		return err
	}
	doc.Concurrency = &plannedSlot{
		Key: name.Key, Limit: concurrency.Limit, OnConflict: concurrency.OnConflict, Running: status.Running, Waiting: status.Waiting, Holders: status.Holders,
	}
	return nil
}

// planPartitions adds the states of the partitions to doc.
func planPartitions(ctx context.Context, s *session.Session, checked load.CheckedPlaybook, input call.PlanInput, doc *planDocument) error {
	of := input.Task.Run.Partition
	if of == nil {
		return nil
	}
	matrix, err := backfill.Read(ctx, s.Client, checked.Book, time.Now())
	if err != nil {
		return err
	}
	doc.Partitions = &plannedPartitions{Run: of.Key, Counts: matrix.Counts, tally: matrix.Tally()}
	return nil
}

// shownTimes is how many upcoming times of a schedule are shown.
const shownTimes = 3

// planSchedules adds the schedules that start runs of the playbook to doc.
func planSchedules(ctx context.Context, s *session.Session, checked load.CheckedPlaybook, _ call.PlanInput, doc *planDocument) error {
	page, err := s.Runs().Schedules().List(ctx, "", 0)
	if err != nil {
		return err
	}
	for _, one := range page.Schedules {
		if one.Playbook != checked.Book.Name && one.Playbook != backfill.PlaybookName(checked.Book) {
			continue
		}
		times, next := timetable.Read(one.Described.Schedule), cli.OrEmpty(one.Described.Info.NextActionTimes)
		doc.Schedules = append(doc.Schedules, plannedSchedule{
			Name: one.ID, When: timetable.TimesInWords(times), Zone: times.Zone, Paused: one.Described.Schedule.State.Paused, Next: next[:min(len(next), shownTimes)],
		})
	}
	if len(doc.Schedules) == 0 && checked.Book.Schedule != nil {
		doc.Notes = append(doc.Notes, "the playbook has a metadata.schedule, but no schedule starts it; create one with starter schedule create "+
			terminal.ShellWord(checked.Book.Name)+" "+terminal.ShellWord(checked.File.Name))
	}
	return nil
}

// allProblems returns the problems of all steps.
func (d *planDocument) allProblems() (all []string) {
	for _, step := range d.Steps {
		all = append(all, step.Problem)
		for _, state := range step.States {
			all = append(all, state.Problem)
		}
		for _, sink := range step.Sinks {
			all = append(all, sink.Problem)
		}
	}
	return slices.DeleteFunc(all, func(problem string) bool { return problem == "" })
}
