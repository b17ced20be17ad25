package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/statement"
)

var _ sqltool.RowReader = (*Tool)(nil)

// ReadRows reads the rows of a statement within another query: there, SQLite accepts no statement that writes.
func (t *Tool) ReadRows(ctx context.Context, in interpreter.ToolInput, page *sqltool.QueryPage, each func(sqltool.QueriedRow) error) error {
	query, err := sqltool.ReadQuery(in, statement.SQLite)
	if err != nil {
		return err
	}
	path, err := t.filePath(ctx, in)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) { // opening would make it
		return &tool.Error{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: "not_found",
			Message: fmt.Sprintf("step %q: the SQLite file of from does not exist", in.Step),
		}
	}
	err = t.databaseAt(path).useConnection(ctx, false, func(conn *guardedConn) error {
		if err := tool.BeginAttempt(ctx); err != nil {
			return err
		}
		conn.statement = true
		r := &rowQuery{conn: conn, query: query, limit: t.res.MaxResponseBytes, page: page, each: each}
		return refusedQuery(conn, query, r.run(ctx), r.limit)
	})
	if errors.Is(err, sqltool.ErrEnough) {
		return nil
	}
	return classifyError(ctx, err)
}

// rowQuery is the reading of a statement's rows one by one.
type rowQuery struct {
	conn  *guardedConn
	query *sqltool.BoundStatement
	limit int64 // of a row, in bytes
	page  *sqltool.QueryPage
	each  func(sqltool.QueriedRow) error
}

func (r *rowQuery) run(ctx context.Context) error {
	numbered := r.query.Parsed.NumberParams(r.query.Values, true, false)
	args := lists.Map(numbered.Order, func(index int) any { return typedParameter(r.query.Values[index]) })
	if r.page != nil && r.page.After == nil {
		before, after := r.page.WrapNulls()
		result, err := boundQuery(ctx, r.conn, r.query, before+numbered.Text+after, args, r.limit)
		if err != nil {
			return err
		}
		found := result.Next()
		if err := errors.Join(result.Err(), result.Close()); err != nil {
			return err
		}
		if found {
			return r.page.NullKeyError()
		}
	}
	if r.page != nil && r.page.After != nil {
		key, err := decodeKey(r.page.After)
		if err != nil {
			return tool.ConfigErrorf("step %q: the key of the last row cannot be read: %w", r.query.Step, err)
		}
		args = append(args, key)
	}
	// The sign makes the driver leave the key unchanged, whatever type its column declares.
	before, after := r.page.WrapRows("?"+strconv.Itoa(len(numbered.Order)+1), "+%s")
	result, err := boundQuery(ctx, r.conn, r.query, before+numbered.Text+after, args, r.limit)
	if err != nil {
		return err
	}
	defer func() { _ = result.Close() }()
	return r.read(ctx, result)
}

// read gives the rows of a result to who wants them.
func (r *rowQuery) read(ctx context.Context, result *sql.Rows) error {
	types, err := result.ColumnTypes()
	if err != nil {
		return err
	}
	own := types // the columns of the statement
	if r.page != nil {
		own = types[:len(types)-2]
	}
	rows, err := sqltool.NewRows(r.query.Step, lists.Map(own, (*sql.ColumnType).Name), r.limit)
	if err != nil {
		return err
	}
	var key []byte
	rows.Each = func(row map[string]any, bytes int) error {
		return r.each(sqltool.QueriedRow{Value: row, Bytes: bytes, Key: key})
	}
	admitted := sqltool.NewPageRows(r.page)
	for result.Next() {
		row, raw, size, err := scanRow(result, types, rows)
		if err != nil {
			return err
		}
		if r.page != nil {
			if raw[0] == nil { // it was added since the page before
				return r.page.NullKeyError()
			}
			key = encodeKey(raw[0])
			isPage, err := admitted.AdmitRow(key, expression.Text(resultValue(raw[0], "")), raw[1] == int64(1))
			if err != nil {
				return err
			}
			if !isPage {
				continue
			}
		}
		if err := rows.AddRow(ctx, row, size); err != nil {
			return err
		}
	}
	return result.Err()
}

// storedKey is a key with its storage class, of which SQLite orders each apart.
type storedKey struct {
	Integer string `json:"integer,omitempty"`
	Real    string `json:"real,omitempty"`
	Text    []byte `json:"text,omitempty"`
	Blob    []byte `json:"blob,omitempty"`
	Empty   string `json:"empty,omitempty"` // text or blob
}

// encodeKey writes a key as decodeKey reads it.
func encodeKey(value any) []byte {
	var key storedKey
	switch v := value.(type) {
	case int64:
		key.Integer = strconv.FormatInt(v, 10)
	case float64:
		key.Real = strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		if key.Text = []byte(v); v == "" {
			key.Empty = "text"
		}
	case []byte:
		if key.Blob = v; len(v) == 0 {
			key.Empty = "blob"
		}
	}
	encoded, _ := json.Marshal(key) // it has nothing but texts
	return encoded
}

func decodeKey(encoded []byte) (any, error) {
	var key storedKey
	if err := json.Unmarshal(encoded, &key); err != nil {
		return nil, err
	}
	switch {
	case key.Integer != "":
		return strconv.ParseInt(key.Integer, 10, 64)
	case key.Real != "":
		return strconv.ParseFloat(key.Real, 64)
	case key.Blob != nil || key.Empty == "blob":
		return append([]byte{}, key.Blob...), nil
	}
	return string(key.Text), nil
}
