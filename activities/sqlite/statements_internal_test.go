package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"reprise/internal/test/testenv"
)

// newFile is a database with a table t, and its path.
func newFile(t *testing.T) (*database, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data.db")
	f := newDatabase(path, 1<<20, false)
	t.Cleanup(func() { require.NoError(t, f.closeFile()) })
	f.with(t, func(conn *guardedConn) {
		_, err := conn.execStatement(t.Context(), "CREATE TABLE t (id INTEGER PRIMARY KEY)")
		require.NoError(t, err)
	})
	return f, path
}

// with uses the database.
func (f *database) with(t *testing.T, do func(*guardedConn)) {
	t.Helper()
	require.NoError(t, f.useConnection(t.Context(), true, func(conn *guardedConn) error {
		do(conn)
		return nil
	}))
}

// another runs a statement as another program does, which has a connection of its own and no guard.
func another(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), statement)
	require.NoError(t, err)
}

// refusal is the code of SQLite's error.
func refusal(t *testing.T, err error) int {
	t.Helper()
	var refused *sqlite.Error
	require.ErrorAs(t, err, &refused)
	return primaryCode(refused.Code())
}

const insertT = "INSERT INTO t (id) VALUES ($1)"

// TestStatementsOfThisBuildAreCached: the next use of a file runs what the one before has compiled, where it went well.
func TestStatementsOfThisBuildAreCached(t *testing.T) {
	t.Parallel()
	f, _ := newFile(t)
	var first *sql.Stmt
	f.with(t, func(conn *guardedConn) {
		_, err := conn.execStatement(t.Context(), insertT, 1)
		require.NoError(t, err)
		first = conn.statements.cached[insertT]
		require.NotNil(t, first)
	})
	f.with(t, func(conn *guardedConn) {
		_, err := conn.execStatement(t.Context(), insertT, 2)
		require.NoError(t, err)
		require.Same(t, first, conn.statements.cached[insertT])
		_, err = conn.execStatement(t.Context(), insertT, 2)
		require.Equal(t, codes.SQLITE_CONSTRAINT, refusal(t, err))
		require.Nil(t, conn.statements.cached[insertT])
	})
	require.Equal(t, 2, f.ask(t, "SELECT count(*) FROM t"))
}

// TestCachedStatementsAreBounded: they are closed where they are too many, and with their connection.
func TestCachedStatementsAreBounded(t *testing.T) {
	t.Parallel()
	f, _ := newFile(t)
	var closed, last *sql.Stmt
	f.with(t, func(conn *guardedConn) {
		number := func(i, width int) (text string) {
			text = fmt.Sprintf("SELECT %*d", width, i)
			var got int
			require.NoError(t, conn.queryRow(t.Context(), text, nil, &got))
			require.Equal(t, i, got)
			require.LessOrEqual(t, conn.statements.size, mostCached)
			return text
		}
		closed = conn.statements.cached[number(1, 1000)]
		for i := range 2 * mostCached / 1000 {
			number(i+2, 1000)
		}
		last = conn.statements.cached[number(0, 1000)]
		require.NotNil(t, last)
		require.Nil(t, conn.statements.cached[number(0, mostCached)], "it is too large alone")
		require.Same(t, last, conn.statements.cached[number(0, 1000)])
		size := 0
		for text := range conn.statements.cached {
			size += len(text)
		}
		require.Equal(t, size, conn.statements.size)
		conn.changed = true // which closes the connection
	})
	for _, statement := range []*sql.Stmt{closed, last} {
		_, err := statement.ExecContext(t.Context())
		require.ErrorContains(t, err, "statement is closed")
	}
}

// TestStatementsRunWithinEachOther: a statement can run while the same one gives rows.
func TestStatementsRunWithinEachOther(t *testing.T) {
	t.Parallel()
	f, _ := newFile(t)
	const numbers = "SELECT column1 FROM (VALUES ($1), (2)) ORDER BY 1"
	f.with(t, func(conn *guardedConn) {
		for range 2 {
			var got []int
			add := func(scan func(...any) error) error {
				got = append(got, 0)
				return scan(&got[len(got)-1])
			}
			require.NoError(t, conn.queryRows(t.Context(), numbers, []any{1}, func(scan func(...any) error) error {
				if err := add(scan); err != nil {
					return err
				}
				return conn.queryRows(t.Context(), numbers, []any{0}, add)
			}))
			require.Equal(t, []int{1, 0, 2, 2, 0, 2}, got)
		}
	})
}

