package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/program/localserver"
	"reprise/internal/program/start"
	"reprise/interpreter/playbook"
)

// runOptions is the command line of run.
type runOptions struct {
	server     serverFlags
	local      localFlags
	workload   workloadFlags
	fairness   fairnessFlags
	workflowID string
	output     string
	detach     bool
	strict     bool
	serverEnds bool
	partition  string
	// fullRefresh are steps that read everything again; everyStep stands for all.
	fullRefresh []string
}

// everyStep is --full-refresh without a value.
const everyStep = "*"

func newRunCommand(a *app) *cobra.Command {
	options := &runOptions{}
	command := &cobra.Command{
		Use: "run FILE", Args: oneFile, RunE: func(command *cobra.Command, args []string) error {
			if command.Flags().Changed("record") {
				return usageError("a run cannot record, because workers make its requests; use starter try FILE --record FILE for one step")
			}
			if command.Flags().Changed("workflow-id") {
				if err := checkID("--workflow-id", options.workflowID); err != nil {
					return err
				}
			}
			return a.refuse(a.run(args[0], options), options.output)
		},
	}
	options.workload.add(command)
	options.server.add(command)
	command.Flags().StringVarP(&options.workflowID, "workflow-id", "w", "", "ID of the run; default: the playbook's name and a random part")
	command.Flags().BoolVar(&options.detach, "detach", false, "start the run without following it; needs a server that keeps running")
	command.Flags().BoolVar(&options.strict, "strict", false, "a run with a failed iteration is at best a partial success")
	command.Flags().String("record", "", "not available: use starter try --record")
	_ = command.Flags().MarkHidden("record")
	command.Flags().BoolVar(&options.serverEnds, "server-ends", false, "the server ends with this run: leave out what leads back to it")
	_ = command.Flags().MarkHidden("server-ends") // for scripts/demo
	command.Flags().StringSliceVar(&options.fullRefresh, "full-refresh", nil,
		"read everything again: all steps with incremental, or those of `=STEP,STEP`")
	command.Flags().Lookup("full-refresh").NoOptDefVal = everyStep
	command.Flags().StringVar(&options.partition, "partition", "",
		"key of the partition that the run handles, such as 2024-01-31; default: the newest that is complete")
	options.fairness.add(command)
	options.local.add(command)
	outputFlag(command, &options.output)
	return command
}

// refuse prints why a run did not start where its output is JSON.
func (a *app) refuse(err error, output string) error {
	if err != nil && output == "json" && !errors.Is(err, errSaid) {
		return errors.Join(terminal.PrintJSON(a.Out, refusal(err)), err)
	}
	return err
}

// oneFile refuses what is not one file. The steps of --full-refresh are behind a =, as they
// may be left out.
func oneFile(command *cobra.Command, args []string) error {
	if steps, err := command.Flags().GetStringSlice("full-refresh"); err == nil && len(args) > 1 && slices.Contains(steps, everyStep) {
		return fmt.Errorf("run takes one FILE, and was given %q; write the steps of --full-refresh after a =: --full-refresh=STEP",
			strings.Join(args, " "))
	}
	return cobra.ExactArgs(1)(command, args)
}

func (a *app) run(name string, options *runOptions) (err error) {
	plan, err := a.plan(name, options)
	if err != nil {
		return err
	}
	return a.runWith(options, func(context.Context, *session) (start.Plan, error) { return plan, nil })
}

// errNothing says that there is nothing to run.
var errNothing = errors.New("nothing to run")

// runWith starts a run of what a function plans once the server is there, and follows it.
func (a *app) runWith(options *runOptions, plans func(context.Context, *session) (start.Plan, error)) (err error) {
	ctx := a.interrupts.graceful
	s, err := a.open(ctx, options)
	if err != nil {
		if ctx.Err() != nil {
			return start.ErrInterrupted
		}
		return err
	}
	defer func() { s.end(a.interrupts.now.Err() != nil) }()
	s.ends = options.serverEnds || s.server != nil
	ctx, ended := s.telemetry.Begin(ctx, "starter run")
	defer func() { ended(err) }()
	plan, err := plans(ctx, s)
	if errors.Is(err, errNothing) {
		return nil
	}
	if err != nil {
		return err
	}
	run, err := s.start(ctx, plan, a)
	if err != nil {
		return err
	}
	if options.detach {
		if polled, err := newObserver(s, run).polled(ctx); err == nil && !polled {
			a.notef("note: no worker polls the task queue %q; the run waits for one", s.taskQueue)
			a.advisef("%s", render.StartWorker(s.taskQueue, s.flags))
		}
		return a.reportStart(s, run, options.output)
	}
	if link := s.pageOf(run.GetID(), run.GetRunID()); link != "" {
		a.notef("%s runs: %s", run.GetID(), link)
	} else {
		a.notef("%s runs on %s", run.GetID(), s.address)
	}
	return a.follow(s, run, options.output)
}

