package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/program/mend"
	"reprise/internal/program/playtest"
	"reprise/internal/program/reference"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// problem is one entry of `validate --output json` and of a run that was
// refused.
type problem struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Severity string `json:"severity"` // error or warning
	Code     string `json:"code"`
	Message  string `json:"message"`
	Note     string `json:"note,omitempty"` // such as YAML to write instead
	Docs     string `json:"docs"`           // file and heading that explain the code
}

// validation is the output of `validate --output json`.
type validation struct {
	Valid    bool      `json:"valid"`
	Total    int       `json:"total"`    // of problems, warnings included
	Problems []problem `json:"problems"` // of each file at most playbook.MaxShown
	// States are what steps of valid files keep between runs.
	States []keptState `json:"states,omitempty"`
	// Fixed are the files that --fix has rewritten.
	Fixed []fixed `json:"fixed,omitempty"`
}

// validateOptions is the command line of validate.
type validateOptions struct {
	values     workloadFlags
	workload   map[string]any
	output     string
	strict     bool
	fix, watch bool
}

// people reports whether people read what is printed.
func (o *validateOptions) people() bool { return o.output == "table" }

func newValidateCommand(a *app) *cobra.Command {
	o := &validateOptions{}
	command := &cobra.Command{
		Use: "validate FILE...", Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, files []string) error {
			stdin := slices.Contains(files, "-")
			switch {
			case o.watch && (stdin || !o.people()):
				return usageError("--watch needs files, and no --output")
			case o.fix && stdin && (len(files) > 1 || !o.people()):
				return usageError("--fix with standard input takes no other file and no --output")
			}
			var err error
			if o.workload, err = o.values.read(); err != nil {
				return err
			}
			if o.watch {
				return a.again(command.Context(), files, o.fix, func() error { return a.fixAndValidate(files, o) })
			}
			return a.fixAndValidate(files, o)
		},
	}
	o.values.add(command)
	flags := command.Flags()
	outputFlagOf(command, &o.output, "", "table", "json", outputGitHub, outputSARIF)
	flags.BoolVar(&o.strict, "strict", false, "count warnings as problems")
	flags.BoolVar(&o.fix, "fix", false, "rewrite problems that have one certain fix, in place")
	flags.BoolVar(&o.watch, "watch", false, "check again whenever a file changes")
	return command
}

func (a *app) fixAndValidate(files []string, o *validateOptions) error {
	limits, err := assumedLimits()
	if err != nil {
		return err
	}
	v := &validator{app: a, options: o, limits: limits, files: map[string]*source.File{}, result: validation{Valid: true, Problems: []problem{}}}
	for _, name := range files {
		if err := v.validate(name); err != nil {
			return err
		}
	}
	return v.report()
}

// validator checks files for one command.
type validator struct {
	app     *app
	options *validateOptions
	limits  playbook.Limits
	all     source.Diagnostics
	files   map[string]*source.File
	result  validation
}

// validate checks one file, after it was mended where that is wanted.
func (v *validator) validate(name string) error {
	data, err := v.app.readPlaybook(name)
	if err != nil {
		return err
	}
	if v.options.fix {
		if data, err = v.fix(name, data); err != nil {
			return err
		}
	}
	if playtest.IsTests(name) {
		found, err := v.app.validateTests(name, v.options.people())
		if err != nil {
			return err
		}
		v.add(found, found.HasErrors())
		return nil
	}
	shown := name
	if name == "-" {
		shown = "stdin"
	}
	checked := v.app.checkFile(source.NewFile(shown, data), v.options.workload, v.limits)
	v.files[shown] = checked.file
	bad := checked.found.HasErrors() || v.options.strict && len(checked.found) > 0
	v.add(checked.found, bad)
	var states []playbook.KeptState
	if !bad {
		states = checked.book.KeptStates()
	}
	v.result.States = append(v.result.States, keptStates(shown, states)...)
	if !v.options.people() {
		return nil
	}
	_, _ = fmt.Fprint(v.app.Err, checked.file.FormatFirst(checked.found, playbook.MaxShown))
	printed := v.options.fix && name == "-" // the mended file itself
	if !bad && !printed {
		_, _ = fmt.Fprintf(v.app.Out, "%s: valid\n", name)
		for _, state := range states {
			_, _ = fmt.Fprintf(v.app.Out, "%s: the watermark is stored %s\n", state.Step, describeState(state))
		}
	}
	return nil
}

func (v *validator) add(found source.Diagnostics, bad bool) {
	v.result.Valid = v.result.Valid && !bad
	v.result.Problems = append(v.result.Problems, problems(found)...)
	v.all = append(v.all, found...)
}

// report prints what was found in all files.
func (v *validator) report() error {
	v.result.Total = len(v.all)
	err := error(nil)
	switch v.options.output {
	case "json":
		err = terminal.PrintJSON(v.app.Out, v.result)
	case outputGitHub:
		err = writeGitHub(v.app.Out, v.all)
	case outputSARIF:
		err = writeSARIF(v.app.Out, v.all, v.files)
	default:
		if len(v.all) > 0 {
			v.app.notef("%s", tally(v.all))
			v.app.adviseExplain(v.all)
		}
	}
	if err == nil && !v.result.Valid {
		return withStatus(exitFailed, errSaid)
	}
	return err
}

