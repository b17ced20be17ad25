package sqlite_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// liteTool is the sqlite tool with a connection "main" to a new file.
func liteTool(t *testing.T) (tooltest.SQL, string) {
	t.Helper()

	directory := t.TempDir()
	elsewhere := t.TempDir()
	catalogue := activities.NewCatalogue(activities.Resources{
		Connections: activities.Connections{
			"main":   "sqlite:sub/what?#%20.db", // made on first use, directories too
			"away":   "sqlite:" + filepath.Join(elsewhere, "away.db"),
			"memory": "sqlite::memory:",
			"server": "postgres://eve:sesame-open@127.0.0.1/x",
			"notdb":  "sqlite:not.db",
			"folder": "sqlite:" + directory,
		},
		Directory: directory, MaxResponseBytes: 1 << 20,
	})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })
	require.NoError(t, os.WriteFile(filepath.Join(directory, "not.db"), []byte("this is no database at all, only text"), 0o600))
	return tooltest.SQL{Catalogue: catalogue, Name: "sqlite", Auth: "main"}, directory
}

const forever = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS n FROM n"

func TestSQLiteConforms(t *testing.T) {
	t.Parallel()

	lite, directory := liteTool(t)
	lite.RunStatement(t, "CREATE TABLE conform (id INTEGER PRIMARY KEY, name TEXT)", nil)
	lite.RunStatement(t, "INSERT INTO conform VALUES (1, 'a')", nil)
	lite.RunStatement(t, "CREATE TABLE sunk (id INTEGER)", nil)
	lite.RunStatement(t, "CREATE TABLE noted (id INTEGER)", nil)
	lite.RunStatement(t, "CREATE TABLE upserted (id INTEGER PRIMARY KEY)", nil)
	require.FileExists(t, filepath.Join(directory, "sub", "what?#%20.db"))

	statement := func(source string) func(*testing.T) interpreter.ToolInput {
		return func(t *testing.T) interpreter.ToolInput { return lite.StatementInput(t, source, nil) }
	}
	at := func(auth, path string) func(*testing.T) interpreter.ToolInput {
		return func(t *testing.T) interpreter.ToolInput {
			in := lite.StatementInput(t, "SELECT count(*) AS n FROM sqlite_master", nil)
			in.Auth = auth

			if path != "" {
				in.Fields["path"] = *tooltest.Value(path)
			}
			return in
		}
	}

	const tool, final = interpreter.KindTool, interpreter.ClassFinal

	tooltest.Run(t, tooltest.Suite{
		Catalogue: lite.Catalogue, Tool: "sqlite", TakesAuth: true,
		Secrets: []string{"sesame-open"},
		Good:    statement("SELECT 1 AS a, 2.5 AS b, 'c' AS c"),
		Slow:    statement(forever),
		Large:   statement("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) SELECT hex(zeroblob(50)) AS a FROM n"),
		Failures: []tooltest.FailureCase{
			{Name: "duplicate", Input: statement("INSERT INTO conform VALUES (1, 'b')"), Kind: tool, Class: final, Type: "SQLITE_CONSTRAINT", Says: "UNIQUE"},
			{Name: "syntax", Input: statement("SELECT 1 FRM t WHERE"), Kind: tool, Class: final, Type: "SQLITE_ERROR", Says: "syntax error"},
			{Name: "no such table", Input: statement("SELECT 1 FROM nosuch"), Kind: tool, Class: final, Type: "SQLITE_ERROR", Says: "no such table"},
			{Name: "not a database", Input: at("notdb", ""), Kind: tool, Class: final, Type: "SQLITE_NOTADB"},
			{Name: "a folder", Input: at("folder", ""), Kind: interpreter.KindConnection, Class: interpreter.ClassRetryable, Type: "SQLITE_CANTOPEN"},
			{Name: "memory", Input: at("memory", ""), Kind: tool, Class: final, Says: "is not an SQLite file"},
			{Name: "server", Input: at("server", ""), Kind: tool, Class: final, Says: `connection "server" is not an SQLite file, such as`},
			{Name: "path out of the directory", Input: at("", "../x.db"), Kind: tool, Class: final, Says: "is not in the worker's directory"},
			{Name: "absolute path", Input: at("", "/x.db"), Kind: tool, Class: final, Says: "is not in the worker's directory"},
			{Name: "neither", Input: at("", ""), Kind: tool, Class: final, Says: "needs path"},
			{Name: "both", Input: at("main", "x.db"), Kind: tool, Class: final, Says: "path or auth, not both"},
			{Name: "attach", Input: statement("ATTACH 'x.db' AS x"), Kind: tool, Class: final, Says: "uses another file"},
			{Name: "vacuum into", Input: statement("VACUUM INTO 'x.db'"), Kind: tool, Class: final, Says: "uses another file"},
			{Name: "two columns of a name", Input: statement("SELECT 1 AS a, 2 AS a"), Kind: tool, Class: final, Says: "map; rename one with AS"},
			{Name: "own placeholder", Input: statement("SELECT ? AS a"), Kind: tool, Class: final, Says: "missing argument"},
			{
				Name: "too large", Input: statement("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT hex(zeroblob(5000)) AS x FROM n"),
				Kind: interpreter.KindPayloadTooLarge, Class: final, Says: "page with LIMIT",
			},
			{Name: "no table", Input: func(*testing.T) interpreter.ToolInput {
				return lite.TableInput(map[string]any{"table": "nosuch"}, map[string]any{"a": 1})
			}, Kind: tool, Class: final, Says: `table "nosuch" does not exist`},
			{Name: "no column", Input: func(*testing.T) interpreter.ToolInput {
				return lite.TableInput(map[string]any{"table": "conform"}, map[string]any{"nmae": 1})
			}, Kind: tool, Class: final, Says: `has no column "nmae": did you mean "name"?`},
			{Name: "no unique index", Input: func(*testing.T) interpreter.ToolInput {
				return lite.TableInput(map[string]any{"table": "conform", "mode": "upsert", "key": "name"}, map[string]any{"name": 1})
			}, Kind: tool, Class: final, Type: "SQLITE_ERROR", Says: `unique index on exactly ("name")`},
		},
		Write: &tooltest.WriteCase{
			Input: func(*testing.T) interpreter.ToolInput {
				return lite.TableInput(map[string]any{"table": "sunk"}, []any{map[string]any{"id": 1}})
			},
			Effect: func(t *testing.T, _ interpreter.ToolInput) any {
				return lite.RunStatement(t, "SELECT count(*) AS n FROM sunk", nil)
			},
		},
		Ledgers: []tooltest.LedgerCase{
			{
				Name: "insert", Upserts: false,
				Input: func(*testing.T) interpreter.ToolInput {
					return lite.TableInput(map[string]any{"table": "noted"}, []any{map[string]any{"id": 1}})
				},
				Other: func(*testing.T) interpreter.ToolInput {
					return lite.TableInput(map[string]any{"table": "noted"}, []any{map[string]any{"id": 2}})
				},
				Effect: func(t *testing.T) any { return lite.RunStatement(t, "SELECT * FROM noted ORDER BY id", nil) },
			},
			{
				Name: "upsert", Upserts: true,
				Input: func(*testing.T) interpreter.ToolInput {
					return lite.TableInput(map[string]any{"table": "upserted", "mode": "upsert", "key": "id"}, []any{map[string]any{"id": 1}})
				},
				Other: func(*testing.T) interpreter.ToolInput {
					return lite.TableInput(map[string]any{"table": "upserted", "mode": "upsert", "key": "id"}, []any{map[string]any{"id": 2}})
				},
				Effect: func(t *testing.T) any { return lite.RunStatement(t, "SELECT * FROM upserted ORDER BY id", nil) },
			},
		},
	})
}

