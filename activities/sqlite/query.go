package sqlite

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// readOnly are the statements that need no turn to write. WITH may write.
var readOnly = map[string]bool{"select": true, "values": true, "explain": true}

// runQuery runs one statement on a connection of its own.
func (f *database) runQuery(ctx context.Context, query *sqltool.BoundStatement, limit int64) (interpreter.ToolResult, error) {
	var result interpreter.ToolResult
	err := f.useConnection(ctx, !readOnly[query.Parsed.Verb()], func(conn *guardedConn) (err error) {
		if err := tool.BeginAttempt(ctx); err != nil {
			return err
		}
		conn.statement = true
		result, err = runQuery(ctx, conn, query, limit)
		return refusedQuery(conn, query, err, limit)
	})
	return result, err
}

// refusedQuery returns the error of a statement that could not run, maybe because its guard refused it.
func refusedQuery(conn *guardedConn, query *sqltool.BoundStatement, err error, limit int64) error {
	if err != nil && conn.refused != "" {
		return tool.Errorf("step %q: the statement cannot be run: %s", query.Step, conn.refused)
	}
	return tooBigError(query, err, limit)
}

func runQuery(ctx context.Context, conn *guardedConn, query *sqltool.BoundStatement, limit int64) (interpreter.ToolResult, error) {
	if isVacuum(query) {
		return sqltool.RowsAffected(0), conn.vacuumFile(ctx)
	}
	rows, times, err := selectRows(ctx, conn, query, limit)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	if len(rows.Columns) > 0 {
		result := interpreter.ToolResult{Data: expression.Of(rows.List)}
		result.Meta.Notes = textTimeNotes(ctx, conn, query, rows.List, times)
		return result, nil
	}
	conn.statement = false
	return countChanges(ctx, conn, query.Parsed.Verb())
}

// isVacuum reports whether the statement is only VACUUM.
func isVacuum(s *sqltool.BoundStatement) bool {
	words := strings.Fields(strings.ToLower(s.Parsed.NumberParams(nil, true, false).Text))
	return slices.Equal(words, []string{"vacuum"}) || slices.Equal(words, []string{"vacuum", "main"})
}

// tooBigError returns the author's message if SQLite refuses a value because of its size.
func tooBigError(s *sqltool.BoundStatement, err error, limit int64) error {
	var db *sqlite.Error
	if !errors.As(err, &db) || db.Code() != codes.SQLITE_TOOBIG {
		return err
	}
	return tool.TooLargeErrorf("step %q: the statement produces a value that is too large; a result may have at most %d bytes; "+
		"select less of it, for example with substr(), or fewer columns", s.Step, limit)
}

// timeTypes are the declared types of columns whose texts the driver reads as times.
var timeTypes = []string{"DATE", "DATETIME", "TIMESTAMP"}

// wideRow is how many columns of a row may be as large as the whole result; the driver reads a
// row as a whole before it can be counted.
const wideRow = 8

// largestValue bounds the values of a statement, in bytes. Its parameters may be written back.
func largestValue(s *sqltool.BoundStatement, limit int64, columns int) int64 {
	largest := limit
	if columns > wideRow {
		largest = limit * wideRow / int64(columns)
	}
	for _, value := range s.Values {
		largest += int64(interpreter.EncodedSize(value))
	}
	return largest + 1<<10 // what a row takes beside its values
}

// selectRows runs a statement, and returns its rows and the names of the columns that the driver reads as times.
func selectRows(ctx context.Context, conn *guardedConn, query *sqltool.BoundStatement, limit int64) (*sqltool.RowCollector, []string, error) {
	numbered := query.Parsed.NumberParams(query.Values, true, false)
	args := lists.Map(numbered.Order, func(index int) any { return typedParameter(query.Values[index]) })
	result, err := boundQuery(ctx, conn, query, numbered.Text, args, limit)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = result.Close() }()
	types, err := result.ColumnTypes()
	if err != nil {
		return nil, nil, err
	}
	names := lists.Map(types, (*sql.ColumnType).Name)
	rows, err := sqltool.NewRows(query.Step, names, limit)
	if err != nil {
		return nil, nil, err
	}
	for result.Next() {
		row, _, size, err := scanRow(result, types, rows)
		if err != nil {
			return nil, nil, err
		}
		if err := rows.AddRow(ctx, row, size); err != nil {
			return nil, nil, err
		}
	}
	isTime := func(column *sql.ColumnType) bool {
		return slices.Contains(timeTypes, strings.ToUpper(column.DatabaseTypeName()))
	}
	return rows, lists.Map(lists.Filter(types, isTime), (*sql.ColumnType).Name), result.Err()
}

