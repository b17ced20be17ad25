package author

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/program/playtest"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/starter/cli"
)

// TestingOptions are the flags of test.
type TestingOptions struct {
	run      string
	Output   string
	postgres string
	watch    bool
	update   bool
	Coverage bool
	verbose  bool
	// DenyPython refuses playbooks that run Python code, which would have the rights of this process.
	DenyPython bool
}

// NewTestCommand returns the command test.
func NewTestCommand(a *cli.App) *cobra.Command {
	o := &TestingOptions{}
	command := &cobra.Command{
		Use: "test [FILE]...",
		RunE: func(command *cobra.Command, files []string) error {
			return runTests(command.Context(), a, files, o)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.run, "run", "", "run the tests whose names match a regular expression")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "also list the tests that pass")
	flags.BoolVar(&o.watch, "watch", false, "run the tests again when a file changes")
	flags.BoolVar(&o.update, "update", false, "update the existing keys of expect with the actual values")
	flags.BoolVar(&o.Coverage, "coverage", false, "show steps, policies and routes that no test covers")
	flags.StringVar(&o.postgres, "postgres", "", "URL of a PostgreSQL server, on which each test gets its own database")
	cli.OutputFlagOf(command, &o.Output, "", "table", "json", "junit")
	return command
}

func runTests(ctx context.Context, a *cli.App, files []string, o *TestingOptions) error {
	pattern, err := regexp.Compile(o.run)
	if err != nil {
		return cli.UsageError("--run %q is not a regular expression: %w", o.run, err)
	}
	if o.watch {
		return repeatOnChange(ctx, a, files, o.update, func() error { return RunTests(a, files, pattern, o) })
	}
	return RunTests(a, files, pattern, o)
}

// RunTests runs the tests once. It returns an error unless all of them pass.
func RunTests(a *cli.App, files []string, pattern *regexp.Regexp, o *TestingOptions) error {
	paths, err := testFiles(files)
	if err != nil {
		return err
	}
	suites, err := loadSuites(a, paths)
	if err != nil {
		return err
	}
	var selected []playtest.SelectedTest
	for _, suite := range suites {
		for _, test := range suite.Select(pattern.MatchString) {
			selected = append(selected, playtest.SelectedTest{Suite: suite, Test: test})
		}
	}
	if len(selected) == 0 {
		return cli.UsageError("no test matches --run %q", o.run)
	}
	began := time.Now()
	reports := playtest.RunAll(selected, playtest.Options{Postgres: o.postgres, DenyPython: o.DenyPython}, nil)
	took := time.Since(began)
	if o.update {
		if reports, err = updateTests(a.Streams, suites, reports); err != nil {
			return err
		}
	}
	if err := showTests(a.Streams, suites, reports, took, o); err != nil {
		return err
	}
	if countFailures(reports) > 0 {
		return cli.WithStatus(exitcode.Failed, cli.ErrSaid)
	}
	return nil
}

