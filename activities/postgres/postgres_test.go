package postgres_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/activities"
	"reprise/activities/hosting"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// pgTool is the postgres tool on a database of the test's own.
func pgTool(t testing.TB) (tooltest.SQL, *testenv.Database) {
	t.Helper()

	db := testenv.Postgres(t)
	catalogue := activities.NewCatalogue(activities.Resources{
		Connections: activities.Connections{
			"main": db.URL,
			// 192.0.2.0/24 is for documentation; port 1 of loopback refuses.
			"refused": "postgres://eve:sesame-open@127.0.0.1:1/x",
			"garbage": "postgres://eve:sesame-open@127.0.0.1:port/x",
			"mysql":   "mysql://eve:sesame-open@127.0.0.1/x",
			"nodb":    strings.Replace(db.URL, db.Name, "no_such_database", 1),
			"nohost":  "postgres://eve:sesame-open@nowhere.invalid/x",
		},
		MaxResponseBytes: 1 << 20,
	})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })
	return tooltest.SQL{Catalogue: catalogue, Name: "postgres", Auth: "main"}, db
}

// asUser is the postgres tool of a user who owns nothing in the database yet.
func asUser(t *testing.T, db *testenv.Database) (pg tooltest.SQL, user string) {
	t.Helper()
	const password = "eve"
	user = "eve_" + strings.ToLower(rand.Text()[:10])
	db.Exec(t, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", user, password))
	t.Cleanup(func() { db.Exec(t, "DROP OWNED BY "+user+"; DROP ROLE "+user) })
	address, err := url.Parse(db.URL)
	require.NoError(t, err)
	address.User = url.UserPassword(user, password)
	catalogue := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"main": address.String()}})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })
	return tooltest.SQL{Catalogue: catalogue, Name: "postgres", Auth: "main"}, user
}

