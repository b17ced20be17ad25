// Package load reads and validates the inputs of a command: a playbook, and the workload of a run.
package load

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/activities"
	"reprise/internal/base/bookshelf"
	"reprise/internal/base/exitcode"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
	"reprise/playbooks"
	"reprise/starter/cli"
)

// RequireOneFile requires exactly one FILE argument. The value of --full-refresh is optional, so it must follow "="; the
// error says so.
func RequireOneFile(command *cobra.Command, args []string) error {
	if steps, err := command.Flags().GetStringSlice("full-refresh"); err == nil && len(args) > 1 && slices.Contains(steps, EveryStep) {
		return fmt.Errorf("run expects one FILE, but got %q; write the steps of --full-refresh after a =: --full-refresh=STEP",
			strings.Join(args, " "))
	}
	return cobra.ExactArgs(1)(command, args)
}

// CheckForRun is CheckValid for a playbook that is to run. It also prints the warnings, which the run's result does
// not repeat.
func CheckForRun(a *cli.App, name string, workload map[string]any) (CheckedPlaybook, error) {
	checked, err := CheckValid(a, name, workload)
	if warnings := checked.Found.Warnings(); err == nil && len(warnings) > 0 {
		_, _ = fmt.Fprint(a.Err, checked.File.FormatFirst(warnings, playbook.MaxShown))
	}
	return checked, err
}

// CheckValid reads and validates a playbook. It prints the errors and returns a *ProblemsError.
func CheckValid(a *cli.App, name string, workload map[string]any) (CheckedPlaybook, error) {
	checked, err := CheckPlaybook(a, name, workload, playbook.Limits{})
	if err != nil {
		return checked, err
	}
	if errs := checked.Found.Errors(); len(errs) > 0 {
		_, _ = fmt.Fprint(a.Err, checked.File.FormatFirst(errs, playbook.MaxShown))
		AdviseExplain(a.Streams, errs)
		return checked, cli.WithStatus(exitcode.Usage, &ProblemsError{Name: name, Problems: ProblemsOf(errs), Total: len(errs)})
	}
	return checked, nil
}

// CalledFiles reads the playbooks that those of a folder call by path. Playbooks that are called by name are in the
// workers' folder.
func CalledFiles(folder string) *check.Files { return check.NewFiles(FolderReader(folder)) }

// FolderReader returns a function that reads such playbooks and caches nothing.
func FolderReader(folder string) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if strings.HasPrefix(name, playbook.NamedScheme) {
			return nil, check.ErrElsewhere
		}
		return bookshelf.ReadFile(folder, name)
	}
}

// ExampleScheme is the prefix of playbooks that are built into starter, as in example:hello.yaml.
const ExampleScheme = playbook.ExampleScheme

// CheckedPlaybook is a playbook that was read and validated.
type CheckedPlaybook struct {
	File  *source.File
	Book  *playbook.Playbook // nil where nothing usable could be decoded
	Found source.Diagnostics
	// Files are the texts of the playbooks that it calls by path, by file name.
	Files map[string]string
}

// AssumedLimits returns the operator's limits from the environment, for a command that does not ask a worker.
func AssumedLimits() (playbook.Limits, error) {
	limits, err := activities.LimitsFromEnv(os.LookupEnv)
	if err != nil {
		return limits, cli.UsageError("%w", err)
	}
	limits.Assumed = true
	return limits, nil
}

// CheckPlaybook reads a playbook and returns all its problems. The name "-" is standard input. limits are the
// operator's, if they are known here; a worker applies its own when it validates.
func CheckPlaybook(a *cli.App, name string, workload map[string]any, limits playbook.Limits) (CheckedPlaybook, error) {
	data, err := ReadPlaybook(a, name)
	if err != nil {
		return CheckedPlaybook{}, err
	}
	if name == "-" {
		name = "stdin"
	}
	return CheckFile(a, source.NewFile(name, data), workload, limits), nil
}

