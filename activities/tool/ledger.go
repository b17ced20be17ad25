package tool

import (
	"fmt"
	"time"

	"reprise/interpreter"
)

// NoteRetention is how long a note stays in a ledger if nothing deletes it, such as the last note
// of a call. It is far longer than it takes to replace a lost worker.
const NoteRetention = 7 * 24 * time.Hour

// LedgerRecord is what a write records in the ledger.
type LedgerRecord struct {
	Operation   string // operation key, "" where none is noted
	Fingerprint string // see interpreter.ToolInput
	Note        *interpreter.LedgerEntry
}

// IsNeeded reports whether the write records anything in the ledger.
func (e LedgerRecord) IsNeeded() bool { return e.Operation != "" || e.Note != nil }

// WrittenBefore is the ledger's entry about an earlier write with the same key.
type WrittenBefore struct {
	Fingerprint string
	Rows        int64
}

// Check returns an error if the operation was written before with other rows.
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
