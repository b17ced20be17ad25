package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"reprise/activities/tool"
)

// guardedConn is a connection to a file. SQLite's own parser decides what is allowed: it calls
// the guard for every action that it compiles, so statements need no parsing here.
//
// A file manages its connections itself. The pool of database/sql would keep the guard, but closes
// prepared statements after each use; and setting a guard again makes SQLite compile all statements
// again.
type guardedConn struct {
	*sql.Conn
	connUse

	statements statements
	length     int64 // what it bounds a value to now, in bytes
	// tables are the columns that are known of the file.
	tables *knownColumns
}

// connUse is one use of a connection.
type connUse struct {
	// statement is set while the SQL is a playbook's.
	statement bool
	// vacuum is set while SQLite copies the file, for which it opens a temporary one.
	vacuum bool
	// changed says that the connection is no longer as it was opened.
	changed bool
	// inTransaction says that a transaction may be open.
	inTransaction bool
	// refused is the action that the guard refused.
	refused string
}

// newGuarded returns a connection on which an authorizer refuses what playbooks must not do, such as ATTACH.
func newGuarded(conn *sql.Conn, tables *knownColumns) (*guardedConn, error) {
	c := &guardedConn{Conn: conn, tables: tables}
	err := conn.Raw(func(driverConn any) error {
		registerer, ok := driverConn.(sqlite.AuthorizerRegisterer)
		if !ok {
			return tool.Errorf("this build's SQLite has no authorizer")
		}
		return registerer.RegisterAuthorizer(c.authorize)
	})
	if err != nil {
		return nil, err
	}
	return c, c.setLimit(codes.SQLITE_LIMIT_ATTACHED, 0)
}

// boundValues bounds the values that the connection reads and writes, in bytes.
func (c *guardedConn) boundValues(length int64) error {
	if c.length == length {
		return nil
	}
	c.length = length
	return c.setLimit(codes.SQLITE_LIMIT_LENGTH, length)
}

func (c *guardedConn) setLimit(id int, value int64) error {
	_, err := sqlite.Limit(c.Conn, id, int(min(value, math.MaxInt32)))
	return err
}

const (
	// beginWriting takes the write lock, as a read lock that grows fails when two do it at once.
	beginWriting = "BEGIN IMMEDIATE"
	beginReading = "BEGIN"
)