func TestPostgresConforms(t *testing.T) {
	t.Parallel()

	pg, db := pgTool(t)
	db.Exec(t, "CREATE TABLE conform (id int PRIMARY KEY, name text); INSERT INTO conform VALUES (1, 'a'); CREATE TABLE sunk (id int); CREATE TABLE noted (id int); CREATE TABLE upserted (id int PRIMARY KEY)")

	statement := func(source string) func(*testing.T) interpreter.ToolInput {
		return func(t *testing.T) interpreter.ToolInput { return pg.StatementInput(t, source, nil) }
	}
	through := func(auth string) func(*testing.T) interpreter.ToolInput {
		return func(t *testing.T) interpreter.ToolInput {
			in := pg.StatementInput(t, "SELECT 1 AS a", nil)
			in.Auth = auth
			return in
		}
	}

	const tool, connection, final, retryable = interpreter.KindTool, interpreter.KindConnection, interpreter.ClassFinal, interpreter.ClassRetryable

	tooltest.Run(t, tooltest.Suite{
		Catalogue: pg.Catalogue, Tool: "postgres", TakesAuth: true,
		Secrets: []string{"sesame-open"},
		Good:    statement("SELECT 1 AS a, 2.5 AS b, '{\"c\": [1]}'::json AS c"),
		Slow:    statement("SELECT pg_sleep(60)"),
		Large:   statement("SELECT repeat('x', 100) AS a FROM generate_series(1, 5000)"),
		Failures: []tooltest.FailureCase{
			{Name: "refused", Input: through("refused"), Kind: connection, Class: retryable, Type: "econnrefused", Says: "could not connect to PostgreSQL at 127.0.0.1:1"},
			{Name: "dns", Input: through("nohost"), Kind: connection, Class: retryable, Type: "dns", Says: "nowhere.invalid"},
			{Name: "no database", Input: through("nodb"), Kind: connection, Class: final, Type: "3D000", Says: "PostgreSQL refused the connection"},
			{Name: "no URL", Input: through("mysql"), Kind: tool, Class: final, Says: `connection "mysql" is not a PostgreSQL URL, such as`},
			{Name: "garbage", Input: through("garbage"), Kind: tool, Class: final, Says: `connection "garbage" is not a PostgreSQL URL, such as`},
			{Name: "no auth", Input: through(""), Kind: tool, Class: final, Says: "postgres needs auth"},
			{Name: "duplicate", Input: statement("INSERT INTO conform VALUES (1)"), Kind: tool, Class: final, Type: "23505", Says: "duplicate key"},
			{Name: "syntax", Input: statement("SELECT 1 FRM t"), Kind: tool, Class: final, Type: "42601", Says: "at line 1, column 14"},
			{Name: "no such table", Input: statement("SELECT 1\nFROM nosuch"), Kind: tool, Class: final, Type: "42P01", Says: "at line 2, column 6"},
			{Name: "serialization", Input: statement("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END $$"), Kind: tool, Class: retryable, Type: "40001", Says: "again"},
			{Name: "no resources", Input: statement("DO $$ BEGIN RAISE EXCEPTION 'full' USING ERRCODE = '53100'; END $$"), Kind: tool, Class: retryable, Type: "53100", Says: "full"},
			{Name: "own placeholder", Input: statement("SELECT $1::int"), Kind: tool, Class: final, Says: "expects 1 parameters"},
			{Name: "two columns of a name", Input: statement("SELECT 1 AS a, 2 AS a"), Kind: tool, Class: final, Says: "map; rename one with AS"},
			{Name: "too large", Input: statement("SELECT repeat('x', 1000) AS x FROM generate_series(1, 100000)"), Kind: interpreter.KindPayloadTooLarge, Class: final, Says: "page with LIMIT"},
			{Name: "values missing", Input: func(t *testing.T) interpreter.ToolInput {
				in := pg.StatementInput(t, "SELECT {{ a }}", nil)
				in.Params = nil
				return in
			}, Kind: tool, Class: final, Says: "1 templates, but 0 values"},
			{Name: "no table", Input: func(*testing.T) interpreter.ToolInput {
				return pg.TableInput(map[string]any{"table": "nosuch"}, map[string]any{"a": 1})
			}, Kind: tool, Class: final, Says: `table "nosuch" does not exist`},
		},
		Write: &tooltest.WriteCase{
			Input: func(*testing.T) interpreter.ToolInput {
				return pg.TableInput(map[string]any{"table": "sunk"}, []any{map[string]any{"id": 1}})
			},
			Effect: func(t *testing.T, _ interpreter.ToolInput) any {
				return db.Query(t, "SELECT count(*) AS n FROM sunk")
			},
		},
		Ledgers: []tooltest.LedgerCase{
			{
				Name: "insert", Upserts: false,
				Input: func(*testing.T) interpreter.ToolInput {
					return pg.TableInput(map[string]any{"table": "noted"}, []any{map[string]any{"id": 1}})
				},
				Other: func(*testing.T) interpreter.ToolInput {
					return pg.TableInput(map[string]any{"table": "noted"}, []any{map[string]any{"id": 2}})
				},
				Effect: func(t *testing.T) any { return db.Query(t, "SELECT * FROM noted ORDER BY id") },
			},
			{
				Name: "upsert", Upserts: true,
				Input: func(*testing.T) interpreter.ToolInput {
					return pg.TableInput(map[string]any{"table": "upserted", "mode": "upsert", "key": "id"}, []any{map[string]any{"id": 1}})
				},
				Other: func(*testing.T) interpreter.ToolInput {
					return pg.TableInput(map[string]any{"table": "upserted", "mode": "upsert", "key": "id"}, []any{map[string]any{"id": 2}})
				},
				Effect: func(t *testing.T) any { return db.Query(t, "SELECT * FROM upserted ORDER BY id") },
			},
		},
	})
}

