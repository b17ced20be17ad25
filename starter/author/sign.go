package author

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/known"
	"reprise/internal/base/regular"
	"reprise/interpreter/source"
	"reprise/starter/cli"
)

// NewSignCommand returns the command sign.
func NewSignCommand(a *cli.App) *cobra.Command {
	var key string
	command := &cobra.Command{
		Use: "sign FILE...", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error { return signFiles(a, key, files) },
	}
	command.Flags().StringVar(&key, "key", "", "file of the private ed25519 key, in PEM")
	return command
}

// signFiles signs playbooks, all or none.
func signFiles(a *cli.App, keyFile string, files []string) error {
	if keyFile == "" {
		return cli.UsageError("--key is missing: the file of the private key")
	}
	key, err := known.ReadSigner(keyFile)
	if err != nil {
		return cli.UsageError("--key: %w", err)
	}
	signed, names := make([][]byte, len(files)), make([]string, len(files))
	for i, file := range files {
		text, err := regular.Read(file)
		if err != nil {
			return cli.WithStatus(exitcode.Usage, err)
		}
		var problems source.Diagnostics
		signed[i], names[i], err = known.SignPlaybook(file, text, key)
		if errors.As(err, &problems) {
			a.Notef("%s", source.NewFile(file, text).FormatAll(problems.Errors()))
			return cli.WithStatus(exitcode.Failed, fmt.Errorf("%s cannot be read as a playbook, so nothing was signed", file))
		}
	}
	for i, file := range files {
		if err := cli.OverwriteFile(file, signed[i]); err != nil {
			return cli.WithStatus(exitcode.Failed, err)
		}
		_, _ = fmt.Fprintf(a.Out, "%s: signed as playbook %s\n", file, names[i])
	}
	return nil
}
