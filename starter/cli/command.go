package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// GroupAnnotation marks commands that only have subcommands.
const GroupAnnotation = "group"

// requireSubcommand refuses an argument that is not a subcommand.
func requireSubcommand(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, one := range command.Commands() {
		if one.IsAvailableCommand() {
			names = append(names, one.Name())
		}
	}
	return fmt.Errorf("%s has no command %q%s", command.CommandPath(), args[0], DidYouMean("", args[0], names))
}

// NewGroup returns a command that only has subcommands.
func NewGroup(name, alias string, of ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use: name, Aliases: []string{alias}, Args: requireSubcommand, RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
		Annotations: map[string]string{GroupAnnotation: ""},
	}
	if alias == "" {
		group.Aliases = nil
	}
	group.AddCommand(of...)
	return group
}