func TestSQLiteReadsParametersAsLiterals(t *testing.T) {
	t.Parallel()

	lite, _ := liteTool(t)

	for _, test := range []struct {
		param, pasted string
		scope         map[string]any
	}{
		{"{{ x }}", "7", map[string]any{"x": 7}},
		{"{{ x }}", "9223372036854775807", map[string]any{"x": 9223372036854775807}},
		{"{{ x }}", "12345678901234567890", map[string]any{"x": json.Number("12345678901234567890")}},
		{"{{ x }}", "2.5", map[string]any{"x": 2.5}},
		{"{{ x }}", "TRUE", map[string]any{"x": true}},
		{"{{ x }}", "'t'", map[string]any{"x": "t"}},
		{"{{ x }}", "NULL", map[string]any{"x": nil}},
		{"'{{ x }}'", "'7'", map[string]any{"x": 7}},
		{"{{ x }} < {{ y }}", "10 < 9", map[string]any{"x": 10, "y": 9}},
		{"{{ x }} / {{ y }}", "7 / 2", map[string]any{"x": 7, "y": 2}},
		{"{{ x }} + {{ x }}", "7 + 7", map[string]any{"x": 7}},
		{"date('{{ d }}', '+{{ n }} days')", "date('2024-02-28', '+2 days')", map[string]any{"d": "2024-02-28", "n": 2}},
		{"{{ l }} ->> 1", "'[1,\"b\"]' ->> 1", map[string]any{"l": []any{1, "b"}}},
		{"{{ x }} IS {{ y }}", "NULL IS NULL", map[string]any{"x": nil, "y": nil}},
		{"(SELECT sum(value) FROM json_each({{ l }}))", "6", map[string]any{"l": []any{1, 2, 3}}},
	} {
		want := lite.RunStatement(t, "SELECT v, typeof(v) AS type FROM (SELECT "+test.pasted+" AS v)", nil)
		got := lite.RunStatement(t, "SELECT v, typeof(v) AS type FROM (SELECT "+test.param+" AS v)", test.scope)
		require.Equal(t, want, got, test.param)
	}
}

