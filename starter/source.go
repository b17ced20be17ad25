package main

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/activities"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
	"reprise/playbooks"
)

// exampleScheme names a playbook that comes with the starter: example:hello.yaml.
const exampleScheme = playbook.ExampleScheme

// checked is a playbook that was read and checked.
type checked struct {
	file  *source.File
	book  *playbook.Playbook // nil where nothing usable could be decoded
	found source.Diagnostics
	// files are the playbooks that it names by path, by the names of their files.
	files map[string]string
}

// assumedLimits are the operator's limits in the environment of a command that requests no worker.
func assumedLimits() (playbook.Limits, error) {
	limits, err := activities.LimitsFromEnv(os.LookupEnv)
	if err != nil {
		return limits, usageError("%w", err)
	}
	limits.Assumed = true
	return limits, nil
}

// check reads a playbook and finds everything that is wrong with it. "-" is standard
// input. limits are the operator's, where they are known here; the worker checks its
// own when it validates.
func (a *app) check(name string, workload map[string]any, limits playbook.Limits) (checked, error) {
	data, err := a.readPlaybook(name)
	if err != nil {
		return checked{}, err
	}
	if name == "-" {
		name = "stdin"
	}
	return a.checkFile(source.NewFile(name, data), workload, limits), nil
}

// checkFile is check of what was read.
func (a *app) checkFile(file *source.File, workload map[string]any, limits playbook.Limits) checked {
	files := check.NewFiles(a.readCalled)
	book, found := check.Validate(file, activities.Default(), check.Options{
		Workload: workload, Limits: limits, Zone: knownZone, Files: files, Now: time.Now(),
	})
	return checked{file: file, book: book, found: found, files: files.Texts()}
}

// readCalled reads a playbook that another one runs. Those of the workers' folder
// are theirs.
func (a *app) readCalled(name string) ([]byte, error) {
	if strings.HasPrefix(name, playbook.NamedScheme) {
		return nil, check.ErrElsewhere
	}
	return a.readPlaybook(name)
}

// codes are those of a playbook and of all that it runs, as far as they are known
// here: by name, those of a folder.
func (c checked) codes(workload map[string]any, folder string) []string {
	if len(c.book.Callers()) == 0 {
		return c.book.Codes()
	}
	files := check.NewFiles(func(name string) ([]byte, error) {
		if text, found := c.files[name]; found {
			return []byte(text), nil
		}
		file, _ := strings.CutPrefix(name, playbook.NamedScheme)
		return activities.ReadNamed(folder, file)
	})
	_, _ = check.Validate(c.file, activities.Default(), check.Options{Workload: workload, Files: files}) // reads them
	codes := c.book.Codes()
	for name, text := range files.Texts() {
		if book, _ := playbook.Decode(source.NewFile(name, []byte(text))); book != nil {
			codes = append(codes, book.Codes()...)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// folderOf is the folder of a playbook, in which a local worker finds those that it
// runs by name.
func folderOf(name string) string {
	if name == "-" || strings.HasPrefix(name, exampleScheme) {
		return "."
	}
	return filepath.Dir(name)
}

// readPlaybook reads one byte more than a playbook may have, so that the check
// sees that it is too large.
func (a *app) readPlaybook(name string) ([]byte, error) {
	reader, err := a.openPlaybook(name)
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	data, err := io.ReadAll(io.LimitReader(reader, playbook.MaxFileBytes+1))
	if err != nil {
		return nil, usageError("read the playbook %q: %w", name, err)
	}
	return data, nil
}

func (a *app) openPlaybook(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.In), nil
	}
	if example, ok := strings.CutPrefix(name, exampleScheme); ok {
		file, err := playbooks.FS.Open(strings.TrimSuffix(example, ".yaml") + ".yaml")
		if err != nil {
			return nil, usageError("there is no example %q, expected one of %s", example, strings.Join(exampleNames(), ", "))
		}
		return file, nil
	}
	file, err := a.files.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageError("there is no file %q%s", name, exampleHint(name))
	}
	var info fs.FileInfo
	if err == nil {
		info, err = file.Stat()
	}
	switch {
	case err != nil:
		return nil, usageError("read the playbook: %w", err)
	case info.IsDir():
		_ = file.Close()
		return nil, usageError("%q is a folder; name a playbook in it%s", name, firstPlaybook(name))
	}
	return file, nil
}

// firstPlaybook is the end of a message that names a file of a folder which may be a playbook, "" without one.
func firstPlaybook(folder string) string {
	files, _ := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if len(files) == 0 {
		return ""
	}
	return ", such as " + files[0]
}

func exampleNames() []string {
	names, err := fs.Glob(playbooks.FS, "*.yaml")
	if err != nil {
		return nil // only a bad pattern is an error
	}
	return names
}

func exampleHint(name string) string {
	wanted := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)) + ".yaml"
	names := exampleNames()
	if !slices.Contains(names, wanted) {
		wanted = expression.Suggest(wanted, names)
	}
	if wanted == "" {
		return ""
	}
	return "; did you mean " + exampleScheme + wanted + ", which comes with starter?"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
