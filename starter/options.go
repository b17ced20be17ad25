package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newOptionsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "options", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(a.Out, "%s\n\nFlags of commands that use a Temporal server:\n%s\nFlags of commands that may start a local server and worker:\n%s",
				paragraphs(command.Long), flagUsages(serverOptions()), flagUsages(localOptions()))
			return err
		},
	}
}

// serverOptions are the flags by which a server is chosen.
func serverOptions() *pflag.FlagSet {
	command := &cobra.Command{}
	new(serverFlags).add(command)
	return command.Flags()
}

// localOptions are the flags of a server and a worker that a command starts.
func localOptions() *pflag.FlagSet {
	command := &cobra.Command{}
	new(localFlags).add(command)
	return command.Flags()
}
