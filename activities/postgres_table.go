package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// Rows go to the server in chunks, each one JSON parameter: the server makes
// columns of it by the table's own types.
const (
	chunkRows  = 1000
	chunkBytes = 4 << 20
)

// writesLock is the advisory lock under which reprise_writes is created; two
// CREATE TABLE IF NOT EXISTS at once can fail.
const writesLock = 0x7265707269736500

// writePostgres writes all rows in one transaction.
func writePostgres(ctx context.Context, conn *pgx.Conn, w *tableWrite, operationKey string) (interpreter.ToolResult, error) {
	note := !w.upsert && operationKey != "" && len(w.rows) > 0
	if note {
		if err := createWrites(ctx, conn); err != nil {
			return interpreter.ToolResult{}, tableError(ctx, w, err)
		}
	}

	var written int64

	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var err error
		written, err = writeRows(ctx, tx, w, note, operationKey)

		return err
	})
	if err != nil {
		return interpreter.ToolResult{}, tableError(ctx, w, err)
	}

	return rowsAffected(written), nil
}

func writeRows(ctx context.Context, tx pgx.Tx, w *tableWrite, note bool, operationKey string) (int64, error) {
	if len(w.rows) == 0 {
		return 0, nil
	}

	existing, err := postgresColumns(ctx, tx, w)
	if err != nil {
		return 0, err
	}

	if err := w.checkColumns(existing); err != nil {
		return 0, err
	}

	if note {
		// A second delivery that is under way waits here for the first to end.
		tag, err := tx.Exec(ctx, "INSERT INTO "+writesTable+" (operation_key) VALUES ($1) ON CONFLICT DO NOTHING", operationKey)
		if err != nil || tag.RowsAffected() == 0 {
			return 0, err
		}
	}

	columns := quoteNames(w.columns)
	insert := "INSERT INTO " + w.quotedTable() + " (" + columns + ") SELECT " + columns +
		" FROM json_populate_recordset(NULL::" + w.quotedTable() + ", $1::text::json)" + w.conflict()

	var written int64

	for rest := w.rows; len(rest) > 0; {
		chunk, used, err := encodeChunk(rest)
		if err != nil {
			return 0, err
		}

		tag, err := tx.Exec(ctx, insert, string(chunk))
		if err != nil {
			return 0, err
		}

		written += tag.RowsAffected()
		rest = rest[used:]
	}

	return written, nil
}

// encodeChunk makes a JSON list of the first rows, and says how many fitted.
func encodeChunk(rows []map[string]any) (chunk []byte, used int, err error) {
	chunk = append(chunk, '[')

	for used < len(rows) && used < chunkRows && len(chunk) < chunkBytes {
		row, err := expression.Encode(rows[used])
		if err != nil {
			return nil, 0, toolErrorf("row %d cannot be written as JSON: %w", used+1, err)
		}

		if used > 0 {
			chunk = append(chunk, ',')
		}

		chunk = append(chunk, row...)
		used++
	}

	return append(chunk, ']'), used, nil
}

// postgresColumns are the table's columns in order, none if there is no such
// table.
func postgresColumns(ctx context.Context, tx pgx.Tx, w *tableWrite) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT attname::text FROM pg_attribute
		WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`, w.quotedTable())
	if err != nil {
		return nil, err
	}

	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// createWrites makes the table of operation keys once.
func createWrites(ctx context.Context, conn *pgx.Conn) error {
	var there bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", writesTable).Scan(&there); err != nil || there {
		return err
	}

	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(writesLock)); err != nil {
			return err
		}

		_, err := tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+writesTable+
			" (operation_key text PRIMARY KEY, written_at timestamptz NOT NULL DEFAULT now())")

		return err
	})
}

// tableError adds what table mode knows to the server's error.
func tableError(ctx context.Context, w *tableWrite, err error) error {
	converted := postgresError(ctx, err)

	var own *Error
	if !errors.As(converted, &own) {
		return converted
	}

	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		own.Message = fmt.Sprintf("writing %d rows to table %q: %s", len(w.rows), w.shown, own.Message)
		if pg.Code == "42P10" {
			own.Message += fmt.Sprintf("; mode upsert needs a primary key or unique index on exactly (%s)", quoteNames(w.key))
		}
	}

	return own
}
