package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
)

// ledger is the ledger of a database, in one transaction.
type ledger struct{ conn *guardedConn }

// enterWrite notes a write. done is true where it was made before.
func (l *ledger) enterWrite(ctx context.Context, w *sqltool.TableWrite) (result interpreter.ToolResult, done bool, err error) {
	if w.Note != nil {
		noted, err := l.insertNote(ctx, w.Note)
		if noted != nil || err != nil {
			return interpreter.ToolResult{Noted: noted}, true, err
		}
	}
	if w.Operation == "" {
		return interpreter.ToolResult{}, false, nil
	}
	before, err := l.noteKey(ctx, w)
	if before == nil || err != nil {
		return interpreter.ToolResult{}, false, err
	}
	if err := w.CheckWrittenBefore(*before); err != nil {
		return interpreter.ToolResult{}, false, err
	}
	return w.EarlierWriteResult(before.Rows), true, nil
}

// Tables of the ledger.
var (
	writesTable = sqltool.NewTable{Name: sqltool.WritesTable, Create: []string{
		"CREATE TABLE IF NOT EXISTS " + sqltool.WritesTable + " (operation_key TEXT PRIMARY KEY, " +
			"written_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, fingerprint TEXT, rows_written INTEGER)",
	}}
	notesTable = sqltool.NewTable{Name: sqltool.NotesTable, Create: []string{
		"CREATE TABLE IF NOT EXISTS " + sqltool.NotesTable + " (call_key TEXT NOT NULL, " +
			"written INTEGER NOT NULL, continuation BLOB NOT NULL, noted_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, " +
			"PRIMARY KEY (call_key, written))",
	}}
)

// noteKey records the operation key, or returns what was recorded with it before.
func (l *ledger) noteKey(ctx context.Context, w *sqltool.TableWrite) (*tool.WrittenBefore, error) {
	n, err := l.execOnTable(ctx, writesTable, "INSERT INTO "+sqltool.WritesTable+
		" (operation_key, fingerprint, rows_written) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
		w.Operation, w.Fingerprint, len(w.Rows))
	if n > 0 || err != nil {
		return nil, err
	}
	before := &tool.WrittenBefore{}
	return before, l.conn.queryRow(ctx, "SELECT coalesce(fingerprint, ''), coalesce(rows_written, 0) FROM "+sqltool.WritesTable+
		" WHERE operation_key = ?", []any{w.Operation}, &before.Fingerprint, &before.Rows)
}

// execOnTable runs a statement on a table of the ledger, and creates a missing table first. A
// failed statement leaves SQLite's transaction unchanged.
func (l *ledger) execOnTable(ctx context.Context, table sqltool.NewTable, statement string, args ...any) (affected int64, err error) {
	affected, err = l.conn.execStatement(withoutCancel(ctx), statement, args...)
	if !lacksTable(err) {
		return affected, err
	}
	if err := createTables(ctx, l.conn, table); err != nil {
		return 0, err
	}
	return l.conn.execStatement(ctx, statement, args...)
}

// insertNote records how a call continues, or returns what was recorded before.
func (l *ledger) insertNote(ctx context.Context, note *interpreter.LedgerEntry) (noted []byte, err error) {
	if note.Forget > 0 {
		if _, err := l.execOnTable(ctx, notesTable, "DELETE FROM "+sqltool.NotesTable+" WHERE call_key = ? AND written <= ?",
			note.Call, note.Forget); err != nil {
			return nil, err
		}
	}
	n, err := l.execOnTable(ctx, notesTable, "INSERT INTO "+sqltool.NotesTable+
		" (call_key, written, continuation) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", note.Call, note.Written, note.Continuation)
	if n > 0 || err != nil {
		return nil, err
	}
	err = l.conn.queryRow(ctx, "SELECT continuation FROM "+sqltool.NotesTable+" WHERE call_key = ? AND written = ?",
		[]any{note.Call, note.Written}, &noted)
	if noted == nil {
		noted = []byte{} // forgotten, and noted all the same
	}
	return noted, err
}

