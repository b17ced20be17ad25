// Package control has the commands that steer runs: pause, resume, set, retry-now, skip, cancel.
package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"reprise/workflows/protocol"

	"github.com/spf13/cobra"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/program/steer"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
	"reprise/starter/cli"
	"reprise/starter/session"
)

// Options are the flags and arguments of a command that steers runs.
type Options struct {
	steer.Command

	Server session.ServerFlags
	index  int
	query  string
	dryRun bool
	Output string
}

// NewOptions returns the options of the command with a name.
func NewOptions(name string) *Options { return &Options{Command: steer.Command{Name: name}} }

// NewSteerCommand returns a command that steers runs.
func NewSteerCommand(a *cli.App, name, operands string) *cobra.Command {
	o := NewOptions(name)
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
	o.Server.Add(command)
	cli.OutputFlag(command, &o.Output)
	command.RunE = func(_ *cobra.Command, args []string) error {
		if flags.Changed("index") {
			o.Index = &o.index
		}
		return SteerRuns(a, o, args, flags.Changed("query"))
	}
	return command
}

// SteerRuns sends a command to the runs that the arguments or a query select.
func SteerRuns(a *cli.App, o *Options, args []string, byQuery bool) error {
	ids, err := o.parseArgs(args, byQuery)
	if err != nil {
		return err
	}
	return session.WithServer(a, &o.Server, func(ctx context.Context, s *session.Session) error {
		return steerFound(ctx, a.Streams, s, o, ids)
	})
}

// parseArgs parses the arguments and returns the runs' IDs among them.
func (o *Options) parseArgs(args []string, byQuery bool) (ids []string, err error) {
	o.By = source.CutText(cmp.Or(o.By, cli.Whoami()), protocol.MaxSaid)
	if err := cli.CheckNote("reason", o.Reason); err != nil {
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
		if err := cli.CheckRun(id, ""); err != nil {
			return nil, err
		}
	}
	return ids, o.parseRest(rest)
}

// parseStep splits the arguments into the run, unless a query selects runs, and what follows the step, which it
// stores.
func (o *Options) parseStep(args []string, byQuery bool) (ids, rest []string, err error) {
	if !byQuery && len(args) > 0 {
		ids, args = args[:1], args[1:]
	}
	needed := o.Name == steer.Skip || o.Name == steer.Set
	switch {
	case len(args) > 0 && o.Step == "":
		o.Step, args = args[0], args[1:]
	case len(args) > 0 && !needed:
		return nil, nil, cli.UsageError("the step is given twice: %q, and --step %q", args[0], o.Step)
	case needed && o.Step == "":
		return nil, nil, cli.UsageError("name the run and the step: %s %s RUN STEP", terminal.ProgramName(), o.Name)
	}
	if !needed && len(args) > 0 {
		return nil, nil, cli.UsageError("%s expects one run and one step, but also got %q; --query selects several runs", o.Name, args[0])
	}
	return ids, args, nil
}

// checkRuns returns an error if no runs are selected, or if they are selected in two ways.
func (o *Options) checkRuns(ids []string, byQuery bool) error {
	switch {
	case byQuery && len(ids) > 0:
		return cli.UsageError("RUN and --query exclude each other")
	case byQuery && strings.TrimSpace(o.query) == "":
		return cli.UsageError(`--query is empty; for every open run use --query 'WorkflowId != ""'`)
	case !byQuery && len(ids) == 0:
		return cli.UsageError("name a RUN, or select runs with --query; %s list --status running lists open runs", terminal.ProgramName())
	}
	return nil
}

func (o *Options) checkIndex() error {
	switch {
	case o.Index != nil && o.Step == "":
		return cli.UsageError("--index needs a STEP")
	case o.Index != nil && *o.Index < 0:
		return cli.UsageError("--index %d is less than 0, the first iteration", *o.Index)
	}
	return nil
}

// parseRest parses the arguments after the step.
func (o *Options) parseRest(rest []string) error {
	switch o.Name {
	case steer.Set:
		tuning, err := steer.ParseTuning(rest)
		o.Tuning = &tuning
		if err != nil {
			return cli.UsageError("%w", err)
		}
	case steer.Skip:
		if len(rest) > 0 {
			return cli.UsageError("%s takes one run and one step; %q is one too many", o.Name, rest[0])
		}
		if strings.TrimSpace(o.Reason) == "" {
			return cli.UsageError("--reason is missing: say why the failure is given up on")
		}
	}
	return nil
}

