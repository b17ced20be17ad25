package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/internal/base/connect"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/program/start"
	"reprise/internal/program/steer"
	"reprise/interpreter/expression"
)

// Exit statuses, by the names that the commands use.
const (
	exitOK          = exitcode.OK
	exitFailed      = exitcode.Failed
	exitUsage       = exitcode.Usage
	exitNoServer    = exitcode.NoServer
	exitPartial     = exitcode.Partial
	exitInterrupted = exitcode.Interrupted
)

// Streams are the standard streams of the command. Out takes what programs
// read, Err what people read meanwhile.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// errTerminal reports whether a person sees Err as it is written.
func (s Streams) errTerminal() bool { return terminal.IsTerminal(s.Err) }

func (s Streams) notef(format string, args ...any) { _, _ = fmt.Fprintf(s.Err, format+"\n", args...) }

// advisef prints what a person may do next, dim at a terminal: nothing is wrong with what came before.
func (s Streams) advisef(format string, args ...any) {
	s.notef("%s", terminal.PaperOf(s.Err).Paint(terminal.Quiet, fmt.Sprintf(format, args...)))
}

// statusError carries an exit status to Main. An empty message means that
// everything has been said.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }

func (e *statusError) Unwrap() error { return e.err }

// errSaid ends a command whose output says it all.
var errSaid = errors.New("")

func withStatus(status int, err error) error { return &statusError{status: status, err: err} }

// statusOf is the exit status of a command that ended with an error.
func statusOf(err error) int {
	var stated *statusError
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.As(err, &stated):
		return stated.status
	case errors.Is(err, start.ErrInterrupted):
		return exitInterrupted
	case connect.Unreachable(err):
		return exitNoServer
	}
	return exitFailed
}

func usageError(format string, args ...any) error {
	return withStatus(exitUsage, fmt.Errorf(format, args...))
}

// Main is the whole program with the world passed in: it runs one command and
// returns the exit status. It handles SIGINT, SIGTERM and SIGHUP itself.
func Main(ctx context.Context, args []string, streams Streams) int {
	interrupts := watchInterrupts(ctx)
	defer interrupts.stop()
	ran := false
	out := &terminal.Screen{To: streams.Out}
	streams.Out, streams.Err = out, &terminal.Screen{To: streams.Err}
	streams.In = &input{from: streams.In, until: interrupts.graceful}
	a := &app{Streams: streams, out: out, interrupts: interrupts}
	root := newRoot(a)
	root.PersistentPreRun = func(command *cobra.Command, _ []string) {
		ran = true
		a.noteRenamed(command)
	}
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	command, err := root.ExecuteContextC(ctx)
	if err == nil && out.Err != nil {
		err, ran = fmt.Errorf("write standard output: %w", out.Err), true
	}
	if err == nil {
		return exitOK
	}
	status := statusOf(err)
	if !ran { // cobra refused flags or arguments
		status = exitUsage
	}
	if !errors.Is(err, errSaid) {
		streams.notef("starter: %v", err)
		var invalid *invalidError // the command was fine
		if status == exitUsage && !errors.As(err, &invalid) {
			streams.advisef("See %s --help.", terminal.Program()+strings.TrimPrefix(command.CommandPath(), "starter"))
		}
	}
	return status
}

// app is what the commands share.
type app struct {
	Streams
	out        *terminal.Screen // Out, for what has to be written as it is
	interrupts *interrupts
	// warnings are those of the command itself, which a run's report ends with.
	warnings []string
	// files has the folder that files are read in; nil reads them anywhere.
	files *confinement
}

// commandGroup is what people do with some commands.
type commandGroup struct {
	title    string
	commands []*cobra.Command
}

