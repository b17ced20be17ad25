package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"reprise/activities/sqltool"
	"reprise/interpreter"
)

// Most writes are usual: the table is as the session remembers it, the ledger does not know them, and the call holds its
// state. They are sent in one message, with begin and commit, whose statements fail where that is not so. Then nothing
// was written, and the write is made step by step.

// atOnceBytes bounds the rows of a write that is sent at once.
const atOnceBytes = 1 << 20

// errNotAtOnce says that nothing was sent.
var errNotAtOnce = errors.New("made step by step")

// plannedTable is a table in no transaction: what needs the server is not done at once.
type plannedTable struct{ *tableTx }

func (plannedTable) Change(context.Context, *sqltool.Write, func() error) error { return errNotAtOnce }

func (plannedTable) Misfits(context.Context, *sqltool.Write, sqltool.Column, []any) ([]int, error) {
	return nil, errNotAtOnce
}

// writeAtOnce makes a usual write in one round trip. After an error that byStep knows nothing was written.
func writeAtOnce(ctx context.Context, conn *pgx.Conn, w *sqltool.Write) (result interpreter.ToolResult, err error) {
	session := sessionOf(conn)
	if known, is := session.tables[w.QuotedTable()]; !is || w.Staged() || time.Now().After(known.until) {
		return result, errNotAtOnce
	}
	table := plannedTable{&tableTx{session: session}}
	settled, err := sqltool.Settle(ctx, table, w)
	if err != nil || !settled.IsPlain() || refuseNUL(settled) != nil {
		return result, errNotAtOnce
	}
	insert, args, err := insertAtOnce(settled, &table.target)
	if err != nil {
		return result, errNotAtOnce
	}
	batch := &pgx.Batch{}
	batch.Queue("begin")
	batch.Queue("SELECT 1 / CASE WHEN ("+tableVersion+") = $2 THEN 1 ELSE 0 END", w.QuotedTable(), table.unchecked)
	if err := queueLedger(batch, settled); err != nil {
		return result, err
	}
	batch.Queue(insert, args...).Exec(func(tag pgconn.CommandTag) error {
		result = settled.Result(sqltool.Affected(tag.RowsAffected()))
		return nil
	})
	batch.Queue("commit")
	session.prepared.prepare(ctx, conn, batch)
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		if !conn.IsClosed() && conn.PgConn().TxStatus() != idleTransaction {
			_, _ = conn.Exec(ctx, "rollback")
		}
		if session.prepared.lost(ctx, conn, err) {
			err = errNotAtOnce
		}
		return interpreter.ToolResult{}, err
	}
	return result, nil
}

// insertAtOnce is the statement that inserts all rows, with its arguments: an array for each column, or the rows as JSON
// where a column has values of which no array can be made.
func insertAtOnce(w *sqltool.Write, t *target) (statement string, args []any, err error) {
	if statement, args, err = insertColumns(w, t); statement != "" || err != nil {
		return statement, args, err
	}
	rows, used, err := encodeChunk(w.Rows)
	if err != nil || used < len(w.Rows) || len(rows) > atOnceBytes {
		return "", nil, errNotAtOnce
	}
	return populateStatement(w), []any{string(rows)}, nil
}

// insertColumns is the statement that inserts rows which arrive as an array for each column, "" where a column has no arrays.
func insertColumns(w *sqltool.Write, t *target) (statement string, args []any, err error) {
	forms := t.formsOf(w.Columns)
	if forms == nil || len(w.Rows) > chunkRows {
		return "", nil, nil
	}
	size, arrays := 0, make([]string, len(w.Columns))
	for i, column := range w.Columns {
		element := t.elements[column]
		if element == "" || forms[i] == arrayText {
			return "", nil, nil
		}
		arrays[i] = "$" + strconv.Itoa(i+1) + "::text::" + element + "[]"
		literal, err := columnLiteral(w.Rows, column, forms[i])
		if err != nil {
			return "", nil, err
		}
		if size += len(literal); size > atOnceBytes {
			return "", nil, errNotAtOnce
		}
		args = append(args, literal)
	}
	return "INSERT INTO " + w.QuotedTable() + " (" + sqltool.QuoteNames(w.Columns) + ") SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ")" +
		w.Conflict(), args, nil
}

// columnLiteral is the literal of the array of a column's values.
func columnLiteral(rows []map[string]any, column string, form textForm) (string, error) {
	literal := []byte{'{'}
	for i, row := range rows {
		if i > 0 {
			literal = append(literal, ',')
		}
		text, isNull, err := columnText(row[column], form)
		switch {
		case err != nil:
			return "", err
		case isNull:
			literal = append(literal, "NULL"...)
		default:
			literal = append(appendElement(append(literal, '"'), text), '"')
		}
	}
	return string(append(literal, '}')), nil
}

// appendElement escapes a text in the quotes of an array's element.
func appendElement(out []byte, text string) []byte {
	for {
		at := strings.IndexAny(text, `"\`)
		if at < 0 {
			return append(out, text...)
		}
		out = append(append(out, text[:at]...), '\\', text[at])
		text = text[at+1:]
	}
}

// queueLedger notes a write and moves its state, by statements that fail unless the write is new, its call holds the
// state, and none of its rows is known.
func queueLedger(batch *pgx.Batch, w *sqltool.Write) error {
	if w.Note != nil {
		queueForget(batch, w)
		batch.Queue(insertNote, w.Note.Call, int64(w.Note.Written), w.Note.Continuation)
	}
	if w.Operation != "" {
		batch.Queue(insertKey, w.Operation, w.Fingerprint, int64(len(w.Rows)))
	}
	if w.State == nil {
		return nil
	}
	move, args, err := sqltool.MoveStatement(dialect, w.State)
	if err != nil {
		return err
	}
	batch.Queue("WITH moved AS ("+move+" RETURNING 1) SELECT 1 / count(*) FROM moved", args...)
	chunks := w.Seen()
	if len(chunks) > 1 {
		return errNotAtOnce
	}
	if len(chunks) > 0 {
		entry := &entry{batch: batch, allNew: true, noneKnown: true}
		entry.queueSeen(&chunks[0])
	}
	return nil
}

// byStep reports whether a write that was not made at once is to be made step by step, which says what is wrong with it.
func byStep(ctx context.Context, conn *pgx.Conn, err error) bool {
	var pg *pgconn.PgError
	if errors.Is(err, errNotAtOnce) {
		return true
	}
	if !errors.As(err, &pg) || ctx.Err() != nil || conn.IsClosed() || len(pg.Code) < 2 {
		return false
	}
	switch pg.Code[:2] {
	case "22", "23", "42": // data exceptions, constraints, and what is not there or not allowed
		return conn.PgConn().TxStatus() == idleTransaction
	}
	return false
}
