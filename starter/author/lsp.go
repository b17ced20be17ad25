package author

import (
	"github.com/spf13/cobra"

	"reprise/activities"
	"reprise/internal/program/lsp"
	"reprise/interpreter/playbook/check"
	"reprise/starter/cli"
	"reprise/starter/load"
)

// NewLSPCommand returns the command lsp.
func NewLSPCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "lsp", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return serveEditor(a) },
	}
}

// serveEditor serves the Language Server Protocol on the standard streams until the editor ends it.
func serveEditor(a *cli.App) error {
	limits, err := load.AssumedLimits()
	if err != nil {
		return err
	}
	server := lsp.New(activities.DefaultCatalogue(), check.Options{Limits: limits})
	err = server.Serve(a.Interrupts.Graceful, cli.StandardStreams{Reader: a.In, Out: a.Out})
	if a.Interrupts.Graceful.Err() != nil {
		return nil
	}
	return err
}
