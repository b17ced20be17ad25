package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
)

// ledgerLock is the advisory lock under which the tables of the ledger are
// created; two CREATE TABLE IF NOT EXISTS at once can fail.
const ledgerLock = 0x7265707269736500

// enterLedger notes a write, in one statement. done is true where it was made
// before. Another worker's write of the same page that is under way is waited
// for.
func enterLedger(ctx context.Context, tx pgx.Tx, w *sqltool.Write) (result interpreter.ToolResult, done bool, err error) {
	if w.Note != nil && w.Note.Forget > 0 {
		if _, err := tx.Exec(ctx, "DELETE FROM "+sqltool.NotesTable+" WHERE call_key = $1 AND written <= $2",
			w.Note.Call, w.Note.Forget); err != nil {
			return result, false, err
		}
	}
	fresh, err := insertNote(ctx, tx, w)
	if err != nil {
		return result, false, err
	}
	if !fresh.note {
		row := tx.QueryRow(ctx, "SELECT continuation FROM "+sqltool.NotesTable+" WHERE call_key = $1 AND written = $2", w.Note.Call, w.Note.Written)
		if err := row.Scan(&result.Noted); err != nil {
			return result, false, err
		}
		return result, false, errNoted
	}
	if fresh.key {
		return result, false, nil
	}
	var before tool.WrittenBefore
	row := tx.QueryRow(ctx, "SELECT coalesce(fingerprint, ''), coalesce(rows_written, 0) FROM "+sqltool.WritesTable+
		" WHERE operation_key = $1", w.Operation)
	if err := row.Scan(&before.Fingerprint, &before.Rows); err != nil {
		return result, false, err
	}
	return sqltool.RowsAffected(before.Rows), true, w.Check(before)
}

// errNoted rolls a write back that was noted before.
var errNoted = errors.New("noted before")

// freshEntry says which entries were not there before; one that is not needed
// counts as fresh.
type freshEntry struct{ note, key bool }

func insertNote(ctx context.Context, tx pgx.Tx, w *sqltool.Write) (fresh freshEntry, err error) {
	const (
		note = "INSERT INTO " + sqltool.NotesTable + " (call_key, written, continuation) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
		key  = "INSERT INTO " + sqltool.WritesTable + " (operation_key, fingerprint, rows_written) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
		both = "WITH noted AS (" + note + " RETURNING 1), " +
			"keyed AS (INSERT INTO " + sqltool.WritesTable + " (operation_key, fingerprint, rows_written) VALUES ($4, $5, $6) ON CONFLICT DO NOTHING RETURNING 1) " +
			"SELECT (SELECT count(*) FROM noted) > 0, (SELECT count(*) FROM keyed) > 0"
	)
	fresh = freshEntry{note: true, key: true}
	switch {
	case w.Note == nil:
		tag, err := tx.Exec(ctx, key, w.Operation, w.Fingerprint, int64(len(w.Rows)))
		fresh.key = tag.RowsAffected() > 0
		return fresh, err
	case w.Operation == "":
		tag, err := tx.Exec(ctx, note, w.Note.Call, int64(w.Note.Written), w.Note.Continuation)
		fresh.note = tag.RowsAffected() > 0
		return fresh, err
	}
	err = tx.QueryRow(ctx, both, w.Note.Call, int64(w.Note.Written), w.Note.Continuation,
		w.Operation, w.Fingerprint, int64(len(w.Rows))).Scan(&fresh.note, &fresh.key)
	return fresh, err
}

// lacksLedger reports whether an error is that a table of the ledger is not there.
func lacksLedger(err error) bool {
	return isSQLState(err, "42P01") // undefined_table
}

// refusesNotes reports whether the user of the connection may not make the
// ledger, or not write to it.
func refusesNotes(err error) bool {
	var pg *pgconn.PgError
	return isSQLState(err, "42501") && errors.As(err, &pg) && // insufficient_privilege
		(strings.Contains(pg.Message, "schema") || strings.Contains(pg.Message, sqltool.WritesTable) || strings.Contains(pg.Message, sqltool.NotesTable))
}

func isSQLState(err error, states ...string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && slices.Contains(states, pg.Code)
}

// createLedger makes the tables of the ledger.
func createLedger(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(ledgerLock)); err != nil {
			return err
		}
		for _, statement := range []string{
			"CREATE TABLE IF NOT EXISTS " + sqltool.WritesTable + " (operation_key text PRIMARY KEY, " +
				"written_at timestamptz NOT NULL DEFAULT now(), fingerprint text, rows_written bigint)",
			"CREATE TABLE IF NOT EXISTS " + sqltool.NotesTable + " (call_key text NOT NULL, written bigint NOT NULL, " +
				"continuation bytea NOT NULL, noted_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (call_key, written))",
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// Notes reports whether a write is noted: one to a table is.
func (t *Tool) Notes(in interpreter.ToolInput) bool { return sqltool.IsTableWrite(in) }

// Recall gives the notes of a call.
func (t *Tool) Recall(ctx context.Context, in interpreter.ToolInput) ([]interpreter.Note, error) {
	pool, err := t.pool(ctx, in)
	if err != nil {
		return nil, err
	}
	conn, err := pool.acquire(ctx, "")
	if err != nil {
		return nil, classifyError(ctx, err)
	}
	defer pool.release(conn, "")
	rows, err := conn.Query(ctx, "SELECT written, continuation FROM "+sqltool.NotesTable+
		" WHERE call_key = $1 AND written > $2 ORDER BY written", in.Note.Call, int64(in.Note.Written))
	if err != nil {
		return nil, recallError(ctx, err)
	}
	notes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (interpreter.Note, error) {
		note := interpreter.Note{Call: in.Note.Call}
		err := row.Scan(&note.Written, &note.Continuation)
		return note, err
	})
	return notes, recallError(ctx, err)
}

// Forget drops the notes of calls.
func (t *Tool) Forget(ctx context.Context, in interpreter.ToolInput, calls []string, again bool) error {
	pool, err := t.pool(ctx, in)
	if err != nil {
		return err
	}
	conn, err := pool.acquire(ctx, "")
	if err != nil {
		return classifyError(ctx, err)
	}
	defer pool.release(conn, "")
	statement := "DELETE FROM " + sqltool.NotesTable + " WHERE call_key = ANY($1)"
	if again {
		statement = "UPDATE " + sqltool.NotesTable + " SET continuation = '' WHERE call_key = ANY($1)"
	}
	_, err = conn.Exec(ctx, statement, calls)
	return recallError(ctx, err)
}

// recallError is nil for a ledger that is not there, or not for this user:
// nothing was noted.
func recallError(ctx context.Context, err error) error {
	if err == nil || lacksLedger(err) || refusesNotes(err) {
		return nil
	}
	return classifyError(ctx, err)
}

// sweepLedger deletes notes that are too old to be needed.
func sweepLedger(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "DELETE FROM "+sqltool.NotesTable+" WHERE noted_at < now() - $1::float8 * interval '1 second'", tool.NotesKept.Seconds())
	return err
}
