// Package playtest runs tests of playbooks without a server: real workflows and activities, with waits skipped. The
// test contains the responses of the outside world.
package playtest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/activities"
	"reprise/internal/program/recording"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// Suite is a valid test file with its valid playbook. It is safe for concurrent use.
type Suite struct {
	Path  string // of the file of tests
	Tests *playbook.Tests
	Book  *playbook.Playbook
	// Warnings are the warnings of the playbook's validation.
	Warnings source.Diagnostics

	read       ReadFileFunc
	source     []byte
	files      map[string]string // that the playbook names
	folder     string            // of the playbook
	recordings map[string]*recording.Recording
	checked    sync.Map // answers of the validation, by its input
}

// InvalidError says what is wrong with a test file or its playbook.
type InvalidError struct {
	File  *source.File
	Found source.Diagnostics
}

func (e *InvalidError) Error() string { return e.Found.Errors().Error() }

// PathOf returns the path of a playbook's test file.
func PathOf(book string) string {
	return strings.TrimSuffix(book, filepath.Ext(book)) + playbook.TestSuffix
}

// IsTests reports whether a path is that of a test file.
func IsTests(path string) bool { return strings.HasSuffix(path, playbook.TestSuffix) }

// ReadFileFunc reads a file: tests, a playbook or recorded answers. Its errors satisfy errors.Is(err, fs.ErrNotExist)
// if the file does not exist.
type ReadFileFunc func(path string) ([]byte, error)

// Load reads a test file and its playbook. The error is an *InvalidError if one of them is invalid.
func Load(path string) (*Suite, error) { return LoadFrom(path, os.ReadFile) }

// LoadFrom is Load with files from read, which may refuse some.
func LoadFrom(path string, read ReadFileFunc) (*Suite, error) {
	s := &Suite{Path: path, recordings: map[string]*recording.Recording{}, read: read}
	data, err := s.readFile(path)
	if err != nil {
		return nil, err
	}
	file := source.NewFile(path, data)
	tests, found := playbook.DecodeTests(file)
	if found.HasErrors() {
		return nil, &InvalidError{File: file, Found: found}
	}
	s.Tests = tests
	if err := s.loadBook(); err != nil {
		return nil, err
	}
	found = append(found, s.loadRecordings()...)
	found = append(found, checkNames(tests, s.Book)...)
	found.Sort()
	if found.HasErrors() {
		return nil, &InvalidError{File: file, Found: found}
	}
	return s, nil
}

func (s *Suite) readFile(path string) ([]byte, error) {
	data, err := s.read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file %q", path)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	case len(data) > playbook.MaxFileBytes:
		return nil, fmt.Errorf("%s is larger than the limit of %d bytes", path, playbook.MaxFileBytes)
	}
	return data, nil
}

// loadBook reads the playbook, and the playbooks that it runs.
func (s *Suite) loadBook() error {
	name := filepath.Join(filepath.Dir(s.Path), filepath.FromSlash(s.Tests.Playbook))
	data, err := s.readFile(name)
	if err != nil {
		return &InvalidError{File: s.Tests.File, Found: source.Diagnostics{newProblem(s.Tests.File, s.Tests.PlaybookPos, "called-playbook", "%v", err)}}
	}
	s.source, s.folder = data, filepath.Dir(name)
	file := source.NewFile(name, data)
	files := check.NewFiles(s.readCalled)
	book, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{
		Workload: s.everyWorkload(), Files: files, Now: time.Now(),
	})
	if found.HasErrors() {
		return &InvalidError{File: file, Found: found}
	}
	s.Book, s.files, s.Warnings = book, files.Texts(), found.Warnings()
	return nil
}

// everyWorkload returns the workload keys of all tests, because some names are defined only by these.
func (s *Suite) everyWorkload() map[string]any {
	all := map[string]any{}
	for _, test := range s.Tests.Tests {
		maps.Copy(all, test.Workload)
	}
	return all
}

// readCalled reads a playbook that another one runs. Playbooks that a worker would find by name are in the playbook's
// folder.
func (s *Suite) readCalled(name string) ([]byte, error) {
	if file, named := strings.CutPrefix(name, playbook.NamedScheme); named {
		return activities.ReadNamed(s.folder, file)
	}
	return s.readFile(name)
}

// loadRecordings reads the recorded answers that tests refer to.
func (s *Suite) loadRecordings() (found source.Diagnostics) {
	for _, test := range s.Tests.Tests {
		for _, answers := range answersOf(test) {
			for _, answer := range answers.Answers {
				if answer.Recorded == "" || s.recordings[answer.Recorded] != nil {
					continue
				}
				read, err := s.loadRecording(filepath.Join(filepath.Dir(s.Path), filepath.FromSlash(answer.Recorded)))
				switch {
				case err != nil:
					found = append(found, newProblem(s.Tests.File, answer.Pos, "called-playbook", "%v", err))
					continue
				case len(read.StepEntries(answers.Place)) == 0:
					found = append(found, newProblem(s.Tests.File, answer.Pos, "unknown-name", "%s has no recorded answers for %s", answer.Recorded, answers.Place))
				}
				s.recordings[answer.Recorded] = read
			}
		}
	}
	return found
}

func (s *Suite) loadRecording(path string) (*recording.Recording, error) {
	data, err := s.read(path)
	if err != nil {
		return nil, fmt.Errorf("read the recording: %w", err)
	}
	return recording.Parse(path, data)
}

func newProblem(file *source.File, pos source.Position, code, format string, args ...any) source.Diagnostic {
	return source.Diagnostic{File: file.Name, Pos: pos, Severity: source.Error, Code: code, Message: fmt.Sprintf(format, args...)}
}

// recordedAnswers returns the answers that replace an entry with `recorded`.
func (s *Suite) recordedAnswers(answer *playbook.TestAnswer, of playbook.CallName) []*playbook.TestAnswer {
	var all []*playbook.TestAnswer
	for _, entry := range s.recordings[answer.Recorded].StepEntries(of.Place) {
		one := &playbook.TestAnswer{Pos: answer.Pos, Words: playbook.Words{}, Status: entry.Status, Error: entry.Error, Headers: map[string]any{}}
		for name, value := range entry.Headers {
			one.Headers[name] = value
		}
		if entry.Element != nil {
			one.Element = entry.Element.Data
		}
		switch {
		case entry.Result != nil:
			one.Words["result"], one.Result = answer.Pos, entry.Result.Data
		case entry.Body != nil:
			one.Words["body"], one.Body = answer.Pos, entry.Body.Data
		case entry.BodyText != nil:
			one.Words["body_text"], one.BodyText = answer.Pos, *entry.BodyText
		}
		all = append(all, one)
	}
	return all
}

// Select returns the tests whose names match.
func (s *Suite) Select(match func(name string) bool) []*playbook.Test {
	return slices.DeleteFunc(slices.Clone(s.Tests.Tests), func(t *playbook.Test) bool { return !match(t.Name) })
}

// checkOnce caches the validation of runs, which is the same for the same input.
func (s *Suite) checkOnce(in interpreter.CheckInput, check func() interpreter.CheckResult) interpreter.CheckResult {
	at := ""
	if in.Partition != nil {
		at = in.Partition.Key + in.Partition.At.String()
	}
	key := fmt.Sprintf("%s\x00%s\x00%v\x00%s", in.Name, in.Source, in.Workload.Data, at)
	if known, ok := s.checked.Load(key); ok {
		return known.(interpreter.CheckResult)
	}
	result := check()
	s.checked.Store(key, result)
	return result
}
