package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

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
		settled, err := sqltool.Settle(ctx, tableTx{stateTx: stateTx{tx}}, w)
		if err != nil {
			return err
		}
		rest := settled
		if w.Needed() || w.State != nil {
			var done bool
			if result, rest, done, err = enterLedger(ctx, tx, settled, allNew); done || err != nil {
				result = settled.Counted(result)
				return err
			}
		}
		written, err := sqltool.WriteRows(ctx, tableTx{stateTx: stateTx{tx}, recount: len(rest.Rows) < len(settled.Rows)}, rest)
		result = rest.Result(written)
		return err
	})
	if errors.Is(err, errNoted) {
		err = nil
	}
	return result, err
}

// tableTx is a transaction for the rows of a table.
type tableTx struct {
	stateTx
	recount bool // see insertRows
}

// Insert writes rows.
func (t tableTx) Insert(ctx context.Context, w *sqltool.Write) (int64, error) {
	return insertRows(ctx, t.tx, w, t.recount)
}

// Delete deletes rows by their keys.
func (t tableTx) Delete(ctx context.Context, w *sqltool.Write) (deleted int64, err error) {
	const given, there = "reprise_given", "reprise_there"
	columns := w.DeleteColumns()
	conditions := []string{w.NotOlder(given, there)}
	for _, key := range w.Key {
		conditions = append(conditions, given+"."+sqltool.QuoteNames([]string{key})+" = "+there+"."+sqltool.QuoteNames([]string{key}))
	}
	statement := "DELETE FROM " + w.QuotedTable() + " AS " + there + " USING json_populate_recordset(NULL::" + w.QuotedTable() +
		", $1::text::json) AS " + given + " WHERE " + strings.Join(conditions, " AND ")
	for rows := range slices.Chunk(w.Deletes, chunkRows) {
		keys := make([]any, len(rows))
		for i, row := range rows {
			key := make(map[string]any, len(columns))
			for _, column := range columns {
				key[column] = row[column]
			}
			keys[i] = key
		}
		encoded, err := expression.Encode(keys)
		if err != nil {
			return 0, tool.Errorf("the keys of rows to delete cannot be written as JSON: %w", err)
		}
		n, err := t.Exec(ctx, statement, string(encoded))
		if err != nil {
			return 0, err
		}
		deleted += n
	}
	return deleted, nil
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

// Columns are the table's columns in order, none if there is no such table.
func (t tableTx) Columns(ctx context.Context, w *sqltool.Write) (columns []sqltool.Column, err error) {
	err = t.Query(ctx, `SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute
		WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum`, []any{w.QuotedTable()},
		func(scan func(...any) error) error {
			var column sqltool.Column
			err := scan(&column.Name, &column.Type)
			columns = append(columns, column)
			return err
		})
	return columns, err
}

// changeLock is the part of the advisory locks under which tables change that is the same for all.
const changeLock = 0x72657072

// changeWait is how long a change waits for other transactions.
const changeWait = "5s"

// Change changes the table. Others that change one of its name wait.
func (t tableTx) Change(ctx context.Context, w *sqltool.Write, change func() error) error {
	var before string
	if err := t.tx.QueryRow(ctx, "SELECT current_setting('lock_timeout')").Scan(&before); err != nil {
		return err
	}
	const set = "SELECT set_config('lock_timeout', $1, true)"
	if _, err := t.Exec(ctx, set, changeWait); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, "SELECT pg_advisory_xact_lock($1, hashtext($2))", int32(changeLock), w.Table[len(w.Table)-1]); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	_, err := t.Exec(ctx, set, before)
	return err
}

// Misfits finds out by the database's own reading of values.
func (t tableTx) Misfits(ctx context.Context, w *sqltool.Write, column sqltool.Column, values []any) ([]int, error) {
	rows := make([]any, len(values))
	for i, value := range values {
		rows[i] = map[string]any{column.Name: value}
	}
	encoded, err := expression.Encode(rows)
	if err != nil {
		return nil, tool.Errorf("column %q cannot be written as JSON: %w", column.Name, err)
	}
	err = pgx.BeginFunc(ctx, t.tx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT count("+sqltool.QuoteNames([]string{column.Name})+") FROM json_populate_recordset(NULL::"+w.QuotedTable()+
			", $1::text::json)", string(encoded))
		return err
	})
	switch {
	case err == nil:
		return nil, nil
	case !refusesValue(err):
		return nil, err
	case len(values) == 1:
		return []int{0}, nil
	}
	half := len(values) / 2
	first, err := t.Misfits(ctx, w, column, values[:half])
	if err != nil {
		return nil, err
	}
	second, err := t.Misfits(ctx, w, column, values[half:])
	for i := range second {
		second[i] += half
	}
	return append(first, second...), err
}

// refusesValue reports whether an error is that a value is not of a type: data exceptions, and
// constraints, which domains have.
func refusesValue(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (strings.HasPrefix(pg.Code, "22") || strings.HasPrefix(pg.Code, "23"))
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
