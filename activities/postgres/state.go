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
	Name: `text COLLATE "C"`, Bytes: "bytea", Time: "timestamptz", Serial: "bigint GENERATED ALWAYS AS IDENTITY", Now: "now()", Least: "least",
	TimeText: func(column string) string {
		return "to_char(" + column + ` AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
	},
	KindOf: sqltool.KindOfType, CodePoints: ` COLLATE "C"`, Types: sqltool.PostgresTypes, Widen: "TYPE", IfNotExists: "IF NOT EXISTS ",
	NameProblem: sqltool.PostgresName,
	ShareRow:    " FOR KEY SHARE", LockRow: " FOR UPDATE", LockFree: " FOR UPDATE SKIP LOCKED",
	Ago:          func(seconds int) string { return "(now() - interval '" + strconv.Itoa(seconds) + " seconds')" },
	QuoteLiteral: "SELECT quote_literal($1::text)", Literal: func(value any) any { return expression.Text(value) },
	Differ: func(there, given []string) string {
		// By their images: equal numbers may have other digits, and some types have no equality.
		return "ROW(" + strings.Join(there, ", ") + ")::record OPERATOR(pg_catalog.*<>) ROW(" + strings.Join(given, ", ") + ")::record"
	},
}

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

// ClaimState has the call hold the state.
func (t *Tool) ClaimState(ctx context.Context, in interpreter.ToolInput, claim incremental.Claim) (claimed incremental.Claimed, err error) {
	target, err := sqltool.Target(in)
	if err != nil {
		return claimed, err
	}
	err = t.inState(ctx, in, true, func(tx stateTx) (err error) {
		claimed, err = sqltool.ClaimState(ctx, tx, claim, func() (sqltool.Table, error) { return lookUpTable(ctx, tx.tx, target) })
		return err
	})
	return claimed, err
}

// MoveState moves the state without a write of rows.
func (t *Tool) MoveState(ctx context.Context, in interpreter.ToolInput, write incremental.Write) error {
	return t.inState(ctx, in, true, func(tx stateTx) error { return sqltool.MoveState(ctx, tx, &write) })
}

// States are those whose names have the prefix.
func (t *Tool) States(ctx context.Context, in interpreter.ToolInput, prefix string) (states []incremental.State, err error) {
	err = t.readState(ctx, in, func(tx stateTx) (err error) {
		states, err = sqltool.States(ctx, tx, prefix)
		return err
	})
	return states, err
}

// SetState changes a state for a person.
func (t *Tool) SetState(ctx context.Context, in interpreter.ToolInput, change incremental.Change) error {
	return t.inState(ctx, in, !change.To.IsZero(), func(tx stateTx) error { return sqltool.SetState(ctx, tx, change) })
}

// StateHistory are the changes of a state.
func (t *Tool) StateHistory(ctx context.Context, in interpreter.ToolInput, name string) (changes []incremental.Change, err error) {
	err = t.readState(ctx, in, func(tx stateTx) (err error) {
		changes, err = sqltool.StateHistory(ctx, tx, name)
		return err
	})
	return changes, err
}

// inState runs do in a transaction. Where there are no tables, they are made, or there is
// nothing to do.
func (t *Tool) inState(ctx context.Context, in interpreter.ToolInput, create bool, do func(stateTx) error) error {
	return t.inSession(ctx, in, func(conn *pgx.Conn) error {
		transact := func() error {
			return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return do(stateTx{tx}) })
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

// readState runs do in a transaction that can only read. Where there are no tables, there is nothing to do.
func (t *Tool) readState(ctx context.Context, in interpreter.ToolInput, do func(stateTx) error) error {
	return t.inSession(ctx, in, func(conn *pgx.Conn) error {
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

// inSession gives do a connection. Its session is kept for the run where do has not failed.
func (t *Tool) inSession(ctx context.Context, in interpreter.ToolInput, do func(*pgx.Conn) error) error {
	pool, err := t.pool(ctx, in)
	if err != nil {
		return err
	}
	run, keep := sessionRun(in), ""
	conn, err := pool.acquire(ctx, run)
	if err != nil {
		return classifyError(ctx, err)
	}
	defer func() { pool.release(conn, keep) }()
	if err := do(conn.Conn()); err != nil {
		return err
	}
	keep = run
	return nil
}

// stateError says what a user who may not make or use the tables lacks.
func stateError(ctx context.Context, in interpreter.ToolInput, err error) error {
	converted := classifyError(ctx, err)
	var own *tool.Error
	if isSQLState(err, "42501") && errors.As(converted, &own) { // insufficient_privilege
		own.Message = "the user of connection \"" + in.Auth + "\" may not make or use the tables of states between runs (" +
			strings.Join([]string{sqltool.StateTable, sqltool.SeenTable, sqltool.BlocksTable, sqltool.StateHistoryTable}, ", ") +
			"): grant it CREATE on the schema, or make them and grant it SELECT, INSERT, UPDATE and DELETE: " + own.Message
	}
	return converted
}

// lookUpTable finds out whether a table has rows. One that may not be read has.
func lookUpTable(ctx context.Context, tx pgx.Tx, target *sqltool.Write) (table sqltool.Table, err error) {
	table.Shown = target.Shown
	var readable bool
	if err := tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL, coalesce(has_table_privilege(to_regclass($1), 'SELECT'), false)",
		target.QuotedTable()).Scan(&table.Exists, &readable); err != nil {
		return table, err
	}
	if !readable {
		table.HasRow = table.Exists
		return table, nil
	}
	err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+target.QuotedTable()+")").Scan(&table.HasRow)
	return table, err
}
