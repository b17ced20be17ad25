// Package mend corrects mistakes in a playbook that have exactly one certain correction: older forms, misspelt words,
// and others whose diagnostic carries a fix. It leaves comments and everything else unchanged.
package mend

import (
	"fmt"

	"reprise/interpreter/migrate"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// Result is a corrected file.
type Result struct {
	Text    []byte
	Changes []source.Change // places are in the text as it was by then
}

// Check returns the problems of a text.
type Check func(*source.File) source.Diagnostics

// rounds bounds how often a text is checked again, because a correction may reveal the next problem. Two corrections
// that undo each other would alternate endlessly.
const rounds = 10

// MendFile corrects a file.
func MendFile(file *source.File, check Check) Result {
	result := MendOlder(file)
	for range rounds {
		current := source.NewFile(file.Name, result.Text)
		edits := current.AllEdits(check(current))
		next := current.ApplyEdits(edits)
		if _, err := yamltree.Parse(next); err != nil || len(edits) == 0 {
			break
		}
		for _, e := range edits {
			result.Changes = append(result.Changes, source.Change{Pos: e.Of.Pos, What: fmt.Sprintf("%s instead of %s", e.New, e.Of.Fix.Old)})
		}
		result.Text = next
	}
	return result
}

// MendOlder rewrites the older forms in a file, as `starter migrate` does.
func MendOlder(file *source.File) Result {
	migration := migrate.MigrateFile(file)
	return Result{Text: migration.Text, Changes: migration.Changes}
}
