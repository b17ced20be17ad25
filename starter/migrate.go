package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/program/playtest"
	"reprise/interpreter/lists"
	"reprise/interpreter/migrate"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// migrated is one file in `migrate --output json`.
type migrated struct {
	File     string    `json:"file"`
	Changed  bool      `json:"changed"`
	Changes  []change  `json:"changes"`
	Problems []problem `json:"problems"` // what was left as it is
	Text     string    `json:"text"`     // the file as it should be
}

// change is what was changed, or is to be, and where.
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

func newMigrateCommand(a *app) *cobra.Command {
	var options migrateOptions
	command := &cobra.Command{
		Use: "migrate FILE...", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			if options.write && options.check {
				return usageError("--write and --check exclude each other")
			}
			return a.migrate(files, options)
		},
	}
	outputFlag(command, &options.output)
	command.Flags().BoolVar(&options.write, "write", false, "rewrite the files in place")
	command.Flags().BoolVar(&options.check, "check", false, "only print what would change; exit status 1 if anything would")
	return command
}

func (a *app) migrate(files []string, options migrateOptions) error {
	results, failed := []migrated{}, false
	for _, name := range files {
		if playtest.IsTests(name) {
			continue // they have no older form
		}
		result, err := a.migrateFile(name, options, len(files) > 1)
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
		return withStatus(exitFailed, errSaid)
	}
	return nil
}

func (a *app) migrateFile(name string, options migrateOptions, several bool) (migrated, error) {
	data, err := a.readPlaybook(name)
	if err != nil {
		return migrated{}, err
	}
	file := source.NewFile(name, data)
	m := migrate.File(file)
	result := migrated{
		File: name, Changed: m.Changed(), Problems: problems(m.Problems), Text: string(m.Text),
		Changes: lists.Map(m.Changes, func(c source.Change) change { return changeAt(c.Pos, c.What) }),
	}
	if options.write && result.Changed {
		if err := overwrite(name, m.Text); err != nil {
			return result, err
		}
	}
	if options.output != "json" {
		a.printMigration(file, m, options, several)
	}
	return result, nil
}

// printMigration prints the text, unless it is written or only checked, and
// what was done beside it.
func (a *app) printMigration(file *source.File, m *migrate.Migration, options migrateOptions, several bool) {
	if !options.write && !options.check {
		if several {
			_, _ = fmt.Fprintf(a.Out, "--- # %s\n", file.Name)
		}
		_ = a.out.Verbatim(m.Text)
	}
	for _, c := range m.Changes {
		a.notef("%s:%s: %s", file.Name, c.Pos, c.What)
	}
	_, _ = fmt.Fprint(a.Err, file.FormatFirst(m.Problems, playbook.MaxShown))
	switch {
	case !m.Changed() && len(m.Problems) == 0:
		a.notef("%s: nothing to change", file.Name)
	case options.check && m.Changed():
		a.notef("%s: would change; run starter migrate --write", file.Name)
	case options.write && m.Changed():
		a.notef("%s: written", file.Name)
	}
}

// overwrite replaces a file at once, so that it is never half written, and
// keeps its permissions.
func overwrite(name string, data []byte) error {
	info, err := os.Stat(name)
	if err != nil {
		return usageError("write %q: %w; --write needs a file", name, err)
	}
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	if err := replaceFile(target, data, info.Mode().Perm()); err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	return nil
}

// replaceFile writes a file as a whole, or leaves what was there.
func replaceFile(path string, data []byte, mode os.FileMode) error {
	next, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(next.Name()) //nolint:errcheck // it is gone once it is renamed
	_, err = next.Write(data)
	if err = errors.Join(err, next.Chmod(mode), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}
