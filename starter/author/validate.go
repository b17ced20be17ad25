// Package author has the commands that help to write playbooks.
package author

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/cost"
	"reprise/internal/program/mend"
	"reprise/internal/program/playtest"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/starter/cli"
	"reprise/starter/load"
	"reprise/starter/wording"
)

// validation is the JSON output of `validate`.
type validation struct {
	Valid    bool           `json:"valid"`
	Total    int            `json:"total"`    // of problems, warnings included
	Problems []load.Problem `json:"problems"` // of each file at most playbook.MaxShown
	// States are the states that steps of valid files keep between runs.
	States []keptState `json:"states,omitempty"`
	// Costs are the estimates of --cost for the valid files.
	Costs []forecast `json:"costs,omitempty"`
	// Fixed are the files that --fix rewrote.
	Fixed []fixedFile `json:"fixed,omitempty"`
}

// ValidateOptions are the flags of validate.
type ValidateOptions struct {
	values     load.WorkloadFlags
	Workload   map[string]any
	Output     string
	Strict     bool
	fix, watch bool
	cost       string
	assumed    *cost.Assumption // as --cost says, nil without it
}

// forPeople reports whether the output is for people.
func (o *ValidateOptions) forPeople() bool { return o.Output == "table" }

// NewValidateCommand returns the command validate.
func NewValidateCommand(a *cli.App) *cobra.Command {
	o := &ValidateOptions{}
	command := &cobra.Command{
		Use: "validate FILE...", Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, files []string) error {
			stdin := slices.Contains(files, "-")
			switch {
			case o.watch && (stdin || !o.forPeople()):
				return cli.UsageError("--watch needs files, and no --output")
			case o.fix && stdin && (len(files) > 1 || !o.forPeople()):
				return cli.UsageError("--fix with standard input takes no other file and no --output")
			}
			var err error
			if o.assumed, err = parseCost(o.cost); err != nil {
				return err
			}
			if o.Workload, err = o.values.Read(); err != nil {
				return err
			}
			if o.watch {
				return repeatOnChange(command.Context(), a, files, o.fix, func() error { return FixAndValidate(a, files, o) })
			}
			return FixAndValidate(a, files, o)
		},
	}
	o.values.AddFlags(command)
	flags := command.Flags()
	cli.OutputFlagOf(command, &o.Output, "", "table", "json", outputGitHub, outputSARIF)
	flags.BoolVar(&o.Strict, "strict", false, "count warnings as problems")
	flags.StringVar(&o.cost, "cost", "", "estimate what a run costs on Temporal Cloud: `N` elements of each loop, or elements=N,pages=N,attempts=N")
	flags.BoolVar(&o.fix, "fix", false, "correct problems that have only one solution, in place")
	flags.BoolVar(&o.watch, "watch", false, "check again whenever a file changes")
	return command
}

// FixAndValidate fixes files if --fix was given, and prints their problems.
func FixAndValidate(a *cli.App, files []string, o *ValidateOptions) error {
	limits, err := load.AssumedLimits()
	if err != nil {
		return err
	}
	v := &validator{app: a, options: o, limits: limits, files: map[string]*source.File{}, result: validation{Valid: true, Problems: []load.Problem{}}}
	for _, name := range files {
		if err := v.validateFile(name); err != nil {
			return err
		}
	}
	return v.printReport()
}

// validator validates the files of one command.
type validator struct {
	app     *cli.App
	options *ValidateOptions
	limits  playbook.Limits
	all     source.Diagnostics
	files   map[string]*source.File
	result  validation
}