// TestPostgresReadsParametersAsLiterals compares values and result types of
// parameters with those of the same literals pasted into the text.
func TestPostgresReadsParametersAsLiterals(t *testing.T) {
	t.Parallel()

	pg, _ := pgTool(t)

	for _, test := range []struct {
		param, pasted string
		scope         map[string]any
	}{
		{"{{ x }}", "7", map[string]any{"x": 7}},
		{"{{ x }}", "5000000000", map[string]any{"x": 5000000000}},
		{"{{ x }}", "12345678901234567890123", map[string]any{"x": json.Number("12345678901234567890123")}},
		{"{{ x }}", "2.5", map[string]any{"x": 2.5}},
		{"{{ x }}", "true", map[string]any{"x": true}},
		{"{{ x }}", "'text'", map[string]any{"x": "text"}},
		{"{{ x }}", "NULL", map[string]any{"x": nil}},
		{"'{{ x }}'", "'7'", map[string]any{"x": 7}},
		{"{{ x }} < {{ y }}", "10 < 9", map[string]any{"x": 10, "y": 9}},
		{"{{ x }} / {{ y }}", "7 / 2", map[string]any{"x": 7, "y": 2}},
		{"{{ x }} * {{ y }}", "7 * 2.5", map[string]any{"x": 7, "y": 2.5}},
		{"{{ x }} || 'a'", "7 || 'a'", map[string]any{"x": 7}},
		{"{{ x }}::text", "7::text", map[string]any{"x": 7}},
		{"{{ x }}::int", "'7'::int", map[string]any{"x": "7"}},
		{"{{ x }}::int", "2.5::int", map[string]any{"x": 2.5}},
		{"'{{ x }}'::date + 1", "'2024-02-28'::date + 1", map[string]any{"x": "2024-02-28"}},
		{"DATE '{{ x }}' + {{ n }}", "DATE '2024-02-28' + 2", map[string]any{"x": "2024-02-28", "n": 2}},
		{"INTERVAL '{{ n }} days'", "INTERVAL '3 days'", map[string]any{"n": 3}},
		{"interval '{{ n }}' day", "interval '3' day", map[string]any{"n": 3}},
		{"interval '{{ n }}' hour", "interval '-1.5' hour", map[string]any{"n": -1.5}},
		{"TIMESTAMP WITH TIME ZONE '{{ x }} 10:00+02'", "TIMESTAMP WITH TIME ZONE '2024-02-28 10:00+02'", map[string]any{"x": "2024-02-28"}},
		{"'{\"a\": {{ x }}}'::jsonb -> 'a'", "'{\"a\": 7}'::jsonb -> 'a'", map[string]any{"x": 7}},
		{"{{ m }}::jsonb", `'{"a":[1,null]}'::jsonb`, map[string]any{"m": map[string]any{"a": []any{1, nil}}}},
		{"{{ l }}::jsonb", `'[1,"a"]'::jsonb`, map[string]any{"l": []any{1, "a"}}},
		{"{{ l }}::int[]", "'{1,2,NULL}'::int[]", map[string]any{"l": []any{1, 2, nil}}},
		{"{{ l }}::int[]", "'{{1,2},{3,4}}'::text::int[]", map[string]any{"l": []any{[]any{1, 2}, []any{3, 4}}}},
		{"2 = ANY({{ l }})", "2 = ANY('{1,2}')", map[string]any{"l": []any{1, 2}}},
		{"ARRAY[{{ x }}, {{ y }}]", "ARRAY[1, 2]", map[string]any{"x": 1, "y": 2}},
		{"jsonb_build_object('a', {{ x }}, 'b', '{{ x }}')", "jsonb_build_object('a', 1, 'b', '1')", map[string]any{"x": 1}},
		{"json_build_array({{ x }}, {{ y }})", "json_build_array('a', true)", map[string]any{"x": "a", "y": true}},
		{"coalesce({{ x }}, {{ y }})", "coalesce(NULL, 5)", map[string]any{"x": nil, "y": 5}},
		{"CASE WHEN {{ b }} THEN {{ x }} ELSE 'b' END", "CASE WHEN true THEN 'a' ELSE 'b' END", map[string]any{"b": true, "x": "a"}},
		{"upper({{ x }}) LIKE '%{{ y }}%'", "upper('abc') LIKE '%B%'", map[string]any{"x": "abc", "y": "B"}},
		{"-{{ x }}", "-(-2)", map[string]any{"x": -2}},
		{"extract(year from '{{ x }}'::date)", "extract(year from '2024-01-01'::date)", map[string]any{"x": "2024-01-01"}},
		{"{{ x }} IN ({{ x }}, 3)", "2 IN (2, 3)", map[string]any{"x": 2}},
		{"length('{{ x }}'::bytea)", `length('\x4142'::bytea)`, map[string]any{"x": `\x4142`}},
	} {
		// '{{1,2}…' is a template by its braces, so the pasted side goes around it.
		pasted := strings.ReplaceAll(test.pasted, "'{{1,2},{3,4}}'", "concat('{', '{1,2},{3,4}', '}')")
		want := pg.RunStatement(t, "SELECT v, pg_typeof(v)::text AS type FROM (SELECT "+pasted+" AS v) x", nil)
		got := pg.RunStatement(t, "SELECT v, pg_typeof(v)::text AS type FROM (SELECT "+test.param+" AS v) x", test.scope)
		require.Equal(t, want, got, test.param)
	}
}

