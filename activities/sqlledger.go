package activities

import (
	"fmt"
	"sync"
	"time"

	"reprise/interpreter"
)

// The tables of a database's ledger: section written once of docs/language.md.
const (
	// writesTable holds the operation keys of mode insert.
	writesTable = "reprise_writes"
	// notesTable holds how calls go on behind their writes.
	notesTable = "reprise_notes"
)

// notesKept is how long a note stays that nobody has deleted, such as the last
// of a call. A worker that is lost is replaced long before.
const notesKept = 7 * 24 * time.Hour

// sweepEvery is how often a worker looks for notes that are too old.
const sweepEvery = time.Hour

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

// check refuses to take another write for this one.
func (w *tableWrite) check(before writtenBefore) error {
	if before.fingerprint == "" || w.fingerprint == "" || before.fingerprint == w.fingerprint {
		return nil
	}

	return &Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: "written_before", Final: true,
		Message: fmt.Sprintf("table %q was given other rows before under the same operation key %s (%d then, %d now): "+
			"what is read has changed meanwhile, and nothing was written now; mode upsert with a key takes both",
			w.shown, w.operation, before.rows, len(w.rows)),
	}
}

// sweeper says when a ledger is due to be rid of old notes.
type sweeper struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// due reports whether it is time for the ledger of a name. The first time comes
// an hour after the first write.
func (s *sweeper) due(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.last == nil {
		s.last = map[string]time.Time{}
	}

	last, known := s.last[name]
	if known && time.Since(last) < sweepEvery {
		return false
	}

	s.last[name] = time.Now()

	return known
}

// writesTo reports whether a call writes to a table, and not with a statement.
func writesTo(in interpreter.ToolInput) bool {
	_, statement := in.Fields["statement"]
	_, table := in.Fields["table"]

	return table && !statement
}

// swept logs that a ledger was not rid of its old notes. The write before has
// been made, whatever comes of that.
func (res Resources) swept(in interpreter.ToolInput, err error) {
	if err != nil {
		res.Logger.Warn("old notes of a ledger could not be deleted", "step", in.Step, "table", notesTable, "error", err)
	}
}
