package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
	_ "modernc.org/sqlite" // registers the driver

	"reprise/activities/tool"
	"reprise/interpreter"
)

const (
	// maxConns bounds how many attempts of a worker use one file at once. SQLite allows one
	// writer; more readers would compete for the disk, each with its own cache.
	maxConns = 4
	// maxIdle is how many unused connections to one file stay open. Each has a cache and two
	// file descriptors.
	maxIdle = 2
)

// database is a SQLite database at a path. Each user holds one share of users; reopening the
// file takes all of them.
type database struct {
	path string // without symbolic links
	// writer is a lock that heeds contexts: in one process writers queue here,
	// where waiting can be cancelled, and not in SQLite.
	writer chan struct{}
	users  *semaphore.Weighted
	// length bounds the values that this build itself writes and reads, in bytes.
	length int64
	// readOnly connections change nothing, and do not make the file.
	readOnly bool
	open     atomic.Pointer[openFile] // nil before the first use
	// forgetting lists calls whose notes are to be deleted.
	forgetting forgetting
}

func newDatabase(path string, length int64, readOnly bool) *database {
	return &database{path: path, length: length, readOnly: readOnly, writer: make(chan struct{}, 1), users: semaphore.NewWeighted(maxConns)}
}

// useConnection gives do a connection to the database that is at the path now. What was
// written to a file that is no longer there when do ends is nowhere, so that is
// an error.
func (f *database) useConnection(ctx context.Context, writes bool, do func(*guardedConn) error) error {
	if writes {
		select {
		case f.writer <- struct{}{}:
			defer func() { <-f.writer }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	open, err := f.currentFile(ctx)
	if err != nil {
		return err
	}
	defer f.users.Release(1)
	err = heap.useHeap(func() error { return open.withConnection(ctx, f.length, do) })
	if (writes || err != nil) && open.hasMoved() {
		return errMoved(f.path)
	}
	return err
}

// currentFile returns the open database with one share of its users. It opens the file if it is
// not open, or if another file is at the path now.
func (f *database) currentFile(ctx context.Context) (*openFile, error) {
	for {
		if err := f.users.Acquire(ctx, 1); err != nil {
			return nil, err
		}
		if open := f.open.Load(); open != nil && !open.hasMoved() {
			return open, nil
		}
		f.users.Release(1)
		if err := f.reopenFile(ctx); err != nil {
			return nil, err
		}
	}
}

// reopenFile waits until nobody uses the old file: while a connection is open, its write-ahead
// log is in the way of the new file.
func (f *database) reopenFile(ctx context.Context) error {
	if err := f.users.Acquire(ctx, maxConns); err != nil {
		return err
	}
	defer f.users.Release(maxConns)
	if open := f.open.Load(); open != nil {
		if !open.hasMoved() {
			return nil // another did it meanwhile
		}
		_ = open.closeFile() // whatever is wrong with it, it is not what is wanted
	}
	open, err := openFileAt(ctx, f.path, f.readOnly)
	f.open.Store(open)
	return err
}

// closeFile closes the database; attempts that run fail.
func (f *database) closeFile() error {
	if open := f.open.Load(); open != nil {
		return open.closeFile()
	}
	return nil
}

// openFile is an open database, and which files it is made of.
type openFile struct {
	db   *sql.DB
	path string // without symbolic links; "" of a database in memory
	// held is a connection that stays open: SQLite removes the log with the
	// last one.
	held  *sql.Conn
	names []string      // of the database, its log and the log's index
	files []os.FileInfo // under these names, nil for what is not there
	// columns are the columns of its tables that are known.
	columns knownColumns

	mu     sync.Mutex
	idle   []*guardedConn // connections that nobody uses
	closed bool
}

func openFileAt(ctx context.Context, path string, readOnly bool) (*openFile, error) {
	settings := connectionSettings
	if readOnly {
		settings = readOnlySettings
		if _, err := os.Stat(path); err != nil {
			return nil, tool.ConfigErrorf("the file %q cannot be read: %w", path, err)
		}
	} else if err := makeFile(path); err != nil {
		return nil, err
	}
	// A URI, because a plain path could not hold a question mark.
	uri := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path)}
	db, err := sql.Open("sqlite", uri.String()+settings)
	if err != nil {
		return nil, tool.ConfigErrorf("the file %q cannot be opened: %w", path, err)
	}
	db.SetMaxOpenConns(maxConns + 1)
	db.SetMaxIdleConns(-1) // a connection that is released is closed
	open := &openFile{db: db, path: path}
	if err := open.noteFiles(ctx, path); err != nil {
		_ = open.closeFile()
		return nil, err
	}
	return open, nil
}

