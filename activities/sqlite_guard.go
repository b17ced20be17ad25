package activities

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"
	"slices"
	"strings"

	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

// sqliteConn is a connection for one use of a file. What may be done with it is
// asked of SQLite's own parser, which calls the guard for every action of what
// it compiles; words of a statement say nothing.
type sqliteConn struct {
	*sql.Conn

	// statement is set while the SQL is a playbook's.
	statement bool
	// vacuum is set while SQLite is to copy the file over itself, for which it
	// opens a temporary one.
	vacuum bool
	// changed tells that the connection is no longer as it was opened.
	changed bool
	// refused is what the guard did not allow.
	refused string
}

// guardSQLite gives a connection a guard, and bounds for the SQL of this build.
func guardSQLite(conn *sql.Conn, length int64) (*sqliteConn, error) {
	c := &sqliteConn{Conn: conn}

	err := conn.Raw(func(driverConn any) error {
		registerer, ok := driverConn.(sqlite.AuthorizerRegisterer)
		if !ok {
			return toolErrorf("this build's SQLite has no authorizer")
		}

		return registerer.RegisterAuthorizer(c.allow)
	})
	if err != nil {
		return nil, err
	}

	if err := c.limit(codes.SQLITE_LIMIT_ATTACHED, 0); err != nil {
		return nil, err
	}

	return c, c.limit(codes.SQLITE_LIMIT_LENGTH, length)
}

func (c *sqliteConn) limit(id int, value int64) error {
	_, err := sqlite.Limit(c.Conn, id, int(min(value, math.MaxInt32)))

	return err
}

// release gives the connection back. One that was changed is closed: temporary
// tables and settings are no other run's.
func (c *sqliteConn) release() {
	if c.changed {
		_ = c.Raw(func(any) error { return driver.ErrBadConn }) // which the pool drops
	}

	_ = c.Close()
}

// sqlitePragmas are those that a statement may use, and whether it may give
// them a value. What is not here works on other files, on the process, or on
// the schema behind SQLite's back.
var sqlitePragmas = map[string]bool{
	"table_info": true, "table_xinfo": true, "table_list": true, "index_list": true, "index_info": true, "index_xinfo": true,
	"foreign_key_list": true, "foreign_key_check": true, "integrity_check": true, "quick_check": true,
	"user_version": true, "application_id": true, "auto_vacuum": true, "incremental_vacuum": true, "wal_checkpoint": true, "optimize": true,
	"page_count": false, "page_size": false, "freelist_count": false, "encoding": false, "schema_version": false, "data_version": false,
	"journal_mode": false, "function_list": false, "collation_list": false, "compile_options": false, "pragma_list": false, "module_list": false,
	// These hold for the connection, and so for their own statement.
	"foreign_keys": true, "defer_foreign_keys": true, "recursive_triggers": true, "case_sensitive_like": true, "synchronous": true,
	"cache_size": true, "busy_timeout": true, "automatic_index": true, "reverse_unordered_selects": true, "query_only": true,
}

// sqliteFunctions are those that no statement may call: they load code.
var sqliteFunctions = []string{"load_extension", "fts3_tokenizer"}

// allow is SQLite's question whether an action may be compiled.
func (c *sqliteConn) allow(action sqlite.AuthorizerActionCode, first, second, database, _ string) sqlite.AuthorizerReturnCode {
	if database == "temp" {
		c.changed = true
	}

	switch action {
	case sqlite.AuthAttach:
		// An empty name is a temporary file, or one that is calculated, which
		// only a vacuum of the file itself never does.
		if !c.vacuum || first != "" {
			return c.refuse("it reaches another file, which a statement must not do: use a step per file")
		}
	case sqlite.AuthDetach:
		return c.refuse("it detaches a file, and there is one only")
	case sqlite.AuthTransaction, sqlite.AuthSavepoint:
		if c.statement && !c.vacuum {
			return c.refuse("each statement is a transaction of its own")
		}
	case sqlite.AuthPragma:
		return c.pragma(strings.ToLower(first), second)
	case sqlite.AuthFunction:
		if slices.Contains(sqliteFunctions, strings.ToLower(second)) {
			return c.refuse(fmt.Sprintf("a statement must not call %s", strings.ToLower(second)))
		}
	}

	return sqlite.AuthorizerOK
}

func (c *sqliteConn) pragma(name, value string) sqlite.AuthorizerReturnCode {
	takes, known := sqlitePragmas[name]

	switch {
	case !known:
		return c.refuse(fmt.Sprintf("PRAGMA %s is not for statements: it works on more than this file", name))
	case value != "" && !takes:
		return c.refuse(fmt.Sprintf("PRAGMA %s can be read and not set by a statement", name))
	case value != "":
		c.changed = true
	}

	return sqlite.AuthorizerOK
}

func (c *sqliteConn) refuse(reason string) sqlite.AuthorizerReturnCode {
	if c.refused == "" {
		c.refused = reason
	}

	return sqlite.AuthorizerDeny
}

// columns is how many columns the result of a statement has, which SQLite
// compiles for it and does not run.
func (c *sqliteConn) columns(text string) (columns int, err error) {
	err = c.Raw(func(driverConn any) error {
		describer, ok := driverConn.(interface {
			ColumnInfo(query string) ([]sqlite.ColumnInfo, error)
		})
		if !ok {
			return toolErrorf("this build's SQLite does not describe statements")
		}

		info, err := describer.ColumnInfo(text)
		columns = len(info)

		return err
	})

	return columns, err
}

// compact is VACUUM: SQLite copies the file over itself. The words are our own,
// as VACUUM INTO would write another file.
func (c *sqliteConn) compact(ctx context.Context) error {
	if err := c.limit(codes.SQLITE_LIMIT_ATTACHED, 1); err != nil {
		return err
	}

	c.vacuum, c.changed = true, true

	_, err := c.ExecContext(ctx, "VACUUM")

	return err
}
