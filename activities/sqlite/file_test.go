package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"database/sql/driver"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sqlite "modernc.org/sqlite"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// stored are the ids in table t of a database as another process sees them,
// which knows only what is in the files.
func stored(t *testing.T, path string) string {
	t.Helper()

	const script = `
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
assert c.execute("PRAGMA integrity_check").fetchone() == ("ok",)
print(" ".join(str(id) for id, in c.execute("SELECT id FROM t ORDER BY id")))
`
	out, err := exec.CommandContext(t.Context(), "python3", "-c", script, path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// movingLite is a tool with an open database that has a table t with the row 1,
// and the path of the database.
func movingLite(t *testing.T) (tooltest.SQL, string) {
	t.Helper()

	lite, directory := liteTool(t)
	lite.Auth = "sqlite:data.db"
	lite.RunStatement(t, "CREATE TABLE t (id INTEGER PRIMARY KEY)", nil)
	require.NoError(t, insertID(t, lite, 1))

	path := filepath.Join(directory, "data.db")
	require.Equal(t, "1", stored(t, path))
	return lite, path
}

// TestSQLiteTriesALockedFileAgain: a write is made once who has locked the file for longer than SQLite waits lets go of it.
func TestSQLiteTriesALockedFileAgain(t *testing.T) {
	t.Parallel()

	lite, path := movingLite(t)
	other, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	conn, err := other.Conn(t.Context())
	require.NoError(t, err)
	_, err = conn.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	require.NoError(t, err)
	const longer = 5500 * time.Millisecond // than the timeout of connections
	released := time.AfterFunc(longer, func() { _, _ = conn.ExecContext(context.WithoutCancel(t.Context()), "COMMIT") })
	t.Cleanup(func() { released.Stop() })
	require.NoError(t, insertID(t, lite, 2))
	require.NoError(t, conn.Close())
	require.Equal(t, "1 2", stored(t, path))
}

func insertID(t *testing.T, lite tooltest.SQL, id int) error {
	t.Helper()

	in := lite.TableInput(map[string]any{"table": "t"}, map[string]any{"id": id})
	in.OperationKey = "op-" + string(rune('a'+id%26))
	_, err := lite.MakeAttempt(t, in)
	return err
}

// otherDatabase makes a database with a table t and the row 100.
func otherDatabase(t *testing.T, path string) {
	t.Helper()

	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (100)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// A file that is removed is made anew, as it was when it was first opened.
func TestSQLiteFileThatWasRemoved(t *testing.T) {
	t.Parallel()

	for name, suffixes := range map[string][]string{
		"alone": {""}, "with its log": {"", "-wal", "-shm"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			lite, path := movingLite(t)
			for _, suffix := range suffixes {
				require.NoError(t, os.Remove(path+suffix))
			}

			require.Contains(t, lite.FailingCall(t, lite.TableInput(map[string]any{"table": "t"}, map[string]any{"id": 2})).Message, "does not exist")
			lite.RunStatement(t, "CREATE TABLE t (id INTEGER PRIMARY KEY)", nil)
			require.NoError(t, insertID(t, lite, 1))
			require.Equal(t, tooltest.AffectedResult(1), lite.RunStatement(t, "INSERT INTO t VALUES (2)", nil))
			require.Equal(t, "1 2", stored(t, path))
		})
	}
}

// What was written before is in the file that was there before.
func TestSQLiteFileThatWasRenamed(t *testing.T) {
	t.Parallel()

	lite, path := movingLite(t)
	require.NoError(t, os.Rename(path, path+".old"))
	lite.RunStatement(t, "CREATE TABLE t (id INTEGER PRIMARY KEY)", nil)
	require.NoError(t, insertID(t, lite, 2))
	require.Equal(t, "1", stored(t, path+".old"))
	require.Equal(t, "2", stored(t, path))
}

// A link may point to another file from one day to the next.
func TestSQLiteLinkToAnotherFile(t *testing.T) {
	t.Parallel()

	lite, directory := liteTool(t)
	lite.Auth = "sqlite:link.db"
	link := filepath.Join(directory, "link.db")

	for i, name := range []string{"a.db", "b.db"} {
		_ = os.Remove(link)
		require.NoError(t, os.Symlink(name, link))
		lite.RunStatement(t, "CREATE TABLE t (id)", nil)
		require.NoError(t, insertID(t, lite, i))
	}

	require.Equal(t, "0", stored(t, filepath.Join(directory, "a.db")))
	require.Equal(t, "1", stored(t, filepath.Join(directory, "b.db")))
}

func TestSQLiteFolderThatWasRemoved(t *testing.T) {
	t.Parallel()

	lite, directory := liteTool(t)
	lite.Auth = "sqlite:deep/er/data.db"
	lite.RunStatement(t, "CREATE TABLE t (id)", nil)
	require.NoError(t, os.RemoveAll(filepath.Join(directory, "deep")))
	lite.RunStatement(t, "CREATE TABLE t (id)", nil)
	lite.RunStatement(t, "INSERT INTO t VALUES (2)", nil)
	require.Equal(t, "2", stored(t, filepath.Join(directory, "deep/er/data.db")))
}

// A file that another took the place of is written to no more, and its log is
// not taken for the other's.
func TestSQLiteFileThatWasReplaced(t *testing.T) {
	t.Parallel()

	for _, shared := range []bool{false, true} {
		t.Run(map[bool]string{false: "one worker", true: "two workers"}[shared], func(t *testing.T) {
			t.Parallel()

			lite, path := movingLite(t)
			second := lite

			if shared {
				second.Catalogue = activities.NewCatalogue(activities.Resources{Directory: filepath.Dir(path)})
				t.Cleanup(func() { require.NoError(t, second.Catalogue.Close()) })
				require.NoError(t, insertID(t, second, 2))
			}

			otherDatabase(t, path+".new")
			require.NoError(t, os.Rename(path+".new", path))

			require.Equal(t, []any{map[string]any{"id": 100}}, lite.RunStatement(t, "SELECT id FROM t", nil), "reads follow too")
			require.NoError(t, insertID(t, lite, 3))
			require.NoError(t, insertID(t, second, 4))
			require.NoError(t, insertID(t, lite, 5))
			require.Equal(t, "3 4 5 100", stored(t, path))
		})
	}
}

// pauses are the statements that wait in the function pause(): by its argument,
// a channel that is closed when it is reached, and one that it waits for.
var pauses sync.Map

type pause struct{ reached, goOn chan struct{} }

// newPause is the pause of a statement. Resume ends it, and so does the end of the test.
func newPause(t *testing.T, name string) (reached <-chan struct{}, resume func()) {
	t.Helper()

	p := pause{make(chan struct{}), make(chan struct{})}
	resume = sync.OnceFunc(func() { close(p.goOn) })

	pauses.Store(name, p)
	t.Cleanup(resume)
	return p.reached, resume
}

func init() {
	// A trigger may call what is built in only, but for these files.
	sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, dsn string) error {
		if !strings.Contains(dsn, "DuringAWrite") {
			return nil
		}

		_, err := conn.ExecContext(context.Background(), "PRAGMA trusted_schema = 1", nil)
		return err
	})
	sqlite.MustRegisterScalarFunction("pause", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		if p, ok := pauses.LoadAndDelete(args[0]); ok {
			close(p.(pause).reached)
			<-p.(pause).goOn
		}
		return int64(0), nil
	})
}