// TestCachedStatementsSeeWhatOthersChange: a statement is compiled again where another program has changed its table, and
// the guard is asked again.
func TestCachedStatementsSeeWhatOthersChange(t *testing.T) {
	t.Parallel()
	f, path := newFile(t)
	const columns, version = "SELECT * FROM t WHERE id = $1", "PRAGMA main.schema_version"
	id, versions := 0, map[int]bool{}
	// write inserts a row, and gives it.
	write := func() (row []any, err error) {
		id++
		f.with(t, func(conn *guardedConn) {
			var seen int
			require.NoError(t, conn.queryRow(t.Context(), version, nil, &seen))
			versions[seen] = true
			if _, err = conn.execStatement(t.Context(), insertT, id); err != nil {
				require.Contains(t, conn.refused, "load_extension")
				return
			}
			statement, prepared := conn.preparedStatement(t.Context(), columns)
			require.NoError(t, prepared)
			rows, queried := statement.QueryContext(t.Context(), id)
			require.NoError(t, queried)
			names, named := rows.Columns()
			require.NoError(t, named)
			row = make([]any, len(names))
			targets := make([]any, len(names))
			for i := range row {
				targets[i] = &row[i]
			}
			require.True(t, rows.Next())
			require.NoError(t, rows.Scan(targets...))
			require.NoError(t, rows.Close())
			conn.cacheStatement(columns, statement, nil)
		})
		return row, err
	}

	row, err := write()
	require.NoError(t, err)
	require.Equal(t, []any{int64(1)}, row)
	another(t, path, "ALTER TABLE t ADD COLUMN word TEXT DEFAULT 'a'")
	row, err = write()
	require.NoError(t, err)
	require.Equal(t, []any{int64(2), "a"}, row)
	another(t, path, "DROP TABLE t; CREATE TABLE t (word TEXT DEFAULT 'b', id INTEGER)")
	row, err = write()
	require.NoError(t, err)
	require.Equal(t, []any{"b", int64(3)}, row)

	another(t, path, "CREATE TRIGGER loads AFTER INSERT ON t BEGIN SELECT load_extension('x.so'); END")
	_, err = write()
	require.ErrorContains(t, err, "not authorized")
	another(t, path, "DROP TRIGGER loads")
	require.Equal(t, 1, f.ask(t, "SELECT count(*) FROM t")) // SQLite reads the tables again where it runs a statement, not where it refuses one
	row, err = write()
	require.NoError(t, err)
	require.Equal(t, []any{"b", int64(5)}, row)
	require.Len(t, versions, 5)
	require.Equal(t, 2, f.ask(t, "SELECT count(*) FROM t"))
}

// TestPlaybooksGetNothingThatWasCached: what this build may do was asked when it was compiled, so that a playbook's
// statement is always compiled itself, even with the same words.
func TestPlaybooksGetNothingThatWasCached(t *testing.T) {
	t.Parallel()
	f, _ := newFile(t)
	const instant = "SELECT reprise_instant('2026-01-01T00:00:00Z', 0) IS NOT NULL"
	own := []string{"SAVEPOINT reprise_rows", "RELEASE reprise_rows", beginWriting, "COMMIT", instant}
	f.with(t, func(conn *guardedConn) {
		for _, text := range own {
			_, err := conn.execStatement(t.Context(), text)
			require.NoError(t, err)
			require.Contains(t, conn.statements.cached, text)
		}
	})
	for _, text := range own {
		f.with(t, func(conn *guardedConn) {
			require.Contains(t, conn.statements.cached, text)
			conn.statement = true
			for _, run := range []func() error{
				func() error { _, err := conn.ExecContext(t.Context(), text); return err },
				func() error { _, err := conn.columnCount(text); return err },
				func() error { _, err := conn.execStatement(t.Context(), text); return err },
			} {
				conn.refused = ""
				require.ErrorContains(t, run(), "not authorized", text)
				require.NotEmpty(t, conn.refused, text)
			}
			conn.statement = false
			require.Contains(t, conn.statements.cached, text)
		})
	}
	f.with(t, func(conn *guardedConn) {
		conn.statement = true
		_, err := conn.execStatement(t.Context(), "SELECT 'of a playbook'")
		require.NoError(t, err)
		require.NotContains(t, conn.statements.cached, "SELECT 'of a playbook'")
	})
}

