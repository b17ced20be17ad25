package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/starter/cli"
	"reprise/starter/deadletters"
	"reprise/starter/help"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// listPage bounds how many runs or schedules a completion offers.
const listPage = 100

// completionPatience bounds how long a completion waits for the server.
const completionPatience = time.Second

func newCompletionCommand(a *cli.App) *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use: "completion SHELL", ValidArgs: shells, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			root := command.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.Out)
			case "fish":
				return root.GenFishCompletion(a.Out, true)
			}
			return cli.UsageError("the shell %q is unknown, expected %s", args[0], cli.SentenceList(shells, "or"))
		},
	}
}

// addCompletion adds shell completion: of arguments, by their names in usage lines, and of flags' values.
func addCompletion(a *cli.App, root *cobra.Command) {
	help.EachBelow(root, func(command *cobra.Command) {
		if len(command.ValidArgs) == 0 {
			command.ValidArgsFunction = func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
				return completeArgument(a, command, args, begun)
			}
		}
		for name, words := range map[string][]string{
			"status":  cli.AsTexts(interpreter.StatusesOf(interpreter.OfRun)),
			"class":   cli.AsTexts(deadletters.ErrorClasses),
			"overlap": playbook.Overlaps,
		} {
			if command.Flags().Lookup(name) != nil {
				_ = command.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
			}
		}
		if command.Flags().Lookup("step") != nil {
			_ = command.RegisterFlagCompletionFunc("step", func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
				if len(args) == 0 {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return beginningWith(begun, completeKnown(a, command, stepsOf(args[0]))), cobra.ShellCompDirectiveNoFileComp
			})
		}
	})
}

// completeArgument completes the next argument of a command.
func completeArgument(a *cli.App, command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	operands := strings.Fields(command.Use)[1:]
	if len(operands) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	operand := operands[min(len(args), len(operands)-1)]
	if len(args) >= len(operands) && !strings.HasSuffix(operand, "...") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	switch strings.Trim(operand, "[].") {
	case "FILE", "FILE|RUN":
		return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	case "RUN":
		return beginningWith(begun, completeKnown(a, command, listedRuns)), cobra.ShellCompDirectiveNoFileComp
	case "STEP":
		return beginningWith(begun, completeKnown(a, command, stepsOf(args[0]))), cobra.ShellCompDirectiveNoFileComp
	case "NAME":
		return beginningWith(begun, completeKnown(a, command, scheduleNames)), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeKnown completes a word with names from the server that the flags select; with none if it does not respond
// in time.
func completeKnown(a *cli.App, command *cobra.Command, read func(context.Context, *session.Session) []string) []string {
	ctx, cancel := context.WithTimeout(a.Interrupts.Graceful, completionPatience)
	defer cancel()
	s, err := givenServer(command).ConnectExisting(ctx)
	if err != nil || s == nil {
		return nil
	}
	defer s.End(true)
	return read(ctx, s)
}

// givenServer returns the server flags of a command whose line is being completed.
func givenServer(command *cobra.Command) *session.ServerFlags {
	given := func(name string) string { return command.Flag(name).Value.String() }
	if command.Flag("address") == nil {
		return &session.ServerFlags{TaskQueue: protocol.DefaultTaskQueue}
	}
	server := &session.ServerFlags{TaskQueue: given("task-queue"), PayloadStore: given("payload-store")}
	server.Address, server.Namespace, server.Profile = given("address"), given("namespace"), given("profile")
	return server
}

func listedRuns(ctx context.Context, s *session.Session) (ids []string) {
	list, err := s.Runs().List(ctx, runs.Filter{Limit: listPage})
	if err != nil {
		return nil
	}
	return lists.Map(list.Runs, func(run runs.Found) string { return run.WorkflowID })
}

func stepsOf(id string) func(context.Context, *session.Session) []string {
	return func(ctx context.Context, s *session.Session) (names []string) {
		run, err := s.Runs().Find(ctx, id, "")
		if err != nil {
			return nil
		}
		status, err := s.Runs().Status(ctx, run, time.Now())
		if err != nil {
			return nil
		}
		return lists.Map(status.Steps, func(step runs.Step) string { return step.Step })
	}
}

func scheduleNames(ctx context.Context, s *session.Session) (names []string) {
	page, err := s.Runs().Schedules().List(ctx, "", listPage)
	if err != nil {
		return nil
	}
	return lists.Map(page.Schedules, func(schedule *runs.Schedule) string { return schedule.ID })
}

func beginningWith(begun string, words []string) []string {
	return lists.Filter(words, func(word string) bool { return strings.HasPrefix(word, begun) })
}
