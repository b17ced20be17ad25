package deadletters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/deadletter"
	"reprise/internal/observe/runs"
	"reprise/internal/program/host"
	"reprise/internal/program/start"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/starter/cli"
	"reprise/starter/launch"
	"reprise/starter/load"
	"reprise/starter/look"
	"reprise/starter/session"
)

// ReprocessOptions are the flags of dead-letters reprocess.
type ReprocessOptions struct {
	server     session.ServerFlags
	letters    letterFlags
	workload   load.WorkloadFlags
	playbook   string
	queueGiven bool
	quarantine int
	dryRun     bool
	detach     bool
	output     string
}

func newReprocessCommand(a *cli.App) *cobra.Command {
	options := &ReprocessOptions{}
	command := &cobra.Command{
		Use: "reprocess RUN", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			options.queueGiven = command.Flags().Changed("task-queue")
			return look.ReportRefusal(a.Streams, reprocessRun(a, args[0], options), options.output)
		},
	}
	options.letters.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&options.playbook, "playbook", "", "run them with another playbook, which has the same step")
	flags.IntVar(&options.quarantine, "quarantine-after", 0, "leave out iterations that have failed in this many runs; 0 leaves out none")
	flags.BoolVar(&options.dryRun, "dry-run", false, "list the iterations that would run, and run nothing")
	flags.BoolVar(&options.detach, "detach", false, "start the run and do not follow it")
	options.workload.AddFlags(command)
	options.server.Add(command)
	cli.OutputFlag(command, &options.output)
	return command
}

// LetterSelection are the dead letters of a chain that a reprocess would run, and how many it leaves out.
type LetterSelection struct {
	Open        []deadletter.Letter // and not running in a reprocess
	quarantined int
	cancelled   int // left out because they were not selected
}

// againText describes how many iterations run again, of which steps, and how many of them were cancelled. playbook is
// "" for the run's own playbook.
func (c LetterSelection) againText(playbook string) string {
	cancelled := 0
	var steps []string
	for _, letter := range c.Open {
		steps = lists.AddUnique(steps, letter.Step)
		if letter.WasCancelled() {
			cancelled++
		}
	}
	slices.Sort(steps)
	text := terminal.Count(len(c.Open), "iteration") + " of " + strings.Join(steps, ", ") + " again"
	if playbook != "" {
		text += " with " + playbook
	}
	if failed := len(c.Open) - cancelled; failed > 0 && cancelled > 0 {
		text += fmt.Sprintf(": %d that failed and %d that were cancelled", failed, cancelled)
	}
	return text
}

// ChooseLetters returns the dead letters of a chain that a reprocess runs again.
func ChooseLetters(chain *deadletter.Chain, filter deadletter.Filter, quarantineAfter int) LetterSelection {
	var found LetterSelection
	for _, letter := range chain.Select(filter) {
		switch {
		case letter.State == deadletter.Reprocessing:
		case quarantineAfter > 0 && letter.FailedRuns >= quarantineAfter:
			found.quarantined++
		default:
			found.Open = append(found.Open, letter)
		}
	}
	if !filter.Cancelled {
		found.cancelled = chain.CountCancelled(filter)
	}
	return found
}

func reprocessRun(a *cli.App, workflowID string, options *ReprocessOptions) error {
	filter, err := options.letters.letterFilter(time.Now())
	if err != nil {
		return err
	}
	if options.quarantine < 0 {
		return cli.UsageError("--quarantine-after %d: expected 0 or more", options.quarantine)
	}
	workload, err := options.workload.Read()
	if err != nil {
		return err
	}
	return withChain(a, &options.server, workflowID, options.letters.runID, func(_ context.Context, s *session.Session, chain *deadletter.Chain) error {
		return reprocessChain(a, s, chain, filter, workload, options)
	})
}

// reprocessChain starts the next reprocess, or follows one that is still running.
func reprocessChain(
	a *cli.App, s *session.Session, chain *deadletter.Chain, filter deadletter.Filter, workload map[string]any, options *ReprocessOptions,
) error {
	if !options.queueGiven { // where the workers of the run are
		s.TaskQueue = chain.Origin.TaskQueue
	}
	if filter.Cancelled && !chain.Origin.Closed() {
		return cli.WithStatus(exitcode.Failed, fmt.Errorf("%s is open, so it is not known yet which iterations are cancelled; "+
			"wait until it ends, or omit --cancelled", chain.Origin.WorkflowID))
	}
	found := ChooseLetters(chain, filter, options.quarantine)
	reportLeftOut(a.Streams, found, options.quarantine)
	switch running := chain.RunningReprocess(); {
	case options.dryRun:
		return printDryRun(a.Streams, found, options.output)
	case running != nil:
		return followReprocess(a, s, running, found, options)
	case len(found.Open) == 0:
		return nothingToDo(a.Streams, found, options.output)
	}
	ctx := a.Interrupts.Graceful
	plan, err := ReprocessPlan(ctx, a, s, chain, found.Open, workload, options)
	if err != nil {
		return err
	}
	return startReprocess(ctx, a, s, plan, found.againText(options.playbook), options)
}

// reportLeftOut prints which dead letters were left out, and which flags would include them.
func reportLeftOut(streams cli.Streams, found LetterSelection, quarantine int) {
	if found.quarantined > 0 {
		streams.Notef("left out: %s that failed in %d runs or more (--quarantine-after)",
			terminal.Count(found.quarantined, "iteration"), quarantine)
	}
	if found.cancelled > 0 {
		streams.Notef("left out: %s (--cancelled includes them)", terminal.Count(found.cancelled, "cancelled iteration"))
	}
}

