package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/interpreter/source"
	"reprise/workflows"
)

// steering is the command line of a command that changes how runs go.
type steering struct {
	server serverFlags
	name   string // of starter's command
	update string // "" is Temporal's own cancellation
	workflows.Command
	index  int
	query  string
	dryRun bool
	output string
}

// cancelOrder is the name of the one command that is no update.
const cancelName = "cancel"

const (
	queryHelp = `
Runs are named by their workflow IDs, or enough of the beginning of one to tell it from
others; --query takes all runs that go on and that a list filter of Temporal takes.
They are told ten at a time, and one that refuses does not keep the others from being told.
--dry-run shows which runs are meant, and tells them nothing. The reason and who gave it
(user@host) are kept in the history.

Exit status: 0, 1 where a run has refused, 2 where there is no such run (then none is
told), 3 no server.`
	// mostReason bounds a reason in bytes, as the workflows do.
	mostReason = 500
)

func newPauseCommand(a *app) *cobra.Command {
	o := &steering{name: "pause", update: workflows.PauseUpdate}
	return a.steerCommand(o, &cobra.Command{
		Use: "pause ID...", Short: "Hold runs, or a step of theirs",
		Long: `Hold runs, or a step of theirs. Attempts under way end; no other begins later than 2 s
after. What waits keeps its time. Nothing is lost, and held runs cost no worker anything.
The timeout of a playbook goes on.
` + queryHelp,
		Example: `  starter pause patients-7x2k --reason "the API is down"
  starter pause patients-7x2k --step fetch
  starter pause --query 'ReprisePlaybook="patients"' --dry-run`,
	}, o.addStep)
}

func newResumeCommand(a *app) *cobra.Command {
	o := &steering{name: "resume", update: workflows.ResumeUpdate}
	return a.steerCommand(o, &cobra.Command{
		Use: "resume ID...", Short: "Let runs go on that are paused",
		Long: `Let runs go on that are paused, with all of their steps, or one step. A wait that is
over by then attempts at once; another one still waits for its time.
` + queryHelp,
		Example: `  starter resume patients-7x2k
  starter resume patients-7x2k --step fetch
  starter resume --query 'RepriseStatus="paused"'`,
	}, o.addStep)
}

func newCancelCommand(a *app) *cobra.Command {
	o := &steering{name: cancelName}
	return a.steerCommand(o, &cobra.Command{
		Use: "cancel ID...", Short: "Cancel runs",
		Long: `Cancel runs: attempts under way are told to end, waits end for good, and the run
ends as cancelled. It needs no worker to be told, but one to end.

Iterations that were cancelled can be run again: starter dead-letters reprocess ID --cancelled.
` + queryHelp,
		Example: `  starter cancel patients-7x2k --reason "the wrong month"
  starter cancel --query 'ReprisePlaybook="patients"' --dry-run`,
	})
}

func newRetryNowCommand(a *app) *cobra.Command {
	o := &steering{name: "retry-now", update: workflows.RetryNowUpdate}
	return a.steerCommand(o, &cobra.Command{
		Use: "retry-now ID...", Short: "Try again now what waits",
		Long: `Try again now what waits: for a retry, a poll, a page, a turn under a rate limit, or for a
person (on_exhausted: pause), which gives its policy all attempts again. A run that is
queued asks again for its turn. What is paused has to be resumed first.
` + queryHelp,
		Example: `  starter retry-now patients-7x2k
  starter retry-now patients-7x2k --step fetch --index 13`,
	}, o.addStep, o.addIndex)
}

func newSkipCommand(a *app) *cobra.Command {
	o := &steering{name: "skip", update: workflows.SkipUpdate}
	return a.steerCommand(o, &cobra.Command{
		Use: "skip ID STEP", Short: "Give up what waits in a step",
		Long: `Give up what waits in a step, or one iteration of it: it fails with what it waited for,
and an iteration becomes a dead letter. --reason says why. With --query there is no ID.
` + queryHelp,
		Example: `  starter skip patients-7x2k fetch --index 13 --reason "the patient has left"`,
	}, o.addIndex)
}

