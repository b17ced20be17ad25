package activities_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/testenv"
	"reprise/interpreter"
)

// onePostgres is the tool with one connection, which every statement gets.
func onePostgres(t testing.TB, options string) (sqlTool, *testenv.Database) {
	t.Helper()

	db := testenv.Postgres(t)

	separator := "?"
	if strings.Contains(db.URL, "?") {
		separator = "&"
	}

	catalogue := activities.NewCatalogue(activities.Resources{
		Connections: activities.Connections{"main": db.URL + separator + "pool_max_conns=1" + options}, MaxResponseBytes: 1 << 20,
	})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })
	return sqlTool{catalogue: catalogue, name: "postgres", auth: "main"}, db
}

// TestPostgresForgetsTheSession: a run gets a session as if it were new, in
// which nothing of the one before is left; and it is the same connection.
func TestPostgresForgetsTheSession(t *testing.T) {
	t.Parallel()

	pg, db := onePostgres(t, "")
	db.Exec(t, "CREATE SCHEMA other; CREATE TABLE other.rows (id int); CREATE TABLE rows (id int); CREATE SEQUENCE counter")

	const session = `SELECT pg_backend_pid() AS pid, current_setting('search_path') AS path, current_setting('application_name') AS app,
		current_setting('TimeZone') AS zone, current_setting('DateStyle') AS dates, coalesce(current_setting('my.secret', true), '') AS own,
		to_regclass('pg_temp.kept') IS NOT NULL AS temporary, (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks,
		(SELECT count(*) FROM pg_prepared_statements WHERE name <> '') AS prepared, (SELECT count(*) FROM pg_cursors WHERE is_holdable) AS cursors,
		(SELECT count(*) FROM pg_listening_channels()) AS channels, current_user = session_user AS self, current_setting('role') AS role`

	fresh := pg.run(t, session, nil)
	require.Equal(t, "UTC", fresh.([]any)[0].(map[string]any)["zone"])

	for _, leak := range []string{
		"SELECT set_config('search_path', 'other', false)", "SET search_path = other", "SELECT set_config('my.secret', 'sesame', false)",
		"DO $$ BEGIN SET search_path = other; SET TimeZone = 'Asia/Tokyo'; SET datestyle = 'SQL'; EXECUTE 'CREATE TEMP TABLE rows (id int)'; END $$",
		"CREATE TEMP TABLE kept (id int)", "SELECT pg_advisory_lock(7)", "PREPARE kept AS SELECT 1", "LISTEN kept",
		"DECLARE kept CURSOR WITH HOLD FOR SELECT 1", "SET ROLE pg_monitor", "SET SESSION AUTHORIZATION pg_monitor", "SELECT nextval('counter')",
	} {
		pg.run(t, leak, nil)
		require.Equal(t, fresh, pg.run(t, session, nil), leak)

		in := pg.rows(map[string]any{"table": "rows"}, map[string]any{"id": 1})
		in.OperationKey = leak
		_, err := pg.call(t, in)
		require.NoError(t, err, leak)
	}

	require.Equal(t, []map[string]any{{"here": int64(12), "there": int64(0)}},
		db.Query(t, "SELECT (SELECT count(*) FROM rows) AS here, (SELECT count(*) FROM other.rows) AS there"))
	require.Equal(t, "55000", pg.fail(t, pg.input(t, "SELECT currval('counter')", nil)).Type)
}

// TestPostgresKeepsTheRoleOfItsConnection: the settings in a connection's URL
// hold for every statement, not for the first.
func TestPostgresKeepsTheRoleOfItsConnection(t *testing.T) {
	t.Parallel()

	pg, _ := onePostgres(t, "&options=-c%20role%3Dpg_monitor%20-c%20work_mem%3D1MB&application_name=mine")

	for range 3 {
		require.Equal(t, []any{map[string]any{"role": "pg_monitor", "app": "mine", "memory": "1MB"}}, pg.run(t,
			"SELECT current_user::text AS role, current_setting('application_name') AS app, current_setting('work_mem') AS memory", nil))
		pg.run(t, "RESET ROLE", nil)
	}
}

// TestPostgresValuesAreBounded: a row that is too large is not read, and rows
// are counted as they come.
func TestPostgresValuesAreBounded(t *testing.T) {
	t.Parallel()

	pg, _ := onePostgres(t, "") // with results of 1 MiB
	pg.run(t, "SELECT 1 AS a", nil)

	for statement, says := range map[string]string{
		"SELECT repeat('x', 200000000) AS x":                                  "the server sent 200000006 bytes at once",
		"SELECT repeat('x', 1000000) AS x FROM generate_series(1, 100)":       "the result is larger than 1048576 bytes after 1 rows",
		"SELECT NULL AS a FROM generate_series(1, 100000000)":                 "the result is larger than 1048576 bytes after",
		"DO $$ BEGIN RAISE NOTICE '%', repeat('x', 100000000); END $$":        "bytes at once",
		"DO $$ BEGIN RAISE EXCEPTION '%', repeat('x', 100000000); END $$":     "bytes at once",
		"SELECT repeat('x', 1000000) AS a, repeat('y', 1000000) AS b, 1 AS c": "the server sent",
	} {
		in := pg.input(t, statement, nil)
		in.Step = "big"

		object := pg.fail(t, in)
		require.Equal(t, interpreter.KindPayloadTooLarge, object.Kind, object.Message)
		require.Contains(t, object.Message, `step "big": `)
		require.Contains(t, object.Message, says)
		require.Contains(t, object.Message, "1048576")
		require.Equal(t, []any{map[string]any{"a": 1}}, pg.run(t, "SELECT 1 AS a", nil), "the next has a connection")
	}
}

// BenchmarkPostgresSession is what a statement costs with all that is done to
// its connection.
func BenchmarkPostgresSession(b *testing.B) {
	pg, db := onePostgres(b, "")
	db.Exec(b, "CREATE TABLE rows (id int)")

	for name, in := range map[string]interpreter.ToolInput{
		"statement": pg.as("SELECT 1 AS a"),
		"rows":      pg.rows(map[string]any{"table": "rows"}, map[string]any{"id": 1}),
	} {
		b.Run(name, func(b *testing.B) {
			for n := range b.N {
				in.OperationKey = fmt.Sprint(n)
				_, err := pg.call(b, in)
				require.NoError(b, err)
			}
		})
	}
}