// steerFound sends a command to the selected runs.
func steerFound(ctx context.Context, streams cli.Streams, s *session.Session, o *Options, ids []string) error {
	meant, err := findTargets(ctx, streams, s, o, ids)
	if err != nil {
		return err
	}
	if o.dryRun {
		return showTargets(streams, o, meant)
	}
	answers := s.Dispatcher().SendCommand(ctx, o.Command, meant, steerWriter(streams, o))
	if o.Output == "json" {
		err = terminal.PrintJSON(streams.Out, SteerDocument{Command: o.Name, Step: o.Step, Index: o.Index, Runs: answers})
	} else {
		summarizeResults(streams, o, answers)
	}
	if ctx.Err() != nil {
		return cli.WithStatus(exitcode.Interrupted, cli.ErrSaid)
	}
	for _, answer := range answers {
		if answer.Failed() && err == nil {
			err = cli.WithStatus(exitcode.Failed, cli.ErrSaid)
		}
	}
	return err
}

// showTargets prints the selected runs, for --dry-run.
func showTargets(streams cli.Streams, o *Options, meant []runs.Found) error {
	if o.Output == "json" {
		answers := lists.Map(meant, func(run runs.Found) steer.Result { return steer.Result{Found: run} })
		return terminal.PrintJSON(streams.Out, SteerDocument{Command: o.Name, Step: o.Step, Index: o.Index, DryRun: true, Runs: answers})
	}
	if len(meant) == 0 {
		return nil // it was said
	}
	_, err := fmt.Fprintln(streams.Out, render.RunsTable(meant, time.Now(), terminal.PaperOf(streams.Out)))
	streams.Notef("%s would get the command: %s. Nothing was sent.", terminal.Count(len(meant), "run"), o.DescribeCommand())
	for _, run := range meant {
		if run.Ended() {
			streams.Notef("%s has ended, so it would refuse the command", run.WorkflowID)
		}
	}
	return err
}

// summarizeResults prints how many runs had which outcome, and how to end a pause.
func summarizeResults(streams cli.Streams, o *Options, answers []steer.Result) {
	counts := map[steer.CommandOutcome]int{}
	for _, answer := range answers {
		counts[answer.Outcome]++
	}
	if len(answers) > 1 {
		streams.Notef("%d done, %d unchanged, %d refused, %d without a response",
			counts[steer.Done], counts[steer.Unchanged], counts[steer.Refused], counts[steer.Unknown])
	}
	if o.Name != steer.Pause || counts[steer.Done]+counts[steer.Unchanged] == 0 {
		return
	}
	command := terminal.ProgramName() + " resume"
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
	streams.Advisef("to resume: %s", command)
}

// holdsStepAlone reports whether a paused step's run is not paused as a whole. In a run that is paused as a whole, no
// step can be resumed alone.
func holdsStepAlone(answer steer.Result) bool {
	return answer.Reply != nil && !answer.Reply.Control.Paused
}

// SteerDocument is the JSON output of a command that steers.
type SteerDocument struct {
	Command string         `json:"command"`
	Step    string         `json:"step,omitempty"`
	Index   *int           `json:"index,omitempty"`
	DryRun  bool           `json:"dry_run,omitempty"`
	Runs    []steer.Result `json:"runs"`
}

// findTargets returns the selected runs, each once. If one cannot be found it returns an error, and no command is
// sent.
func findTargets(ctx context.Context, streams cli.Streams, s *session.Session, o *Options, ids []string) ([]runs.Found, error) {
	if len(ids) == 0 {
		found, err := s.Runs().Running(ctx, o.query)
		if errors.As(err, new(*runs.QueryError)) {
			return nil, cli.UsageError("%w", err)
		}
		if err == nil && len(found) == 0 {
			streams.Notef("the query matches no open run, so nothing was sent")
		}
		return found, err
	}
	found, err := s.Dispatcher().Find(ctx, ids)
	if err == nil {
		return found, nil
	}
	if err = session.FindError(streams, s, err); len(ids) > 1 && cli.StatusOf(err) == exitcode.Usage {
		return nil, cli.UsageError("%w; nothing was sent to any run", err)
	}
	return nil, err
}

// steerWriter returns a function that prints the result for a run as it arrives. Failures go to standard error.
func steerWriter(streams cli.Streams, o *Options) func(steer.Result) {
	return func(answer steer.Result) {
		if o.Output == "json" {
			return
		}
		to, said := streams.Out, answer.Message
		switch answer.Outcome {
		case steer.Refused:
			to, said = streams.Err, "refused: "+said
		case steer.Unknown:
			to, said = streams.Err, "no answer: "+said
		}
		_, _ = io.WriteString(to, cli.OutcomeLine(to, answer.WorkflowID, said))
	}
}