// validateFile validates a file, after fixing it if that was requested.
func (v *validator) validateFile(name string) error {
	data, err := load.ReadPlaybook(v.app, name)
	if err != nil {
		return err
	}
	if v.options.fix {
		if data, err = v.fixFile(name, data); err != nil {
			return err
		}
	}
	if playtest.IsTests(name) {
		found, err := validateTests(v.app, name, v.options.forPeople())
		if err != nil {
			return err
		}
		v.addProblems(found, found.HasErrors())
		return nil
	}
	shown := name
	if name == "-" {
		shown = "stdin"
	}
	checked := load.CheckFile(v.app, source.NewFile(shown, data), v.options.Workload, v.limits)
	v.files[shown] = checked.File
	bad := checked.Found.HasErrors() || v.options.Strict && len(checked.Found) > 0
	v.addProblems(checked.Found, bad)
	var states []playbook.KeptState
	if !bad {
		states = checked.Book.KeptStates()
	}
	v.result.States = append(v.result.States, keptStates(shown, states)...)
	if !v.options.forPeople() {
		if !bad {
			v.foretell(shown, checked.Book)
		}
		return nil
	}
	_, _ = fmt.Fprint(v.app.Err, checked.File.FormatFirst(checked.Found, playbook.MaxShown))
	printed := v.options.fix && name == "-" // the mended file itself
	if !bad && !printed {
		_, _ = fmt.Fprintf(v.app.Out, "%s: valid\n", name)
		for _, state := range states {
			_, _ = fmt.Fprintf(v.app.Out, "%s: the watermark is stored %s\n", state.Step, wording.DescribeState(state))
		}
		v.foretell(shown, checked.Book)
	}
	return nil
}

func (v *validator) addProblems(found source.Diagnostics, bad bool) {
	v.result.Valid = v.result.Valid && !bad
	v.result.Problems = append(v.result.Problems, load.ProblemsOf(found)...)
	v.all = append(v.all, found...)
}

// printReport prints the problems of all files.
func (v *validator) printReport() error {
	v.result.Total = len(v.all)
	err := error(nil)
	switch v.options.Output {
	case "json":
		err = terminal.PrintJSON(v.app.Out, v.result)
	case outputGitHub:
		err = writeGitHub(v.app.Out, v.all)
	case outputSARIF:
		err = writeSARIF(v.app.Out, v.all, v.files)
	default:
		if len(v.all) > 0 {
			v.app.Notef("%s", tallyText(v.all))
			load.AdviseExplain(v.app.Streams, v.all)
		}
	}
	if err == nil && !v.result.Valid {
		return cli.WithStatus(exitcode.Failed, cli.ErrSaid)
	}
	return err
}

// validateTests checks a test file and the playbook that it tests.
func validateTests(a *cli.App, name string, show bool) (source.Diagnostics, error) {
	suite, err := playtest.LoadFrom(name, a.Files.Read)
	var invalid *playtest.InvalidError
	switch {
	case errors.As(err, &invalid):
		if show {
			_, _ = fmt.Fprint(a.Err, invalid.File.FormatFirst(invalid.Found, playbook.MaxShown))
		}
		return invalid.Found, nil
	case err != nil:
		return nil, cli.UsageError("%w", err)
	case show:
		_, _ = fmt.Fprintf(a.Out, "%s: valid, %s\n", name, terminal.Count(len(suite.Tests.Tests), "test"))
	}
	return nil, nil
}

// tallyText returns the number of errors and, separately, of warnings.
func tallyText(found source.Diagnostics) string {
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

// fixedFile is a file that `validate --fix` rewrote, in the JSON output.
type fixedFile struct {
	File    string   `json:"file"`
	Changes []change `json:"changes"`
}

// fixFile fixes a file in place and returns its new content. Standard input is printed instead, whether it was fixed
// or not.
func (v *validator) fixFile(name string, data []byte) ([]byte, error) {
	result := v.mendFile(name, data)
	changes := make([]change, len(result.Changes))
	for i, c := range result.Changes {
		changes[i] = changeAt(c.Pos, c.What)
		v.app.Notef("%s:%s: fixed: %s", name, c.Pos, c.What)
	}
	switch {
	case name == "-":
		return result.Text, v.app.Screen.WriteVerbatim(result.Text)
	case len(changes) == 0:
		return data, nil
	}
	if err := cli.OverwriteFile(name, result.Text); err != nil {
		return nil, err
	}
	v.app.Notef("%s: %s written", name, terminal.Count(len(changes), "change"))
	v.result.Fixed = append(v.result.Fixed, fixedFile{File: name, Changes: changes})
	return result.Text, nil
}

// mendFile fixes the text of a playbook or a test file.
func (v *validator) mendFile(name string, data []byte) mend.Result {
	file := source.NewFile(name, data)
	if playtest.IsTests(name) {
		return mend.MendFile(file, func(file *source.File) source.Diagnostics {
			_, found := playbook.DecodeTests(file)
			return found
		})
	}
	return mend.MendFile(file, func(file *source.File) source.Diagnostics {
		return load.CheckFile(v.app, file, v.options.Workload, v.limits).Found
	})
}
