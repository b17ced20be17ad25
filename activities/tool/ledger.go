package tool

import (
	"fmt"
	"time"

	"reprise/interpreter"
)

// NotesKept is how long a note stays that nobody has deleted, such as the last
// of a call. A worker that is lost is replaced long before.
const NotesKept = 7 * 24 * time.Hour

// LedgerRecord is what a write leaves in the ledger.
type LedgerRecord struct {
	Operation   string // operation key, "" where none is noted
	Fingerprint string // see interpreter.ToolInput
	Note        *interpreter.LedgerEntry
}

// Needed reports whether the write leaves anything in the ledger.
func (e LedgerRecord) Needed() bool { return e.Operation != "" || e.Note != nil }

// WrittenBefore is what the ledger says of a write that it knows.
type WrittenBefore struct {
	Fingerprint string
	Rows        int64
}

// Check refuses to take another write to where for this one, which has so many
// rows.
func (e LedgerRecord) Check(before WrittenBefore, where string, rows int) error {
	if before.Fingerprint == "" || e.Fingerprint == "" || before.Fingerprint == e.Fingerprint {
		return nil
	}
	return &Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: "written_before", Final: true,
		Message: fmt.Sprintf("%s was given other rows before with the same operation key %s (%d then, %d now): "+
			"the source has changed meanwhile, so nothing was written; to write both, use a table with mode upsert",
			where, e.Operation, before.Rows, rows),
	}
}
