package load

import (
	"fmt"
	"slices"

	"reprise/internal/base/secrets"
	"reprise/internal/base/terminal"
	"reprise/internal/program/reference"
	"reprise/interpreter/credential"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/starter/cli"
)

// ProblemsError is the error for a playbook with errors.
type ProblemsError struct {
	Name     string
	Problems []Problem
	Total    int // of them, those that are not among problems included
}

func (e *ProblemsError) Error() string {
	return fmt.Sprintf("%s has %s; nothing was started", e.Name, terminal.Count(e.Total, "problem"))
}

// AddSecrets adds values of the workload to the masked ones if their names suggest secrets, such as api_key.
func AddSecrets(set *secrets.Masker, name string, value any) {
	switch of := value.(type) {
	case map[string]any:
		for _, key := range cli.SortedKeys(of) {
			AddSecrets(set, key, of[key])
		}
	case []any:
		for _, item := range of {
			AddSecrets(set, name, item)
		}
	case string:
		set.Add(credential.FindSecrets(of)...)
		if credential.IsMember(name, of) {
			set.Add(of)
		}
	}
}

// Problem is a problem in the output of `validate --output json` and of a refused run.
type Problem struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Severity string `json:"severity"` // error or warning
	Code     string `json:"code"`
	Message  string `json:"message"`
	Note     string `json:"note,omitempty"` // such as YAML to write instead
	Docs     string `json:"docs"`           // file and heading that explain the code
}

// AdviseExplain prints the command that explains the code of the first problem.
func AdviseExplain(streams cli.Streams, found source.Diagnostics) {
	if len(found) == 0 {
		return
	}
	code, program := found[0].Code, terminal.ProgramName()
	text := fmt.Sprintf("For more, run %s explain %s, or %s docs --open %s.", program, code, program, code)
	if slices.ContainsFunc(found, func(d source.Diagnostic) bool { return d.Code != code }) {
		text = fmt.Sprintf("For more about a code, run %s explain CODE, such as %s explain %s.", program, program, code)
	}
	streams.Advisef("%s", text)
}

// ProblemsOf returns the first problems of a file, playbook.MaxShown at most.
func ProblemsOf(found source.Diagnostics) []Problem {
	found, _ = found.FirstOf(playbook.MaxShown)
	return lists.Map(found, func(d source.Diagnostic) Problem {
		return Problem{
			File: d.File, Line: d.Pos.Line, Column: d.Pos.Column, Severity: SeverityName(d), Code: d.Code, Message: d.Message, Note: d.Note,
			Docs: reference.OfDiagnostic(d.Code),
		}
	})
}

// SeverityName returns the severity of a problem: "warning" or "error", which GitHub and SARIF also use.
func SeverityName(d source.Diagnostic) string {
	if d.Severity == source.Warning {
		return "warning"
	}
	return "error"
}
