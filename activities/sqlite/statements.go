package sqlite

import (
	"context"
	"database/sql"
)

// mostCached bounds the texts of the statements that a connection caches, in bytes. SQLite
// takes some 30 times as much for the compiled statements, so rows with ever new columns would
// fill the memory.
const mostCached = 64 << 10

// statements caches the compiled statements of a connection by their texts. SQLite recompiles one, and asks the guard
// again, when tables have changed. A statement that is running is not in the cache, so that it can run twice at a
// time.
type statements struct {
	cached map[string]*sql.Stmt
	size   int // of their texts
}

func (s *statements) removeStatement(text string) *sql.Stmt {
	statement := s.cached[text]
	if statement != nil {
		delete(s.cached, text)
		s.size -= len(text)
	}
	return statement
}

func (s *statements) cacheStatement(text string, statement *sql.Stmt) {
	if same := s.removeStatement(text); same != nil {
		_ = same.Close()
	}
	if len(text) > mostCached {
		_ = statement.Close()
		return
	}
	if s.size+len(text) > mostCached {
		s.closeAll()
	}
	if s.cached == nil {
		s.cached = map[string]*sql.Stmt{}
	}
	s.cached[text] = statement
	s.size += len(text)
}

// closeAll closes all statements.
func (s *statements) closeAll() {
	for _, statement := range s.cached {
		_ = statement.Close()
	}
	*s = statements{}
}

// preparedStatement returns a compiled statement of this build. While a playbook's statement runs, nothing cached is
// returned: it was compiled with more rights.
func (c *guardedConn) preparedStatement(ctx context.Context, text string) (*sql.Stmt, error) {
	if !c.statement {
		if statement := c.statements.removeStatement(text); statement != nil {
			return statement, nil
		}
	}
	return c.PrepareContext(ctx, numberParams(text))
}

// cacheStatement caches a statement that has run, unless it failed.
func (c *guardedConn) cacheStatement(text string, statement *sql.Stmt, err error) {
	if err != nil || c.statement {
		_ = statement.Close()
		return
	}
	c.statements.cacheStatement(text, statement)
}

// withoutCancel returns the context for a statement that is short and never blocks: watching it for cancellation would
// take longer than running it. The next statement notices that the attempt is over.
func withoutCancel(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// execStatement runs a statement of this build.
func (c *guardedConn) execStatement(ctx context.Context, text string, args ...any) (affected int64, err error) {
	statement, err := c.preparedStatement(ctx, text)
	if err != nil {
		return 0, err
	}
	return c.execPrepared(ctx, text, statement, args)
}

func (c *guardedConn) execPrepared(ctx context.Context, text string, statement *sql.Stmt, args []any) (affected int64, err error) {
	result, err := statement.ExecContext(ctx, args...)
	c.cacheStatement(text, statement, err)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// queryRows runs a statement of this build that gives rows.
func (c *guardedConn) queryRows(ctx context.Context, text string, args []any, read func(scan func(...any) error) error) error {
	statement, err := c.preparedStatement(ctx, text)
	if err != nil {
		return err
	}
	err = readRows(ctx, statement, args, read)
	c.cacheStatement(text, statement, err)
	return err
}

func readRows(ctx context.Context, statement *sql.Stmt, args []any, read func(scan func(...any) error) error) error {
	rows, err := statement.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := read(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// queryRow reads the row that a statement of this build gives.
func (c *guardedConn) queryRow(ctx context.Context, text string, args []any, values ...any) error {
	missing := sql.ErrNoRows
	err := c.queryRows(ctx, text, args, func(scan func(...any) error) error {
		missing = nil
		return scan(values...)
	})
	if err != nil {
		return err
	}
	return missing
}
