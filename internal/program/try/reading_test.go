package try_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/program/try"
	"reprise/internal/test/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const statementBook = "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: a}\nworkflow:\n  - {step: a, tool: %s, statement: %q}\n"

// writingInWords are statements whose words hide that they write.
var writingInWords = map[string][]string{
	"postgres": {
		"EXPLAIN ANALYSE DELETE FROM t",
		"EXPLAIN (ANALYSE) DELETE FROM t",
		"EXPLAIN (ANALYZE, COSTS false) UPDATE t SET id = id + 10",
		"WITH gone AS (DELETE FROM t RETURNING id) SELECT * FROM gone",
		"SELECT * INTO other FROM t",
		"SELECT * FROM t FOR/**/UPDATE",
		"SELECT wipe()",
		"SELECT wipe_anyway()",
		"SELECT nextval('numbers')",
		"SELECT set_config('transaction_read_only', 'off', false), wipe()",
	},
	"sqlite": {
		"WITH gone AS (SELECT 1) DELETE FROM t",
		"PRAGMA user_version = 7",
		"PRAGMA incremental_vacuum",
	},
}

// TestReadingChangesNothing: whatever the words of a statement say, the database lets a try without AllowWrites only read.
func TestReadingChangesNothing(t *testing.T) {
	t.Parallel()
	db := testenv.Postgres(t)
	db.Exec(t, `CREATE TABLE t (id int); INSERT INTO t VALUES (1), (2); CREATE SEQUENCE numbers;
		CREATE FUNCTION wipe() RETURNS int LANGUAGE sql AS 'DELETE FROM t RETURNING 1';
		CREATE FUNCTION wipe_anyway() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
			PERFORM set_config('transaction_read_only', 'off', true); DELETE FROM t; RETURN 1; END $$`)
	state := func() []map[string]any {
		return db.Query(t, "SELECT (SELECT count(*) FROM t) AS rows, (SELECT is_called FROM numbers) AS drawn, to_regclass('other') IS NULL AS alone")
	}
	before := state()
	read := func(o *try.Options) { o.Resources.Connections = activities.Connections{"main": db.URL} }
	for _, statement := range writingInWords["postgres"] {
		book := fmt.Sprintf(statementBook, "postgres, auth: main", statement)
		report, _, err := tried(t, book, "", read)
		require.NoError(t, err, statement)
		require.Regexp(t, "read-only|before any query", report.Error, statement)
		require.Equal(t, before, state(), statement)
	}
	for _, statement := range []string{"TABLE t", "WITH x AS (SELECT id FROM t) SELECT * FROM x WHERE id > {{ 0 }}", "SHOW timezone", "EXPLAIN SELECT * FROM t"} {
		report, _, err := tried(t, fmt.Sprintf(statementBook, "postgres, auth: main", statement), "", read)
		require.NoError(t, err, statement)
		require.Empty(t, report.Error, statement)
	}
}

// TestReadingChangesNoFile: a file of SQLite is neither made nor written to by a try without AllowWrites.
func TestReadingChangesNoFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	at := func(o *try.Options) { o.Resources.Directory = folder }
	report, _, err := tried(t, fmt.Sprintf(statementBook, "sqlite, path: new/none.db", "SELECT 1 AS one"), "", at)
	require.NoError(t, err)
	require.Contains(t, report.Error, "none.db")
	require.NoDirExists(t, filepath.Join(folder, "new"))

	for _, journal := range []string{"wal", "delete"} {
		path := filepath.Join(folder, journal+".db")
		db, err := sql.Open("sqlite", path)
		require.NoError(t, err)
		for _, statement := range []string{"PRAGMA journal_mode = " + journal, "CREATE TABLE t (id int)", "INSERT INTO t VALUES (1), (2)"} {
			_, err = db.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		require.NoError(t, db.Close())
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, statement := range writingInWords["sqlite"] {
			report, _, err := tried(t, fmt.Sprintf(statementBook, "sqlite, path: "+journal+".db", statement), "", at)
			require.NoError(t, err, statement)
			require.NotEmpty(t, report.Error, statement)
		}
		report, _, err := tried(t, fmt.Sprintf(statementBook, "sqlite, path: "+journal+".db", "SELECT count(*) AS n FROM t"), "", at)
		require.NoError(t, err)
		require.Empty(t, report.Error)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
}
