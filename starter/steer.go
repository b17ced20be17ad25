package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/steer"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
)

// steering is the command line of a command that changes how runs go.
type steering struct {
	steer.Command

	server serverFlags
	index  int
	query  string
	dryRun bool
	output string
}

func newSteering(name string) *steering { return &steering{Command: steer.Command{Name: name}} }

// newSteerCommand makes a command that changes how runs go.
func (a *app) newSteerCommand(name, operands string) *cobra.Command {
	o := newSteering(name)
	command := &cobra.Command{Use: name + " " + operands}
	flags := command.Flags()
	flags.StringVar(&o.query, "query", "", "every open run that matches this list filter, instead of RUN")
	flags.StringVar(&o.Reason, "reason", "", "the reason, kept in the history")
	flags.BoolVar(&o.dryRun, "dry-run", false, "list the runs and send nothing")
	if name != steer.Cancel {
		flags.StringVar(&o.Step, "step", "", "only this step")
	}
	if name == steer.RetryNow || name == steer.Skip {
		flags.IntVar(&o.index, "index", 0, "only the iteration with this index, from 0")
	}
	o.server.add(command)
	outputFlag(command, &o.output)
	command.RunE = func(_ *cobra.Command, args []string) error {
		if flags.Changed("index") {
			o.Index = &o.index
		}
		return a.steerRuns(o, args, flags.Changed("query"))
	}
	return command
}

// steerRuns sends a command to the runs that arguments or a query name.
func (a *app) steerRuns(o *steering, args []string, byQuery bool) error {
	ids, err := o.parse(args, byQuery)
	if err != nil {
		return err
	}
	return a.withServer(&o.server, func(ctx context.Context, s *session) error {
		return a.steer(ctx, s, o, ids)
	})
}

