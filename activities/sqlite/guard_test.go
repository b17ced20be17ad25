package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// TestSQLiteStaysInItsFile: what a statement may reach is not a question of its
// first word. None of these leaves a file, or a setting of the process.
func TestSQLiteStaysInItsFile(t *testing.T) {
	t.Parallel()

	lite, directory := liteTool(t)
	lite.RunStatement(t, "CREATE TABLE kept (a)", nil)

	before, err := os.ReadDir(directory)
	require.NoError(t, err)

	other := filepath.Join(directory, "other.db")
	for statement, says := range map[string]string{
		"ATTACH '" + other + "' AS x":                            "uses another file",
		"\ufeffATTACH '" + other + "' AS x":                      "uses another file",
		"\ufeff\ufeff/**/ATTACH ('" + other + "' || '') AS x":    "uses another file",
		"ATTACH '' AS x":                                         "uses another file",
		"\ufeffVACUUM INTO '" + other + "'":                      "uses another file",
		"VACUUM/**/INTO '" + other + "'":                         "uses another file",
		"VACUUM main INTO '" + other + "'":                       "uses another file",
		"DETACH main":                                            "detaches",
		"\ufeffBEGIN":                                            "needs a second statement",
		"\ufeffSAVEPOINT a":                                      "needs a second statement",
		"PRAGMA temp_store_directory = '" + directory + "'":      "is not allowed",
		"PRAGMA data_store_directory = '" + directory + "'":      "is not allowed",
		"\ufeffPRAGMA main.writable_schema = 1":                  "is not allowed",
		"PRAGMA trusted_schema = 1":                              "is not allowed",
		"PRAGMA hard_heap_limit = 1":                             "is not allowed",
		"PRAGMA journal_mode = OFF":                              "can be read but not set",
		"PRAGMA schema_version = 1":                              "can be read but not set",
		"SELECT load_extension('x.so')":                          "must not call load_extension",
		"SELECT fts3_tokenizer('simple')":                        "no such function",
		"UPDATE sqlite_schema SET sql = ''":                      "may not be modified",
		"UPDATE sqlite_dbpage SET data = zeroblob(4096)":         "read-only",
		"CREATE VIEW v AS SELECT 1; ATTACH '" + other + "' AS x": "a second statement",
	} {
		object := lite.FailingCall(t, lite.RawInput(statement))
		require.Equal(t, interpreter.ClassFinal, object.Class, statement)
		require.Contains(t, object.Message, says, statement)
	}

	after, err := os.ReadDir(directory)
	require.NoError(t, err)
	require.Len(t, after, len(before))

	require.Equal(t, tooltest.AffectedResult(0), lite.RunStatement(t, "VACUUM;", nil))
	require.Equal(t, tooltest.AffectedResult(0), lite.RunStatement(t, "vacuum main", nil))
	require.Equal(t, tooltest.AffectedResult(0), lite.RunStatement(t, "REINDEX", nil))
	require.Equal(t, tooltest.AffectedResult(0), lite.RunStatement(t, "ANALYZE", nil))
	lite.RunStatement(t, "PRAGMA optimize", nil)
	require.Equal(t, []any{map[string]any{"journal_mode": "wal"}}, lite.RunStatement(t, "PRAGMA journal_mode", nil))
	lite.RunStatement(t, "CREATE VIRTUAL TABLE words USING fts5(text)", nil)
	require.Equal(t, tooltest.AffectedResult(1), lite.RunStatement(t, "INSERT INTO words VALUES ('hello')", nil))
}

// TestSQLiteForgetsTheSession: nothing that a connection holds reaches the next
// statement, whatever its words were.
func TestSQLiteForgetsTheSession(t *testing.T) {
	t.Parallel()

	lite, _ := liteTool(t)

	for _, statement := range []string{
		"CREATE TEMP TABLE secret (a)", "\ufeffCREATE TEMP TABLE secret (a)", "CREATE TABLE temp.secret (a)",
		"CREATE VIRTUAL TABLE temp.secret USING fts5(a)", "CREATE TEMP VIEW secret AS SELECT 1", "PRAGMA foreign_keys = 1",
		"\ufeffPRAGMA query_only(1)", "PRAGMA case_sensitive_like = 1",
	} {
		_, err := lite.MakeAttempt(t, lite.RawInput(statement))
		require.NoError(t, err, statement)

		for range 5 {
			require.Equal(t, []any{map[string]any{"temporary": 0, "keys": 0, "reads": 0, "alike": 1}}, lite.RunStatement(t,
				"SELECT (SELECT count(*) FROM sqlite_temp_master) AS temporary, (SELECT foreign_keys FROM pragma_foreign_keys) AS keys, "+
					"(SELECT query_only FROM pragma_query_only) AS reads, 'a' LIKE 'A' AS alike", nil), statement)
		}
	}
}

