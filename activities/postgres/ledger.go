package postgres

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
)

// ledgerLock is the advisory lock for creating the ledger's tables: two concurrent CREATE TABLE
// IF NOT EXISTS can fail.
const ledgerLock = 0x7265707269736500

// enterLedger records a write and moves its state, in one round trip. done is true if the write
// was made before. It waits for another worker's write of the same page. rest is what is left
// to write, without known rows.
func enterLedger(
	ctx context.Context, table *tableTx, w *sqltool.TableWrite, allNew bool,
) (result interpreter.ToolResult, rest *sqltool.TableWrite, done bool, err error) {
	tx, version := table.tx, table.unchecked
	entry := &entry{write: w, batch: &pgx.Batch{}, fresh: freshEntry{note: true, key: true}, held: true, known: map[string]bool{}}
	if version != "" {
		entry.batch.Queue(tableVersion, w.QuotedTable()).QueryRow(func(row pgx.Row) error { return row.Scan(&version) })
	}
	chunks := w.LookupChunks()
	if w.IsCounted() { // once the state is held
		chunks = nil
	}
	entry.allNew = allNew && len(chunks) == 1
	entry.queueNote()
	if err := entry.queueState(chunks); err != nil {
		return result, nil, false, err
	}
	if err := tx.SendBatch(ctx, entry.batch).Close(); err != nil {
		return result, nil, false, err
	}
	switch {
	case version != table.unchecked:
		return result, nil, false, errChanged
	case !entry.fresh.note:
		row := tx.QueryRow(ctx, "SELECT continuation FROM "+sqltool.NotesTable+" WHERE call_key = $1 AND written = $2", w.Note.Call, w.Note.Written)
		if err := row.Scan(&result.Noted); err != nil {
			return result, nil, false, err
		}
		return result, nil, false, errNoted
	case !entry.fresh.key && w.State != nil:
		return result, nil, false, errKeyed
	case !entry.fresh.key:
		result, err := writtenBefore(ctx, tx, w)
		return result, nil, true, err
	case !entry.held:
		return result, nil, false, sqltool.NotHeldError(ctx, stateTx{tx}, w.State)
	}
	if w.IsCounted() {
		rest, err = entry.leaveOutKnown(ctx, tx)
	} else {
		rest, err = entry.newRows(ctx, tx, chunks, 1)
	}
	return result, rest, false, err
}

// leaveOutKnown counts the rows, and removes the known ones.
func (e *entry) leaveOutKnown(ctx context.Context, tx pgx.Tx) (rest *sqltool.TableWrite, err error) {
	if e.write, err = e.write.CountRows(ctx, stateTx{tx}); err != nil {
		return nil, err
	}
	if counts := e.write.AddedCounts(); len(counts) > 0 {
		if _, err := tx.Exec(ctx, addSeen, byteaArray(counts)); err != nil {
			return nil, err
		}
	}
	return e.newRows(ctx, tx, e.write.LookupChunks(), 0)
}

// writtenBefore returns the result of a write that was made before.
func writtenBefore(ctx context.Context, tx pgx.Tx, w *sqltool.TableWrite) (result interpreter.ToolResult, err error) {
	var before tool.WrittenBefore
	row := tx.QueryRow(ctx, "SELECT coalesce(fingerprint, ''), coalesce(rows_written, 0) FROM "+sqltool.WritesTable+
		" WHERE operation_key = $1", w.Operation)
	if err := row.Scan(&before.Fingerprint, &before.Rows); err != nil {
		return result, err
	}
	return w.EarlierWriteResult(before.Rows), w.CheckWrittenBefore(before)
}

var (
	// errNoted rolls a write back that was noted before.
	errNoted = errors.New("noted before")
	// errKeyed rolls a write back whose operation key was noted before, so that it moves no state.
	errKeyed = errors.New("keyed before")
)

// entry is what a write sends to the ledger in one round trip, and what it learns.
type entry struct {
	write *sqltool.TableWrite
	batch *pgx.Batch
	fresh freshEntry
	held  bool // the call holds its state
	// allNew assumes that no row is known. If one is, the transaction fails and is repeated: adding
	// rows is half as much work if none can exist.
	allNew bool
	known  map[string]bool // rows that were written before
}

// freshEntry says which entries are new; one that is not needed counts as new.
type freshEntry struct{ note, key bool }

// Statements of a note and of an operation key that the ledger does not have.
const (
	insertNote = "INSERT INTO " + sqltool.NotesTable + " (call_key, written, continuation) VALUES ($1, $2, $3)"
	insertKey  = "INSERT INTO " + sqltool.WritesTable + " (operation_key, fingerprint, rows_written) VALUES ($1, $2, $3)"
)

// forgetNotes drops the notes of a call that are not needed any more.
const forgetNotes = "DELETE FROM " + sqltool.NotesTable + " WHERE call_key = $1 AND written <= $2"