func TestSQLiteStoresNastyTexts(t *testing.T) {
	t.Parallel()

	lite, _ := liteTool(t)
	lite.RunStatement(t, "CREATE TABLE nasty (id INTEGER, a TEXT, b TEXT)", nil)

	for i, text := range tooltest.Nasty {
		scope := map[string]any{"i": i, "x": text}
		require.Equal(t, tooltest.AffectedResult(1), lite.RunStatement(t, "INSERT INTO nasty VALUES ({{ i }}, {{ x }}, '<{{ x }}>')", scope))
		require.Equal(t, []any{map[string]any{"a": text, "b": "<" + text + ">"}},
			lite.RunStatement(t, "SELECT a, b FROM nasty WHERE id = {{ i }} AND a = '{{ x }}'", scope), "%q", text)
	}
}

func TestSQLiteResults(t *testing.T) {
	t.Parallel()

	lite, _ := liteTool(t)
	require.Equal(t, tooltest.AffectedResult(0), lite.RunStatement(t, "CREATE TABLE r (i INTEGER PRIMARY KEY, d DATE, at DATETIME, b BLOB, yes BOOLEAN, x)", nil))
	require.Equal(t, tooltest.AffectedResult(1), lite.RunStatement(t, "INSERT INTO r VALUES (9007199254740993, '2024-02-28', '2024-02-28 10:11:12', x'00ff', 1, 1e400)", nil))
	require.Equal(t, tooltest.AffectedResult(0), lite.RunStatement(t, "CREATE INDEX ri ON r (d)", nil), "changes() still holds the insert")

	row := map[string]any{"i": 9007199254740993, "d": "2024-02-28", "at": "2024-02-28T10:11:12Z", "b": "AP8=", "yes": 1, "x": "Infinity"}
	require.Equal(t, []any{row}, lite.RunStatement(t, "SELECT * FROM r", nil))
	require.Equal(t, []any{}, lite.RunStatement(t, "SELECT * FROM r WHERE false", nil))
	require.Equal(t, []any{map[string]any{"i": 1}}, lite.RunStatement(t, "INSERT INTO r (i) VALUES (1) RETURNING i", nil))
	require.Equal(t, tooltest.AffectedResult(2), lite.RunStatement(t, "WITH x AS (SELECT 1) UPDATE r SET x = 2", nil))
	require.Equal(t, tooltest.AffectedResult(2), lite.RunStatement(t, "DELETE FROM r", nil))
}