// CheckFile is CheckPlaybook for a file that is already in memory.
func CheckFile(a *cli.App, file *source.File, workload map[string]any, limits playbook.Limits) CheckedPlaybook {
	files := check.NewFiles(func(name string) ([]byte, error) { return ReadCalled(a, name) })
	book, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{
		Workload: workload, Limits: limits, Zone: cli.KnownZone, Files: files, Now: time.Now(),
	})
	return CheckedPlaybook{File: file, Book: book, Found: found, Files: files.Texts()}
}

// ReadCalled reads a playbook that another one calls. It returns check.ErrElsewhere for one in the workers' folder.
func ReadCalled(a *cli.App, name string) ([]byte, error) {
	if strings.HasPrefix(name, playbook.NamedScheme) {
		return nil, check.ErrElsewhere
	}
	return ReadPlaybook(a, name)
}

// PythonCodes returns the Python code of a playbook and of all playbooks that it calls, as far as they are known here.
// Playbooks that are called by name are read from folder.
func (c CheckedPlaybook) PythonCodes(workload map[string]any, folder string) []string {
	if len(c.Book.PlaybookCalls()) == 0 {
		return c.Book.CodeTexts()
	}
	files := check.NewFiles(func(name string) ([]byte, error) {
		if text, found := c.Files[name]; found {
			return []byte(text), nil
		}
		file, _ := strings.CutPrefix(name, playbook.NamedScheme)
		return activities.ReadNamed(folder, file)
	})
	_, _ = check.Validate(c.File, activities.DefaultCatalogue(), check.Options{Workload: workload, Files: files}) // reads them
	codes := c.Book.CodeTexts()
	for name, text := range files.Texts() {
		if book, _ := playbook.Decode(source.NewFile(name, []byte(text))); book != nil {
			codes = append(codes, book.CodeTexts()...)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// FolderOf returns the folder of a playbook, in which a local worker finds the playbooks that it calls by name.
func FolderOf(name string) string {
	if name == "-" || strings.HasPrefix(name, ExampleScheme) {
		return "."
	}
	return filepath.Dir(name)
}

// ReadPlaybook reads at most one byte more than a playbook may have, so that the check detects one that is too large.
func ReadPlaybook(a *cli.App, name string) ([]byte, error) {
	reader, err := openPlaybook(a, name)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	data, err := io.ReadAll(io.LimitReader(reader, playbook.MaxFileBytes+1))
	if err != nil {
		return nil, cli.UsageError("read the playbook %q: %w", name, err)
	}
	return data, nil
}

func openPlaybook(a *cli.App, name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.In), nil
	}
	if example, ok := strings.CutPrefix(name, ExampleScheme); ok {
		file, err := playbooks.FS.Open(strings.TrimSuffix(example, ".yaml") + ".yaml")
		if err != nil {
			return nil, cli.UsageError("there is no example %q, expected one of %s", example, strings.Join(ExampleNames(), ", "))
		}
		return file, nil
	}
	file, err := a.Files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, cli.UsageError("there is no file %q%s", name, exampleHint(name))
	}
	var info fs.FileInfo
	if err == nil {
		info, err = file.Stat()
	}
	switch {
	case err != nil:
		return nil, cli.UsageError("read the playbook: %w", err)
	case info.IsDir():
		_ = file.Close()
		return nil, cli.UsageError("%q is a folder; name a playbook in it%s", name, firstPlaybook(name))
	}
	return file, nil
}

// firstPlaybook returns the end of a message that names a YAML file of a folder as an example; "" if there is none.
func firstPlaybook(folder string) string {
	files, _ := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if len(files) == 0 {
		return ""
	}
	return ", such as " + files[0]
}

// ExampleNames returns the names of the example playbooks.
func ExampleNames() []string {
	names, err := fs.Glob(playbooks.FS, "*.yaml")
	if err != nil {
		return nil // only a bad pattern is an error
	}
	return names
}

func exampleHint(name string) string {
	wanted := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)) + ".yaml"
	names := ExampleNames()
	if !slices.Contains(names, wanted) {
		wanted = expression.Suggest(wanted, names)
	}
	if wanted == "" {
		return ""
	}
	return "; did you mean " + ExampleScheme + wanted + ", which comes with starter?"
}
