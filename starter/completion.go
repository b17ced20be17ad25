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
	"reprise/workflows/protocol"
)

// listPage is how many names of runs and schedules are offered.
const listPage = 100

// completionPatience is how long a server may take to list what completes a word.
const completionPatience = time.Second

func newCompletionCommand(a *app) *cobra.Command {
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
			return usageError("the shell %q is unknown, expected %s", args[0], sentenceList(shells, "or"))
		},
	}
}

// addCompletion has the shell complete arguments, by the names that usage lines give
// them, and values of flags.
func (a *app) addCompletion(root *cobra.Command) {
	eachBelow(root, func(command *cobra.Command) {
		if len(command.ValidArgs) == 0 {
			command.ValidArgsFunction = a.completeArgument
		}
		for name, words := range map[string][]string{
			"status":  asTexts(interpreter.StatusesOf(interpreter.OfRun)),
			"class":   asTexts(errorClasses),
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
				return beginningWith(begun, a.known(command, stepsOf(args[0]))), cobra.ShellCompDirectiveNoFileComp
			})
		}
	})
}

// completeArgument completes the next argument of a command.
func (a *app) completeArgument(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
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
		return beginningWith(begun, a.known(command, listedRuns)), cobra.ShellCompDirectiveNoFileComp
	case "STEP":
		return beginningWith(begun, a.known(command, stepsOf(args[0]))), cobra.ShellCompDirectiveNoFileComp
	case "NAME":
		return beginningWith(begun, a.known(command, scheduleNames)), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// known asks the server that the flags name; it answers soon, or nothing is known.
func (a *app) known(command *cobra.Command, read func(context.Context, *session) []string) []string {
	ctx, cancel := context.WithTimeout(a.interrupts.graceful, completionPatience)
	defer cancel()
	s, err := givenServer(command).existing(ctx)
	if err != nil || s == nil {
		return nil
	}
	defer s.end(true)
	return read(ctx, s)
}

// givenServer is what the flags of a command that only completes say of the server.
func givenServer(command *cobra.Command) *serverFlags {
	given := func(name string) string { return command.Flag(name).Value.String() }
	if command.Flag("address") == nil {
		return &serverFlags{taskQueue: protocol.DefaultTaskQueue}
	}
	server := &serverFlags{taskQueue: given("task-queue"), payloadStore: given("payload-store")}
	server.Address, server.Namespace, server.Profile = given("address"), given("namespace"), given("profile")
	return server
}

func listedRuns(ctx context.Context, s *session) (ids []string) {
	list, err := s.runs().List(ctx, runs.Filter{Limit: listPage})
	if err != nil {
		return nil
	}
	return lists.Map(list.Runs, func(run runs.Found) string { return run.WorkflowID })
}

func stepsOf(id string) func(context.Context, *session) []string {
	return func(ctx context.Context, s *session) (names []string) {
		run, err := s.runs().Find(ctx, id, "")
		if err != nil {
			return nil
		}
		status, err := s.runs().Status(ctx, run, time.Now())
		if err != nil {
			return nil
		}
		return lists.Map(status.Steps, func(step runs.Step) string { return step.Step })
	}
}

func scheduleNames(ctx context.Context, s *session) (names []string) {
	page, err := s.runs().Schedules(ctx, "", listPage)
	if err != nil {
		return nil
	}
	return lists.Map(page.Schedules, func(schedule *runs.Schedule) string { return schedule.ID })
}

func beginningWith(begun string, words []string) []string {
	return lists.Filter(words, func(word string) bool { return strings.HasPrefix(word, begun) })
}

func asTexts[W ~string](words []W) []string {
	return lists.Map(words, func(word W) string { return string(word) })
}