// What was written to a file that is gone before the write ends is not called
// written: the write is made again.
func TestSQLiteFileThatMovesDuringAWrite(t *testing.T) {
	t.Parallel()

	insert := map[string]func(*testing.T, tooltest.SQL) interpreter.ToolInput{
		"rows": func(_ *testing.T, lite tooltest.SQL) interpreter.ToolInput {
			in := lite.TableInput(map[string]any{"table": "t"}, map[string]any{"id": 7})
			in.OperationKey = "op"
			return in
		},
		"statement": func(t *testing.T, lite tooltest.SQL) interpreter.ToolInput {
			return lite.StatementInput(t, "INSERT INTO t VALUES (7)", nil)
		},
	}
	for what, input := range insert {
		for _, replaced := range []bool{false, true} {
			name := what + map[bool]string{false: " removed", true: " replaced"}[replaced]
			t.Run(name, func(t *testing.T) {
				t.Parallel()

				lite, path := movingLite(t)
				lite.RunStatement(t, "CREATE TRIGGER waits BEFORE INSERT ON t BEGIN SELECT pause('"+name+"'); END", nil)

				reached, resume := newPause(t, name)
				failed := make(chan error, 1)

				go func() {
					_, err := lite.MakeAttempt(t, input(t, lite))
					failed <- err
				}()

				testenv.Receive(t, reached, "the statement that pauses")

				if replaced {
					otherDatabase(t, path+".new")
					require.NoError(t, os.Rename(path+".new", path))
				} else {
					require.NoError(t, os.Remove(path))
				}

				resume()

				object := tooltest.ErrorObject(t, testenv.Receive(t, failed, "the end of the attempt"))
				require.Equal(t, "SQLITE_READONLY_DBMOVED", object.Type, object.Message)
				require.Equal(t, interpreter.ClassRetryable, object.Class)
				require.False(t, object.Final)

				if !replaced {
					lite.RunStatement(t, "CREATE TABLE t (id INTEGER PRIMARY KEY)", nil)
				}

				_, err := lite.MakeAttempt(t, input(t, lite))
				require.NoError(t, err)
				require.Equal(t, map[bool]string{false: "7", true: "7 100"}[replaced], stored(t, path))
			})
		}
	}
}