func (e *entry) queueNote() {
	const (
		note = insertNote + " ON CONFLICT DO NOTHING"
		key  = insertKey + " ON CONFLICT DO NOTHING"
		both = "WITH noted AS (" + note + " RETURNING 1), " +
			"keyed AS (INSERT INTO " + sqltool.WritesTable + " (operation_key, fingerprint, rows_written) VALUES ($4, $5, $6) ON CONFLICT DO NOTHING RETURNING 1) " +
			"SELECT (SELECT count(*) FROM noted) > 0, (SELECT count(*) FROM keyed) > 0"
	)
	w := e.write
	if w.Note != nil && w.Note.Forget > 0 {
		e.batch.Queue(forgetNotes, w.Note.Call, w.Note.Forget)
	}
	isFresh := func(fresh *bool) func(pgconn.CommandTag) error {
		return func(tag pgconn.CommandTag) error {
			*fresh = tag.RowsAffected() > 0
			return nil
		}
	}
	switch {
	case w.Note != nil && w.Operation != "":
		e.batch.Queue(both, w.Note.Call, int64(w.Note.Written), w.Note.Continuation, w.Operation, w.Fingerprint, int64(len(w.Rows))).
			QueryRow(func(row pgx.Row) error { return row.Scan(&e.fresh.note, &e.fresh.key) })
	case w.Note != nil:
		e.batch.Queue(note, w.Note.Call, int64(w.Note.Written), w.Note.Continuation).Exec(isFresh(&e.fresh.note))
	case w.Operation != "":
		e.batch.Queue(key, w.Operation, w.Fingerprint, int64(len(w.Rows))).Exec(isFresh(&e.fresh.key))
	}
}

// queueState moves the state, and looks up the first chunk of the rows.
func (e *entry) queueState(chunks []sqltool.RowLookup) error {
	if e.write.State == nil {
		return nil
	}
	move, args, err := sqltool.MoveStatement(dialect, e.write)
	if err != nil {
		return err
	}
	e.batch.Queue(move, args...).Exec(func(tag pgconn.CommandTag) error {
		e.held = tag.RowsAffected() > 0
		return nil
	})
	if len(chunks) > 0 {
		e.queueSeen(&chunks[0])
	}
	return nil
}

// Statements about known rows: lookUp returns which of some rows are known, and addSeen adds rows that
// are not.
const (
	lookUp  = "SELECT n FROM unnest($1::text::bytea[]) AS n WHERE (SELECT true FROM " + sqltool.SeenTable + " WHERE known = n)"
	addSeen = "INSERT INTO " + sqltool.SeenTable + " SELECT unnest($1::text::bytea[])"
)

// queueSeen looks rows up, and adds those that may be read again. Each statement is simple and
// can use only one index: without statistics, a planner could otherwise read everything known
// about a state to find a few rows.
func (e *entry) queueSeen(seen *sqltool.RowLookup) {
	if seen.From != nil {
		e.batch.Queue(sqltool.BlocksStatement, seen.From, seen.To).Query(func(rows pgx.Rows) error { return e.readBlocks(rows, seen) })
	}
	switch {
	case len(seen.Recurring) == 0:
	case e.allNew:
		e.batch.Queue(addSeen, byteaArray(seen.Recurring))
	default:
		e.batch.Queue(addSeen+" ON CONFLICT DO NOTHING RETURNING known", byteaArray(seen.Recurring)).Query(func(rows pgx.Rows) error {
			added := make(map[string]bool, len(seen.Recurring))
			err := readKnown(rows, added)
			for _, row := range seen.Recurring {
				if !added[string(row)] {
					e.known[string(row)] = true
				}
			}
			return err
		})
	}
	if len(seen.Below) > 0 {
		e.batch.Queue(lookUp, byteaArray(seen.Below)).Query(func(rows pgx.Rows) error { return readKnown(rows, e.known) })
	}
	queueSweep(e.batch, seen)
}

// queueSweep deletes known rows that cannot be read again, because a long run has millions of
// them.
func queueSweep(batch *pgx.Batch, seen *sqltool.RowLookup) {
	if !seen.Sweep {
		return
	}
	for _, sweep := range sqltool.SweepStatements() {
		batch.Queue(sweep, seen.State, seen.Floor)
	}
}

// readBlocks finds which rows of a chunk are in blocks of known rows, and records them.
func (e *entry) readBlocks(rows pgx.Rows, seen *sqltool.RowLookup) error {
	var hashes pgtype.DriverBytes
	for rows.Next() {
		if err := rows.Scan(&hashes); err != nil {
			return err
		}
		seen.InBlocks(hashes, e.known)
	}
	return rows.Err()
}

// readKnown adds the hashes of rows that the ledger knows to a set.
func readKnown(rows pgx.Rows, to map[string]bool) error {
	var row pgtype.DriverBytes
	for rows.Next() {
		if err := rows.Scan(&row); err != nil {
			return err
		}
		to[string(row)] = true
	}
	return rows.Err()
}