// makeFile makes a new file, and the folders on the way, for this user alone. SQLite gives its log the mode of the file.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return tool.ConfigErrorf("the directory of %q cannot be created: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return tool.ConfigErrorf("the file %q cannot be created: %w", path, err)
	}
	return file.Close()
}

// withConnection gives do a connection with its guard.
func (o *openFile) withConnection(ctx context.Context, length int64, do func(*guardedConn) error) error {
	conn, err := o.connectionFor(ctx)
	if err != nil {
		return err
	}
	defer o.releaseConnection(ctx, conn)
	if err := conn.boundValues(length); err != nil {
		return err
	}
	return do(conn)
}

// connectionFor returns an unused connection, or a new one.
func (o *openFile) connectionFor(ctx context.Context) (*guardedConn, error) {
	o.mu.Lock()
	if last := len(o.idle) - 1; last >= 0 { // the last one has compiled most
		conn := o.idle[last]
		o.idle = o.idle[:last]
		o.mu.Unlock()
		return conn, nil
	}
	o.mu.Unlock()
	conn, err := o.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.checkFile(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	guarded, err := newGuarded(conn, &o.columns)
	if err != nil {
		_ = conn.Close()
	}
	return guarded, err
}

// releaseConnection keeps a connection for reuse. It closes a connection whose settings or temporary tables were
// changed, which other runs must not see, and one that was interrupted, because SQLite may notice that later.
func (o *openFile) releaseConnection(ctx context.Context, conn *guardedConn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if conn.changed || conn.inTransaction || ctx.Err() != nil || o.closed || len(o.idle) == maxIdle {
		conn.closeConn()
		return
	}
	conn.connUse = connUse{}
	o.idle = append(o.idle, conn)
}

// checkFile refuses a connection that has opened a file other than that of the path, which has no links: SQLite
// follows links, and reports the file that it has opened.
func (o *openFile) checkFile(ctx context.Context, conn *sql.Conn) error {
	if o.path == "" {
		return nil
	}
	var opened string
	err := conn.QueryRowContext(ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&opened)
	if err == nil && opened != o.path {
		return errMoved(o.path)
	}
	return err
}

// noteFiles opens the first connection and notes which files that has opened.
func (o *openFile) noteFiles(ctx context.Context, path string) error {
	before, _ := os.Stat(path) // nil where SQLite is about to make it
	var err error
	if o.held, err = o.db.Conn(ctx); err != nil {
		return err
	}
	if err := o.checkFile(ctx, o.held); err != nil {
		return err
	}
	// The first reading opens the log.
	var tables int
	if err := o.held.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
		return err
	}
	// The log is named after the file, not after a symbolic link to it.
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return errMoved(path)
	}
	o.names = []string{path, target + "-wal", target + "-shm"}
	o.files = make([]os.FileInfo, len(o.names))
	for i, name := range o.names {
		o.files[i], _ = os.Stat(name)
	}
	if o.files[0] == nil || before != nil && !os.SameFile(before, o.files[0]) {
		return errMoved(path)
	}
	return nil
}

// hasMoved reports whether the file, or its log, was removed or replaced since it
// was opened. Only names are looked at: to open the file here and close it
// again would release the locks that SQLite holds on it.
func (o *openFile) hasMoved() bool {
	for i, file := range o.files {
		if file != nil && !o.hasFile(i) {
			return true
		}
	}
	return false
}

// hasFile reports whether one of the files is still where it was.
func (o *openFile) hasFile(i int) bool {
	info, err := os.Stat(o.names[i])
	return err == nil && os.SameFile(info, o.files[i])
}

// closeFile closes the database. If the file has moved, its log is written into the file first,
// as SQLite does otherwise; then the log is removed if it is ours, because it would corrupt the
// database that has the name now.
func (o *openFile) closeFile() error {
	moved := o.hasMoved()
	if moved {
		_, _ = o.held.ExecContext(context.Background(), "PRAGMA wal_checkpoint")
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, conn := range o.idle {
		conn.closeConn()
	}
	o.idle, o.closed = nil, true
	err := o.db.Close()
	if o.held != nil {
		_ = o.held.Close()
	}
	for i := 1; moved && i < len(o.files); i++ {
		if o.files[i] != nil && o.hasFile(i) {
			_ = os.Remove(o.names[i])
		}
	}
	return err
}

// errMoved returns the error of an attempt under which the file was exchanged.
func errMoved(path string) error {
	return &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: "SQLITE_READONLY_DBMOVED",
		Message: "the file " + filepath.Base(path) + " was removed or replaced while it was in use, and the rows of this attempt may be lost",
	}
}