// TestSQLiteRefusesTextsThatAreNotUTF8: SQLite keeps any bytes as text, and those of Latin-1 would become U+FFFD.
func TestSQLiteRefusesTextsThatAreNotUTF8(t *testing.T) {
	t.Parallel()

	lite, _ := liteTool(t)
	object := lite.FailingCall(t, lite.StatementInput(t, "SELECT 1 AS id, 'good' AS t UNION ALL SELECT 2, CAST(x'c3a9e961' AS TEXT)", nil))
	require.Equal(t, interpreter.ClassFinal, object.Class)
	require.Contains(t, object.Message, `row 2 of the result, column "t": byte 0xE9 at offset 2 of the text is not UTF-8; select its bytes, as in CAST("t" AS BLOB)`)
	require.Equal(t, []any{map[string]any{"t": "6WE="}}, lite.RunStatement(t, "SELECT CAST(CAST(x'e961' AS TEXT) AS BLOB) AS t", nil))
}

func TestSQLiteUpsert(t *testing.T) {
	t.Parallel()

	lite, _ := liteTool(t)
	lite.RunStatement(t, `CREATE TABLE "Odd table" (id INTEGER PRIMARY KEY, "select" TEXT, n NUMERIC)`, nil)

	fields := map[string]any{"table": `main."Odd table"`, "mode": "upsert", "key": "id"}
	for want, rows := range []any{
		[]any{},
		map[string]any{"id": 3, "n": 1},
		[]any{map[string]any{"id": 1, "n": 1}, map[string]any{"id": 1, "select": map[string]any{"b": []any{1}}}, map[string]any{"id": 2, "select": "it's", "n": true}},
		[]any{map[string]any{"id": 1, "n": 2.5}, map[string]any{"id": 2, "n": nil}, map[string]any{"id": 3, "n": 7}},
	} {
		result, err := lite.MakeAttempt(t, lite.TableInput(fields, rows))
		require.NoError(t, err)
		require.Equal(t, tooltest.AffectedResult(want), result.Data.Data)
	}

	require.Equal(t, []any{
		map[string]any{"id": 1, "select": `{"b":[1]}`, "n": 2.5},
		map[string]any{"id": 2, "select": "it's", "n": nil},
		map[string]any{"id": 3, "select": nil, "n": 7},
	}, lite.RunStatement(t, `SELECT * FROM "Odd table" ORDER BY id`, nil))
}

// TestSQLiteWritersWaitForEachOther has two workers write to one file at once.
// TestSinksOfNothingWriteNothing: a page that gives nil, such as {"rows": null},
// adds no row, for tables as for files.
func TestSinksOfNothingWriteNothing(t *testing.T) {
	t.Parallel()

	lite, _ := liteTool(t)
	lite.RunStatement(t, `CREATE TABLE t (id INTEGER PRIMARY KEY)`, nil)

	for i, fields := range []map[string]any{{"table": "t"}, {"table": "t", "mode": "upsert", "key": "id"}} {
		in := interpreter.ToolInput{Auth: lite.Auth, Fields: tooltest.Fields(fields), Place: "f.sink", OperationKey: fmt.Sprintf("op-%d", i)}
		result, err := lite.MakeAttempt(t, in)
		require.NoError(t, err)
		require.Equal(t, tooltest.AffectedResult(0), result.Data.Data)
	}
	require.Contains(t, lite.FailingCall(t, interpreter.ToolInput{Auth: lite.Auth, Fields: tooltest.Fields(map[string]any{"table": "t"})}).Message,
		"there is nothing to write", "a step that names no rows has been forgotten")
}