// TestSQLiteTakesItsOwnConnectionsOnly: a secret of another kind is no path.
func TestSQLiteTakesItsOwnConnectionsOnly(t *testing.T) {
	t.Parallel()

	directory := t.TempDir()
	connections := activities.Connections{
		"bearer": "bearer:sesame-open", "header": "header:X-Key:sesame-open", "web": "https://eve:sesame-open@127.0.0.1/x",
		"server": "postgres://eve:sesame-open@127.0.0.1/x", "plain": "sesame-open", "nothing": "sqlite:", "good": "sqlite:good.db",
	}
	catalogue := activities.NewCatalogue(activities.Resources{Connections: connections, Directory: directory})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })

	for name := range connections {
		for _, tool := range []string{"sqlite", "postgres"} {
			if tool+name == "sqlitegood" || tool+name == "postgresserver" {
				continue
			}

			database := tooltest.SQL{Catalogue: catalogue, Name: tool, Auth: name}
			object := database.FailingCall(t, database.RawInput("SELECT 1"))
			require.True(t, object.Final, name)
			require.Contains(t, object.Message, `connection "`+name+`" is not a`, name)
			require.NotContains(t, object.Message, "sesame", name)
		}
	}

	files, err := os.ReadDir(directory)
	require.NoError(t, err)
	require.Empty(t, files)
}

// TestSQLiteDoesNotFollowLinksOut: a path stays below the worker's folder.
func TestSQLiteDoesNotFollowLinksOut(t *testing.T) {
	t.Parallel()

	lite, directory := liteTool(t)
	outside := t.TempDir()

	for name, target := range map[string]string{
		"link.db": filepath.Join(outside, "there.db"), "dangling.db": filepath.Join(outside, "new.db"), "folder": outside,
		"logged.db-wal": filepath.Join(outside, "log"), "up.db": "../up.db", "within.db": "inside.db",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(directory, name)))
	}

	require.NoError(t, os.WriteFile(filepath.Join(outside, "there.db"), nil, 0o600))

	for _, path := range []string{"link.db", "dangling.db", "folder/x.db", "folder/new/x.db", "logged.db", "up.db"} {
		for _, field := range []bool{true, false} {
			in := lite.RawInput("CREATE TABLE t (a)")
			in.Auth = "sqlite:" + path

			if field {
				in.Auth, in.Fields["path"] = "", *tooltest.Value(path)
			}

			object := lite.FailingCall(t, in)
			require.Contains(t, object.Message, "symbolic link", path)
		}
	}

	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.NoFileExists(t, filepath.Join(filepath.Dir(directory), "up.db"))

	in := lite.RawInput("CREATE TABLE t (a)")
	in.Auth = "sqlite:within.db"
	_, err = lite.MakeAttempt(t, in)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(directory, "inside.db"))
}

// TestSQLiteValuesAreBounded: a value is refused by SQLite, before it is in the
// memory of the worker.
func TestSQLiteValuesAreBounded(t *testing.T) {
	t.Parallel()

	lite, _ := liteTool(t) // with results of 1 MiB

	wide := "SELECT " + strings.TrimSuffix(strings.Repeat("x,", 1500), ",") + " FROM (SELECT hex(zeroblob(400000)) AS x)"

	for statement, says := range map[string]string{
		"SELECT zeroblob(1000000000) AS x":                                            "produces a value that is too large; a result may have at most 1048576 bytes",
		"SELECT length(printf('%.*c', 99999999, 'x')) AS n":                           "produces a value that is too large",
		"SELECT group_concat(hex(zeroblob(500000))) AS x FROM (VALUES (1), (2), (3))": "produces a value that is too large",
		wide: "produces a value that is too large",
		"SELECT NULL AS a FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n)": "is larger than 1048576 bytes after",
	} {
		in := lite.RawInput(statement)
		in.Step = "big"
		object := lite.FailingCall(t, in)
		require.Equal(t, interpreter.KindPayloadTooLarge, object.Kind, object.Message)
		require.Contains(t, object.Message, `step "big": `)
		require.Contains(t, object.Message, says)
	}

	// What a statement is given may be larger, and written.
	long := strings.Repeat("x", 3<<20)
	lite.RunStatement(t, "CREATE TABLE texts (a, b)", nil)
	require.Equal(t, tooltest.AffectedResult(1), lite.RunStatement(t, "INSERT INTO texts VALUES ({{ x }}, 'n {{ x }}')", map[string]any{"x": long}))
	require.Equal(t, []any{map[string]any{"a": "xx", "n": 3<<20 + 2}},
		lite.RunStatement(t, "SELECT substr({{ x }}, 1, 2) AS a, (SELECT length(b) FROM texts) AS n", map[string]any{"x": long}))
}