func TestPostgresGroupsByParameter(t *testing.T) {
	t.Parallel()

	pg, _ := pgTool(t)
	got := pg.RunStatement(t, "SELECT x + {{ n }} AS a, count(*) AS c FROM generate_series(1, 2) x GROUP BY x + {{ n }} ORDER BY 1", map[string]any{"n": 1})
	require.Equal(t, []any{map[string]any{"a": 2, "c": 1}, map[string]any{"a": 3, "c": 1}}, got)

	// One parameter, two types: only separate numbers work.
	pg.RunStatement(t, "CREATE TABLE two (a text, b date)", nil)
	require.Equal(t, tooltest.AffectedResult(1), pg.RunStatement(t, "INSERT INTO two VALUES ({{ x }}, {{ x }})", map[string]any{"x": "2024-01-02"}))
}

func TestPostgresStoresNastyTexts(t *testing.T) {
	t.Parallel()

	pg, _ := pgTool(t)
	pg.RunStatement(t, "CREATE TABLE nasty (id int, a text, b text, c jsonb, d text[])", nil)

	for i, text := range tooltest.Nasty {
		scope := map[string]any{"i": i, "x": text, "list": []any{text, nil}, "map": map[string]any{"k": text}}
		pg.RunStatement(t, "INSERT INTO nasty VALUES ({{ i }}, {{ x }}, '<{{ x }}>', {{ map }}, {{ list }})", scope)

		got := pg.RunStatement(t, "SELECT a, b, c, d, $q$-{{ x }}-$q$ AS e FROM nasty WHERE id = {{ i }} AND a = '{{ x }}'", scope)
		require.Equal(t, []any{map[string]any{
			"a": text, "b": "<" + text + ">", "c": map[string]any{"k": text}, "d": []any{text, nil}, "e": "-" + text + "-",
		}}, got, "%q", text)
	}
}

func TestPostgresResults(t *testing.T) {
	t.Parallel()

	pg, _ := pgTool(t)

	for source, want := range map[string]any{
		"9223372036854775807":           9223372036854775807,
		"12345678901234567890::numeric": json.Number("12345678901234567890"),
		"1.50::numeric(10,2)":           json.Number("1.50"),
		"2.00::numeric(10,2)":           2,
		"0.12345678901234567890123":     json.Number("0.12345678901234567890123"),
		"-0.5":                          -0.5,
		"'NaN'::numeric":                "NaN",
		"repeat('7', 1001)::numeric":    strings.Repeat("7", 1001),
		"repeat('7', 1001)::jsonb":      strings.Repeat("7", 1001),
		"'{\"v\": 1, \"v\": 2}'::jsonb": map[string]any{"v": 2}, // the server has kept the last
		"'Infinity'::float8":            "Infinity",
		"0.1::float8":                   0.1,
		"true":                          true,
		"NULL":                          nil,
		"'2024-05-06 07:08:09.5+02'::timestamptz":            "2024-05-06T05:08:09.5Z",
		"'2024-05-06 07:08:09'::timestamp":                   "2024-05-06 07:08:09",
		"'2024-05-06'::date":                                 "2024-05-06",
		"'\\x00ff'::bytea":                                   "AP8=",
		"ARRAY['\\x00ff', NULL]::bytea[]":                    []any{"AP8=", nil},
		"'{\"a\": 19.90}'::jsonb":                            map[string]any{"a": json.Number("19.90")},
		"'{\"a\": 12345678901234567890}'::jsonb":             map[string]any{"a": json.Number("12345678901234567890")},
		"'null'::json":                                       nil,
		"ARRAY[1, NULL, 3]":                                  []any{1, nil, 3},
		"ARRAY[ARRAY['a,b', 'c\"d'], ARRAY['NULL', 'e\\f']]": []any{[]any{"a,b", `c"d`}, []any{"NULL", `e\f`}},
		"'{}'::int[]":                                        []any{},
		"'[0:1]={1,2}'::int[]":                               []any{1, 2},
		"ARRAY['{\"a\": 1}'::jsonb]":                         []any{map[string]any{"a": 1}},
		"INTERVAL '1 day'":                                   "1 day",
		"'5f2a1b3c-0000-0000-0000-000000000001'::uuid":       "5f2a1b3c-0000-0000-0000-000000000001",
	} {
		require.Equal(t, []any{map[string]any{"v": want}}, pg.RunStatement(t, "SELECT "+source+" AS v", nil), source)
	}

	require.Equal(t, []any{}, pg.RunStatement(t, "SELECT 1 AS a WHERE false", nil))
	require.Equal(t, tooltest.AffectedResult(0), pg.RunStatement(t, "CREATE TABLE r (id serial, a int)", nil))
	require.Equal(t, tooltest.AffectedResult(2), pg.RunStatement(t, "INSERT INTO r (a) VALUES (1), (2)", nil))
	require.Equal(t, []any{map[string]any{"id": 3}}, pg.RunStatement(t, "INSERT INTO r (a) VALUES (3) RETURNING id", nil))
	require.Equal(t, tooltest.AffectedResult(3), pg.RunStatement(t, "DELETE FROM r", nil))
}