// TestUsesLeaveNothingBehind: a use finds the connection as if it were new, however the one before has ended.
func TestUsesLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	f, _ := newFile(t)
	var conn *guardedConn
	f.with(t, func(c *guardedConn) { conn = c })
	closes := []string{"undone by its table", "temporary", "set"}
	uses := map[string]func(context.Context, *guardedConn) error{
		"refused": func(ctx context.Context, c *guardedConn) error {
			c.statement = true
			_, err := c.ExecContext(ctx, "ATTACH 'other.db' AS other")
			require.Equal(t, codes.SQLITE_AUTH, refusal(t, err))
			require.NotEmpty(t, c.refused)
			return err
		},
		"large": func(_ context.Context, c *guardedConn) error { return c.boundValues(1 << 24) },
		"failed": func(ctx context.Context, c *guardedConn) error {
			return c.runTransaction(ctx, beginWriting, func() (bool, error) {
				_, err := c.execStatement(ctx, insertT, 1)
				require.NoError(t, err)
				_, err = c.execStatement(ctx, insertT, "text")
				return true, err
			})
		},
		"transaction": func(ctx context.Context, c *guardedConn) error {
			return c.runTransaction(ctx, beginWriting, func() (bool, error) {
				_, err := c.execStatement(ctx, insertT, 1)
				return false, err
			})
		},
		"undone by its table": func(ctx context.Context, c *guardedConn) error {
			return c.runTransaction(ctx, beginWriting, func() (bool, error) {
				_, err := c.execStatement(ctx, "INSERT OR ROLLBACK INTO t (id) VALUES (1), (1)")
				require.Equal(t, codes.SQLITE_CONSTRAINT, refusal(t, err))
				return true, err
			})
		},
		"temporary": func(ctx context.Context, c *guardedConn) error {
			_, err := c.execStatement(ctx, "CREATE TEMP TABLE left_behind (a)")
			return err
		},
		"set": func(ctx context.Context, c *guardedConn) error {
			_, err := c.execStatement(ctx, "PRAGMA query_only = 1")
			return err
		},
		"interrupted": func(ctx context.Context, c *guardedConn) error {
			ctx, cancel := context.WithCancel(ctx)
			return c.runTransaction(ctx, beginWriting, func() (bool, error) {
				_, err := c.execStatement(ctx, insertT, 1)
				require.NoError(t, err)
				cancel()
				return true, nil
			})
		},
	}
	for name, use := range uses {
		err := f.useConnection(t.Context(), true, func(c *guardedConn) error { return use(t.Context(), c) })
		f.with(t, func(c *guardedConn) {
			require.Equal(t, connUse{}, c.connUse, name)
			require.Equal(t, f.length, c.length, name)
			require.Equal(t, slices.Contains(closes, name), conn != c, "%s: %v", name, err)
			conn = c
			for question, want := range map[string]int{
				"SELECT count(*) FROM t": 0, "SELECT count(*) FROM sqlite_temp_master": 0, "PRAGMA query_only": 0, "PRAGMA synchronous": 2,
				"SELECT length(zeroblob(1000000))": 1_000_000,
			} {
				var got int
				require.NoError(t, c.QueryRowContext(t.Context(), question).Scan(&got), name)
				require.Equal(t, want, got, name)
			}
			_, large := c.ExecContext(t.Context(), "SELECT zeroblob(2000000)")
			require.Equal(t, codes.SQLITE_TOOBIG, refusal(t, large), name)
			c.changed = false // as questions about temporary tables say
			require.NoError(t, c.runTransaction(t.Context(), beginWriting, func() (bool, error) { return true, nil }), name)
		})
	}
}

