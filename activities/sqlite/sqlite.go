// Package sqlite is the tool that runs statements and writes rows on SQLite files.
package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/statement"
)

// connectionSettings open every connection. busy_timeout comes first: changing the
// journal mode needs a lock itself. What a file's schema and its tables of FTS hold is not trusted.
const connectionSettings = "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=trusted_schema(0)&_defensive=1"

// readOnlySettings open connections that change nothing: SQLite refuses to write, and does not make the file.
const readOnlySettings = "?mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)&_pragma=trusted_schema(0)&_defensive=1"

// Tool runs statements and writes rows on SQLite files. Files stay open
// until the worker ends, or they are removed or replaced.
type Tool struct {
	sqltool.StateTool
	res     tool.Resources
	mu      sync.Mutex
	files   map[databaseKey]*database
	sweeper sqltool.Sweeper
}

// databaseKey distinguishes connections to a file that may write to it.
type databaseKey struct {
	path     string
	readOnly bool
}

var (
	_ tool.StateKeeper = (*Tool)(nil)
	_ tool.Preparer    = (*Tool)(nil)
	_ tool.Beginner    = (*Tool)(nil)
)

// New makes the tool.
func New(res tool.Resources) *Tool {
	t := &Tool{res: res, files: map[databaseKey]*database{}}
	t.StateTool = sqltool.StateTool{Change: t.changeStates, Read: t.readStates}
	return t
}

// Spec describes the tool.
func (t *Tool) Spec() playbook.ToolSpec {
	return playbook.ToolSpec{
		Name:    "sqlite",
		Secrets: []string{"statement"},
		Summary: "Runs one SQL statement on an SQLite file, or writes rows to a table.",
		Doc: `The result of a statement that returns rows is a list of maps, one per row, also
for INSERT … RETURNING; of any other {rows_affected: n}. The file is named by
path, which is relative to the worker's directory and stays in it, or by auth, a
connection such as sqlite:/var/lib/reprise/data.db. An auth that is itself
sqlite:PATH means the same as path, so that one playbook can write to SQLite or
to PostgreSQL. File and directories are made when they are not there.

Templates in statement become bind parameters: their text is never part of the
SQL. A template may replace any value, bare or inside a literal such as
'%{{ q }}%'. Lists and maps are JSON, for json_each and its like. In the result,
blobs are base64, and columns declared DATE, DATETIME or TIMESTAMP give RFC 3339.

` + sqltool.TableDoc + `

A file that was removed or replaced is noticed before each attempt: the attempt
is made on what is at the path then, which is a new file where there is none.
Where that happens during a write, the write is an error of type
SQLITE_READONLY_DBMOVED and class retryable.

A statement stays in its file and has a session of its own: ATTACH, VACUUM INTO,
transactions and pragmas that work on more than the file are refused, and
temporary tables and settings do not reach the next statement.

All files of a worker share the memory that SQLite may take. A statement that
would take more than all of it is an error of kind payload_too_large and type
SQLITE_NOMEM; where others have it, the class is retryable.

A file that is locked for more than 5 seconds is an error of type SQLITE_BUSY
and class retryable.`,
		Fields: append([]playbook.Field{
			{Name: "statement", Kind: playbook.KindStatement, Doc: "One SQL statement; it is a transaction of its own."},
			{Name: "path", Kind: playbook.KindText, Doc: "The database file, in place of auth."},
		}, sqltool.TableFields()...),
		RequireOneOf: [][]string{{"path", "auth"}, {"statement", "table"}},
		RequireIf:    []playbook.Requirement{{Field: "mode", Value: sqltool.ModeUpsert, Needs: "key"}},
		Writes:       true,
		Dialect:      string(statement.SQLite),
		Example: `step: find_patient
tool: sqlite
path: demo.db
args: {id: p1, prefix: Mar}
statement: |
  SELECT id, name
  FROM patients
  WHERE id = {{ args.id }} OR name LIKE '{{ args.prefix }}%'
`,
	}
}

// Run runs the statement, or writes args to the table.
func (t *Tool) Run(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	query, write, err := sqltool.Read(in, statement.SQLite)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	path, err := t.path(ctx, in)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	readOnly := tool.IsReadOnly(ctx)
	if readOnly && query == nil {
		return interpreter.ToolResult{}, tool.ErrReadOnly(in.Step)
	}
	file := t.open(databaseKey{path, readOnly})
	var result interpreter.ToolResult
	if query == nil {
		result, err = file.write(ctx, write)
		if err == nil && write.Note != nil && t.sweeper.Due(path) {
			sqltool.LogSweep(ctx, t.res.Logger, in, file.sweep(ctx))
		}
	} else {
		result, err = file.query(ctx, query, t.res.MaxResponseBytes)
	}
	return result, classifyError(ctx, err)
}