// runTransaction runs do in a transaction, which is committed if do says so.
func (c *guardedConn) runTransaction(ctx context.Context, begin string, do func() (commit bool, err error)) error {
	c.inTransaction = true // whatever is said of a beginning that is interrupted
	defer c.rollBack()
	if _, err := c.execStatement(ctx, begin); err != nil {
		return err
	}
	if commit, err := do(); err != nil || !commit {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := c.execStatement(withoutCancel(ctx), "COMMIT") // and what is committed is not called interrupted
	c.inTransaction = err != nil
	return err
}

// rollBack ends a transaction that was not committed. Where SQLite has none, or cannot, the connection is not used
// again.
func (c *guardedConn) rollBack() {
	if !c.inTransaction {
		return
	}
	_, err := c.execStatement(context.Background(), "ROLLBACK")
	c.inTransaction = err != nil
}

// withoutSync runs do without waiting for the disk. After a power failure the file has either the old or the new
// content.
func (c *guardedConn) withoutSync(ctx context.Context, do func() error) error {
	const set = "PRAGMA synchronous = "
	changed := c.changed
	if _, err := c.ExecContext(ctx, set+"NORMAL"); err != nil {
		return err
	}
	err := do()
	if _, restored := c.ExecContext(ctx, set+"FULL"); restored == nil {
		c.changed = changed
	}
	return err
}

// closeConn closes the connection.
func (c *guardedConn) closeConn() {
	c.statements.closeAll()
	_ = c.Close()
}

// pragmaUse is the effect of a pragma's value, in a statement that may set one.
type pragmaUse int

const (
	pragmaReads pragmaUse = iota // it must not be given one
	pragmaAsks                   // it is part of a question, or goes to the file
	pragmaSets                   // it stays in the connection
)

// pragmaUses are the pragmas that a statement may use. All others affect other files, the
// process, or the schema without SQLite's knowledge.
var pragmaUses = map[string]pragmaUse{
	"table_info": pragmaAsks, "table_xinfo": pragmaAsks, "table_list": pragmaAsks, "index_list": pragmaAsks,
	"index_info": pragmaAsks, "index_xinfo": pragmaAsks, "foreign_key_list": pragmaAsks, "foreign_key_check": pragmaAsks,
	"integrity_check": pragmaAsks, "quick_check": pragmaAsks, "user_version": pragmaAsks, "application_id": pragmaAsks,
	"incremental_vacuum": pragmaAsks, "wal_checkpoint": pragmaAsks, "optimize": pragmaAsks,

	"page_count": pragmaReads, "page_size": pragmaReads, "freelist_count": pragmaReads, "encoding": pragmaReads,
	"schema_version": pragmaReads, "data_version": pragmaReads, "journal_mode": pragmaReads, "function_list": pragmaReads,
	"collation_list": pragmaReads, "compile_options": pragmaReads, "pragma_list": pragmaReads, "module_list": pragmaReads,

	"foreign_keys": pragmaSets, "defer_foreign_keys": pragmaSets, "recursive_triggers": pragmaSets,
	"case_sensitive_like": pragmaSets, "synchronous": pragmaSets, "cache_size": pragmaSets, "busy_timeout": pragmaSets,
	"automatic_index": pragmaSets, "reverse_unordered_selects": pragmaSets, "query_only": pragmaSets, "auto_vacuum": pragmaSets,
}

// refusedFunctions are the functions that no statement may call: they load code.
var refusedFunctions = []string{"load_extension", "fts3_tokenizer"}

// authorize is SQLite's question whether an action may be compiled.
func (c *guardedConn) authorize(action sqlite.AuthorizerActionCode, first, second, database, _ string) sqlite.AuthorizerReturnCode {
	if database == "temp" {
		c.changed = true
	}
	switch action {
	case sqlite.AuthAttach:
		// An empty name is a temporary file, or one that is computed, which only a vacuum of
		// the file itself never is.
		if !c.vacuum || first != "" {
			return c.refuseAction("it uses another file, which is not allowed; use a separate step for each file")
		}
	case sqlite.AuthDetach:
		return c.refuseAction("it detaches a file, but there is only one")
	case sqlite.AuthTransaction, sqlite.AuthSavepoint:
		if c.statement && !c.vacuum {
			return c.refuseAction("each statement runs in its own transaction")
		}
	case sqlite.AuthPragma:
		return c.authorizePragma(strings.ToLower(first), second)
	case sqlite.AuthFunction:
		if name := strings.ToLower(second); slices.Contains(refusedFunctions, name) || c.statement && name == instantFunction {
			return c.refuseAction(fmt.Sprintf("a statement must not call %s", strings.ToLower(second)))
		}
	}
	return sqlite.AuthorizerOK
}

func (c *guardedConn) authorizePragma(name, value string) sqlite.AuthorizerReturnCode {
	use, known := pragmaUses[name]
	switch {
	case !known:
		return c.refuseAction(fmt.Sprintf("PRAGMA %s is not allowed: it affects more than this file", name))
	case value != "" && use == pragmaReads:
		return c.refuseAction(fmt.Sprintf("PRAGMA %s can be read but not set", name))
	case value != "" && use == pragmaSets:
		c.changed = true
	}
	return sqlite.AuthorizerOK
}

func (c *guardedConn) refuseAction(reason string) sqlite.AuthorizerReturnCode {
	if c.refused == "" {
		c.refused = reason
	}
	return sqlite.AuthorizerDeny
}

// columnCount returns the number of columns in the result of a statement, which SQLite compiles for
// it and does not run.
func (c *guardedConn) columnCount(text string) (columns int, err error) {
	err = c.Raw(func(driverConn any) error {
		describer, ok := driverConn.(interface {
			ColumnInfo(query string) ([]sqlite.ColumnInfo, error)
		})
		if !ok {
			return tool.Errorf("this build's SQLite does not describe statements")
		}
		info, err := describer.ColumnInfo(text)
		columns = len(info)
		return err
	})
	return columns, err
}

// vacuumFile is VACUUM: SQLite copies the file over itself. The words are our own,
// as VACUUM INTO would write another file.
func (c *guardedConn) vacuumFile(ctx context.Context) error {
	if err := c.setLimit(codes.SQLITE_LIMIT_ATTACHED, 1); err != nil {
		return err
	}
	c.vacuum, c.changed = true, true
	_, err := c.ExecContext(ctx, "VACUUM")
	return err
}
