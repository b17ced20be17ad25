package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
)

// readSettings open a connection that changes nothing, not even how the file keeps its log.
const readSettings = "?mode=ro&_pragma=busy_timeout(5000)&_pragma=query_only(1)&_pragma=trusted_schema(0)&_defensive=1"

// PlanWrite predicts what a write would do to its table. The file is opened for reading and is not
// created.
func (t *Tool) PlanWrite(ctx context.Context, in interpreter.ToolInput) (plan interpreter.TablePlan, err error) {
	path, err := t.filePath(ctx, in)
	if err != nil {
		return plan, err
	}
	query := func(conn *guardedConn) (err error) {
		table := &tableTx{stateTx: stateTx{conn}}
		if plan, err = sqltool.PlanWrite(ctx, table, in); err != nil {
			return err
		}
		return plan.EachTable(func(plan interpreter.TablePlan) error { return table.checkUnique(ctx, plan) })
	}
	if fileExists(path) {
		err = t.readOnly(ctx, path, query)
		return plan, classifyError(ctx, err)
	}
	err = t.readAt(ctx, "", "file::memory:", query) // what a file has that was just made
	plan.NewFile = true
	return plan, classifyError(ctx, err)
}

// checkUnique refuses an upsert for which the table has no index.
func (t tableTx) checkUnique(ctx context.Context, plan interpreter.TablePlan) error {
	if !plan.Exists {
		return nil
	}
	name, err := sqltool.NameOf(plan.Name)
	if err != nil {
		return err
	}
	indexes, err := t.uniqueIndexes(ctx, &sqltool.TableWrite{TableName: name})
	if err != nil {
		return err
	}
	lower := plan
	lower.Key = slices.Clone(plan.Key)
	for i, column := range plan.Key { // SQLite ignores letter case
		lower.Key[i] = strings.ToLower(column)
	}
	return sqltool.CheckUnique(lower, indexes)
}

// uniqueIndexes returns the columns, in lower case, of the table's unique indexes, the primary key included.
func (t tableTx) uniqueIndexes(ctx context.Context, w *sqltool.TableWrite) (indexes [][]string, err error) {
	const query = `SELECT 0, lower(name) FROM pragma_table_info($1) WHERE pk > 0 UNION ALL
		SELECT l.seq + 1, lower(c.name) FROM pragma_index_list($1) AS l, pragma_index_info(l.name) AS c WHERE l."unique" AND NOT l.partial`
	columns := map[int][]string{}
	err = t.Query(ctx, query, []any{w.Table[len(w.Table)-1]}, func(scan func(...any) error) error {
		var at int
		var name sql.NullString // of an expression there is none
		err := scan(&at, &name)
		columns[at] = append(columns[at], name.String)
		return err
	})
	return slices.Collect(maps.Values(columns)), err
}

// readOnly runs do in a transaction that can only read.
func (t *Tool) readOnly(ctx context.Context, path string, do func(*guardedConn) error) error {
	uri := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path)}
	settings := readSettings
	if restsWithLog(path) {
		settings += "&immutable=1"
	}
	return t.readAt(ctx, path, uri.String()+settings, do)
}

// restsWithLog reports whether a file uses a write-ahead log that is missing, since nobody has it
// open. SQLite would create it to read the file, unless it knows that the file does not change.
func restsWithLog(path string) bool {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	if _, err := os.Stat(target + "-wal"); !errors.Is(err, os.ErrNotExist) {
		return false // to open the file here would release the locks that SQLite holds on it
	}
	file, err := os.Open(target)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	const version, withLog = 18, 2 // of the format: sqlite.org/fileformat.html
	header := make([]byte, version+1)
	_, err = io.ReadFull(file, header)
	return err == nil && header[version] == withLog
}

// readAt runs do on a connection of its own.
func (t *Tool) readAt(ctx context.Context, path, address string, do func(*guardedConn) error) error {
	t.mu.Lock()
	heap.allowBytes(heapBytes(t.res))
	t.mu.Unlock()
	db, err := sql.Open("sqlite", address)
	if err != nil {
		return tool.ConfigErrorf("the file cannot be opened for reading: %w", err)
	}
	db.SetMaxOpenConns(1)
	open := &openFile{db: db, path: path}
	defer func() { _ = open.closeFile() }()
	return heap.useHeap(func() error {
		return open.withConnection(ctx, sqltool.LargestValue(t.res), func(conn *guardedConn) error {
			return conn.runTransaction(ctx, beginReading, func() (bool, error) { return false, do(conn) })
		})
	})
}