// testFiles returns the test files to run: the given ones, those of given playbooks, those in given folders; without
// arguments, those in the working directory and in playbooks/.
func testFiles(files []string) ([]string, error) {
	if len(files) == 0 {
		found, err := filepath.Glob("*_test.yaml")
		more, _ := filepath.Glob(filepath.Join("playbooks", "*_test.yaml")) // the pattern is the same
		if found = append(found, more...); err == nil && len(found) == 0 {
			return nil, cli.UsageError("there are no tests in this directory; tests of users.yaml belong in users_test.yaml")
		}
		return found, err
	}
	var paths []string
	for _, name := range files {
		info, err := os.Stat(name)
		switch {
		case err != nil:
			return nil, cli.UsageError("there is no file %q", name)
		case info.IsDir():
			found, err := filepath.Glob(filepath.Join(name, "*_test.yaml"))
			if err != nil || len(found) == 0 {
				return nil, cli.UsageError("there are no tests in %q", name)
			}
			paths = append(paths, found...)
		case playtest.IsTests(name):
			paths = append(paths, name)
		default:
			tests := playtest.PathOf(name)
			if _, err := os.Stat(tests); err != nil {
				return nil, cli.UsageError("%s has no tests: there is no file %q", name, tests)
			}
			paths = append(paths, tests)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// loadSuites reads test files. It prints all their problems, which are a usage error.
func loadSuites(a *cli.App, paths []string) ([]*playtest.Suite, error) {
	var suites []*playtest.Suite
	bad := 0
	for _, path := range paths {
		suite, err := playtest.LoadFrom(path, a.Files.Read)
		var invalid *playtest.InvalidError
		switch {
		case errors.As(err, &invalid):
			bad++
			_, _ = fmt.Fprint(a.Err, invalid.File.FormatAll(invalid.Found))
		case err != nil:
			return nil, cli.UsageError("%w", err)
		default:
			suites = append(suites, suite)
			_, _ = fmt.Fprint(a.Err, suite.Book.File.FormatFirst(suite.Warnings, playbook.MaxShown))
		}
	}
	if bad > 0 {
		a.Notef("%s cannot be run", terminal.Count(bad, "file"))
		return nil, cli.WithStatus(exitcode.Usage, cli.ErrSaid)
	}
	return suites, nil
}

// updateTests writes actual results into the test files. It returns the reports of the tests that passed, and of
// those that it could not update.
func updateTests(streams cli.Streams, suites []*playtest.Suite, reports []*playtest.Report) ([]*playtest.Report, error) {
	shown := lists.Filter(reports, (*playtest.Report).Passed)
	for _, suite := range suites {
		text, changed, left, err := playtest.UpdatedFile(suite, reports)
		if err == nil && changed > 0 {
			err = cli.OverwriteFile(suite.Path, text)
		}
		if err != nil {
			return nil, err
		}
		if changed > 0 {
			streams.Notef("%s: %s updated", suite.Path, terminal.Count(changed, "test"))
		}
		for _, report := range left {
			streams.Notef("%s: %q was not updated: its run has no result, or its expect is on one line", suite.Path, report.Test.Name)
		}
		shown = append(shown, left...)
	}
	return shown, nil
}

func showTests(streams cli.Streams, suites []*playtest.Suite, reports []*playtest.Report, took time.Duration, o *TestingOptions) error {
	var coverage []*playtest.Coverage
	if o.Coverage {
		for _, suite := range suites {
			coverage = append(coverage, playtest.CoverageOf(suite, reports))
		}
	}
	switch o.Output {
	case "junit":
		return playtest.WriteJUnit(streams.Out, reports)
	case "json":
		return terminal.PrintJSON(streams.Out, testsDocument(reports, coverage, took))
	}
	printReports(streams.Out, reports, o.verbose)
	if o.update && len(reports) == 0 {
		return nil // all that had failed is written
	}
	for _, one := range coverage {
		printCoverage(streams.Out, one)
	}
	line := fmt.Sprintf("%s passed in %s", terminal.Count(len(reports), "test"), terminal.Duration(took))
	if failed := countFailures(reports); failed > 0 {
		line = fmt.Sprintf("%d of %s failed in %s", failed, terminal.Count(len(reports), "test"), terminal.Duration(took))
	}
	_, _ = fmt.Fprintln(streams.Out, line)
	return nil
}

// countFailures counts the tests that have failed.
func countFailures(reports []*playtest.Report) int {
	return len(lists.Filter(reports, func(r *playtest.Report) bool { return !r.Passed() }))
}

// printReports prints the failed tests, and with all the passed ones too.
func printReports(w io.Writer, reports []*playtest.Report, all bool) {
	for _, report := range reports {
		switch {
		case !report.Passed():
			_, _ = fmt.Fprintf(w, "failed  %s: %s\n", report.Suite.Path, report.Test.Name)
			for _, failure := range report.Failures {
				_, _ = fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(failure.Text(report.Suite.Path), "\n", "\n  "))
			}
		case all:
			_, _ = fmt.Fprintf(w, "passed  %s: %s (%s of the test's clock)\n", report.Suite.Path, report.Test.Name, terminal.Duration(report.Clock))
		}
		for _, warning := range report.Warnings() {
			_, _ = fmt.Fprintf(w, "warning %s: %s: %s\n", report.Suite.Path, report.Test.Name, terminal.OneLine(warning))
		}
	}
}

func printCoverage(w io.Writer, c *playtest.Coverage) {
	_, _ = fmt.Fprintf(w, "%s: %.0f%% (%d of %d steps, policies and routes)\n", c.File, c.Percent(), c.CountCovered(), len(c.Parts))
	for _, part := range c.MissedParts() {
		_, _ = fmt.Fprintf(w, "  %s:%s: no test covers %s\n", c.File, part.Pos, part.What)
	}
}

// testDocument is a test in the output of `test --output json`.
type testDocument struct {
	File     string          `json:"file"`
	Line     int             `json:"line"`
	Name     string          `json:"name"`
	Passed   bool            `json:"passed"`
	Clock    float64         `json:"clock_seconds"` // of the test's clock
	Took     float64         `json:"took_seconds"`
	Failures []failureObject `json:"failures"`
	// Warnings are the warnings of a completed run; set if the test expects none.
	Warnings []string `json:"warnings,omitempty"`
}

// failureObject is an expectation of a test that was not met.
type failureObject struct {
	change
	Message string `json:"message"`
	Why     string `json:"why,omitempty"`
	Add     string `json:"add,omitempty"`
}

// coverageDocument is the coverage of one playbook.
type coverageDocument struct {
	File    string   `json:"file"`
	Percent float64  `json:"percent"`
	Covered int      `json:"covered"`
	Total   int      `json:"total"`
	Missed  []change `json:"missed"`
}

// testsOutput is the output of `test --output json`.
type testsOutput struct {
	Passed   int                `json:"passed"`
	Failed   int                `json:"failed"`
	Took     float64            `json:"took_seconds"`
	Tests    []testDocument     `json:"tests"`
	Coverage []coverageDocument `json:"coverage,omitempty"`
}

func testsDocument(reports []*playtest.Report, coverage []*playtest.Coverage, took time.Duration) testsOutput {
	failed := countFailures(reports)
	all := testsOutput{Passed: len(reports) - failed, Failed: failed, Took: took.Seconds(), Tests: []testDocument{}}
	for _, report := range reports {
		one := testDocument{
			File: report.Suite.Path, Line: report.Test.Pos.Line, Name: report.Test.Name, Passed: report.Passed(),
			Clock: report.Clock.Seconds(), Took: report.Took.Seconds(), Failures: []failureObject{}, Warnings: report.Warnings(),
		}
		for _, f := range report.Failures {
			one.Failures = append(one.Failures, failureObject{changeAt(f.Pos, f.What), f.Message, f.Why, f.Add})
		}
		all.Tests = append(all.Tests, one)
	}
	for _, c := range coverage {
		one := coverageDocument{File: c.File, Percent: c.Percent(), Covered: c.CountCovered(), Total: len(c.Parts), Missed: []change{}}
		for _, part := range c.MissedParts() {
			one.Missed = append(one.Missed, changeAt(part.Pos, part.What))
		}
		all.Coverage = append(all.Coverage, one)
	}
	return all
}

// watchEvery is how often files are checked for changes.
const watchEvery = 300 * time.Millisecond

// repeatOnChange calls do, and calls it again whenever a YAML file in the folders of the given files has changed,
// until it is interrupted. writes is set if do writes such files: its own changes are ignored.
func repeatOnChange(ctx context.Context, a *cli.App, files []string, writes bool, do func() error) error {
	before := ""
	for {
		if now := filesState(files); now != before {
			if err := do(); err != nil && !errors.Is(err, cli.ErrSaid) {
				a.Notef("starter: %v", err)
			}
			if before = now; writes {
				before = filesState(files)
			}
			a.Notef("waiting for changes; press Ctrl-C to stop")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.Interrupts.Graceful.Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

// filesState returns a text that changes whenever a file changes that tests may depend on: any YAML file in their
// folders.
func filesState(files []string) string {
	folders := []string{".", "playbooks"}
	if len(files) > 0 {
		folders = nil
	}
	for _, name := range files {
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			folders = append(folders, name)
		} else {
			folders = append(folders, filepath.Dir(name))
		}
	}
	slices.Sort(folders)
	var b strings.Builder
	for _, folder := range slices.Compact(folders) {
		found, _ := filepath.Glob(filepath.Join(folder, "*.y*ml")) // only a bad pattern is an error
		for _, name := range found {
			if info, err := os.Stat(name); err == nil {
				fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return b.String()
}