// TestPostgresBytes: parameters that the server takes for bytes are base64.
func TestPostgresBytes(t *testing.T) {
	t.Parallel()

	pg, _ := pgTool(t)
	scope := map[string]any{"b": "3q2+7w==", "list": []any{"AA==", nil, "/w=="}, "bad": "not base64"}
	pg.RunStatement(t, "CREATE DOMAIN image AS bytea", nil)
	pg.RunStatement(t, "CREATE TABLE bytes (b bytea, list bytea[], image image)", nil)
	pg.RunStatement(t, "INSERT INTO bytes VALUES ({{ b }}, {{ list }}, '{{ b }}')", scope)
	want := []any{map[string]any{"b": "3q2+7w==", "list": []any{"AA==", nil, "/w=="}, "image": "3q2+7w=="}}
	require.Equal(t, want, pg.RunStatement(t, "SELECT * FROM bytes WHERE b = {{ b }}", scope))
	require.Equal(t, []any{map[string]any{"v": "deadbeef"}}, pg.RunStatement(t, "SELECT encode(b, 'hex') AS v FROM bytes", nil))

	pg.RunStatement(t, "CREATE TABLE others (id int GENERATED ALWAYS AS IDENTITY, LIKE bytes)", nil)
	for _, fields := range []map[string]any{{"table": "bytes"}, {"table": "others"}} {
		in := pg.TableInput(fields, want)
		in.OperationKey += fields["table"].(string)
		_, err := pg.MakeAttempt(t, in)
		require.NoError(t, err)
		require.Equal(t, want[0], pg.RunStatement(t, "SELECT b, list, image FROM "+fields["table"].(string), nil).([]any)[0], fields)
	}
	require.Equal(t, []any{map[string]any{"s": "escape", "v": "XABBqg=="}},
		pg.RunStatement(t, `SELECT set_config('bytea_output', 'escape', true) AS s, '\x5c0041aa'::bytea AS v`, nil))

	in := pg.StatementInput(t, "INSERT INTO bytes (b) VALUES ({{ bad }})", scope)
	_, err := pg.MakeAttempt(t, in)
	require.ErrorContains(t, err, `a parameter is bytea, and the text "not base64" is not base64`)
}

func TestPostgresArraysOfOwnTypes(t *testing.T) {
	t.Parallel()

	pg, _ := pgTool(t)
	pg.RunStatement(t, "CREATE TYPE mood AS ENUM ('sad', 'ok')", nil)
	pg.RunStatement(t, "CREATE TABLE moods (m mood[])", nil)
	require.Equal(t, tooltest.AffectedResult(1), pg.RunStatement(t, "INSERT INTO moods VALUES ({{ ms }})", map[string]any{"ms": []any{"ok", "sad"}}))
	require.Equal(t, []any{map[string]any{"n": 2}}, pg.RunStatement(t, "SELECT cardinality(m) AS n FROM moods", nil))
}