// byteaArray returns the literal of an array.
func byteaArray(values [][]byte) string {
	size := len("{}")
	for _, value := range values {
		size += len(`"\\x",`) + hex.EncodedLen(len(value))
	}
	literal := append(make([]byte, 0, size), '{')
	for i, value := range values {
		if i > 0 {
			literal = append(literal, ',')
		}
		literal = append(literal, `"\\x`...)
		literal = hex.AppendEncode(literal, value)
		literal = append(literal, '"')
	}
	return string(append(literal, '}'))
}

// newRows removes the rows that the state knows, beginning with the given chunk.
func (e *entry) newRows(ctx context.Context, tx pgx.Tx, chunks []sqltool.RowLookup, from int) (*sqltool.TableWrite, error) {
	for i := from; i < len(chunks); i++ {
		e.batch = &pgx.Batch{}
		e.queueSeen(&chunks[i])
		if err := tx.SendBatch(ctx, e.batch).Close(); err != nil {
			return nil, err
		}
	}
	if len(e.known) == 0 {
		return e.write, nil
	}
	return e.write.WithoutKnown(e.known), nil
}

// lacksLedger reports whether an error says that a table of the ledger does not exist.
func lacksLedger(err error) bool {
	return isSQLState(err, "42P01") // undefined_table
}

// isKnownRowConflict reports whether a statement failed because the state knows one of its rows, which
// was expected to be new.
func isKnownRowConflict(err error) bool {
	var pg *pgconn.PgError
	return isSQLState(err, "23505") && errors.As(err, &pg) && pg.TableName == sqltool.SeenTable // unique_violation
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

// ledgerTables are the tables that notes and operation keys need.
var ledgerTables = []sqltool.NewTable{
	{Name: sqltool.WritesTable, Create: []string{
		"CREATE TABLE IF NOT EXISTS " + sqltool.WritesTable + " (operation_key text PRIMARY KEY, " +
			"written_at timestamptz NOT NULL DEFAULT now(), fingerprint text, rows_written bigint)",
	}},
	{Name: sqltool.NotesTable, Create: []string{
		"CREATE TABLE IF NOT EXISTS " + sqltool.NotesTable + " (call_key text NOT NULL, written bigint NOT NULL, " +
			"continuation bytea NOT NULL, noted_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (call_key, written))",
	}},
}

// createLedger creates the tables of the ledger, of states and of staged rows. An existing one is left
// unchanged: a user without the right to create tables may have been given it.
func createLedger(ctx context.Context, conn *pgx.Conn, states, staging bool) error {
	tables := ledgerTables
	if states {
		tables = slices.Concat(tables, dialect.StateTables())
	}
	if staging {
		tables = slices.Concat(tables, dialect.StagingTables())
	}
	err := pgx.BeginTxFunc(ctx, conn, writeOptions, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(ledgerLock)); err != nil {
			return err
		}
		for _, table := range tables {
			if err := createTable(ctx, tx, table); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	sessionOf(conn).owners = time.Time{} // somebody else may have made one meanwhile
	return checkOwners(ctx, conn)
}

func createTable(ctx context.Context, tx pgx.Tx, table sqltool.NewTable) error {
	var exists bool
	if err := tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", table.Name).Scan(&exists); exists || err != nil {
		return err
	}
	for _, statement := range table.Create {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// RecallNotes gives the notes of a call.
func (t *Tool) RecallNotes(ctx context.Context, in interpreter.ToolInput) (notes []interpreter.LedgerEntry, err error) {
	err = t.inSession(ctx, in, "", func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT written, continuation FROM "+sqltool.NotesTable+
			" WHERE call_key = $1 AND written > $2 ORDER BY written", in.Note.Call, int64(in.Note.Written))
		if err != nil {
			return recallError(ctx, err)
		}
		notes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (interpreter.LedgerEntry, error) {
			note := interpreter.LedgerEntry{Call: in.Note.Call}
			err := row.Scan(&note.Written, &note.Continuation)
			return note, err
		})
		return recallError(ctx, err)
	})
	return notes, err
}

// ForgetNotes drops the notes of calls.
func (t *Tool) ForgetNotes(ctx context.Context, in interpreter.ToolInput, calls []string, again bool) error {
	statement := "DELETE FROM " + sqltool.NotesTable + " WHERE call_key = ANY($1)"
	if again {
		statement = "UPDATE " + sqltool.NotesTable + " SET continuation = '' WHERE call_key = ANY($1)"
	}
	return t.inSession(ctx, in, "", func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, statement, calls)
		return recallError(ctx, err)
	})
}

// recallError converts the error of reading a ledger. It is nil if the ledger does not exist or this user may not
// read it: then nothing was noted.
func recallError(ctx context.Context, err error) error {
	if err == nil || lacksLedger(err) || refusesNotes(err) {
		return nil
	}
	return classifyError(ctx, err)
}

// sweepLedger deletes notes that are too old to be needed.
func sweepLedger(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "DELETE FROM "+sqltool.NotesTable+" WHERE noted_at < now() - $1::float8 * interval '1 second'", tool.NoteRetention.Seconds())
	return err
}
