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
	"reprise/internal/base/private"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/statement"
)

// connectionSettings are applied to every connection. busy_timeout comes first: changing the
// journal mode needs a lock itself. The schema of a file, and its FTS tables, are not trusted.
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
	_ tool.StateStore = (*Tool)(nil)
	_ tool.Preparer   = (*Tool)(nil)
	_ tool.Beginner   = (*Tool)(nil)
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
		Doc: `The result of a statement that returns rows, such as SELECT or INSERT … RETURNING, is a
list of maps, one per row; that of any other is {rows_affected: n}. path names the file,
relative to the worker's directory, which it cannot leave. Instead, auth names a
connection such as sqlite:/var/lib/reprise/data.db. auth: sqlite:PATH means the same as
path, so one playbook can write to SQLite or to PostgreSQL. Missing files and folders
are created.

Templates in statement become bind parameters and are never part of the SQL text. A
template can replace any value, by itself or inside a literal such as '%{{ q }}%'.
Lists and maps become JSON, for functions such as json_each. In the result, blobs are
base64, and columns declared DATE, DATETIME or TIMESTAMP are RFC 3339. A text that is
not UTF-8 is an error that names row and column; CAST(x AS BLOB) selects its bytes.

` + sqltool.TableDoc + `

Before each attempt, the tool checks whether the file was removed or replaced. If so,
the attempt uses the file that is at the path now, or creates one. If the file is
removed or replaced during a write, the write fails with type SQLITE_READONLY_DBMOVED
and class retryable.

A statement stays within its file and has its own session: ATTACH, VACUUM INTO,
transactions and pragmas that affect more than the file are refused, and temporary
tables and settings do not affect the next statement.

All files of a worker share the memory that SQLite may use. A statement that needs more
fails with kind payload_too_large and type SQLITE_NOMEM; if other statements hold the
memory, the class is retryable.

If a file is locked for more than 5 seconds, the statement fails with type SQLITE_BUSY
and class retryable. Writes of rows are tried 6 times first.`,
		Fields: append([]playbook.Field{
			{Name: "statement", Kind: playbook.KindStatement, Doc: "One SQL statement, which runs in its own transaction."},
			{Name: "path", Kind: playbook.KindText, Doc: "The database file, instead of auth."},
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
	path, err := t.filePath(ctx, in)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	readOnly := tool.IsReadOnly(ctx)
	if readOnly && query == nil {
		return interpreter.ToolResult{}, tool.ErrReadOnly(in.Step)
	}
	file := t.openDatabase(databaseKey{path, readOnly})
	var result interpreter.ToolResult
	if query == nil {
		result, err = file.writeTable(ctx, write)
		if err == nil && write.Note != nil && t.sweeper.IsDue(path) {
			sqltool.LogSweep(ctx, t.res.Logger, in, file.sweepNotes(ctx))
		}
	} else {
		result, err = file.runQuery(ctx, query, t.res.MaxResponseBytes)
	}
	return result, classifyError(ctx, err)
}

// Prepare reads the rows of a write.
func (t *Tool) Prepare(in interpreter.ToolInput) any {
	return sqltool.PrepareRows(in, statement.SQLite)
}

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
		errs = append(errs, file.closeFile())
		delete(t.files, key)
	}
	return errors.Join(errs...)
}

// filePath returns the absolute path of the step's file. A path in the playbook stays in the
// worker's directory; one in the worker's configuration may be anywhere.
func (t *Tool) filePath(ctx context.Context, in interpreter.ToolInput) (string, error) {
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
		return t.localPath(base, field, in.Step)
	case in.Auth == "":
		return "", tool.ConfigErrorf("step %q: sqlite needs path, a file in the worker's directory, or auth, the name of a connection", in.Step)
	}
	if path, literal := strings.CutPrefix(in.Auth, "sqlite:"); literal {
		return t.localPath(base, path, in.Step) // a file's path is no secret, so it needs no configuration
	}
	connection, err := t.res.URLConnection(ctx, in.Auth, "sqlite", false)
	if err != nil {
		return "", err
	}
	path, isFile := FileOf(connection)
	if !isFile {
		return "", tool.ConfigErrorf("connection %q is not an SQLite file, such as sqlite:PATH", in.Auth)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return resolvePath(path), nil
}

// resolvePath resolves symbolic links in a path whose file may not exist yet. The result is compared with what SQLite
// opens, so a link that replaces a folder later has no effect.
func resolvePath(path string) string {
	const mostLinks = 40
	for range mostLinks {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	if folder := filepath.Dir(path); folder != path {
		return filepath.Join(resolvePath(folder), filepath.Base(path))
	}
	return path
}

// FileOf returns the path of the file that a connection names, absolute or relative to the worker's directory; false if it
// names none. A connection of another kind may be a secret, which must not become a file's name.
func FileOf(connection string) (path string, isFile bool) {
	path, isFile = strings.CutPrefix(connection, "sqlite:")
	path = strings.TrimPrefix(path, "//")
	if !isFile || path == "" || strings.ContainsRune(path, 0) || strings.Contains(path, ":memory:") {
		return "", false
	}
	return filepath.Clean(path), true
}

// localPath returns a file below the worker's directory that a playbook names.
func (t *Tool) localPath(base, path, step string) (string, error) {
	relative := path
	if filepath.IsAbs(path) {
		var err error
		if relative, err = filepath.Rel(base, path); err != nil {
			relative = ".."
		}
	}
	if !filepath.IsLocal(relative) || filepath.Clean(relative) == "." || strings.ContainsRune(relative, 0) || strings.Contains(relative, ":memory:") {
		return "", tool.ConfigErrorf("step %q: path %q is not in the worker's directory; use a relative path without .., or auth with a connection of the worker", step, path)
	}
	at := filepath.Join(base, relative)
	if err := staysBelow(base, relative, step); err != nil {
		return "", err
	}
	if t.isPrivate(at) {
		return "", tool.PrivateFileError("sqlite", step, path)
	}
	real := resolvePath(at)
	if below, err := filepath.Rel(resolvePath(base), real); err != nil || !filepath.IsLocal(below) {
		return "", errLeadsOut(step, relative)
	}
	return real, nil
}

// errLeadsOut refuses a file that a link leads to.
func errLeadsOut(step, path string) error {
	return tool.ConfigErrorf("step %q: path %q leads out of the worker's directory through a symbolic link; use auth with a connection of the worker", step, path)
}

// isPrivate reports whether a path leads, perhaps by links, to a file that playbooks must not use: a journal, a key,
// or a file that the operator or a program has named. A local server stores its key next to its database.
func (t *Tool) isPrivate(at string) bool {
	files := t.res.PrivateFiles()
	real, err := filepath.EvalSymlinks(at)
	if err != nil { // it is not there, and cannot be a link
		real = at
	}
	if files.NamesPath(at) || files.NamesPath(real) || private.IsName(filepath.Base(real)) || private.IsServerDatabase(real) {
		return true
	}
	info, err := os.Stat(real)
	return err == nil && files.IsNamed(info)
}

// staysBelow refuses a file that a symbolic link places outside of the worker's directory, or
// whose companion files (log, journal) would be.
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
			return errLeadsOut(step, relative)
		}
	}
	return nil
}

// databaseAt returns the database at a path.
func (t *Tool) databaseAt(path string) *database { return t.openDatabase(databaseKey{path: path}) }

func (t *Tool) openDatabase(key databaseKey) *database {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.files[key] == nil {
		heap.allowBytes(heapBytes(t.res))
		t.files[key] = newDatabase(key.path, sqltool.LargestValue(t.res), key.readOnly)
	}
	return t.files[key]
}
