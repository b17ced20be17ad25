package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/statement"
)

// query runs one statement on one connection. It uses the extended protocol with text in both
// directions, so that the server reads a parameter as it would read the literal.
type query struct {
	conn  *pgconn.PgConn
	types *pgtype.Map
	sql   *sqltool.BoundStatement
	limit int64 // of the result, in bytes
	usual int   // how large a message may be in other uses of the connection

	numbered statement.NumberedStatement
	prepared *pgconn.StatementDescription
	oids     []uint32 // of its parameters, as they were prepared

	rows *rowQuery // nil where the result is collected
	note string    // a remark about the rows, "" for none
}

// runAlone runs the statement as a transaction of its own, and reads no message
// that is larger than the whole result may be.
func (q *query) runAlone(ctx context.Context) (interpreter.ToolResult, error) {
	q.conn.Frontend().SetMaxBodyLen(int(min(q.limit+rowOverhead, math.MaxInt32)))
	defer q.conn.Frontend().SetMaxBodyLen(q.usual)
	result, err := q.runQuery(ctx)
	if err == nil {
		err = q.aloneError(ctx)
	}
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	return result, nil
}

// rowOverhead bounds the bytes of a row's message besides its values: the lengths of 1,664
// columns, the most that a row may have.
const rowOverhead = 8 << 10

func (q *query) runQuery(ctx context.Context) (interpreter.ToolResult, error) {
	if err := q.prepareStatement(ctx); err != nil {
		return interpreter.ToolResult{}, q.queryError(ctx, err)
	}
	values, err := q.encodeParams(ctx)
	if err != nil {
		return interpreter.ToolResult{}, q.queryError(ctx, err)
	}
	columns := lists.Map(q.rows.rowFields(q.prepared), func(field pgconn.FieldDescription) string { return field.Name })
	rows, err := sqltool.NewRows(q.sql.Step, columns, q.limit)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	q.rows.begin(rows)
	read := q.readRows
	if tool.IsReadOnly(ctx) {
		read = q.readOnly
	}
	tag, err := read(ctx, values, rows)
	if err != nil {
		return interpreter.ToolResult{}, q.queryError(ctx, err)
	}
	if len(columns) == 0 {
		return sqltool.RowsAffected(tag.RowsAffected()), nil
	}
	result := interpreter.ToolResult{Data: expression.Of(rows.List)}
	if q.note != "" {
		result.Meta.Notes = []string{q.note}
	}
	return result, nil
}

// forms are the ways to number a statement's parameters, the one closest to pasted text first.
// The server says which one it can type.
var forms = []struct{ share, cast bool }{{true, true}, {false, true}, {true, false}, {false, false}}

// prepareStatement finds the form of the statement that the server accepts.
func (q *query) prepareStatement(ctx context.Context) error {
	var first error
	for _, form := range forms {
		q.numbered = q.sql.Parsed.NumberParams(q.sql.Values, form.share, form.cast)
		err := q.describeStatement(ctx)
		if err == nil {
			return q.checkCount()
		}
		if first == nil {
			first = q.locateError(err)
		}
		if !isTyping(err) || len(q.sql.Values) == 0 {
			return q.locateError(err)
		}
	}
	return first
}

// describeStatement prepares the unnamed statement. A parameter whose type the server
// cannot know becomes text, as an untyped literal would.
func (q *query) describeStatement(ctx context.Context) error {
	oids := make([]uint32, len(q.numbered.Order)+len(q.rows.keyParams()))
	for {
		prepared, err := q.conn.Prepare(ctx, "", q.sqlText(), oids)
		if err == nil {
			q.prepared, q.oids = prepared, oids
			return nil
		}
		number, ok := untypedParam(err)
		if !ok || number < 1 || number > len(oids) || oids[number-1] != 0 {
			return err
		}
		oids[number-1] = pgtype.TextOID
	}
}

// checkCount catches statements that Prepare accepts and Bind would not.
func (q *query) checkCount() error {
	if len(q.prepared.ParamOIDs) == len(q.oids) {
		return nil
	}
	return tool.Errorf("the server expects %d parameters for this statement, which has %d templates: "+
		"a template is used where SQL allows no value, or the statement has its own placeholders",
		len(q.prepared.ParamOIDs), len(q.numbered.Order))
}

var parameterNumber = regexp.MustCompile(`\$(\d+)`)

// untypedParam reads which parameter's type the server could not determine (42P18).
func untypedParam(err error) (int, bool) {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "42P18" {
		return 0, false
	}
	found := parameterNumber.FindStringSubmatch(pg.Message)
	if found == nil {
		return 0, false
	}
	number, err := strconv.Atoi(found[1])
	return number, err == nil
}

// isTyping reports whether another form of numbering might help: ambiguous or
// mismatched types, no such operator or function, a missing GROUP BY.
func isTyping(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code {
	case "42P08", "42725", "42804", "42883", "42803":
		return true
	}
	return false
}

