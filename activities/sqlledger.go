package activities

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"reprise/activities/tool"
	"reprise/interpreter"
)

// The tables of a database's ledger: section written once of docs/language.md.
const (
	// writesTable holds the operation keys of mode insert.
	writesTable = "reprise_writes"
	// notesTable holds how calls go on behind their writes.
	notesTable = "reprise_notes"
)

// sweepEvery is how often a worker looks for notes that are too old.
const sweepEvery = time.Hour

// largestOwnValue bounds a value of what this build itself writes to a database
// and reads there, in bytes: notes of how calls go on are as large as a payload,
// and may be sent as hexadecimal text.
func largestOwnValue(res tool.Resources) int64 {
	return 2 * (res.MaxResponseBytes + int64(res.MaxPayload))
}

func (w *tableWrite) check(before tool.WrittenBefore) error {
	return w.LedgerEntry.Check(before, fmt.Sprintf("table %q", w.shown), len(w.rows))
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
func swept(ctx context.Context, logger *slog.Logger, in interpreter.ToolInput, err error) {
	if err != nil {
		tool.Logger(ctx, logger, in).Warn("old notes of a ledger could not be deleted", "table", notesTable, "error", err)
	}
}
