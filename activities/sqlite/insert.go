package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// To begin and end a statement takes longer than to write a small row, so that one
// statement writes some rows.
const (
	rowsAtOnce = 25
	// bytesAtOnce bounds the rows that are written together: SQLite copies the values of a
	// statement.
	bytesAtOnce = 256 << 10
	// maxParameters bounds the parameters of a statement: SQLite refuses more than 32,766.
	maxParameters = 32_000
)

// InsertRows writes rows.
func (t tableTx) InsertRows(ctx context.Context, w *sqltool.TableWrite) (sqltool.WriteResult, error) {
	written, err := t.insertRows(ctx, w)
	if err != nil {
		return sqltool.WriteResult{}, err
	}
	return sqltool.AffectedResult(written).OfRows(w), nil
}

func (t tableTx) insertRows(ctx context.Context, w *sqltool.TableWrite) (written int64, err error) {
	if len(w.Rows) == 0 {
		return 0, nil
	}
	if err := w.RefuseNoBytes(); err != nil {
		return 0, err
	}
	i := &inserter{TableWrite: w, conn: t.conn, absent: w.AbsentColumns(), types: make([]string, len(w.Columns)), statements: map[int]string{}}
	i.names, i.row = columnsAndValues(w, i.absent)
	for at, column := range w.Columns {
		i.types[at] = w.TypeOf(column)
	}
	if len(w.Rows) == 1 || len(w.Columns) == 0 || w.ReportsRows() { // a statement without columns makes one row
		return i.insertEach(ctx, 0, len(w.Rows))
	}
	const before = "reprise_rows"
	if _, err := t.Exec(withoutCancel(ctx), "SAVEPOINT "+before); err != nil {
		return 0, err
	}
	if written, err = i.insertAll(ctx); err == nil {
		_, err = t.Exec(withoutCancel(ctx), "RELEASE "+before)
		return written, err
	}
	// A table may declare that a conflict leaves rows, or ends the transaction: then
	// the rows that are written next would stay.
	if _, ended := t.Exec(withoutCancel(ctx), "ROLLBACK TO "+before); ended != nil {
		return 0, err
	}
	if _, refused := i.insertEach(ctx, 0, len(w.Rows)); refused != nil {
		return 0, refused // which names the row
	}
	return 0, err
}

// inserter writes the rows of a write.
type inserter struct {
	*sqltool.TableWrite
	conn       *guardedConn
	names, row string         // the columns, and the values of one row
	absent     []string       // columns whose values are looked up by the key
	types      []string       // of the columns
	statements map[int]string // by the number of their rows
}

// insertAll writes all rows, some at a time.
func (i *inserter) insertAll(ctx context.Context) (written int64, err error) {
	size := max(1, min(rowsAtOnce, maxParameters/max(1, len(i.Columns)+len(i.absent)*len(i.Key))))
	for first := 0; first < len(i.Rows); first += size {
		n, err := i.insertRange(ctx, first, min(first+size, len(i.Rows)))
		if err != nil {
			return 0, err
		}
		written += n
	}
	return written, nil
}

// insertRange writes the rows from first up to end together, unless they are large.
func (i *inserter) insertRange(ctx context.Context, first, end int) (written int64, err error) {
	values, size, err := i.rowValues(first, end)
	if err != nil {
		return 0, err
	}
	if end-first > 1 && size > bytesAtOnce {
		return i.insertEach(ctx, first, end)
	}
	text := i.insertStatement(end - first)
	statement, err := i.conn.preparedStatement(ctx, text)
	if err != nil {
		return 0, err // which is about no row
	}
	written, err = i.conn.execPrepared(ctx, text, statement, values)
	switch {
	case err == nil:
		return written, nil
	case end-first == 1:
		hint := ""
		if i.DeletesOthers() {
			hint = "; the table says ON CONFLICT REPLACE, which would delete the existing row"
		}
		return 0, fmt.Errorf("%s: %w%s", i.RowText(i.OriginalNumber(first)), err, hint)
	}
	return 0, fmt.Errorf("%s: %w", i.RowsText(i.OriginalNumber(first), i.OriginalNumber(end-1)), err)
}

// insertEach writes the rows from first up to end one by one.
func (i *inserter) insertEach(ctx context.Context, first, end int) (written int64, err error) {
	for at := first; at < end; at++ {
		n, err := i.insertRange(ctx, at, at+1)
		if err != nil {
			return 0, err
		}
		if n == 0 && i.ReportsRows() {
			i.SkipRow(i.OriginalNumber(at))
		}
		written += n
	}
	return written, nil
}

// insertStatement returns the statement that inserts a number of rows.
func (i *inserter) insertStatement(rows int) string {
	if i.statements[rows] == "" {
		values := " DEFAULT VALUES"
		if i.names != "" {
			values = " (" + i.names + ") VALUES " + strings.Repeat(i.row+", ", rows-1) + i.row
		}
		i.statements[rows] = "INSERT " + i.OrAbort() + "INTO " + i.QuotedTable() + values + i.ConflictClause(sqltool.HasAll)
	}
	return i.statements[rows]
}

// columnsAndValues returns the columns of an INSERT and the placeholders of a row. A NOT NULL column that the rows
// lack is read from the existing row; for a new row this gives NULL, which the database refuses.
func columnsAndValues(w *sqltool.TableWrite, absent []string) (names, row string) {
	columns, values := w.Columns, make([]string, len(w.Columns))
	for at := range columns {
		values[at] = "?"
	}
	for _, column := range absent {
		conditions := lists.Map(w.Key, func(key string) string { return thereName + "." + sqltool.QuoteNames([]string{key}) + " = ?" })
		columns = append(slices.Clip(columns), column)
		values = append(values, "(SELECT "+sqltool.QuoteNames([]string{column})+" FROM "+w.QuotedTable()+" AS "+thereName+" WHERE "+strings.Join(conditions, " AND ")+")")
	}
	return sqltool.QuoteNames(columns), "(" + strings.Join(values, ", ") + ")"
}

// rowValues returns the values of the rows from first up to end, and the bytes of texts among them.
func (i *inserter) rowValues(first, end int) (values []any, size int, _ error) {
	values = make([]any, 0, (end-first)*len(i.Columns))
	for at, row := range i.Rows[first:end] {
		for c, column := range i.Columns {
			if sqltool.RoundsDeclared(i.types[c], row[column]) {
				return nil, 0, &roundedError{column: column, error: tool.Errorf(
					"%s, column %q: SQLite would round the number %s in a column of type %s; declare it as text",
					i.RowText(i.OriginalNumber(first+at)), column, tool.CutText(expression.Text(row[column]), 100), i.types[c])}
			}
			value := columnValue(row[column], i.types[c])
			switch value := value.(type) {
			case string:
				size += len(value)
			case []byte:
				size += len(value)
			}
			values = append(values, value)
		}
		for range i.absent {
			for _, key := range i.Key {
				values = append(values, columnValue(row[key], i.TypeOf(key)))
			}
		}
	}
	return values, size, nil
}

// roundedError is the error of a number whose digits a column does not keep.
type roundedError struct {
	error

	column string
}

func (e *roundedError) Unwrap() error { return e.error }