// boundQuery runs a statement whose values may not be larger than its limit allows.
func boundQuery(ctx context.Context, conn *guardedConn, query *sqltool.BoundStatement, text string, args []any, limit int64) (*sql.Rows, error) {
	columns, err := conn.columnCount(text)
	if err != nil {
		return nil, err
	}
	if err := conn.boundValues(largestValue(query, limit, columns)); err != nil {
		return nil, err
	}
	return conn.QueryContext(ctx, text, args...)
}

// scanRow reads the columns of a row for rows; more are the columns after these, as the
// driver returns them.
func scanRow(result *sql.Rows, types []*sql.ColumnType, rows *sqltool.RowCollector) (row, more []any, size int, err error) {
	all := make([]any, len(types))
	targets := make([]any, len(types))
	for i := range all {
		targets[i] = &all[i]
	}
	if err := result.Scan(targets...); err != nil {
		return nil, nil, 0, err
	}
	columns := len(rows.Columns)
	row = all[:columns]
	for i, value := range row {
		text, _ := value.(string)
		if err := sqltool.CheckUTF8(text); err != nil {
			return nil, nil, 0, rows.PlaceError(err, i, "select its bytes, as in CAST(%s AS BLOB)")
		}
		row[i] = resultValue(value, types[i].DatabaseTypeName())
		if text, ok := row[i].(string); ok {
			size += len(text)
		} else {
			size += 8
		}
	}
	return row, all[columns:], size, nil
}

// countChanges counts the rows of a statement that gave none. countChanges() keeps the
// number of the last write, so it is only read after one.
func countChanges(ctx context.Context, conn *guardedConn, verb string) (interpreter.ToolResult, error) {
	switch verb {
	case "insert", "update", "delete", "replace", "with":
	default:
		return sqltool.RowsAffected(0), nil
	}
	var n int64
	if err := conn.queryRow(ctx, "SELECT changes()", nil, &n); err != nil {
		return interpreter.ToolResult{}, err
	}
	return sqltool.RowsAffected(n), nil
}

// typedParameter returns a parameter with the type that SQLite gives to the same literal.
func typedParameter(value any) any {
	switch v := value.(type) {
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case int:
		return int64(v)
	case json.Number:
		if f, isFloat := expression.NearestFloat(v); isFloat {
			return f
		}
		return v.String()
	case []any, map[string]any:
		return expression.Text(v)
	}
	return value // nil, float64, string
}

// columnValue returns a value of table mode. Numbers become text in text columns, where SQLite would write 15 digits of a
// float, and if SQLite has no such number.
func columnValue(value any, declared string) any {
	switch v := value.(type) {
	case sqltool.Bytes:
		return append([]byte{}, v...) // nil would be NULL
	case float64:
		if sqltool.IsDeclaredText(declared) {
			return expression.Text(v)
		}
	case json.Number:
		if sqltool.IsDeclaredText(declared) || expression.IsRounded(v) {
			return v.String()
		}
	}
	return typedParameter(value)
}

// resultValue converts a value of the driver to its canonical form.
func resultValue(value any, declared string) any {
	switch v := value.(type) {
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case time.Time:
		if strings.EqualFold(declared, "DATE") && v.Equal(v.Truncate(24*time.Hour)) {
			return v.UTC().Format(time.DateOnly)
		}
		return v.UTC().Format(time.RFC3339Nano)
	case float64:
		if math.IsInf(v, 0) { // JSON has no such number; PostgreSQL writes it so
			return strings.Replace(strconv.FormatFloat(v, 'g', -1, 64)+"inity", "+Inf", "Inf", 1)
		}
		return sqltool.FloatValue(strconv.FormatFloat(v, 'g', -1, 64))
	}
	canonical, err := expression.Canonical(value)
	if err != nil {
		return expression.Text(value)
	}
	return canonical
}