// encodeParams makes the parameters' text, by the types the server expects.
func (q *query) encodeParams(ctx context.Context) ([][]byte, error) {
	values := make([][]byte, len(q.numbered.Order))
	looked := false
	for i, index := range q.numbered.Order {
		value, oid := q.sql.Values[index], q.prepared.ParamOIDs[i]
		element, isArray := arrayElement(q.types, oid)
		_, isList := value.([]any)
		_, isText := value.(string)
		if oid >= firstUserOID && (isText || isList && !isArray) {
			var err error
			if oid, element, err = q.userType(ctx, oid); err != nil {
				return nil, err
			}
			isArray, looked = element != 0, true
		}
		if oid == pgtype.ByteaOID && isText || element == pgtype.ByteaOID && isList {
			var err error
			if value, err = bytesParameter(value); err != nil {
				return nil, err
			}
		}
		if oid == pgtype.TimestampOID || isArray && element == pgtype.TimestampOID {
			var problem string
			if value, problem = sqltool.UTCValue(value); problem != "" {
				return nil, tool.Errorf("template %d of the statement: %q %s", index+1, expression.Text(q.sql.Values[index]), problem)
			}
		}
		text, err := parameterText(value, isArray, element)
		if err != nil {
			return nil, err
		}
		values[i] = text
	}
	values = append(values, q.rows.keyParams()...)
	if !looked {
		return values, nil
	}
	// The look-up has replaced the unnamed statement.
	return values, q.describeStatement(ctx)
}

// firstUserOID is the first OID of types made by CREATE TYPE.
const firstUserOID = 16384

// userType asks the server about a user-defined type: what it is made of, and the type of its elements if it is an
// array.
func (q *query) userType(ctx context.Context, oid uint32) (base, element uint32, err error) {
	const describe = `SELECT b.oid, CASE b.typcategory WHEN 'A' THEN coalesce(nullif(b.typelem, 0), 'text'::regtype) ELSE 0 END
		FROM pg_type t JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END WHERE t.oid = $1`
	result := q.conn.ExecParams(ctx, describe, [][]byte{strconv.AppendUint(nil, uint64(oid), 10)}, []uint32{pgtype.OIDOID}, nil, nil).Read()
	if result.Err != nil || len(result.Rows) != 1 {
		return oid, 0, result.Err
	}
	numbers := [2]uint32{}
	for i, text := range result.Rows[0] {
		number, err := strconv.ParseUint(string(text), 10, 32)
		if err != nil {
			return 0, 0, err
		}
		numbers[i] = uint32(number)
	}
	return numbers[0], numbers[1], nil
}

// readOnly reads in a transaction that the server keeps read-only, and rolls it back. Whether a statement
// writes cannot be recognised by its text.
func (q *query) readOnly(ctx context.Context, values [][]byte, rows *sqltool.RowCollector) (pgconn.CommandTag, error) {
	if _, err := q.conn.Exec(ctx, "BEGIN READ ONLY").ReadAll(); err != nil {
		return pgconn.CommandTag{}, err
	}
	defer func() {
		if _, err := q.conn.Exec(ctx, "ROLLBACK").ReadAll(); err != nil {
			_ = q.conn.Close(ctx)
		}
	}()
	// The transaction's begin has dropped the unnamed statement. Its types are known, so no error aborts the transaction.
	if _, err := q.conn.Prepare(ctx, "", q.sqlText(), q.oids); err != nil {
		return pgconn.CommandTag{}, q.locateError(err)
	}
	return q.readRows(ctx, values, rows)
}

// placeError returns an error about a value of the next row with its place, nil for other errors.
func placeError(err error, rows *sqltool.RowCollector, column int) error {
	if err == nil {
		return nil
	}
	hint := "select it as text, as in %s::text"
	if noUTF8 := new(sqltool.NoUTF8Error); errors.As(err, &noUTF8) { // the database has no encoding
		hint = "select its bytes, as in convert_to(%s, 'SQL_ASCII')"
	}
	return rows.PlaceError(err, column, hint)
}

// readRows runs the prepared statement and collects its rows.
func (q *query) readRows(ctx context.Context, values [][]byte, rows *sqltool.RowCollector) (pgconn.CommandTag, error) {
	reader := q.conn.ExecPrepared(ctx, "", values, nil, nil)
	for reader.NextRow() {
		row := make([]any, len(rows.Columns))
		size := 0
		lossy := q.rows.admitKey(reader.Values())
		for i, text := range reader.Values()[:len(row)] {
			value, err := resultValue(q.types, q.prepared.Fields[i].DataTypeOID, text)
			lossy = cmp.Or(lossy, placeError(err, rows, i))
			row[i], size = value, size+len(text)
			if value == nil && text != nil && q.note == "" && isJSON(q.prepared.Fields[i].DataTypeOID) {
				q.note = fmt.Sprintf("column %q has the JSON value null, which is read as NULL, and would be written back as NULL", rows.Columns[i])
			}
		}
		q.rows.remark(q.note)
		if errors.Is(lossy, errSkipped) {
			continue
		}
		if lossy == nil {
			lossy = rows.AddRow(ctx, row, size)
		}
		if err := lossy; err != nil {
			// Reading on would only throw rows away; without the connection the
			// server stops too.
			_ = q.conn.Close(ctx)
			return pgconn.CommandTag{}, err
		}
	}
	tag, err := reader.Close()
	return tag, q.locateError(err)
}
