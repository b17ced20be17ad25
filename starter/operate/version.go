package operate

import (
	"github.com/spf13/cobra"

	"reprise/internal/base/build"
	"reprise/starter/cli"
)

// NewVersionCommand returns the command version.
func NewVersionCommand(a *cli.App) *cobra.Command {
	var output string
	var sbom bool
	command := &cobra.Command{
		Use: "version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if sbom {
				return build.WriteBill(a.Out)
			}
			version := build.Read()
			return a.ShowDocument(output, version, version.Text())
		},
	}
	command.Flags().BoolVar(&sbom, "sbom", false, "print the modules that starter is built from, as CycloneDX 1.6 JSON")
	cli.OutputFlag(command, &output)
	return command
}