// parse reads the arguments, and gives the IDs among them.
func (o *steering) parse(args []string, byQuery bool) (ids []string, err error) {
	o.By = source.Cut(cmp.Or(o.By, whoami()), steer.MostReason)
	if err := checkNote("reason", o.Reason); err != nil {
		return nil, err
	}
	ids, rest := args, []string(nil)
	if o.Name != steer.Cancel {
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
	needed := o.Name == steer.Skip || o.Name == steer.Set
	switch {
	case len(args) > 0 && o.Step == "":
		o.Step, args = args[0], args[1:]
	case len(args) > 0 && !needed:
		return nil, nil, usageError("the step is given twice: %q, and --step %q", args[0], o.Step)
	case needed && o.Step == "":
		return nil, nil, usageError("name the run and the step: %s %s RUN STEP", terminal.Program(), o.Name)
	}
	if !needed && len(args) > 0 {
		return nil, nil, usageError("%s takes one run and one step, and was given %q as well; --query selects several runs", o.Name, args[0])
	}
	return ids, args, nil
}

// checkRuns finds runs that are not named, or not in one way.
func (o *steering) checkRuns(ids []string, byQuery bool) error {
	switch {
	case byQuery && len(ids) > 0:
		return usageError("RUN and --query exclude each other")
	case byQuery && strings.TrimSpace(o.query) == "":
		return usageError(`--query is empty; for every open run use --query 'WorkflowId != ""'`)
	case !byQuery && len(ids) == 0:
		return usageError("name a RUN, or select runs with --query; %s list --status running lists open runs", terminal.Program())
	}
	return nil
}

func (o *steering) checkIndex() error {
	switch {
	case o.Index != nil && o.Step == "":
		return usageError("--index needs a STEP")
	case o.Index != nil && *o.Index < 0:
		return usageError("--index %d is less than 0, the first iteration", *o.Index)
	}
	return nil
}

// parseRest reads what is behind the step.
func (o *steering) parseRest(rest []string) error {
	switch o.Name {
	case steer.Set:
		tuning, err := steer.ParseTuning(rest)
		o.Tuning = &tuning
		if err != nil {
			return usageError("%w", err)
		}
	case steer.Skip:
		if len(rest) > 0 {
			return usageError("%s takes one run and one step; %q is one too many", o.Name, rest[0])
		}
		if strings.TrimSpace(o.Reason) == "" {
			return usageError("--reason is missing: say why the failure is given up on")
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
	answers := s.sender().Send(ctx, o.Command, meant, a.steerWriter(o))
	if o.output == "json" {
		err = terminal.PrintJSON(a.Out, steerDocument{Command: o.Name, Step: o.Step, Index: o.Index, Runs: answers})
	} else {
		a.summarize(o, answers)
	}
	if ctx.Err() != nil {
		return withStatus(exitInterrupted, errSaid)
	}
	for _, answer := range answers {
		if answer.Failed() && err == nil {
			err = withStatus(exitFailed, errSaid)
		}
	}
	return err
}

// showTargets shows which runs are meant.
func (a *app) showTargets(o *steering, meant []runs.Found) error {
	if o.output == "json" {
		answers := lists.Map(meant, func(run runs.Found) steer.Result { return steer.Result{Found: run} })
		return terminal.PrintJSON(a.Out, steerDocument{Command: o.Name, Step: o.Step, Index: o.Index, DryRun: true, Runs: answers})
	}
	if len(meant) == 0 {
		return nil // it was said
	}
	_, err := fmt.Fprintln(a.Out, render.Runs(meant, time.Now(), terminal.PaperOf(a.Out)))
	a.notef("%s would get the command: %s. Nothing was sent.", terminal.Count(len(meant), "run"), o.Words())
	for _, run := range meant {
		if run.Ended() {
			a.notef("%s has ended, so it would refuse the command", run.WorkflowID)
		}
	}
	return err
}

// summarize sums up, and says how a pause ends.
func (a *app) summarize(o *steering, answers []steer.Result) {
	counts := map[steer.CommandOutcome]int{}
	for _, answer := range answers {
		counts[answer.Outcome]++
	}
	if len(answers) > 1 {
		a.notef("%d done, %d unchanged, %d refused, %d without a response",
			counts[steer.Done], counts[steer.Unchanged], counts[steer.Refused], counts[steer.Unknown])
	}
	if o.Name != steer.Pause || counts[steer.Done]+counts[steer.Unchanged] == 0 {
		return
	}
	command := terminal.Program() + " resume"
	if o.query != "" {
		command += " --query " + terminal.ShellWord(o.query)
	} else {
		for _, answer := range answers {
			if answer.Outcome != steer.Refused {
				command += " " + terminal.ShellWord(answer.WorkflowID)
			}
		}
	}
	switch {
	case o.Step == "" || !slices.ContainsFunc(answers, holdsStepAlone):
	case o.query != "":
		command += " --step " + terminal.ShellWord(o.Step)
	default:
		command += " " + terminal.ShellWord(o.Step)
	}
	a.advisef("to resume: %s", command)
}

// holdsStepAlone reports whether a run that has paused a step is not paused as a whole: that one is resumed with its
// steps, and no step of it alone.
func holdsStepAlone(answer steer.Result) bool {
	return answer.Reply != nil && !answer.Reply.Control.Paused
}

// steerDocument is what a command prints as JSON.
type steerDocument struct {
	Command string         `json:"command"`
	Step    string         `json:"step,omitempty"`
	Index   *int           `json:"index,omitempty"`
	DryRun  bool           `json:"dry_run,omitempty"`
	Runs    []steer.Result `json:"runs"`
}

// targets finds the runs that are meant, each once. Unless all are found no command is
// sent.
func (a *app) targets(ctx context.Context, s *session, o *steering, ids []string) ([]runs.Found, error) {
	if len(ids) == 0 {
		found, err := s.runs().Running(ctx, o.query)
		if errors.As(err, new(*runs.QueryError)) {
			return nil, usageError("%w", err)
		}
		if err == nil && len(found) == 0 {
			a.notef("the query matches no open run, so nothing was sent")
		}
		return found, err
	}
	found, err := s.sender().Find(ctx, ids)
	if err == nil {
		return found, nil
	}
	if err = a.findError(s, err); len(ids) > 1 && statusOf(err) == exitUsage {
		return nil, usageError("%w; nothing was sent to any run", err)
	}
	return nil, err
}

// sender sends commands to runs of the session's server.
func (s *session) sender() *steer.Dispatcher {
	return &steer.Dispatcher{Client: s.client, Namespace: s.namespace, Runs: s.runs()}
}

// steerWriter writes results for eyes as they come, a line for each run: what was not done to
// the standard error.
func (a *app) steerWriter(o *steering) func(steer.Result) {
	return func(answer steer.Result) {
		if o.output == "json" {
			return
		}
		to, said := a.Out, answer.Message
		switch answer.Outcome {
		case steer.Refused:
			to, said = a.Err, "refused: "+said
		case steer.Unknown:
			to, said = a.Err, "no answer: "+said
		}
		_, _ = io.WriteString(to, outcomeLine(to, answer.WorkflowID, said))
	}
}

// outcomeLine says what came of a command for a run, in a line that only a terminal breaks.
func outcomeLine(to io.Writer, workflowID, said string) string {
	line := terminal.Visible(workflowID) + ": " + terminal.Shorten(said, 2000) + "\n"
	if !terminal.IsTerminal(to) {
		return line
	}
	var b strings.Builder
	terminal.WriteWrapped(&b, line, terminal.PaperOf(to).Width)
	return b.String()
}
