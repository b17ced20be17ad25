package sqltool

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"reprise/activities/tool"
	"reprise/interpreter"
)

// The tables of a database's ledger: docs/concepts/written-once.md#repeated-writes.
const (
	// WritesTable holds the operation keys of mode insert.
	WritesTable = "reprise_writes"
	// NotesTable records how calls continue after their writes.
	NotesTable = "reprise_notes"
)

// sweepEvery is how often a worker searches for notes that are too old.
const sweepEvery = time.Hour

// LargestValue bounds the values that this build writes to a database itself, in bytes: a note
// is as large as a payload, and may be sent in hexadecimal.
func LargestValue(res tool.Resources) int64 {
	return 2 * (res.MaxResponseBytes + int64(res.MaxPayload))
}

// CheckWrittenBefore refuses an operation that was written before with other rows.
func (w *TableWrite) CheckWrittenBefore(before tool.WrittenBefore) error {
	return w.Check(before, fmt.Sprintf("table %q", w.Shown), len(w.Rows))
}

// RecountRows corrects how many rows the ledger has of a write.
func (w *TableWrite) RecountRows(ctx context.Context, tx StateTx, written int) error {
	if w.Operation == "" {
		return nil
	}
	_, err := tx.Exec(ctx, "UPDATE "+WritesTable+" SET rows_written = $2 WHERE operation_key = $1", w.Operation, int64(written))
	return err
}

// Sweeper decides when old notes of a ledger are deleted.
type Sweeper struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// IsDue reports whether old notes of the ledger with a name should be deleted now: an hour after its first write for
// the first time.
func (s *Sweeper) IsDue(name string) bool {
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

// LogSweep logs that old notes could not be deleted from a ledger. The preceding write is not
// affected.
func LogSweep(ctx context.Context, logger *slog.Logger, in interpreter.ToolInput, err error) {
	if err != nil {
		tool.Logger(ctx, logger, in).Warn("old entries of a ledger could not be deleted", "table", NotesTable, "error", err)
	}
}
