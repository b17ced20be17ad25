package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
)

// ledger is the ledger of a database, in one transaction.
type ledger struct{ tx *sql.Tx }

// enter notes a write. done is true where it was made before.
func (l *ledger) enter(ctx context.Context, w *sqltool.Write) (result interpreter.ToolResult, done bool, err error) {
	if w.Note != nil {
		noted, err := l.insertNote(ctx, w.Note)
		if noted != nil || err != nil {
			return interpreter.ToolResult{Noted: noted}, true, err
		}
	}
	if w.Operation == "" {
		return interpreter.ToolResult{}, false, nil
	}
	before, err := l.key(ctx, w)
	if before == nil || err != nil {
		return interpreter.ToolResult{}, false, err
	}
	if err := w.Check(*before); err != nil {
		return interpreter.ToolResult{}, false, err
	}
	return sqltool.RowsAffected(before.Rows), true, nil
}

// key notes the operation key, or gives what it was noted with before.
func (l *ledger) key(ctx context.Context, w *sqltool.Write) (*tool.WrittenBefore, error) {
	result, err := l.exec(ctx, l.createWrites, "INSERT INTO "+sqltool.WritesTable+
		" (operation_key, fingerprint, rows_written) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
		w.Operation, w.Fingerprint, len(w.Rows))
	if err != nil {
		return nil, err
	}
	if n, err := result.RowsAffected(); n > 0 || err != nil {
		return nil, err
	}
	before := &tool.WrittenBefore{}
	row := l.tx.QueryRowContext(ctx, "SELECT coalesce(fingerprint, ''), coalesce(rows_written, 0) FROM "+sqltool.WritesTable+
		" WHERE operation_key = ?", w.Operation)
	return before, row.Scan(&before.Fingerprint, &before.Rows)
}

// exec runs a statement on a table of the ledger, which is made first where it
// is not there. A statement that fails leaves SQLite's transaction as it was.
func (l *ledger) exec(ctx context.Context, create func(context.Context) error, statement string, args ...any) (sql.Result, error) {
	result, err := l.tx.ExecContext(ctx, statement, args...)
	if err == nil || !strings.Contains(err.Error(), "no such table") {
		return result, err
	}
	if err := create(ctx); err != nil {
		return nil, err
	}
	return l.tx.ExecContext(ctx, statement, args...)
}

func (l *ledger) createWrites(ctx context.Context) error {
	_, err := l.tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+sqltool.WritesTable+" (operation_key TEXT PRIMARY KEY, "+
		"written_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, fingerprint TEXT, rows_written INTEGER)")
	return err
}

// insertNote notes how a call continues, or gives what was noted before.
func (l *ledger) insertNote(ctx context.Context, note *interpreter.Note) (noted []byte, err error) {
	if note.Forget > 0 {
		if _, err := l.exec(ctx, l.createNotes, "DELETE FROM "+sqltool.NotesTable+" WHERE call_key = ? AND written <= ?",
			note.Call, note.Forget); err != nil {
			return nil, err
		}
	}
	result, err := l.exec(ctx, l.createNotes, "INSERT INTO "+sqltool.NotesTable+
		" (call_key, written, continuation) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", note.Call, note.Written, note.Continuation)
	if err != nil {
		return nil, err
	}
	if n, err := result.RowsAffected(); n > 0 || err != nil {
		return nil, err
	}
	row := l.tx.QueryRowContext(ctx, "SELECT continuation FROM "+sqltool.NotesTable+" WHERE call_key = ? AND written = ?",
		note.Call, note.Written)
	err = row.Scan(&noted)
	if noted == nil {
		noted = []byte{} // forgotten, and noted all the same
	}
	return noted, err
}

func (l *ledger) createNotes(ctx context.Context) error {
	_, err := l.tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+sqltool.NotesTable+" (call_key TEXT NOT NULL, "+
		"written INTEGER NOT NULL, continuation BLOB NOT NULL, noted_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, "+
		"PRIMARY KEY (call_key, written))")
	return err
}

// sweep deletes notes that are too old to be needed.
func (f *database) sweep(ctx context.Context) error {
	return f.use(ctx, true, func(conn *guardedConn) error {
		_, err := conn.ExecContext(ctx, "DELETE FROM "+sqltool.NotesTable+" WHERE noted_at < datetime('now', ?)",
			fmt.Sprintf("-%d seconds", int(tool.NotesKept.Seconds())))
		return err
	})
}

// Notes reports whether a write is noted: one to a table is.
func (t *Tool) Notes(in interpreter.ToolInput) bool { return sqltool.IsTableWrite(in) }

// Recall gives the notes of a call.
func (t *Tool) Recall(ctx context.Context, in interpreter.ToolInput) ([]interpreter.Note, error) {
	path, err := t.path(ctx, in)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, nil // and asking does not make it
	}
	var notes []interpreter.Note
	err = t.file(path).use(ctx, false, func(conn *guardedConn) error {
		notes, err = recallNotes(ctx, conn, in.Note)
		return err
	})
	return notes, classifyError(ctx, err)
}

// Forget drops the notes of calls.
func (t *Tool) Forget(ctx context.Context, in interpreter.ToolInput, calls []string, again bool) error {
	path, err := t.path(ctx, in)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	keys, err := json.Marshal(calls)
	if err != nil {
		return err
	}
	statement := "DELETE FROM " + sqltool.NotesTable + " WHERE call_key IN (SELECT value FROM json_each(?))"
	if again {
		statement = "UPDATE " + sqltool.NotesTable + " SET continuation = x'' WHERE call_key IN (SELECT value FROM json_each(?))"
	}
	err = t.file(path).use(ctx, true, func(conn *guardedConn) error {
		_, err := conn.ExecContext(ctx, statement, string(keys))
		return err
	})
	if err != nil && strings.Contains(err.Error(), "no such table") {
		return nil
	}
	return classifyError(ctx, err)
}

func recallNotes(ctx context.Context, conn *guardedConn, after *interpreter.Note) ([]interpreter.Note, error) {
	var tables int
	if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE name = ?", sqltool.NotesTable).Scan(&tables); err != nil || tables == 0 {
		return nil, err
	}
	rows, err := conn.QueryContext(ctx, "SELECT written, continuation FROM "+sqltool.NotesTable+
		" WHERE call_key = ? AND written > ? ORDER BY written", after.Call, after.Written)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var notes []interpreter.Note
	for rows.Next() {
		note := interpreter.Note{Call: after.Call}
		if err := rows.Scan(&note.Written, &note.Continuation); err != nil {
			return nil, err
		}
		notes = append(notes, note)
	}
	return notes, rows.Err()
}