func TestPostgresUpsert(t *testing.T) {
	t.Parallel()

	pg, db := pgTool(t)
	db.Exec(t, `CREATE SCHEMA s; CREATE TABLE s."Odd table" (id bigint, region text, "select" jsonb, tags text[], n numeric, PRIMARY KEY (id, region))`)

	fields := map[string]any{"table": `s."Odd table"`, "mode": "upsert", "key": []any{"id", "region"}}
	write := func(rows any) any {
		result, err := pg.MakeAttempt(t, pg.TableInput(fields, rows))
		require.NoError(t, err)
		return result.Data.Data
	}

	require.Equal(t, tooltest.AffectedResult(2), write([]any{
		map[string]any{"id": 1, "region": "a", "select": "dropped: a later row has the key", "n": 1},
		map[string]any{"id": "1", "region": "a", "select": map[string]any{"x": []any{1}}, "tags": []any{"it's", nil}},
		map[string]any{"id": 9007199254740993, "region": "b", "select": `text "quoted"`, "n": json.Number("12345678901234567890.5")},
	}))
	require.Equal(t, tooltest.AffectedResult(1), write(map[string]any{"id": 9007199254740993, "region": "b", "n": 2}))
	require.Equal(t, tooltest.AffectedResult(0), write([]any{}))

	require.Equal(t, []any{
		map[string]any{"id": 1, "select": map[string]any{"x": []any{1}}, "tags": []any{"it's", nil}, "n": 1},
		map[string]any{"id": 9007199254740993, "select": `text "quoted"`, "tags": nil, "n": 2},
	}, pg.RunStatement(t, `SELECT id, "select", tags, n FROM s."Odd table" ORDER BY id`, nil))

	fields["key"] = "id"
	object := pg.FailingCall(t, pg.TableInput(fields, map[string]any{"id": 1, "region": "a"}))
	require.Equal(t, "42P10", object.Type)
	require.Contains(t, object.Message, `unique index on exactly ("id")`)
}

func TestPostgresInsertIsWrittenOnce(t *testing.T) {
	t.Parallel()

	pg, db := pgTool(t)
	db.Exec(t, "CREATE TABLE batch (id int CHECK (id >= 0), name text DEFAULT 'none')")

	rows := make([]any, 2500) // more than one chunk
	for i := range rows {
		rows[i] = map[string]any{"id": i, "name": fmt.Sprint("n", i)}
	}

	in := pg.TableInput(map[string]any{"table": "batch"}, rows)
	in.OperationKey = "op-once"

	var group errgroup.Group
	for range 6 {
		group.Go(func() error {
			_, err := pg.MakeAttempt(t, in)
			return err
		})
	}

	require.NoError(t, testenv.WaitResult(t, group.Wait, "the end of the writes"))
	require.Equal(t, int64(2500), db.Query(t, "SELECT count(*) AS n FROM batch")[0]["n"])

	result, err := pg.MakeAttempt(t, in)
	require.NoError(t, err)
	require.Equal(t, tooltest.AffectedResult(2500), result.Data.Data, "what the first gave")

	// A write that fails notes nothing, and leaves none of its rows.
	bad := pg.TableInput(map[string]any{"table": "batch"}, []any{map[string]any{"id": 5000}, map[string]any{"id": -1}})
	bad.OperationKey = "op-bad"
	require.Equal(t, "23514", pg.FailingCall(t, bad).Type)
	require.Equal(t, int64(1), db.Query(t, "SELECT count(*) AS n FROM reprise_writes")[0]["n"])
	require.Equal(t, int64(2500), db.Query(t, "SELECT count(*) AS n FROM batch")[0]["n"])
}

