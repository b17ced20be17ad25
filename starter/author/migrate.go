package author

import (
	"fmt"

	"github.com/spf13/cobra"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/program/playtest"
	"reprise/interpreter/lists"
	"reprise/interpreter/migrate"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/starter/cli"
	"reprise/starter/load"
)

// migratedFile is a file in the output of `migrate --output json`.
type migratedFile struct {
	File     string         `json:"file"`
	Changed  bool           `json:"changed"`
	Changes  []change       `json:"changes"`
	Problems []load.Problem `json:"problems"` // what was left as it is
	Text     string         `json:"text"`     // the file as it should be
}

// change is a change that was made to a file, or would be, and its position.
type change struct {
	Line   int    `json:"line"`
	Column int    `json:"column"`
	What   string `json:"what"`
}

func changeAt(at source.Position, what string) change { return change{at.Line, at.Column, what} }

// migrateOptions are the flags of migrate.
type migrateOptions struct {
	write, check bool
	output       string
}

// NewMigrateCommand returns the command migrate.
func NewMigrateCommand(a *cli.App) *cobra.Command {
	var options migrateOptions
	command := &cobra.Command{
		Use: "migrate FILE...", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			if options.write && options.check {
				return cli.UsageError("--write and --check exclude each other")
			}
			return migrateFiles(a, files, options)
		},
	}
	cli.OutputFlag(command, &options.output)
	command.Flags().BoolVar(&options.write, "write", false, "rewrite the files in place")
	command.Flags().BoolVar(&options.check, "check", false, "only print what would change; exit status 1 if anything would")
	return command
}

func migrateFiles(a *cli.App, files []string, options migrateOptions) error {
	results, failed := []migratedFile{}, false
	for _, name := range files {
		if playtest.IsTests(name) {
			continue // they have no older form
		}
		result, err := migrateFile(a, name, options, len(files) > 1)
		if err != nil {
			return err
		}
		failed = failed || len(result.Problems) > 0 || options.check && result.Changed
		results = append(results, result)
	}
	if options.output == "json" {
		if err := terminal.PrintJSON(a.Out, map[string]any{"files": results}); err != nil {
			return err
		}
	}
	if failed {
		return cli.WithStatus(exitcode.Failed, cli.ErrSaid)
	}
	return nil
}

func migrateFile(a *cli.App, name string, options migrateOptions, several bool) (migratedFile, error) {
	data, err := load.ReadPlaybook(a, name)
	if err != nil {
		return migratedFile{}, err
	}
	file := source.NewFile(name, data)
	m := migrate.MigrateFile(file)
	result := migratedFile{
		File: name, Changed: m.HasChanged(), Problems: load.ProblemsOf(m.Problems), Text: string(m.Text),
		Changes: lists.Map(m.Changes, func(c source.Change) change { return changeAt(c.Pos, c.What) }),
	}
	if options.write && result.Changed {
		if err := cli.OverwriteFile(name, m.Text); err != nil {
			return result, err
		}
	}
	if options.output != "json" {
		printMigration(a, file, m, options, several)
	}
	return result, nil
}

// printMigration prints the migrated text, unless it is written or only checked, and to standard error what was
// changed.
func printMigration(a *cli.App, file *source.File, m *migrate.Migration, options migrateOptions, several bool) {
	if !options.write && !options.check {
		if several {
			_, _ = fmt.Fprintf(a.Out, "--- # %s\n", file.Name)
		}
		_ = a.Screen.WriteVerbatim(m.Text)
	}
	for _, c := range m.Changes {
		a.Notef("%s:%s: %s", file.Name, c.Pos, c.What)
	}
	_, _ = fmt.Fprint(a.Err, file.FormatFirst(m.Problems, playbook.MaxShown))
	switch {
	case !m.HasChanged() && len(m.Problems) == 0:
		a.Notef("%s: nothing to change", file.Name)
	case options.check && m.HasChanged():
		a.Notef("%s: would change; run starter migrate --write", file.Name)
	case options.write && m.HasChanged():
		a.Notef("%s: written", file.Name)
	}
}