// commandGroups are all commands below the root by what people do with them, in the order of the help.
func commandGroups(a *app) []commandGroup {
	return []commandGroup{
		{"Write playbooks", []*cobra.Command{
			newNewCommand(a), newValidateCommand(a), newTryCommand(a), newEvalCommand(a), newTestCommand(a),
			newPlanCommand(a), newGraphCommand(a), newToolsCommand(a), newExplainCommand(a), newDocsCommand(a),
			newLSPCommand(a), newMCPCommand(a), newSchemaCommand(a), newMigrateCommand(a),
		}},
		{"Run playbooks", []*cobra.Command{
			newRunCommand(a), newBackfillCommand(a), newScheduleCommand(a), newDevCommand(a),
		}},
		{"Look at runs", []*cobra.Command{
			newListCommand(a), newStatusCommand(a), newFollowCommand(a), newEventsCommand(a), newLogsCommand(a),
			newStatsCommand(a), newReportCommand(a),
		}},
		{"Steer runs", []*cobra.Command{
			a.newSteerCommand(steer.Pause, "RUN [STEP]"), a.newSteerCommand(steer.Resume, "RUN [STEP]"),
			a.newSteerCommand(steer.Set, "RUN STEP KEY=VALUE..."), a.newSteerCommand(steer.RetryNow, "RUN [STEP]"),
			a.newSteerCommand(steer.Skip, "RUN STEP"), a.newSteerCommand(steer.Cancel, "RUN..."),
		}},
		{"Answer runs", []*cobra.Command{
			newApproveCommand(a), newRejectCommand(a), newCompleteCommand(a), newFailCommand(a),
			newProgressCommand(a),
		}},
		{"Repair", []*cobra.Command{
			newDeadLettersCommand(a), newStateCommand(a),
		}},
		{"Operate", []*cobra.Command{
			newUICommand(a), newServeCommand(a), newSetupCommand(a), newDemoAPICommand(a), newOptionsCommand(a),
			newCompletionCommand(a), newVersionCommand(a),
		}},
	}
}

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use: "starter", SilenceErrors: true, SilenceUsage: true, SuggestionsMinimumDistance: 2, Version: readVersion().Reprise,
		Annotations: map[string]string{}, // the names of the commands of each group, in the order of the help
	}
	root.SetVersionTemplate("starter {{.Version}}\n")
	root.CompletionOptions.DisableDefaultCmd = true // starter has its own, with a help of ours
	for _, group := range commandGroups(a) {
		root.AddGroup(&cobra.Group{ID: group.title})
		for _, command := range group.commands {
			root.Annotations[group.title] += command.Name() + " "
			root.AddCommand(command)
		}
	}
	addHelp(root)
	a.addCompletion(root)
	explainArgs(root)
	root.SetFlagErrorFunc(flagError)
	return root
}

// explainArgs has commands say what they take where they are given more or less.
func explainArgs(command *cobra.Command) {
	for _, below := range command.Commands() {
		explainArgs(below)
	}
	takes := command.Args
	if takes == nil {
		return
	}
	command.Args = func(command *cobra.Command, args []string) error {
		err := takes(command, args)
		if err == nil || !strings.Contains(err.Error(), "arg(s)") { // the one form of cobra that names nothing
			return err
		}
		_, operands, _ := strings.Cut(command.Use, " ")
		given := "nothing"
		if len(args) > 0 {
			given = strconv.Quote(strings.Join(args, " "))
		}
		return fmt.Errorf("%s takes %s, and was given %s", command.Name(), operands, given)
	}
}

// groupAnnotation marks commands that only have others.
const groupAnnotation = "group"

// oneOfItsCommands refuses a word that is none of a command's own commands.
func oneOfItsCommands(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, one := range command.Commands() {
		if one.IsAvailableCommand() {
			names = append(names, one.Name())
		}
	}
	return fmt.Errorf("%s has no command %q%s", command.CommandPath(), args[0], didYouMean("", args[0], names))
}

// didYouMean is the end of a message about a name that is not known: the one that it resembles most.
func didYouMean(prefix, name string, known []string) string {
	if near := expression.Suggest(name, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", prefix+near)
	}
	return ""
}

// flagError says what is wrong with a flag in words that do not need Go.
func flagError(command *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var names []string
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden {
				names = append(names, flag.Name)
			}
		})
		return fmt.Errorf("%w%s", err, didYouMean("--", unknown.GetSpecifiedName(), names))
	case errors.As(err, &invalid):
		if expected := map[string]string{
			"int": "a whole number", "float64": "a number", "duration": "a duration such as 90s or 1h30m", "bool": "true or false",
		}[invalid.GetFlag().Value.Type()]; expected != "" {
			return fmt.Errorf("--%s %q: expected %s", invalid.GetFlag().Name, invalid.GetValue(), expected)
		}
	}
	return err
}

// newGroup is a command that has others, and does nothing itself.
func newGroup(name, alias string, of ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use: name, Aliases: []string{alias}, Args: oneOfItsCommands, RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
		Annotations: map[string]string{groupAnnotation: ""},
	}
	if alias == "" {
		group.Aliases = nil
	}
	group.AddCommand(of...)
	return group
}

// outputFlag adds --output with a table, or JSON.
func outputFlag(command *cobra.Command, into *string) {
	outputFlagOf(command, into, "", "table", "json")
}

// outputFlagOf adds --output with formats, of which the first is the default, and refuses others before
// the command begins. note follows the formats in the help.
func outputFlagOf(command *cobra.Command, into *string, note string, formats ...string) {
	command.Flags().StringVarP(into, "output", "o", formats[0], orList(formats)+note)
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	command.PreRunE = func(*cobra.Command, []string) error { return choice("--output", *into, formats) }
}