// Prepare reads the rows of a write.
func (t *Tool) Prepare(in interpreter.ToolInput) any { return sqltool.Prepare(in, statement.SQLite) }

// Write is Run: a sink's rows arrive as its result.
func (t *Tool) Write(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	return t.Run(ctx, in)
}

// Close closes all files.
func (t *Tool) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for key, file := range t.files {
		errs = append(errs, file.close())
		delete(t.files, key)
	}
	return errors.Join(errs...)
}

// path is the absolute path of the step's file. A path of the playbook stays
// in the worker's directory; one of the worker's configuration may be anywhere.
func (t *Tool) path(ctx context.Context, in interpreter.ToolInput) (string, error) {
	field, err := tool.TextField(in, "path")
	if err != nil {
		return "", err
	}
	base, err := filepath.Abs(t.res.Directory)
	if err != nil {
		return "", tool.ConfigErrorf("the worker's directory cannot be found: %w", err)
	}
	switch {
	case field != "" && in.Auth != "":
		return "", tool.ConfigErrorf("step %q: sqlite takes path or auth, not both", in.Step)
	case field != "":
		return localPath(base, field, in.Step)
	case in.Auth == "":
		return "", tool.ConfigErrorf("step %q: sqlite needs path, a file in the worker's directory, or auth, the name of a connection", in.Step)
	}
	if path, literal := strings.CutPrefix(in.Auth, "sqlite:"); literal {
		return localPath(base, path, in.Step) // a file's path is no secret, so it needs no configuration
	}
	connection, err := t.res.URLConnection(ctx, in.Auth, "sqlite")
	if err != nil {
		return "", err
	}
	path, isFile := FileOf(connection)
	if !isFile {
		return "", tool.ConfigErrorf("connection %q is no SQLite file: write sqlite:PATH", in.Auth)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return path, nil
}

// FileOf is the path of the file that a connection names, absolute or relative to the worker's directory; false where it
// names none. What is of another kind may be a secret, and would become a file's name.
func FileOf(connection string) (path string, isFile bool) {
	path, isFile = strings.CutPrefix(connection, "sqlite:")
	path = strings.TrimPrefix(path, "//")
	if !isFile || path == "" || strings.ContainsRune(path, 0) || strings.Contains(path, ":memory:") {
		return "", false
	}
	return filepath.Clean(path), true
}

func localPath(base, path, step string) (string, error) {
	relative := path
	if filepath.IsAbs(path) {
		var err error
		if relative, err = filepath.Rel(base, path); err != nil {
			relative = ".."
		}
	}
	if !filepath.IsLocal(relative) || filepath.Clean(relative) == "." || strings.ContainsRune(relative, 0) || strings.Contains(relative, ":memory:") {
		return "", tool.ConfigErrorf("step %q: path %q is no file in the worker's directory: write a relative path without .., or use auth with a connection of the worker", step, path)
	}
	return filepath.Join(base, relative), staysBelow(base, relative, step)
}

// staysBelow refuses a file that is reached through a symbolic link out of the
// worker's directory, and so are those that SQLite keeps beside it.
func staysBelow(base, relative, step string) error {
	root, err := os.OpenRoot(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is nothing yet, and no link
	}
	if err != nil {
		return tool.ConfigErrorf("step %q: the worker's directory cannot be opened: %w", step, err)
	}
	defer func() { _ = root.Close() }()
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if _, err := root.Stat(relative + suffix); err != nil && strings.Contains(err.Error(), "escapes from parent") {
			return tool.ConfigErrorf("step %q: path %q leads out of the worker's directory by a symbolic link: use auth with a connection of the worker",
				step, relative)
		}
	}
	return nil
}

// file gives what is known of a path.
func (t *Tool) file(path string) *database { return t.open(databaseKey{path: path}) }

func (t *Tool) open(key databaseKey) *database {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.files[key] == nil {
		heap.allow(heapBytes(t.res))
		t.files[key] = newDatabase(key.path, sqltool.LargestValue(t.res), key.readOnly)
	}
	return t.files[key]
}