func newSetCommand(a *app) *cobra.Command {
	o := &steering{name: "set", update: workflows.SetUpdate}
	return a.steerCommand(o, &cobra.Command{
		Use: "set ID STEP KEY=VALUE...", Short: "Change how fast a step goes",
		Long: `Change how fast a step goes, from now on. max_concurrency=N is how many iterations of its
parallel loop go on at a time; rate_limit=N/s, N/m, N/h or such as N/30s is how many
attempts may begin in that time. With --query there is no ID.
` + queryHelp,
		Example: `  starter set patients-7x2k fetch max_concurrency=5
  starter set patients-7x2k fetch max_concurrency=50 rate_limit=20/s
  starter set --query 'ReprisePlaybook="patients"' fetch rate_limit=100/m`,
	})
}

// steerCommand completes a command that changes how runs go.
func (a *app) steerCommand(o *steering, command *cobra.Command, more ...func(*cobra.Command)) *cobra.Command {
	flags := command.Flags()
	flags.StringVar(&o.query, "query", "", "all runs that go on and that this list filter takes, in place of IDs")
	flags.StringVar(&o.Reason, "reason", "", "why; kept in the history")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show which runs are meant, and tell them nothing")
	for _, add := range more {
		add(command)
	}
	o.server.add(command)
	outputFlag(command, &o.output)
	command.RunE = func(command *cobra.Command, args []string) error {
		if command.Flags().Changed("index") {
			o.Index = &o.index
		}
		ids, err := o.parse(args, command.Flags().Changed("query"))
		if err != nil {
			return err
		}
		return a.withServer(&o.server, func(ctx context.Context, s *session) error {
			return a.steer(ctx, s, o, ids)
		})
	}
	return command
}

func (o *steering) addStep(command *cobra.Command) {
	command.Flags().StringVar(&o.Step, "step", "", "only this step")
}

func (o *steering) addIndex(command *cobra.Command) {
	command.Flags().IntVar(&o.index, "index", 0, "only the iteration with this index, from 0")
}

// parse reads the arguments, and gives the IDs among them.
func (o *steering) parse(args []string, byQuery bool) (ids []string, err error) {
	o.By = source.Cut(whoami(), mostReason)
	if err := checkOutput(o.output); err != nil {
		return nil, err
	}
	if len(o.Reason) > mostReason {
		return nil, usageError("--reason has %d bytes, more than the %d that are kept", len(o.Reason), mostReason)
	}
	ids, rest := args, []string(nil)
	if o.update == workflows.SkipUpdate || o.update == workflows.SetUpdate {
		if ids, rest, err = o.parseStep(args, byQuery); err != nil {
			return nil, err
		}
	}
	if err := cmp.Or(o.checkRuns(ids, byQuery), o.checkIndex()); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := checkRun(id, ""); err != nil {
			return nil, err
		}
	}
	return ids, o.parseRest(rest)
}

// parseStep reads the run, where it is named, and the step.
func (o *steering) parseStep(args []string, byQuery bool) (ids, rest []string, err error) {
	if !byQuery && len(args) > 0 {
		ids, args = args[:1], args[1:]
	}
	if len(args) == 0 {
		return nil, nil, usageError("say which run and which step: %s %s ID STEP", terminal.Program(), o.name)
	}
	o.Step = args[0]
	return ids, args[1:], nil
}

// checkRuns finds runs that are not named, or not in one way.
func (o *steering) checkRuns(ids []string, byQuery bool) error {
	switch {
	case byQuery && len(ids) > 0:
		return usageError("runs are named by their IDs or by --query, not by both")
	case byQuery && strings.TrimSpace(o.query) == "":
		return usageError(`--query is empty; all runs that go on are --query 'WorkflowId != ""'`)
	case !byQuery && len(ids) == 0:
		return usageError("say which runs: by their IDs, or by --query; %s list --status running shows those that go on", terminal.Program())
	}
	return nil
}

func (o *steering) checkIndex() error {
	switch {
	case o.Index != nil && o.Step == "":
		return usageError("--index needs the --step whose iteration it is")
	case o.Index != nil && *o.Index < 0:
		return usageError("--index %d is less than 0, the first iteration", *o.Index)
	}
	return nil
}

// parseRest reads what stands behind the step.
func (o *steering) parseRest(rest []string) error {
	switch o.update {
	case workflows.SetUpdate:
		tuning, err := parseTuning(rest)
		o.Tuning = &tuning
		return err
	case workflows.SkipUpdate:
		if len(rest) > 0 {
			return usageError("%s takes one run and one step; %q is one too many", o.name, rest[0])
		}
		if strings.TrimSpace(o.Reason) == "" {
			return usageError("say why with --reason: what is skipped is a failure that somebody will ask about")
		}
	}
	return nil
}