func TestPostgresTableProblems(t *testing.T) {
	t.Parallel()

	pg, db := pgTool(t)
	db.Exec(t, "CREATE TABLE people (id int PRIMARY KEY, name text, age int)")

	for says, in := range map[string]interpreter.ToolInput{
		`has no column "nmae": did you mean "name"?`:                                         pg.TableInput(map[string]any{"table": "people"}, map[string]any{"nmae": "x"}),
		`has no column "zzzzzz": it has id, name, age`:                                       pg.TableInput(map[string]any{"table": "people"}, map[string]any{"zzzzzz": "x"}),
		`row 2 for table "people" is a number`:                                               pg.TableInput(map[string]any{"table": "people"}, []any{map[string]any{"id": 1}, 7}),
		`row 1 for table "people" has no "id", which is the key`:                             pg.TableInput(map[string]any{"table": "people", "mode": "upsert", "key": "id"}, map[string]any{"name": "x"}),
		`mode upsert needs key`:                                                              pg.TableInput(map[string]any{"table": "people", "mode": "upsert"}, map[string]any{"name": "x"}),
		`table is "a..b"`:                                                                    pg.TableInput(map[string]any{"table": "a..b"}, map[string]any{"name": "x"}),
		`mode is "merge"; it must be insert, upsert, insert_or_ignore or replace`:            pg.TableInput(map[string]any{"table": "people", "mode": "merge"}, map[string]any{"name": "x"}),
		`there is nothing to write`:                                                          {Auth: "main", Fields: tooltest.Fields(map[string]any{"table": "people"})},
		`row 1 for table "people" is an empty map`:                                           pg.TableInput(map[string]any{"table": "people"}, map[string]any{}),
		`table "people\"; drop table people; --" does not exist`:                             pg.TableInput(map[string]any{"table": `people"; drop table people; --`}, map[string]any{"a": 1}),
		`writing 1 rows to table "people": row 1, column "age": "old" is not a plain number`: pg.TableInput(map[string]any{"table": "people"}, map[string]any{"age": "old"}),
	} {
		object := pg.FailingCall(t, in)
		require.Equal(t, interpreter.ClassFinal, object.Class)
		if strings.Contains(says, "drop table") {
			require.Contains(t, object.Message, "people", object.Message)

			continue
		}

		require.Contains(t, object.Message, says)
	}

	require.Equal(t, []any{}, pg.RunStatement(t, "SELECT * FROM people", nil))
}

// TestPostgresPlacesRefusedValues: an error names the row and the column of the value that the server refuses, also where others
// have the same value, and where the value has quotes in it.
func TestPostgresPlacesRefusedValues(t *testing.T) {
	t.Parallel()

	pg, db := pgTool(t)
	db.Exec(t, "CREATE TABLE places (id text PRIMARY KEY, count bigint, name text, small integer, total numeric(8, 2))")

	for name, example := range map[string]struct {
		rows []any
		says string
	}{
		"a text has the same value":        {[]any{map[string]any{"id": "two", "count": 1}, map[string]any{"id": "b", "count": "two"}}, `row 2, column "count": `},
		"one that fits has the same value": {[]any{map[string]any{"id": "a", "count": 99999999999, "small": 99999999999}}, `row 1, column "small": `},
		"a map":                            {[]any{map[string]any{"id": "a", "count": map[string]any{"b": 1}}}, `row 1, column "count": `},
		"a map for a bounded number":       {[]any{map[string]any{"id": "a"}, map[string]any{"id": "b", "total": map[string]any{"b": 1}}}, `row 2, column "total": `},
		"a text with quotes":               {[]any{map[string]any{"id": "a"}, map[string]any{"id": "b", "count": `say "two"`}}, `row 2, column "count": `},
	} {
		for _, mode := range []string{"insert", "upsert"} {
			for range 2 { // the second write knows the table
				object := pg.FailingCall(t, pg.TableInput(map[string]any{"table": "places", "mode": mode, "key": "id"}, example.rows))
				require.Contains(t, object.Message, `table "places": `+example.says, "%s, %s", name, mode)
			}
		}
	}

	columns := map[string]any{"table": "places", "mode": "upsert", "key": "id", "rejected": map[string]any{"table": "refused"}}
	_, err := pg.MakeAttempt(t, pg.TableInput(columns, []any{map[string]any{"id": "two", "count": 1}, map[string]any{"id": "b", "name": "three", "total": "three"}}))
	require.NoError(t, err)
	require.Equal(t, []map[string]any{{"column": "total"}}, db.Query(t, `SELECT "column" FROM refused`))
}

