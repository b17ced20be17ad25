package operate

import (
	"github.com/spf13/cobra"

	"reprise/internal/base/build"
	"reprise/starter/cli"
)

// NewVersionCommand returns the command version.
func NewVersionCommand(a *cli.App) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: "version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version := build.Read()
			return a.ShowDocument(output, version, version.Text())
		},
	}
	cli.OutputFlag(command, &output)
	return command
}