// sweepNotes deletes notes that are too old to be needed.
func (f *database) sweepNotes(ctx context.Context) error {
	return f.useConnection(ctx, true, func(conn *guardedConn) error {
		_, err := conn.execStatement(ctx, "DELETE FROM "+sqltool.NotesTable+" WHERE noted_at < datetime('now', ?)",
			fmt.Sprintf("-%d seconds", int(tool.NoteRetention.Seconds())))
		return err
	})
}

// RecallNotes returns the notes of a call. A missing file has none, and is not created.
func (t *Tool) RecallNotes(ctx context.Context, in interpreter.ToolInput) (notes []interpreter.LedgerEntry, err error) {
	path, err := t.filePath(ctx, in)
	if err != nil || !fileExists(path) {
		return nil, err
	}
	err = t.databaseAt(path).useConnection(ctx, false, func(conn *guardedConn) error {
		notes, err = recallNotes(ctx, conn, in.Note)
		return err
	})
	if lacksTable(err) {
		return nil, nil
	}
	return notes, classifyError(ctx, err)
}

func recallNotes(ctx context.Context, conn *guardedConn, after *interpreter.LedgerEntry) (notes []interpreter.LedgerEntry, err error) {
	err = conn.queryRows(ctx, "SELECT written, continuation FROM "+sqltool.NotesTable+" WHERE call_key = ? AND written > ? ORDER BY written",
		[]any{after.Call, after.Written}, func(scan func(...any) error) error {
			note := interpreter.LedgerEntry{Call: after.Call}
			err := scan(&note.Written, &note.Continuation)
			notes = append(notes, note)
			return err
		})
	return notes, err
}

// ForgetNotes drops the notes of calls.
func (t *Tool) ForgetNotes(ctx context.Context, in interpreter.ToolInput, calls []string, again bool) error {
	path, err := t.filePath(ctx, in)
	if err != nil || !fileExists(path) {
		return err
	}
	err = t.databaseAt(path).forgetCalls(ctx, calls, again)
	if lacksTable(err) {
		return nil
	}
	return classifyError(ctx, err)
}

// forgetting gathers calls whose notes are to be deleted.
type forgetting struct {
	mu   sync.Mutex
	next map[bool]*forgottenCalls // by whether they are made again; nil for none
}

// forgottenCalls are calls whose notes are dropped in one transaction.
type forgottenCalls struct {
	calls []string
	done  chan struct{}
	err   error // once done is closed
}

// joinNext adds calls to the next deletion. The caller that adds the first of them deletes for
// all.
func (f *forgetting) joinNext(calls []string, again bool) (all *forgottenCalls, leads bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if all = f.next[again]; all == nil {
		all, leads = &forgottenCalls{done: make(chan struct{})}, true
		if f.next == nil {
			f.next = map[bool]*forgottenCalls{}
		}
		f.next[again] = all
	}
	all.calls = append(all.calls, calls...)
	return all, leads
}

// closeSet closes the set of calls whose notes are being dropped: calls that end from now on join
// the next set.
func (f *forgetting) closeSet(again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.next, again)
}

// forgetCalls deletes the notes of calls, together with those of other calls that end while the file is
// being written.
func (f *database) forgetCalls(ctx context.Context, calls []string, again bool) error {
	all, leads := f.forgetting.joinNext(calls, again)
	if !leads {
		select {
		case <-all.done:
			return all.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer close(all.done)
	begin := sync.OnceFunc(func() { f.forgetting.closeSet(again) })
	all.err = f.useConnection(ctx, true, func(conn *guardedConn) error {
		begin()
		return conn.withoutSync(ctx, func() error { return forgetNotes(ctx, conn, all.calls, again) })
	})
	begin() // where the file could not be used
	return all.err
}

func forgetNotes(ctx context.Context, conn *guardedConn, calls []string, again bool) error {
	keys, err := json.Marshal(calls)
	if err != nil {
		return err
	}
	statement := "DELETE FROM " + sqltool.NotesTable + " WHERE call_key IN (SELECT value FROM json_each(?))"
	if again {
		statement = "UPDATE " + sqltool.NotesTable + " SET continuation = x'' WHERE call_key IN (SELECT value FROM json_each(?))"
	}
	_, err = conn.execStatement(ctx, statement, string(keys))
	return err
}
