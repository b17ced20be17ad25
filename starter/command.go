package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/internal/base/build"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/program/steer"
	"reprise/starter/answer"
	"reprise/starter/auth"
	"reprise/starter/author"
	"reprise/starter/builds"
	"reprise/starter/cli"
	"reprise/starter/control"
	"reprise/starter/deadletters"
	"reprise/starter/execute"
	"reprise/starter/help"
	"reprise/starter/load"
	"reprise/starter/look"
	"reprise/starter/mcpserver"
	"reprise/starter/operate"
	"reprise/starter/runpage"
	"reprise/starter/schedule"
	"reprise/starter/state"
)

// Main is the whole program: it runs one command with the given arguments and streams, and returns the exit status.
// It handles SIGINT, SIGTERM and SIGHUP itself.
func Main(ctx context.Context, args []string, streams cli.Streams) int {
	interrupts := cli.WatchInterrupts(ctx)
	defer interrupts.Stop()
	ran := false
	out := &terminal.Screen{To: streams.Out}
	streams.Out, streams.Err = out, &terminal.Screen{To: streams.Err}
	streams.In = cli.UntilInterrupted(interrupts.Graceful, streams.In)
	a := &cli.App{Streams: streams, Screen: out, Interrupts: interrupts}
	root := newRoot(a)
	root.PersistentPreRun = func(command *cobra.Command, _ []string) {
		ran = true
		a.NoteRenamed(command)
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
		return exitcode.OK
	}
	status := cli.StatusOf(err)
	if !ran { // cobra refused flags or arguments
		status = exitcode.Usage
	}
	if !errors.Is(err, cli.ErrSaid) {
		streams.Notef("starter: %v", err)
		var invalid *load.ProblemsError // the command was fine
		if status == exitcode.Usage && !errors.As(err, &invalid) {
			streams.Advisef("See %s --help.", terminal.ProgramName()+strings.TrimPrefix(command.CommandPath(), "starter"))
		}
	}
	return status
}

// commandGroup is a section of the help with commands of a common purpose.
type commandGroup struct {
	title    string
	commands []*cobra.Command
}

// commandGroups returns all subcommands of the root, in the order of the help.
func commandGroups(a *cli.App) []commandGroup {
	return []commandGroup{
		{"Write playbooks", []*cobra.Command{
			author.NewNewCommand(a), author.NewValidateCommand(a), author.NewTryCommand(a), author.NewEvalCommand(a), author.NewTestCommand(a),
			author.NewPlanCommand(a), author.NewGraphCommand(a), author.NewToolsCommand(a), author.NewExplainCommand(a), help.NewDocsCommand(a),
			author.NewLSPCommand(a), mcpserver.NewMCPCommand(a), author.NewSchemaCommand(a), author.NewMigrateCommand(a),
			author.NewSignCommand(a),
		}},
		{"Run playbooks", []*cobra.Command{
			execute.NewRunCommand(a), execute.NewBackfillCommand(a), schedule.NewScheduleCommand(a), operate.NewDevCommand(a),
		}},
		{"Look at runs", []*cobra.Command{
			look.NewListCommand(a), look.NewStatusCommand(a), look.NewFollowCommand(a), look.NewEventsCommand(a), look.NewLogsCommand(a),
			look.NewStatsCommand(a), look.NewReportCommand(a),
		}},
		{"Steer runs", []*cobra.Command{
			control.NewSteerCommand(a, steer.Pause, "RUN [STEP]"), control.NewSteerCommand(a, steer.Resume, "RUN [STEP]"),
			control.NewSteerCommand(a, steer.Set, "RUN STEP KEY=VALUE..."), control.NewSteerCommand(a, steer.RetryNow, "RUN [STEP]"),
			control.NewSteerCommand(a, steer.Skip, "RUN STEP"), control.NewSteerCommand(a, steer.Cancel, "RUN..."),
		}},
		{"Answer runs", []*cobra.Command{
			answer.NewApproveCommand(a), answer.NewRejectCommand(a), answer.NewCompleteCommand(a), answer.NewFailCommand(a),
			answer.NewProgressCommand(a),
		}},
		{"Repair", []*cobra.Command{
			deadletters.NewDeadLettersCommand(a), state.NewStateCommand(a), auth.NewAuthCommand(a),
		}},
		{"Operate", []*cobra.Command{
			runpage.NewUICommand(a), operate.NewServeCommand(a), operate.NewSetupCommand(a), operate.NewDoctorCommand(a), operate.NewReplayCommand(a), operate.NewAuditCommand(a), builds.NewBuildsCommand(a), operate.NewDemoAPICommand(a), help.NewOptionsCommand(a),
			newCompletionCommand(a), operate.NewVersionCommand(a),
		}},
	}
}

func newRoot(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use: "starter", SilenceErrors: true, SilenceUsage: true, SuggestionsMinimumDistance: 2, Version: build.Read().Reprise,
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
	help.AddHelp(root)
	addCompletion(a, root)
	explainArgs(root)
	root.SetFlagErrorFunc(flagError)
	return root
}

// explainArgs makes commands print their expected arguments if the number of arguments is wrong.
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
		if len(args) == 0 {
			return fmt.Errorf("%s needs %s", command.Name(), operands)
		}
		return fmt.Errorf("%s expects %s, but got %q", command.Name(), operands, strings.Join(args, " "))
	}
}

// flagError rewords an error about a flag for users who do not know Go.
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
		return fmt.Errorf("%w%s", err, cli.DidYouMean("--", unknown.GetSpecifiedName(), names))
	case errors.As(err, &invalid):
		if expected := map[string]string{
			"int": "a whole number", "float64": "a number", "duration": "a duration such as 90s or 1h30m", "bool": "true or false",
		}[invalid.GetFlag().Value.Type()]; expected != "" {
			return fmt.Errorf("--%s %q: expected %s", invalid.GetFlag().Name, invalid.GetValue(), expected)
		}
	}
	return err
}
