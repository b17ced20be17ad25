// Package help has the texts of the help, the command options, and the documentation that starter serves.
package help

import (
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/starter/cli"
	"reprise/starter/session"
)

//go:embed help.txt
var helpText string

// Topic is the help of a command.
type Topic struct{ short, long, examples string }

// AllTopics returns the sections of help.txt by command path without "starter", with their placeholders filled in.
func AllTopics() map[string]Topic {
	topics := map[string]Topic{}
	shared := []string{
		"{statuses}", cli.SentenceList(interpreter.StatusesOf(interpreter.OfRun), "and"),
		"{events}", cli.SentenceList(runs.KindNames(), "and"),
		"{reasons}", cli.SentenceList(interpreter.WaitReasons(), "or"),
	}
	for _, section := range strings.Split(helpText, "\n# ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		if strings.HasPrefix(name, "{") {
			shared = append(shared, name, strings.TrimSpace(body))
			continue
		}
		body, examples, _ := strings.Cut(body, "\nExamples:\n")
		short, long, _ := strings.Cut(body, "\n")
		topics[name] = Topic{short, strings.TrimSpace(long), strings.TrimRight(examples, "\n")}
	}
	expand := strings.NewReplacer(shared...)
	for name, one := range topics {
		one.long = expand.Replace(one.long)
		topics[name] = one
	}
	return topics
}

// AddHelp sets the texts, groups and the format of the help of all commands.
func AddHelp(root *cobra.Command) {
	topics := AllTopics()
	write := func(command *cobra.Command) {
		path, _ := strings.CutPrefix(command.CommandPath(), "starter ")
		if text, written := topics[path]; written {
			command.Short, command.Long, command.Example = text.short, text.long, text.examples
		}
	}
	write(root)
	EachBelow(root, write)
	root.SetHelpFunc(func(command *cobra.Command, _ []string) {
		_, _ = io.WriteString(command.OutOrStdout(), RenderHelp(command))
	})
}

// EachBelow visits all commands below another one, at any depth.
func EachBelow(command *cobra.Command, visit func(*cobra.Command)) {
	for _, child := range command.Commands() {
		visit(child)
		EachBelow(child, visit)
	}
}

// RenderHelp returns the text of --help, at most terminal.HelpColumns wide.
func RenderHelp(command *cobra.Command) string {
	var b strings.Builder
	if command.HasParent() {
		fmt.Fprintf(&b, "%s.\n\n", command.Short)
	}
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n", terminal.Paragraphs(command.Long, terminal.HelpColumns), usageLine(command))
	if len(command.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAliases:\n  %s\n", command.NameAndAliases())
	}
	if command.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", command.Example)
	}
	if command.HasParent() {
		writeCommands(&b, "Commands:", command.Commands())
	} else {
		for _, group := range command.Groups() {
			writeCommands(&b, group.ID+":", commandsNamed(command, command.Annotations[group.ID]))
		}
	}
	own, general := helpFlags(command)
	fmt.Fprintf(&b, "\nFlags:\n%s", own.FlagUsagesWrapped(terminal.HelpColumns))
	if general {
		b.WriteString("\nThe flags that choose the Temporal server are those of starter options.\n")
	}
	if command.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s COMMAND --help describes a command.\n", command.CommandPath())
	}
	return b.String()
}

func usageLine(command *cobra.Command) string {
	if _, only := command.Annotations[cli.GroupAnnotation]; only || command.HasAvailableSubCommands() && !command.Runnable() {
		return command.CommandPath() + " COMMAND"
	}
	return command.UseLine()
}

// commandsNamed returns the subcommands with the given names, which are separated by spaces.
func commandsNamed(parent *cobra.Command, names string) (commands []*cobra.Command) {
	for name := range strings.FieldsSeq(names) {
		for _, child := range parent.Commands() {
			if child.Name() == name {
				commands = append(commands, child)
			}
		}
	}
	return commands
}

func writeCommands(b *strings.Builder, title string, commands []*cobra.Command) {
	if len(commands) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, command := range commands {
		fmt.Fprintf(b, "  %-*s  %s\n", command.NamePadding(), command.Name(), command.Short)
	}
}

// helpFlags returns the flags that the help of a command lists, and whether the command has general ones besides.
func helpFlags(command *cobra.Command) (own *pflag.FlagSet, general bool) {
	own = pflag.NewFlagSet("", pflag.ContinueOnError)
	own.SortFlags = true
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations[cli.GeneralFlag] != nil {
			general = true
			return
		}
		own.AddFlag(flag)
	})
	return own, general
}

// NewOptionsCommand returns the command options.
func NewOptionsCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "options", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(a.Out, "%s\n\nFlags of commands that use a Temporal server:\n%s\nFlags of commands that may start a local server and worker:\n%s",
				terminal.Paragraphs(command.Long, terminal.HelpColumns), flagUsages(new(session.ServerFlags).Add), flagUsages(new(session.LocalFlags).AddFlags))
			return err
		},
	}
}

// flagUsages returns the help of the flags that add adds to a command.
func flagUsages(add func(*cobra.Command)) string {
	command := &cobra.Command{}
	add(command)
	return command.Flags().FlagUsagesWrapped(terminal.HelpColumns)
}