func TestSQLiteWritersWaitForEachOther(t *testing.T) {
	t.Parallel()

	lite, directory := liteTool(t)
	other := activities.NewCatalogue(activities.Resources{Directory: directory})
	t.Cleanup(func() { require.NoError(t, other.Close()) })

	at := func(in interpreter.ToolInput) interpreter.ToolInput {
		in.Auth = ""
		in.Fields["path"] = *tooltest.Value("shared/many.db")
		return in
	}
	_, err := lite.MakeAttempt(t, at(lite.StatementInput(t, "CREATE TABLE many (id INTEGER, k TEXT)", nil)))
	require.NoError(t, err)

	var group errgroup.Group

	for i := range 40 {
		tool := tooltest.SQL{Catalogue: []*activities.Catalogue{lite.Catalogue, other}[i%2], Name: "sqlite"}

		group.Go(func() error {
			// Every operation is delivered twice.
			in := at(tool.TableInput(map[string]any{"table": "many"}, []any{map[string]any{"id": i}, map[string]any{"id": i, "k": "b"}}))
			in.OperationKey = fmt.Sprint("op-", i/2)
			_, err := tool.MakeAttempt(t, in)
			return err
		})
	}

	require.NoError(t, testenv.WaitResult(t, group.Wait, "the end of the writes"))

	result, err := lite.MakeAttempt(t, at(lite.StatementInput(t, "SELECT count(*) AS n, count(DISTINCT id / 2) AS ops FROM many", nil)))
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"n": 40, "ops": 20}}, result.Data.Data)
}

// TestSQLiteNamesTheRowThatItRefuses: one statement writes some rows, and the error names the
// one that is wrong. Nothing is written, whatever the table declares about conflicts.
func TestSQLiteNamesTheRowThatItRefuses(t *testing.T) {
	t.Parallel()

	lite, _ := liteTool(t)
	for conflict, says := range map[string]string{
		"": "row 41: ", "ON CONFLICT ABORT": "row 41: ", "ON CONFLICT FAIL": "row 41: ", "ON CONFLICT ROLLBACK": "rows 26 to 50: ",
	} {
		lite.RunStatement(t, "DROP TABLE IF EXISTS r", nil)
		lite.RunStatement(t, "CREATE TABLE r (id INTEGER PRIMARY KEY "+conflict+", word TEXT)", nil)
		rows := make([]any, 60)
		for i := range rows {
			rows[i] = map[string]any{"id": i, "word": "w"}
		}
		rows[40] = map[string]any{"id": 7, "word": "again"}
		require.Contains(t, lite.FailingCall(t, lite.TableInput(map[string]any{"table": "r"}, rows)).Message, says, conflict)
		require.Equal(t, []any{map[string]any{"n": 0}}, lite.RunStatement(t, "SELECT count(*) AS n FROM r", nil), conflict)
	}
}

// TestSQLiteWritesLargeRowsOneByOne: what is written together is bounded, and all is written.
func TestSQLiteWritesLargeRowsOneByOne(t *testing.T) {
	t.Parallel()

	lite, _ := liteTool(t)
	lite.RunStatement(t, "CREATE TABLE r (id INTEGER PRIMARY KEY, word TEXT)", nil)
	rows := make([]any, 53)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "word": strings.Repeat("w", 1000*i)}
	}
	result, err := lite.MakeAttempt(t, lite.TableInput(map[string]any{"table": "r"}, rows))
	require.NoError(t, err)
	require.Equal(t, tooltest.AffectedResult(len(rows)), result.Data.Data)
	require.Equal(t, []any{map[string]any{"n": len(rows), "bytes": 1000 * 52 * 53 / 2}},
		lite.RunStatement(t, "SELECT count(*) AS n, sum(length(word)) AS bytes FROM r", nil))
}
