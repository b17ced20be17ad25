package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/deadletter"
	"reprise/internal/observe/runs"
	"reprise/internal/program/host"
	"reprise/internal/program/start"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// reprocessOptions is the command line of dead-letters reprocess.
type reprocessOptions struct {
	server     serverFlags
	letters    letterFlags
	workload   workloadFlags
	playbook   string
	queueGiven bool
	quarantine int
	dryRun     bool
	detach     bool
	output     string
}

func newReprocessCommand(a *app) *cobra.Command {
	options := &reprocessOptions{}
	command := &cobra.Command{
		Use: "reprocess RUN", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			options.queueGiven = command.Flags().Changed("task-queue")
			return a.refuse(a.reprocess(args[0], options), options.output)
		},
	}
	options.letters.add(command)
	flags := command.Flags()
	flags.StringVar(&options.playbook, "playbook", "", "run them with another playbook, which has the same step")
	flags.IntVar(&options.quarantine, "quarantine-after", 0, "leave out iterations that have failed in this many runs; 0 leaves out none")
	flags.BoolVar(&options.dryRun, "dry-run", false, "list the iterations that would run, and run nothing")
	flags.BoolVar(&options.detach, "detach", false, "start the run and do not follow it")
	options.workload.add(command)
	options.server.add(command)
	outputFlag(command, &options.output)
	return command
}

// chosen are the dead letters of a chain that a reprocess selects.
type chosen struct {
	open        []deadletter.Letter // and not running in a reprocess
	quarantined int
	cancelled   int // left out because they were not selected
}

// again says what runs again and in which steps, and how much of it had failed, which is a figure
// of its own beside that of the cancelled ones. playbook is "" for that of the run.
func (c chosen) again(playbook string) string {
	cancelled := 0
	var steps []string
	for _, letter := range c.open {
		steps = lists.Add(steps, letter.Step)
		if letter.WasCancelled() {
			cancelled++
		}
	}
	slices.Sort(steps)
	text := terminal.Count(len(c.open), "iteration") + " of " + strings.Join(steps, ", ") + " again"
	if playbook != "" {
		text += " with " + playbook
	}
	if failed := len(c.open) - cancelled; failed > 0 && cancelled > 0 {
		text += fmt.Sprintf(": %d that failed and %d that were cancelled", failed, cancelled)
	}
	return text
}

func choose(chain *deadletter.Chain, filter deadletter.Filter, quarantineAfter int) chosen {
	var found chosen
	for _, letter := range chain.Select(filter) {
		switch {
		case letter.State == deadletter.Reprocessing:
		case quarantineAfter > 0 && letter.FailedRuns >= quarantineAfter:
			found.quarantined++
		default:
			found.open = append(found.open, letter)
		}
	}
	if !filter.Cancelled {
		found.cancelled = chain.CountCancelled(filter)
	}
	return found
}

func (a *app) reprocess(workflowID string, options *reprocessOptions) error {
	filter, err := options.letters.filter(time.Now())
	if err != nil {
		return err
	}
	if options.quarantine < 0 {
		return usageError("--quarantine-after %d: expected 0 or more", options.quarantine)
	}
	workload, err := options.workload.read()
	if err != nil {
		return err
	}
	return a.withChain(&options.server, workflowID, options.letters.runID, func(_ context.Context, s *session, chain *deadletter.Chain) error {
		return a.reprocessChain(s, chain, filter, workload, options)
	})
}

// reprocessChain starts the next reprocess, or follows the one that is open.
func (a *app) reprocessChain(
	s *session, chain *deadletter.Chain, filter deadletter.Filter, workload map[string]any, options *reprocessOptions,
) error {
	if !options.queueGiven { // where the workers of the run are
		s.taskQueue = chain.Origin.TaskQueue
	}
	if filter.Cancelled && !chain.Origin.Closed() {
		return withStatus(exitFailed, fmt.Errorf("%s is open, so it is not known yet which iterations are cancelled; "+
			"wait until it ends, or omit --cancelled", chain.Origin.WorkflowID))
	}
	found := choose(chain, filter, options.quarantine)
	a.reportLeftOut(found, options.quarantine)
	switch running := chain.Running(); {
	case options.dryRun:
		return a.dryRun(found, options.output)
	case running != nil:
		return a.followReprocess(s, running, found, options)
	case len(found.open) == 0:
		return a.nothingToDo(found, options.output)
	}
	ctx := a.interrupts.graceful
	plan, err := a.reprocessPlan(ctx, s, chain, found.open, workload, options)
	if err != nil {
		return err
	}
	return a.startReprocess(ctx, s, plan, found.again(options.playbook), options)
}

// reportLeftOut prints what could have run.
func (a *app) reportLeftOut(found chosen, quarantine int) {
	if found.quarantined > 0 {
		a.notef("left out: %s that failed in %d runs or more (--quarantine-after)",
			terminal.Count(found.quarantined, "iteration"), quarantine)
	}
	if found.cancelled > 0 {
		a.notef("left out: %s (--cancelled includes them)", terminal.Count(found.cancelled, "cancelled iteration"))
	}
}