func TestPostgresPlacesErrors(t *testing.T) {
	t.Parallel()

	pg, _ := pgTool(t)
	object := pg.FailingCall(t, pg.StatementInput(t, "SELECT 1\nWHERE 1 = {{ n + 0 }}::int AND {{ n }} @@@ 1", map[string]any{"n": 7}))
	require.Contains(t, object.Message, "at line 2")
	require.Equal(t, "42883", object.Type)
}

func TestPostgresServerGoesAway(t *testing.T) {
	t.Parallel()

	pg, db := pgTool(t)
	in := pg.StatementInput(t, "SELECT pg_terminate_backend(pg_backend_pid())", nil)
	object := pg.FailingCall(t, in)
	require.Equal(t, interpreter.ClassRetryable, object.Class)
	require.Equal(t, "57P01", object.Type)

	require.Equal(t, []any{map[string]any{"a": 1}}, pg.RunStatement(t, "SELECT 1 AS a", nil), "the pool recovers")
	require.NotEmpty(t, db.Name)
}

// TestPostgresWithoutRightsForTheLedger: who may write rows and nothing else
// writes without notes, and says so before anything is written.
func TestPostgresWithoutRightsForTheLedger(t *testing.T) {
	t.Parallel()

	pg, db := pgTool(t)
	role := "limited_" + db.Name
	db.Exec(t, fmt.Sprintf(`CREATE TABLE rows (id int PRIMARY KEY); REVOKE CREATE ON SCHEMA public FROM public;
		CREATE ROLE %[1]q; GRANT SELECT, INSERT, UPDATE ON rows TO %[1]q`, role))
	t.Cleanup(func() { db.Exec(t, fmt.Sprintf("DROP OWNED BY %[1]q; DROP ROLE %[1]q", role)) })

	separator := "?"
	if strings.Contains(db.URL, "?") {
		separator = "&"
	}

	limited := activities.NewCatalogue(activities.Resources{
		Connections: activities.Connections{"main": db.URL + separator + "options=-c%20role%3D" + role},
	})
	t.Cleanup(func() { require.NoError(t, limited.Close()) })

	write := func(c *activities.Catalogue, note *interpreter.LedgerEntry) interpreter.ToolResult {
		in := tooltest.CompleteInput(pg.TableInput(map[string]any{"table": "rows", "mode": "upsert", "key": "id"}, []any{map[string]any{"id": 1}}), "postgres")
		in.Note = note
		result, err := tooltest.ActivityOf(t, c, "postgres.write")(t.Context(), in)
		require.NoError(t, err)
		return result
	}
	note := &interpreter.LedgerEntry{Call: "call", Written: 1, Continuation: []byte("x")}
	count := func() any { return db.Query(t, "SELECT count(*) AS n FROM rows")[0]["n"] }

	require.True(t, write(limited, note).Unnotable, "it may not make the tables")
	require.EqualValues(t, 0, count())
	write(pg.Catalogue, note)
	require.EqualValues(t, 1, count())
	db.Exec(t, "DELETE FROM rows")
	require.True(t, write(limited, note).Unnotable, "it may not write to them")
	require.EqualValues(t, 0, count())
	require.False(t, write(limited, nil).Unnotable)
	require.EqualValues(t, 1, count())

	in := pg.TableInput(map[string]any{"table": "rows"}, nil)
	in.Note = &interpreter.LedgerEntry{Call: "call"}
	_, err := hosting.RecallNotes(t.Context(), limited.Attempts, tooltest.CompleteInput(in, "postgres"))
	require.NoError(t, err, "it has no notes there")

	// What operators are told to do helps.
	docs, err := os.ReadFile("../../docs/how-to/prepare-a-database.md")
	require.NoError(t, err)

	_, told, found := strings.Cut(string(docs), "```sql\n")
	require.True(t, found)

	told, _, _ = strings.Cut(told, "```")
	db.Exec(t, "DROP TABLE reprise_writes, reprise_notes; "+strings.Replace(told, "TO worker", fmt.Sprintf("TO %q", role), 1))
	require.False(t, write(limited, note).Unnotable)
	require.Equal(t, "x", string(write(limited, note).Noted))
}