// whoami is the identity of the user, as in Temporal's identities.
func whoami() string {
	name, host := os.Getenv("USER"), "unknown"
	if current, err := user.Current(); err == nil {
		name = current.Username
	}
	if known, err := os.Hostname(); err == nil {
		host = known
	}
	return name + "@" + host
}

// steer sends a command to the runs that are meant.
func (a *app) steer(ctx context.Context, s *session, o *steering, ids []string) error {
	meant, err := a.targets(ctx, s, o, ids)
	if err != nil {
		return err
	}
	if o.dryRun {
		return a.showTargets(o, meant)
	}
	answers := s.sendAll(ctx, o, meant, a.steerWriter(o))
	if o.output == "json" {
		err = terminal.PrintJSON(a.Out, steerDocument{Command: o.name, Step: o.Step, Index: o.Index, Runs: answers})
	} else {
		a.summarize(o, answers)
	}
	if ctx.Err() != nil {
		return withStatus(exitInterrupted, errSaid)
	}
	for _, answer := range answers {
		if answer.failed() && err == nil {
			err = withStatus(exitFailed, errSaid)
		}
	}
	return err
}

// showTargets shows which runs are meant.
func (a *app) showTargets(o *steering, meant []runs.Found) error {
	if o.output == "json" {
		answers := make([]steerResult, len(meant))
		for i, run := range meant {
			answers[i] = steerResult{Found: run}
		}
		return terminal.PrintJSON(a.Out, steerDocument{Command: o.name, Step: o.Step, Index: o.Index, DryRun: true, Runs: answers})
	}
	if len(meant) == 0 {
		return nil // it was said
	}
	_, err := fmt.Fprintln(a.Out, render.Runs(meant, time.Now(), terminal.PaperOf(a.Out).Width))
	a.notef("%s would be told: %s. Nothing was told.", terminal.Count(len(meant), "run"), o.words())
	for _, run := range meant {
		if run.Ended() {
			a.notef("%s has ended, so it would refuse", run.WorkflowID)
		}
	}
	return err
}

// words are the command without its runs.
func (o *steering) words() string {
	text := o.name
	if o.Step != "" {
		text += ", step " + o.Step
	}
	if o.Index != nil {
		text += fmt.Sprintf(", iteration %d", *o.Index)
	}
	return text
}

// summarize sums up, and says how a pause ends.
func (a *app) summarize(o *steering, answers []steerResult) {
	counts := map[string]int{}
	for _, answer := range answers {
		counts[answer.Outcome]++
	}
	if len(answers) > 1 {
		a.notef("%d told, %d as they were, %d refused, %d gave no answer",
			counts[outcomeDone], counts[outcomeUnchanged], counts[outcomeRefused], counts[outcomeUnknown])
	}
	if o.update != workflows.PauseUpdate || counts[outcomeDone]+counts[outcomeUnchanged] == 0 {
		return
	}
	command := terminal.Program() + " resume"
	if o.query != "" {
		command += " --query " + terminal.ShellWord(o.query)
	} else {
		for _, answer := range answers {
			if answer.Outcome != outcomeRefused {
				command += " " + terminal.ShellWord(answer.WorkflowID)
			}
		}
	}
	if o.Step != "" {
		command += " --step " + terminal.ShellWord(o.Step)
	}
	a.notef("to let it go on: %s", command)
}

// steerDocument is what a command prints as JSON.
type steerDocument struct {
	Command string        `json:"command"`
	Step    string        `json:"step,omitempty"`
	Index   *int          `json:"index,omitempty"`
	DryRun  bool          `json:"dry_run,omitempty"`
	Runs    []steerResult `json:"runs"`
}

// targets finds the runs that are meant, each once. Unless all are found no command is
// sent.
func (a *app) targets(ctx context.Context, s *session, o *steering, ids []string) ([]runs.Found, error) {
	if len(ids) == 0 {
		found, err := s.runs().Running(ctx, o.query)
		if isQueryError(err) {
			return nil, usageError("%w", err)
		}
		if err == nil && len(found) == 0 {
			a.notef("no run that goes on is taken by the query, so none was told")
		}
		return found, err
	}
	return a.findAll(ctx, s, ids)
}
