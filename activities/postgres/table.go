package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// Rows go to the server in chunks, each one JSON parameter: the server makes
// columns of it by the table's own types.
const (
	chunkRows  = 1000
	chunkBytes = 4 << 20
)

// writeTable writes all rows in one transaction. A ledger that is not there
// is made, once.
func writeTable(ctx context.Context, conn *pgx.Conn, w *sqltool.Write) (interpreter.ToolResult, error) {
	result, err := writeInTransaction(ctx, conn, w, true)
	if lacksLedger(err) && (w.Needed() || w.State != nil) {
		if err = createLedger(ctx, conn, w.State != nil); err == nil {
			result, err = writeInTransaction(ctx, conn, w, true)
		}
	}
	if meetsKnown(err) {
		result, err = writeInTransaction(ctx, conn, w, false)
	}
	if errors.Is(err, errKeyed) {
		result, err = writeInTransaction(ctx, conn, w.WithoutState(), false)
	}
	if w.Note != nil && refusesNotes(err) {
		return interpreter.ToolResult{Unnotable: true}, nil
	}
	if err != nil {
		return interpreter.ToolResult{}, tableError(ctx, w, err)
	}
	return result, nil
}

// writeInTransaction makes the write. allNew takes no row to be known.
func writeInTransaction(ctx context.Context, conn *pgx.Conn, w *sqltool.Write, allNew bool) (result interpreter.ToolResult, err error) {
	if len(w.Rows) == 0 && w.Note == nil && w.State == nil {
		return sqltool.RowsAffected(0), nil
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := checkTable(ctx, tx, w); err != nil {
			return err
		}
		rest := w
		if w.Needed() || w.State != nil {
			var done bool
			if result, rest, done, err = enterLedger(ctx, tx, w, allNew); done || err != nil {
				return err
			}
		}
		written, err := insertRows(ctx, tx, rest, len(rest.Rows) < len(w.Rows))
		result = sqltool.RowsAffected(written)
		return err
	})
	if errors.Is(err, errNoted) {
		err = nil
	}
	return result, err
}

func checkTable(ctx context.Context, tx pgx.Tx, w *sqltool.Write) error {
	if len(w.Rows) == 0 {
		return nil
	}
	existing, err := tableColumns(ctx, tx, w)
	if err != nil {
		return err
	}
	return w.CheckColumns(existing)
}

// insertRows writes the rows. recount corrects how many the ledger has, in the same round trip.
func insertRows(ctx context.Context, tx pgx.Tx, w *sqltool.Write, recount bool) (written int64, err error) {
	const count = "UPDATE " + sqltool.WritesTable + " SET rows_written = $2 WHERE operation_key = $1"
	columns := sqltool.QuoteNames(w.Columns)
	insert := "INSERT INTO " + w.QuotedTable() + " (" + columns + ") SELECT " + columns +
		" FROM json_populate_recordset(NULL::" + w.QuotedTable() + ", $1::text::json)" + w.Conflict()
	recount = recount && w.Operation != ""
	for rest := w.Rows; len(rest) > 0 || recount; {
		batch := &pgx.Batch{}
		if recount {
			batch.Queue(count, w.Operation, int64(len(w.Rows)))
			recount = false
		}
		if len(rest) > 0 {
			chunk, used, err := encodeChunk(rest)
			if err != nil {
				return 0, err
			}
			batch.Queue(insert, string(chunk)).Exec(func(tag pgconn.CommandTag) error {
				written += tag.RowsAffected()
				return nil
			})
			rest = rest[used:]
		}
		if err := tx.SendBatch(ctx, batch).Close(); err != nil {
			return 0, err
		}
	}
	return written, nil
}

// encodeChunk makes a JSON list of the first rows, and says how many fitted.
func encodeChunk(rows []map[string]any) (chunk []byte, used int, err error) {
	chunk = append(chunk, '[')
	for used < len(rows) && used < chunkRows && len(chunk) < chunkBytes {
		row, err := expression.Encode(rows[used])
		if err != nil {
			return nil, 0, tool.Errorf("row %d cannot be written as JSON: %w", used+1, err)
		}
		if used > 0 {
			chunk = append(chunk, ',')
		}
		chunk = append(chunk, row...)
		used++
	}
	return append(chunk, ']'), used, nil
}

// tableColumns are the table's columns in order, none if there is no such
// table.
func tableColumns(ctx context.Context, tx pgx.Tx, w *sqltool.Write) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT attname::text FROM pg_attribute
		WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`, w.QuotedTable())
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// tableError adds what table mode knows to the server's error.
func tableError(ctx context.Context, w *sqltool.Write, err error) error {
	converted := classifyError(ctx, err)
	var own *tool.Error
	if !errors.As(converted, &own) {
		return converted
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		own.Message = fmt.Sprintf("writing %d rows to table %q: %s%s", len(w.Rows), w.Shown, rowOfError(w, pg), own.Message)
		if pg.Detail != "" {
			own.Message += "; " + pg.Detail
		}
		if pg.Code == "42P10" {
			own.Message += fmt.Sprintf("; mode upsert needs a primary key or unique index on exactly (%s)", sqltool.QuoteNames(w.Key))
		}
	}
	return own
}

// quoted is what a server's message has in quotes.
var quoted = regexp.MustCompile(`"((?:[^"]|"")*)"`)

// rowOfError names the row and the column that the server's error is about, as far as
// that tells: by the column, by a value, or by both. It is "" where it does not.
func rowOfError(w *sqltool.Write, pg *pgconn.PgError) string {
	const notNull = "23502"
	values := quoted.FindAllStringSubmatch(pg.Message, -1)
	for i, row := range w.Rows {
		for _, column := range w.Columns {
			value, given := row[column]
			switch {
			case pg.ColumnName != "" && column != pg.ColumnName:
			case pg.Code == notNull && value == nil,
				pg.Code != notNull && given && len(values) > 0 && expression.Text(value) == values[len(values)-1][1]:
				return fmt.Sprintf("row %d, column %q: ", w.Number(i), column)
			}
		}
	}
	if pg.ColumnName != "" {
		return fmt.Sprintf("column %q: ", pg.ColumnName)
	}
	return ""
}
