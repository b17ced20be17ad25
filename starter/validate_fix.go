package main

import (
	"reprise/internal/base/terminal"
	"reprise/internal/program/mend"
	"reprise/internal/program/playtest"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

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
		changes[i] = change{Line: c.Pos.Line, Column: c.Pos.Column, What: c.What}
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