// TestNothingIsCachedOfAnInterruptedUse: SQLite may come to know of an interruption once the use has ended.
func TestNothingIsCachedOfAnInterruptedUse(t *testing.T) {
	t.Parallel()
	f, _ := newFile(t)
	ctx, cancel := context.WithCancel(t.Context())
	var interrupted *guardedConn
	err := f.useConnection(ctx, true, func(conn *guardedConn) error {
		interrupted = conn
		return conn.runTransaction(ctx, beginWriting, func() (bool, error) {
			_, err := conn.execStatement(ctx, insertT, 1)
			require.NoError(t, err)
			cancel()
			return true, nil
		})
	})
	require.ErrorIs(t, err, context.Canceled)
	f.with(t, func(conn *guardedConn) { require.NotSame(t, interrupted, conn) })
	require.Zero(t, f.ask(t, "SELECT count(*) FROM t"))
}

// TestClosedFilesHaveNoConnection: a file that is closed has no connection left, and gets none of a use that ends later.
func TestClosedFilesHaveNoConnection(t *testing.T) {
	t.Parallel()
	f, _ := newFile(t)
	open := f.open.Load()
	f.with(t, func(*guardedConn) { require.Equal(t, 2, open.db.Stats().OpenConnections) })
	require.NoError(t, f.useConnection(t.Context(), false, func(*guardedConn) error {
		require.NoError(t, f.closeFile())
		require.Equal(t, 1, open.db.Stats().OpenConnections)
		return nil
	}))
	require.Zero(t, open.db.Stats().OpenConnections)

	f, _ = newFile(t)
	require.NoError(t, f.closeFile())
	require.Zero(t, f.open.Load().db.Stats().OpenConnections)
}

// TestUnsyncedWritesAgain: each of them is without the disk, and what follows waits for it.
func TestUnsyncedWritesAgain(t *testing.T) {
	t.Parallel()
	f, _ := newFile(t)
	for range 3 {
		f.with(t, func(conn *guardedConn) {
			synchronous := func() (level int) {
				require.NoError(t, conn.queryRow(t.Context(), "PRAGMA synchronous", nil, &level))
				return level
			}
			require.NoError(t, conn.withoutSync(t.Context(), func() error {
				require.Equal(t, 1, synchronous())
				return nil
			}))
			require.Equal(t, 2, synchronous())
			require.False(t, conn.changed)
		})
	}
}

// TestUsesOfFilesAtOnce: each use is asked about what it does itself, whatever others do at the same time.
func TestUsesOfFilesAtOnce(t *testing.T) {
	t.Parallel()
	const files, users, rounds = 3, 2 * maxConns, 20
	var all errgroup.Group
	opened := make([]*database, files)
	for at := range opened {
		f, _ := newFile(t)
		opened[at] = f
		for user := range users {
			all.Go(func() error {
				for round := range rounds {
					if err := useAtOnce(t.Context(), f, user, round*users+user); err != nil {
						return fmt.Errorf("file %d, user %d, round %d: %w", at, user, round, err)
					}
				}
				return nil
			})
		}
	}
	require.NoError(t, testenv.WaitResult(t, all.Wait, "the users of all files"))
	for _, f := range opened {
		require.Equal(t, users/2*rounds, f.ask(t, "SELECT count(*) FROM t"))
		current := f.open.Load()
		require.LessOrEqual(t, len(current.idle), maxIdle)
		require.LessOrEqual(t, current.db.Stats().OpenConnections, maxIdle+1)
	}
}

// useAtOnce has a user write a row, or be refused something of its own.
func useAtOnce(ctx context.Context, f *database, user, id int) error {
	return f.useConnection(ctx, user%2 == 0, func(conn *guardedConn) error {
		if user%2 == 0 {
			return conn.runTransaction(ctx, beginWriting, func() (bool, error) {
				_, err := conn.execStatement(ctx, insertT, id)
				return true, err
			})
		}
		conn.statement = true
		forbidden, says := "ATTACH 'other.db' AS other", "another file"
		if user%4 == 1 {
			forbidden, says = "SAVEPOINT mine", "runs in its own"
		}
		if _, err := conn.ExecContext(ctx, forbidden); err == nil || !strings.Contains(conn.refused, says) {
			return fmt.Errorf("%s: %w, refused: %q", forbidden, err, conn.refused)
		}
		return nil
	})
}
