package postgres

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
)

var dialect = &sqltool.Dialect{
	Name: `text COLLATE "C"`, Bytes: "bytea", Time: "timestamptz", Serial: "bigint GENERATED ALWAYS AS IDENTITY", Now: "now()", Least: "least", Greatest: "greatest",
	BytesList: "unnest($1::text::bytea[]) AS given (n)", ListOf: func(list [][]byte) any { return byteaArray(list) },
	TimeText: func(column string) string {
		return "to_char(" + column + ` AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
	},
	KindOf: sqltool.KindOfType, ReaderOf: sqltool.ReaderOfType, IsTextual: isTextual, Mismatch: invalidText, NotOlder: notOlderCondition,
	InstantOf: instantExpression, InstantLiteral: instantLiteral, Types: sqltool.PostgresTypes, Widen: "TYPE", IfNotExists: "IF NOT EXISTS ",
	NameProblem: sqltool.PostgresName,
	ShareRow:    " FOR KEY SHARE", LockRow: " FOR UPDATE", LockFree: " FOR UPDATE SKIP LOCKED",
	Ago:          func(seconds int) string { return "(now() - interval '" + strconv.Itoa(seconds) + " seconds')" },
	QuoteLiteral: "SELECT quote_literal($1::text)", Literal: func(value any) any { return expression.Text(value) },
	Differ: func(there, given []string) string {
		// Rows are compared by their images: equal numbers may have other digits, and some types
		// have no equality.
		return "ROW(" + strings.Join(there, ", ") + ")::record OPERATOR(pg_catalog.*<>) ROW(" + strings.Join(given, ", ") + ")::record"
	},
}

// invalidText is the SQLSTATE of a text that a type cannot read.
const invalidText = "22P02"

// stateTx is a transaction for states.
type stateTx struct{ tx pgx.Tx }

// Dialect is PostgreSQL's.
func (stateTx) Dialect() *sqltool.Dialect { return dialect }

// Exec runs a statement.
func (s stateTx) Exec(ctx context.Context, statement string, args ...any) (int64, error) {
	tag, err := s.tx.Exec(ctx, statement, args...)
	return tag.RowsAffected(), err
}

// Query runs a statement that gives rows.
func (s stateTx) Query(ctx context.Context, statement string, args []any, read func(scan func(...any) error) error) error {
	rows, err := s.tx.Query(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// changeStates runs do in a transaction. It creates missing tables, or skips do if there is
// nothing to change.
func (t *Tool) changeStates(ctx context.Context, in interpreter.ToolInput, create bool, do func(sqltool.StateTx) error) error {
	return t.inSession(ctx, in, sessionRun(in), func(conn *pgx.Conn) error {
		if err := checkOwners(ctx, conn); err != nil {
			return classifyError(ctx, err)
		}
		transact := func() error {
			return pgx.BeginTxFunc(ctx, conn, writeOptions, func(tx pgx.Tx) error { return do(stateTx{tx}) })
		}
		err := transact()
		if lacksLedger(err) {
			if !create {
				return nil
			}
			if err = createLedger(ctx, conn, true, false); err == nil {
				err = transact()
			}
		}
		if err != nil {
			return stateError(ctx, in, err)
		}
		return nil
	})
}

// readStates runs do in a read-only transaction. It does nothing if the tables do not exist.
func (t *Tool) readStates(ctx context.Context, in interpreter.ToolInput, do func(sqltool.StateTx) error) error {
	return t.inSession(ctx, in, sessionRun(in), func(conn *pgx.Conn) error {
		err := readOnly(ctx, conn, func(tx pgx.Tx) error { return do(stateTx{tx}) })
		if err == nil || lacksLedger(err) {
			return nil
		}
		return stateError(ctx, in, err)
	})
}

// readOnly runs do in a transaction that can only read.
func readOnly(ctx context.Context, conn *pgx.Conn, do func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, do)
}

// inSession runs do with a connection that has the session of the run, "" for a new one. The session is kept for
// the run unless do fails.
func (t *Tool) inSession(ctx context.Context, in interpreter.ToolInput, run string, do func(*pgx.Conn) error) error {
	pool, err := t.pool(ctx, in)
	if err != nil {
		return err
	}
	holder := ""
	conn, err := pool.acquireConn(ctx, run)
	if isSQLState(err, "28P01") || isSQLState(err, "28000") { // invalid_password, invalid_authorization_specification
		renewed, errRenewed := t.renewedPool(ctx, in, pool)
		if errRenewed != nil {
			return errRenewed
		}
		if renewed != nil {
			pool = renewed
			conn, err = pool.acquireConn(ctx, run)
		}
	}
	if err != nil {
		return classifyError(ctx, err)
	}
	defer func() { pool.releaseConn(conn, holder) }()
	if err := do(conn.Conn()); err != nil {
		return err
	}
	holder = run
	return nil
}

// stateError says which right a user lacks to create or use the tables.
func stateError(ctx context.Context, in interpreter.ToolInput, err error) error {
	converted := classifyError(ctx, err)
	if own, ok := errors.AsType[*tool.Error](converted); ok && isSQLState(err, "42501") { // insufficient_privilege
		own.Message = "the user of connection \"" + in.Auth + "\" may not create or use the tables that store states between runs (" +
			strings.Join([]string{sqltool.StateTable, sqltool.SeenTable, sqltool.BlocksTable, sqltool.StateHistoryTable}, ", ") +
			"): grant it CREATE on the schema, or create them and grant it SELECT, INSERT, UPDATE and DELETE: " + own.Message
	}
	return converted
}

// LookUp finds out which table a name is, or would be once it is made, and whether it has rows. One that may not be read has.
func (s stateTx) LookUp(ctx context.Context, w *sqltool.TableWrite) (table incremental.Table, err error) {
	const look = `SELECT c.oid IS NOT NULL, coalesce(has_table_privilege(c.oid, 'SELECT'), false),
		format('%I.%I', coalesce(n.nspname, $2::text, current_schema(), ''), coalesce(c.relname, $3::text))
		FROM (SELECT to_regclass($1) AS oid) AS named LEFT JOIN pg_class c ON c.oid = named.oid LEFT JOIN pg_namespace n ON n.oid = c.relnamespace`
	table.Shown = w.Shown
	var schema any
	name := w.Table[len(w.Table)-1]
	if len(w.Table) > 1 {
		schema = w.Table[len(w.Table)-2]
	}
	var readable bool
	err = s.Query(ctx, look, []any{w.QuotedTable(), schema, name}, func(scan func(...any) error) error {
		return scan(&table.Exists, &readable, &table.Name)
	})
	if err != nil || !readable {
		table.HasRow = table.Exists
		return table, err
	}
	err = s.Query(ctx, "SELECT EXISTS (SELECT FROM "+w.QuotedTable()+")", nil, func(scan func(...any) error) error { return scan(&table.HasRow) })
	return table, err
}