// plan reads and checks everything that can be known before a server is there.
func (a *app) plan(name string, options *runOptions) (start.Plan, error) {
	if err := options.fairness.check(); err != nil {
		return start.Plan{}, err
	}
	workload, err := options.workload.read()
	if err != nil {
		return start.Plan{}, err
	}
	checked, err := a.checkForRun(name, workload)
	if err != nil {
		return start.Plan{}, err
	}
	if err := a.checkRead(checked.book, workload, options.strict || checked.book.Strict); err != nil {
		return start.Plan{}, err
	}
	options.local.playbooks = cmp.Or(options.local.playbooks, folderOf(name))
	plan, err := newPlan(checked, workload, options.workflowID, options.local.playbooks)
	if err != nil {
		return plan, err
	}
	plan.Fairness, plan.Input.Strict = options.fairness.settings(), options.strict
	if _, err := checked.book.Partition(options.partition, time.Now()); err != nil {
		if options.partition == "" {
			return plan, usageError("the run has no partition: %w", err)
		}
		return plan, usageError("--partition: %w", err)
	}
	plan.Input.Partition = options.partition
	plan.Input.FullRefresh, err = a.refreshed(checked.book, options.fullRefresh)
	return plan, err
}

// refreshed are the steps that --full-refresh means.
func (a *app) refreshed(book *playbook.Playbook, named []string) ([]string, error) {
	if len(named) == 0 {
		return nil, nil
	}
	if slices.Contains(named, everyStep) {
		named = book.FullRefreshable()
		if len(named) == 0 {
			return nil, usageError("--full-refresh: no step of playbook %s has incremental, so every run reads everything", book.Name)
		}
	}
	if err := book.CheckFullRefresh(named); err != nil {
		return nil, usageError("--full-refresh: %w", err)
	}
	return named, nil
}

// checkForRun is checkValid for a playbook that is to run; it prints the warnings too, which the result of a run does not repeat.
func (a *app) checkForRun(name string, workload map[string]any) (checked, error) {
	checked, err := a.checkValid(name, workload)
	if warnings := checked.found.Warnings(); err == nil && len(warnings) > 0 {
		_, _ = fmt.Fprint(a.Err, checked.file.FormatFirst(warnings, playbook.MaxShown))
	}
	return checked, err
}

// checkValid reads and checks a playbook; errors in it are printed and end the command.
func (a *app) checkValid(name string, workload map[string]any) (checked, error) {
	checked, err := a.check(name, workload, playbook.Limits{})
	if err != nil {
		return checked, err
	}
	if errs := checked.found.Errors(); len(errs) > 0 {
		_, _ = fmt.Fprint(a.Err, checked.file.FormatFirst(errs, playbook.MaxShown))
		a.adviseExplain(errs)
		return checked, withStatus(exitUsage, &invalidError{name: name, problems: problems(errs), total: len(errs)})
	}
	return checked, nil
}

// invalidError is a playbook that must not run.
type invalidError struct {
	name     string
	problems []problem
	total    int // of them, those that are not among problems included
}

func (e *invalidError) Error() string {
	return fmt.Sprintf("%s has %s; nothing was started", e.name, terminal.Count(e.total, "problem"))
}

// open finds the server to use, or brings one up.
func (a *app) open(ctx context.Context, options *runOptions) (*session, error) {
	s, err := options.server.existing(ctx)
	if err != nil || s != nil {
		return s, err
	}
	if options.detach {
		return nil, usageError("--detach needs a server that keeps running; name one with --address, or %s", orDev(ctx))
	}
	a.notef("starting a local Temporal server and a worker")
	a.interrupts.endsInOrder()
	if folder, found := devInParent(ctx); found {
		a.notef("note: %s dev runs in %s, with its own connections; to use it, run this command there", terminal.Program(), folder)
	}
	s, err = options.local.startLocal(ctx, localserver.Options{}, options.server)
	if err != nil {
		return nil, err
	}
	if err := a.startPage(s, 0, ""); err != nil {
		s.end(false)
		return nil, err
	}
	if url := s.telemetry.URL(); url != "" {
		a.notef("metrics: %s", url)
	}
	return s, nil
}
