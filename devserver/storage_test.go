package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// tabled is a database file in which a statement was carried out.
func tabled(t *testing.T, statement string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "state.db")
	db, err := openAdmin(inFile(file))
	require.NoError(t, err)
	require.NoError(t, db.Exec(statement))
	require.NoError(t, db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"))
	require.NoError(t, db.Close())
	return file
}

// TestWhatAFileHolds: a file of something else, and one whose schema was cut off, are
// told apart, and left as they are.
func TestWhatAFileHolds(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]string{
		"CREATE TABLE notes (text)":    "it holds the tables of something else: choose another file",
		"CREATE TABLE namespaces (id)": "its schema was cut off while it was made, so no run was ever in it: remove the file",
	} {
		file := tabled(t, statement)
		before, err := os.ReadFile(file)
		require.NoError(t, err)
		status, _, stderr := runOnce(t, "--port", "0", "--headless", "--db-filename", file)
		require.Equal(t, exitError, status)
		require.Contains(t, stderr, file)
		require.Contains(t, stderr, want)
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
}

// TestASchemaIsMadeWholeOrNotAtAll: a file that may not grow is that on a full disk, to
// SQLite. It says so each time, and nothing of the schema stays.
func TestASchemaIsMadeWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.db")
	for _, pages := range []string{"2", "20", "100", "120"} {
		small := inFile(file)
		small.ConnectAttributes["max_page_count"] = pages
		for range 2 {
			require.ErrorContains(t, ensureSchema(small), "the disk is full: make room on it, or choose a file on another one", pages)
		}
		db, err := openAdmin(inFile(file))
		require.NoError(t, err)
		tables, err := db.ListTables(file)
		require.NoError(t, err)
		require.Empty(t, tables)
		require.NoError(t, db.Close())
	}
	_, err := openSQLite(file)
	require.NoError(t, err)
}