// validateTests checks a file of tests, and the playbook that it tests.
func (a *app) validateTests(name string, show bool) (source.Diagnostics, error) {
	suite, err := playtest.LoadFrom(name, a.files.read)
	var invalid *playtest.InvalidError
	switch {
	case errors.As(err, &invalid):
		if show {
			_, _ = fmt.Fprint(a.Err, invalid.File.FormatFirst(invalid.Found, playbook.MaxShown))
		}
		return invalid.Found, nil
	case err != nil:
		return nil, usageError("%w", err)
	case show:
		_, _ = fmt.Fprintf(a.Out, "%s: valid, %s\n", name, terminal.Count(len(suite.Tests.Tests), "test"))
	}
	return nil, nil
}

// adviseExplain says where the codes of problems are explained.
func (a *app) adviseExplain(found source.Diagnostics) {
	if len(found) == 0 {
		return
	}
	code, program := found[0].Code, terminal.Program()
	text := fmt.Sprintf("For more, run %s explain %s, or %s docs --open %s.", program, code, program, code)
	if slices.ContainsFunc(found, func(d source.Diagnostic) bool { return d.Code != code }) {
		text = fmt.Sprintf("For more about a code, run %s explain CODE, such as %s explain %s.", program, program, code)
	}
	a.advisef("%s", text)
}

// tally counts problems, and warnings apart.
func tally(found source.Diagnostics) string {
	warnings := len(found.Warnings())
	switch errs := len(found) - warnings; {
	case warnings == 0:
		return terminal.Count(errs, "problem")
	case errs == 0:
		return terminal.Count(warnings, "warning")
	default:
		return terminal.Count(errs, "problem") + ", " + terminal.Count(warnings, "warning")
	}
}

// problems are those of a file that are printed.
func problems(found source.Diagnostics) []problem {
	found, _ = found.First(playbook.MaxShown)
	return lists.Map(found, func(d source.Diagnostic) problem {
		return problem{
			File: d.File, Line: d.Pos.Line, Column: d.Pos.Column, Severity: severity(d), Code: d.Code, Message: d.Message, Note: d.Note,
			Docs: reference.OfDiagnostic(d.Code),
		}
	})
}

// severity is that of a problem in words, which GitHub and SARIF have too.
func severity(d source.Diagnostic) string {
	if d.Severity == source.Warning {
		return "warning"
	}
	return "error"
}

// fixed is a file that `validate --fix` has rewritten, in `--output json`.
type fixed struct {
	File    string   `json:"file"`
	Changes []change `json:"changes"`
}

// fix mends a file in place, and returns what is in it then. What comes from standard input is
// printed, mended or not.
func (v *validator) fix(name string, data []byte) ([]byte, error) {
	result := v.mend(name, data)
	changes := make([]change, len(result.Changes))
	for i, c := range result.Changes {
		changes[i] = changeAt(c.Pos, c.What)
		v.app.notef("%s:%s: fixed: %s", name, c.Pos, c.What)
	}
	switch {
	case name == "-":
		return result.Text, v.app.out.Verbatim(result.Text)
	case len(changes) == 0:
		return data, nil
	}
	if err := overwrite(name, result.Text); err != nil {
		return nil, err
	}
	v.app.notef("%s: %s written", name, terminal.Count(len(changes), "change"))
	v.result.Fixed = append(v.result.Fixed, fixed{File: name, Changes: changes})
	return result.Text, nil
}

// mend mends a playbook, or a file of tests.
func (v *validator) mend(name string, data []byte) mend.Result {
	file := source.NewFile(name, data)
	if playtest.IsTests(name) {
		return mend.File(file, func(file *source.File) source.Diagnostics {
			_, found := playbook.DecodeTests(file)
			return found
		})
	}
	return mend.File(file, func(file *source.File) source.Diagnostics {
		return v.app.checkFile(file, v.options.workload, v.limits).found
	})
}

// keptState is one of the states of `validate --output json`.
type keptState struct {
	File    string `json:"file"`
	Step    string `json:"step"`
	State   string `json:"state"`   // its name; a loop's element is <element>
	KeptBy  string `json:"kept_by"` // postgres, sqlite, or temporal
	Promise string `json:"promise"` // of the rows in the sink that the state is kept with
}

// The promises of keptState.
const (
	exactlyOnce = "exactly_once"
	atLeastOnce = "at_least_once"
)

func keptStates(file string, states []playbook.KeptState) []keptState {
	var all []keptState
	for _, state := range states {
		one := keptState{File: file, Step: state.Step, State: state.Name, KeptBy: cmp.Or(state.Tool, "temporal"), Promise: atLeastOnce}
		if state.Home != nil && state.Unkeyed == nil {
			one.Promise = exactlyOnce
		}
		all = append(all, one)
	}
	return all
}

// databases are what tools that keep states are called.
var databases = map[string]string{"postgres": "PostgreSQL", "sqlite": "SQLite"}

// describeState says where the watermark of a state is stored, and how often rows are written.
func describeState(state playbook.KeptState) string {
	if state.Home == nil {
		if state.Sinks == 0 {
			return "by Temporal, and moves when the run has completed (at least once)"
		}
		return "by Temporal, after the rows (at least once)"
	}
	text := "in " + databases[state.Tool] + ", in the same transaction as the rows "
	switch {
	case state.Unkeyed != nil:
		return text + "(no row is lost; without a key, equal rows are counted)"
	case state.Sinks > 1:
		return text + "(exactly once; at least once in other sinks)"
	}
	return text + "(exactly once)"
}