func printDryRun(streams cli.Streams, found LetterSelection, output string) error {
	list := letterList{DeadLetters: cli.OrEmpty(found.Open), Total: len(found.Open), Cancelled: found.cancelled}
	for _, letter := range found.Open {
		if letter.WasCancelled() {
			list.Cancelled++
		}
	}
	if output == "json" {
		return terminal.PrintJSON(streams.Out, list)
	}
	return writeLetters(streams, list)
}

// idle is the JSON output of reprocess if there is nothing to do.
type idle struct {
	Status      string `json:"status"`
	Quarantined int    `json:"quarantined"`
	Cancelled   int    `json:"cancelled"` // that --cancelled would take
}

func nothingToDo(streams cli.Streams, found LetterSelection, output string) error {
	if output == "json" {
		return terminal.PrintJSON(streams.Out, idle{Status: "nothing_to_do", Quarantined: found.quarantined, Cancelled: found.cancelled})
	}
	streams.Notef("nothing to do: no iteration is left to run again")
	return nil
}

// followReprocess follows a running reprocess, if it includes everything that was selected; else it returns an error.
func followReprocess(a *cli.App, s *session.Session, running *runs.Run, found LetterSelection, options *ReprocessOptions) error {
	if len(found.Open) > 0 {
		return cli.WithStatus(exitcode.Failed, fmt.Errorf("%s is open and does not include %s that you selected; wait until it ends, and try again",
			running.WorkflowID, terminal.Count(len(found.Open), "iteration")))
	}
	run := s.Client.GetWorkflow(a.Interrupts.Graceful, running.WorkflowID, running.RunID)
	if options.detach {
		return look.ReportStart(a.Streams, s, run, options.output)
	}
	a.Notef("%s is open; following it", running.WorkflowID)
	return look.FollowRun(a, s, run, look.FollowOptions{Output: options.output})
}

// ReprocessPlan returns the plan of a run that reprocesses dead letters.
func ReprocessPlan(
	ctx context.Context, a *cli.App, s *session.Session, chain *deadletter.Chain, letters []deadletter.Letter,
	overlay map[string]any, options *ReprocessOptions,
) (start.Plan, error) {
	input := chain.Origin.Input.WithoutParent()
	values, err := expression.Canonical(load.MergeWorkload(load.AsMap(input.Workload.Data), overlay))
	if err != nil {
		return start.Plan{}, cli.UsageError("the workload: %w", err)
	}
	input.Workload = expression.Of(values)
	book, err := chain.Origin.Book()
	if err != nil {
		return start.Plan{}, err
	}
	if options.playbook != "" {
		checked, err := load.CheckForRun(a, options.playbook, load.AsMap(values))
		if err != nil {
			return start.Plan{}, err
		}
		book, input.Name, input.Source = checked.Book, checked.File.Name, string(checked.File.Bytes())
		input.Files = checked.Files
	}
	if err := load.CheckKeysAreRead(a, book, overlay, input.Strict || book.Strict); err != nil {
		return start.Plan{}, err
	}
	input.Reprocess, err = s.DeadLetters().PlanReprocess(ctx, chain, letters, book)
	if _, ok := errors.AsType[*deadletter.UnfitError](err); ok {
		return start.Plan{}, cli.WithStatus(exitcode.Usage, err)
	}
	if err != nil {
		return start.Plan{}, err
	}
	codes := book.CodeTexts()
	if options.playbook == "" {
		if codes, err = OwnCodes(ctx, s, chain.Origin, codes); err != nil {
			return start.Plan{}, err
		}
	}
	id := deadletter.RoundID(chain.Origin.WorkflowID, chain.Origin.RunID, input.Reprocess.Origin.Round)
	return start.Plan{
		WorkflowID: id, Playbook: book.Name, Labels: book.Labels, Input: input, Codes: codes, Expect: book.Expect,
		Summary: book.Name + ", again", Details: start.DetailsMarkdown(book, values, "Runs iterations of "+chain.Origin.WorkflowID+" again."),
	}, nil
}

// OwnCodes returns the codes of a run that this key vouches for. Running the code of others again does not vouch for
// it.
func OwnCodes(ctx context.Context, s *session.Session, run *runs.Run, codes []string) ([]string, error) {
	if s.Key == "" || len(codes) == 0 {
		return nil, nil
	}
	vouched, err := host.IsVouched(ctx, s.Client, s.Key, run.WorkflowID, run.RunID, codes)
	if err != nil {
		return nil, fmt.Errorf("find out who started %s: %w", run.WorkflowID, err)
	}
	if !vouched {
		return nil, nil
	}
	return codes, nil
}

func startReprocess(ctx context.Context, a *cli.App, s *session.Session, plan start.Plan, again string, options *ReprocessOptions) error {
	a.Notef("%s runs %s", plan.WorkflowID, again)
	run, err := launch.StartRun(ctx, s, plan, a.Streams)
	if started, ok := errors.AsType[*start.StartedError](err); ok { // another client started it at the same time
		run, err = s.Client.GetWorkflow(ctx, plan.WorkflowID, started.RunID), nil
	}
	if err != nil {
		return err
	}
	if options.detach {
		return look.ReportStart(a.Streams, s, run, options.output)
	}
	return look.FollowRun(a, s, run, look.FollowOptions{Output: options.output})
}