// The log of a database belongs to it: what is only in a log that was removed
// is in no file.
func TestSQLiteLogThatWasRemoved(t *testing.T) {
	t.Parallel()

	lite, path := movingLite(t)
	require.NoError(t, os.Remove(path+"-wal"))
	require.NoError(t, insertID(t, lite, 2))
	require.NoError(t, insertID(t, lite, 3))
	require.Equal(t, "1 2 3", stored(t, path))
}

// Another program may have the old file open, and its log.
func TestSQLiteFileThatAnotherProgramHasOpen(t *testing.T) {
	t.Parallel()

	lite, path := movingLite(t)

	const script = `
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("INSERT INTO t VALUES (50)")
print("open", flush=True)
sys.stdin.read()
c.close()
`
	other := exec.CommandContext(t.Context(), "python3", "-c", script, path)
	stdin, err := other.StdinPipe()
	require.NoError(t, err)
	stdout, err := other.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, other.Start())
	require.Equal(t, "open", testenv.ReadLine(t, bufio.NewReader(stdout), "the transaction of the other process"))

	otherDatabase(t, path+".new")
	require.NoError(t, os.Rename(path+".new", path))
	require.NoError(t, insertID(t, lite, 2))
	require.NoError(t, stdin.Close())
	require.NoError(t, testenv.WaitResult(t, other.Wait, "the end of the other process"))
	require.NoError(t, insertID(t, lite, 3))
	require.Equal(t, "2 3 100", stored(t, path))
}

// The old file is left when all have left it: until then a reader keeps what
// stands in its log from being brought into it.
func TestSQLiteFileThatIsStillRead(t *testing.T) {
	t.Parallel()

	lite, path := movingLite(t)
	reached, resume := newPause(t, "reader")
	read := make(chan error, 1)

	go func() {
		_, err := lite.MakeAttempt(t, lite.StatementInput(t, "SELECT id, pause('reader') AS p FROM t", nil))
		read <- err
	}()

	testenv.Receive(t, reached, "the statement that pauses")
	require.NoError(t, insertID(t, lite, 2))
	require.NoError(t, os.Rename(path, path+".old"))

	in := lite.StatementInput(t, "CREATE TABLE t (id)", nil)
	in.TimeoutSeconds = 0.3
	require.Equal(t, interpreter.KindTimeout, lite.FailingCall(t, in).Kind)

	resume()
	require.NoError(t, testenv.Receive(t, read, "the end of the reader"))
	lite.RunStatement(t, "CREATE TABLE t (id)", nil)
	require.Equal(t, "1 2", stored(t, path+".old"))
	require.Empty(t, stored(t, path))
}