func (a *app) dryRun(found chosen, output string) error {
	list := letterList{DeadLetters: orEmpty(found.open), Total: len(found.open), Cancelled: found.cancelled}
	for _, letter := range found.open {
		if letter.WasCancelled() {
			list.Cancelled++
		}
	}
	if output == "json" {
		return terminal.PrintJSON(a.Out, list)
	}
	return a.writeLetters(list)
}

// idle is what reprocess prints where there is nothing to do.
type idle struct {
	Status      string `json:"status"`
	Quarantined int    `json:"quarantined"`
	Cancelled   int    `json:"cancelled"` // that --cancelled would take
}

func (a *app) nothingToDo(found chosen, output string) error {
	if output == "json" {
		return terminal.PrintJSON(a.Out, idle{Status: "nothing_to_do", Quarantined: found.quarantined, Cancelled: found.cancelled})
	}
	a.notef("nothing to do: no iteration is left to run again")
	return nil
}

// followReprocess follows the running one, if it does all that was requested.
func (a *app) followReprocess(s *session, running *runs.Run, found chosen, options *reprocessOptions) error {
	if len(found.open) > 0 {
		return withStatus(exitFailed, fmt.Errorf("%s is open and does not include %s that you selected; wait until it ends, and try again",
			running.WorkflowID, terminal.Count(len(found.open), "iteration")))
	}
	run := s.client.GetWorkflow(a.interrupts.graceful, running.WorkflowID, running.RunID)
	if options.detach {
		return a.reportStart(s, run, options.output)
	}
	a.notef("%s is open; following it", running.WorkflowID)
	return a.follow(s, run, options.output)
}

// reprocessPlan is the run that takes the letters up again.
func (a *app) reprocessPlan(
	ctx context.Context, s *session, chain *deadletter.Chain, letters []deadletter.Letter,
	overlay map[string]any, options *reprocessOptions,
) (start.Plan, error) {
	input := chain.Origin.Input.Alone()
	values, err := expression.Canonical(merged(asMap(input.Workload.Data), overlay))
	if err != nil {
		return start.Plan{}, usageError("the workload: %w", err)
	}
	input.Workload = expression.Of(values)
	book, err := chain.Origin.Book()
	if err != nil {
		return start.Plan{}, err
	}
	if options.playbook != "" {
		checked, err := a.checkForRun(options.playbook, asMap(values))
		if err != nil {
			return start.Plan{}, err
		}
		book, input.Name, input.Source = checked.book, checked.file.Name, string(checked.file.Bytes())
		input.Files = checked.files
	}
	if err := a.checkRead(book, overlay, input.Strict || book.Strict); err != nil {
		return start.Plan{}, err
	}
	input.Reprocess, err = s.reader().Reprocess(ctx, chain, letters, book)
	if _, ok := errors.AsType[*deadletter.UnfitError](err); ok {
		return start.Plan{}, withStatus(exitUsage, err)
	}
	if err != nil {
		return start.Plan{}, err
	}
	codes := book.Codes()
	if options.playbook == "" {
		if codes, err = s.ours(ctx, chain.Origin, codes); err != nil {
			return start.Plan{}, err
		}
	}
	id := deadletter.RoundID(chain.Origin.WorkflowID, chain.Origin.RunID, input.Reprocess.Origin.Round)
	return start.Plan{
		WorkflowID: id, Playbook: book.Name, Labels: book.Labels, Input: input, Codes: codes, Expect: book.Expect,
		Summary: book.Name + ", again", Details: start.Details(book, values, "Runs iterations of "+chain.Origin.WorkflowID+" again."),
	}, nil
}

// ours are the codes of a run that was begun here. Code of others stays theirs: running
// it again does not vouch for it.
func (s *session) ours(ctx context.Context, run *runs.Run, codes []string) ([]string, error) {
	if s.key == "" || len(codes) == 0 {
		return nil, nil
	}
	vouched, err := host.Vouched(ctx, s.client, s.key, run.WorkflowID, run.RunID, codes)
	if err != nil {
		return nil, fmt.Errorf("find out who started %s: %w", run.WorkflowID, err)
	}
	if !vouched {
		return nil, nil
	}
	return codes, nil
}

func asMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func (a *app) startReprocess(ctx context.Context, s *session, plan start.Plan, again string, options *reprocessOptions) error {
	a.notef("%s runs %s", plan.WorkflowID, again)
	run, err := s.start(ctx, plan, a)
	if started, ok := errors.AsType[*start.StartedError](err); ok { // another client started it at the same time
		run, err = s.client.GetWorkflow(ctx, plan.WorkflowID, started.RunID), nil
	}
	if err != nil {
		return err
	}
	if options.detach {
		return a.reportStart(s, run, options.output)
	}
	return a.follow(s, run, options.output)
}
