package activities

import (
	"fmt"
	"time"

	"reprise/interpreter"
)

// notesKept is how long a note stays that nobody has deleted, such as the last
// of a call. A worker that is lost is replaced long before.
const notesKept = 7 * 24 * time.Hour

// ledgerEntry is what a write leaves in the ledger.
type ledgerEntry struct {
	operation   string // operation key, "" where none is noted
	fingerprint string // see interpreter.ToolInput
	note        *interpreter.Note
}

// needed reports whether the write leaves anything in the ledger.
func (e ledgerEntry) needed() bool { return e.operation != "" || e.note != nil }

// writtenBefore is what the ledger says of a write that it knows.
type writtenBefore struct {
	fingerprint string
	rows        int64
}

// check refuses to take another write to where for this one, which has so many
// rows.
func (e ledgerEntry) check(before writtenBefore, where string, rows int) error {
	if before.fingerprint == "" || e.fingerprint == "" || before.fingerprint == e.fingerprint {
		return nil
	}
	return &Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: "written_before", Final: true,
		Message: fmt.Sprintf("%s was given other rows before under the same operation key %s (%d then, %d now): "+
			"what is read has changed meanwhile, and nothing was written now; mode upsert of a table takes both",
			where, e.operation, before.rows, rows),
	}
}
