package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"reprise/activities"
	"reprise/internal/base/terminal"
	"reprise/internal/program/playtest"
	"reprise/internal/program/reference"
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
}

func newValidateCommand(a *app) *cobra.Command {
	var workload workloadFlags
	var output string
	var strict bool
	command := &cobra.Command{
		Use: "validate FILE...", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			values, err := workload.read()
			if err != nil {
				return err
			}
			return a.validate(files, values, output, strict)
		},
	}
	workload.add(command)
	outputFlag(command, &output)
	command.Flags().BoolVar(&strict, "strict", false, "count warnings as problems")
	return command
}

func (a *app) validate(files []string, workload map[string]any, output string, strict bool) error {
	limits, err := activities.LimitsFromEnv(os.LookupEnv)
	if err != nil {
		return usageError("%w", err)
	}
	result := validation{Valid: true, Problems: []problem{}}
	var all source.Diagnostics
	for _, name := range files {
		if playtest.IsTests(name) {
			found, err := a.validateTests(name, output)
			if err != nil {
				return err
			}
			result.Valid = result.Valid && !found.HasErrors()
			result.Problems = append(result.Problems, problems(found)...)
			all = append(all, found...)
			continue
		}
		checked, err := a.check(name, workload, limits)
		if err != nil {
			return err
		}
		bad := checked.found.HasErrors() || strict && len(checked.found) > 0
		result.Valid = result.Valid && !bad
		result.Problems = append(result.Problems, problems(checked.found)...)
		all = append(all, checked.found...)
		var states []playbook.KeptState
		if !bad {
			states = checked.book.KeptStates()
		}
		result.States = append(result.States, keptStates(checked.file.Name, states)...)
		if output == "json" {
			continue
		}
		_, _ = fmt.Fprint(a.Err, checked.file.FormatFirst(checked.found, playbook.MaxShown))
		if !bad {
			_, _ = fmt.Fprintf(a.Out, "%s: valid\n", name)
			for _, state := range states {
				_, _ = fmt.Fprintln(a.Out, describeState(state))
			}
		}
	}
	result.Total = len(all)
	if output == "json" {
		if err := terminal.PrintJSON(a.Out, result); err != nil {
			return err
		}
	} else if len(all) > 0 {
		a.notef("%s", tally(all))
		a.adviseExplain(all)
	}
	if !result.Valid {
		return withStatus(exitFailed, errSaid)
	}
	return nil
}

// validateTests checks a file of tests, and the playbook that it tests.
func (a *app) validateTests(name, output string) (source.Diagnostics, error) {
	suite, err := playtest.LoadFrom(name, a.files.read)
	var invalid *playtest.InvalidError
	switch {
	case errors.As(err, &invalid):
		if output != "json" {
			_, _ = fmt.Fprint(a.Err, invalid.File.FormatFirst(invalid.Found, playbook.MaxShown))
		}
		return invalid.Found, nil
	case err != nil:
		return nil, usageError("%w", err)
	case output != "json":
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
	a.notef("%s", terminal.PaperOf(a.Err).Paint(terminal.Quiet, text))
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
	list := make([]problem, len(found))
	for i, d := range found {
		severity := "error"
		if d.Severity == source.Warning {
			severity = "warning"
		}
		list[i] = problem{
			File: d.File, Line: d.Pos.Line, Column: d.Pos.Column, Severity: severity, Code: d.Code, Message: d.Message, Note: d.Note,
			Docs: reference.OfDiagnostic(d.Code),
		}
	}
	return list
}
