package postgres

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/statement"
)

var _ sqltool.RowReader = (*Tool)(nil)

// ReadRows reads the rows of a statement in a transaction that can only read.
func (t *Tool) ReadRows(ctx context.Context, in interpreter.ToolInput, page *sqltool.QueryPage, each func(sqltool.QueriedRow) error) error {
	sql, err := sqltool.ReadQuery(in, statement.Postgres)
	if err != nil {
		return err
	}
	run := ""
	if sql.Parsed.IsPlain() {
		run = sessionRun(in)
	}
	ctx = tool.ReadOnly(ctx)
	err = t.inSession(ctx, in, run, func(conn *pgx.Conn) error {
		if err := tool.BeginAttempt(ctx); err != nil {
			return err
		}
		read := func(rows *rowQuery) error {
			q := &query{conn: conn.PgConn(), types: conn.TypeMap(), sql: sql, limit: t.res.MaxResponseBytes, usual: maxMessageBytes(t.res), rows: rows}
			_, err := q.runAlone(ctx)
			return err
		}
		if page != nil && page.After == nil {
			if err := read(&rowQuery{page: page, nulls: true}); err != nil {
				return err
			}
		}
		return read(&rowQuery{page: page, each: each})
	})
	if errors.Is(err, sqltool.ErrEnough) {
		return nil
	}
	return err
}

// rowQuery is the reading of a statement's rows one by one; nil where they are collected.
type rowQuery struct {
	page  *sqltool.QueryPage // nil for all rows
	nulls bool               // rows without a key are read, and are an error
	each  func(sqltool.QueriedRow) error

	admitted *sqltool.PageRows
	column   int // of the key
	key      []byte
	note     string // a remark about the rows so far, "" for none
}

// remark keeps a remark about the rows so far.
func (r *rowQuery) remark(note string) {
	if r != nil {
		r.note = note
	}
}

// errSkipped is a row that is not one of the page.
var errSkipped = errors.New("the row is the one before the page")

// surroundingSQL returns the SQL around that of the statement.
func (q *query) surroundingSQL() (before, after string) {
	switch {
	case q.rows == nil:
		return "", ""
	case q.rows.nulls:
		return q.rows.page.WrapNulls()
	}
	return q.rows.page.WrapRows("$"+strconv.Itoa(len(q.numbered.Order)+1), "")
}

// sqlText returns the SQL that the server is sent.
func (q *query) sqlText() string {
	before, after := q.surroundingSQL()
	return before + q.numbered.Text + after
}

// keyParams returns the parameters that follow the parameters of the statement.
func (r *rowQuery) keyParams() [][]byte {
	if r == nil || r.nulls || r.page == nil || r.page.After == nil {
		return nil
	}
	return [][]byte{r.page.After}
}

// rowFields returns the columns of the rows.
func (r *rowQuery) rowFields(prepared *pgconn.StatementDescription) []pgconn.FieldDescription {
	if r == nil || r.nulls || r.page == nil {
		return prepared.Fields
	}
	return prepared.Fields[:len(prepared.Fields)-1]
}

// begin starts passing the rows on.
func (r *rowQuery) begin(rows *sqltool.RowCollector) {
	if r == nil {
		return
	}
	r.admitted = sqltool.NewPageRows(r.page)
	if r.page != nil {
		r.column = slices.Index(rows.Columns, r.page.Column)
	}
	rows.Each = func(row map[string]any, bytes int) error {
		if r.nulls {
			return r.page.NullKeyError()
		}
		return r.each(sqltool.QueriedRow{Value: row, Bytes: bytes, Key: r.key, Note: r.note})
	}
}

// admitKey reads the key of a row. The error is errSkipped for the row before the page.
func (r *rowQuery) admitKey(values [][]byte) error {
	if r == nil || r.nulls || r.page == nil {
		return nil
	}
	r.key = slices.Clone(values[r.column])
	if r.key == nil { // it was added since the page before
		return r.page.NullKeyError()
	}
	admitted, err := r.admitted.AdmitRow(r.key, string(r.key), string(values[len(values)-1]) == "t")
	if err == nil && !admitted {
		return errSkipped
	}
	return err
}
