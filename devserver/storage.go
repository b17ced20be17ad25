package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/resolver"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// lastTable is the table that the schema creates last: a database with it is complete.
const lastTable = "executions_visibility"

// firstTable is the table that the schema creates first. A database that has it and not the last one has an
// incomplete schema.
const firstTable = "namespaces"

// memoryPage is the page size of an in-memory database, in bytes. After a commit that moved rows between pages,
// SQLite scans all cached pages, and of an in-memory database all pages are cached. With the 4 KiB of database files,
// that took a seventh of the server's time after ten minutes of tests.
const memoryPage = "16384"

// storage is where the server keeps its state.
type storage struct {
	main       *config.SQL
	visibility *config.SQL // of SQLite the same
}

// isSQLite reports whether the state is in a file or in memory.
func (s storage) isSQLite() bool { return s.main.PluginName == sqlite.PluginName }

// openStorage returns the server's configuration of its databases, and creates what is missing of their schemas.
func openStorage(opts options) (storage, error) {
	if opts.postgres != "" {
		return openPostgres(opts.postgres)
	}
	conf, err := openSQLite(opts.dbFile)
	return storage{main: conf, visibility: conf}, err
}

// openSQLite creates the schema of a file that lacks it. An in-memory database gets its schema when it is first opened.
func openSQLite(file string) (*config.SQL, error) {
	if file == "" {
		return &config.SQL{
			PluginName:        sqlite.PluginName,
			DatabaseName:      "devserver-" + strconv.FormatUint(rand.Uint64(), 36),
			ConnectAttributes: map[string]string{"mode": "memory", "cache": "shared", "page_size": memoryPage},
		}, nil
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("find database file %q: %w", file, err)
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("find the folder of database file %q: %w", file, err)
	}
	conf := inFile(path)
	if err := ensureSchema(conf); err != nil {
		return nil, fmt.Errorf("prepare database file %q: %w", file, err)
	}
	return conf, nil
}

// inFile returns the configuration of a database in a file.
func inFile(path string) *config.SQL {
	return &config.SQL{
		PluginName: sqlite.PluginName,
		// The name becomes part of a URI, so its special characters are escaped.
		DatabaseName: strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path),
		ConnectAttributes: map[string]string{
			"mode": "rwc",
			// SQLite syncs once per checkpoint and not per commit: a killed process loses nothing; a power failure
			// may lose the last commits.
			"journal_mode": "wal",
			"synchronous":  "normal",
			"busy_timeout": "5000",
		},
	}
}

// settle moves the write-ahead log into the database file, so that the file alone can be copied once the server has
// stopped.
func settle(store storage) error {
	if !store.isSQLite() || store.main.ConnectAttributes["mode"] == "memory" {
		return nil
	}
	db, err := openAdmin(store.main)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
}

func openAdmin(conf *config.SQL) (sqlplugin.AdminDB, error) {
	return sql.NewSQLAdminDB(sqlplugin.DbKindUnknown, conf, resolver.NewNoopResolver(),
		log.NewNoopLogger(), metrics.NoopMetricsHandler)
}

// ensureSchema creates the schema in a database file without one.
func ensureSchema(conf *config.SQL) error {
	db, err := openAdmin(conf)
	if err != nil {
		return nameFullDisk(err)
	}
	defer func() { _ = db.Close() }()
	tables, err := db.ListTables(conf.DatabaseName)
	if err != nil {
		return nameFullDisk(err)
	}
	switch {
	case len(tables) == 0:
		return nameFullDisk(makeSchema(db))
	case slices.Contains(tables, lastTable):
		return nil
	case slices.Contains(tables, firstTable):
		return errors.New("its schema was cut off while it was made, so no run was ever in it: remove the file")
	default:
		return errors.New("it holds the tables of something else: choose another file")
	}
}

// SQLite's result codes for a full disk: that of any file, of which only the low byte counts, and that of the index
// of the write-ahead log.
const (
	codeFull      = 13
	codeIndexFull = 10 | 19<<8
)

// nameFullDisk adds to an error of SQLite for a full disk what to do about it, and returns other errors unchanged.
func nameFullDisk(err error) error {
	var coded interface{ Code() int }
	if errors.As(err, &coded) && (coded.Code()&0xff == codeFull || coded.Code() == codeIndexFull) {
		return fmt.Errorf("the disk is full: make room on it, or choose a file on another one: %w", err)
	}
	return err
}

// makeSchema creates the schema in one transaction, so that after a failure, such as a full disk, the next start can
// create it in the same file. The database has one connection.
func makeSchema(db sqlplugin.AdminDB) error {
	if err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := sqliteschema.SetupSchemaOnDB(db)
	if err == nil {
		err = db.Exec("COMMIT")
	}
	if err != nil {
		// SQLite rolls back by itself if the disk is full, so the error is ignored.
		_ = db.Exec("ROLLBACK")
	}
	return err
}
