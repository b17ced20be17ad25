package postgres_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// onePostgres is the tool with one connection, which every statement gets.
func onePostgres(t testing.TB, options string) (tooltest.SQL, *testenv.Database) {
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
	return tooltest.SQL{Catalogue: catalogue, Name: "postgres", Auth: "main"}, db
}

// TestPostgresForgetsTheSession: a run gets a session as if it were new, in
// which nothing of the one before is left; and it is the same connection.
func TestPostgresForgetsTheSession(t *testing.T) {
	t.Parallel()

	pg, db := onePostgres(t, "")
	db.Exec(t, "CREATE SCHEMA other; CREATE TABLE other.rows (id int); CREATE TABLE rows (id int); CREATE SEQUENCE counter")

	const all = `SELECT pg_backend_pid() AS pid, current_setting('search_path') AS path, current_setting('application_name') AS app,
		current_setting('TimeZone') AS zone, current_setting('DateStyle') AS dates, coalesce(current_setting('my.secret', true), '') AS own,
		to_regclass('pg_temp.kept') IS NOT NULL AS temporary, (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks,
		(SELECT count(*) FROM pg_prepared_statements WHERE name <> '') AS prepared, (SELECT count(*) FROM pg_cursors WHERE is_holdable) AS cursors,
		(SELECT count(*) FROM pg_listening_channels()) AS channels, current_user = session_user AS self, current_setting('role') AS role`

	fresh := pg.RunStatement(t, all, nil)
	require.Equal(t, "UTC", fresh.([]any)[0].(map[string]any)["zone"])

	for _, leak := range []string{
		"SELECT set_config('search_path', 'other', false)", "SET search_path = other", "SELECT set_config('my.secret', 'sesame', false)",
		"DO $$ BEGIN SET search_path = other; SET TimeZone = 'Asia/Tokyo'; SET datestyle = 'SQL'; EXECUTE 'CREATE TEMP TABLE rows (id int)'; END $$",
		"CREATE TEMP TABLE kept (id int)", "SELECT pg_advisory_lock(7)", "PREPARE kept AS SELECT 1", "LISTEN kept",
		"DECLARE kept CURSOR WITH HOLD FOR SELECT 1", "SET ROLE pg_monitor", "SET SESSION AUTHORIZATION pg_monitor", "SELECT nextval('counter')",
	} {
		pg.RunStatement(t, leak, nil)
		require.Equal(t, fresh, pg.RunStatement(t, all, nil), leak)

		in := pg.TableInput(map[string]any{"table": "rows"}, map[string]any{"id": 1})
		in.OperationKey = leak
		_, err := pg.MakeAttempt(t, in)
		require.NoError(t, err, leak)
	}

	require.Equal(t, []map[string]any{{"here": int64(12), "there": int64(0)}},
		db.Query(t, "SELECT (SELECT count(*) FROM rows) AS here, (SELECT count(*) FROM other.rows) AS there"))
	require.Equal(t, "55000", pg.FailingCall(t, pg.StatementInput(t, "SELECT currval('counter')", nil)).Type)
}

// session is what a new session has, and what none of another run may change.
const session = `SELECT current_setting('search_path') AS path, current_setting('application_name') AS app,
	current_setting('TimeZone') AS zone, coalesce(current_setting('my.secret', true), '') AS own,
	to_regclass('pg_temp.whose') IS NOT NULL AS temporary, (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS locks,
	(SELECT count(*) FROM pg_prepared_statements WHERE name <> '') AS prepared, (SELECT count(*) FROM pg_cursors WHERE is_holdable) AS cursors,
	(SELECT count(*) FROM pg_listening_channels()) AS channels, current_user::text AS self, session_user::text AS opened`

// seen is as much of a session as a plain statement sees.
const seen = "SELECT name, current_user::text AS self, to_char(now(), 'TZ') AS zone FROM whose"

// runs is a tool with one connection, which all runs share.
type runs struct {
	tooltest.SQL
	db *testenv.Database
}

// newRuns has a schema other, whose table has the name of one of public.
func newRuns(t *testing.T) runs {
	t.Helper()

	pg, db := onePostgres(t, "")
	db.Exec(t, `CREATE TABLE whose (name text); INSERT INTO whose VALUES ('public'); CREATE SCHEMA other;
		CREATE TABLE other.whose (name text); INSERT INTO other.whose VALUES ('other'); CREATE TABLE rows (id int); CREATE TABLE other.rows (id int);
		CREATE FUNCTION leave(text) RETURNS text LANGUAGE sql VOLATILE AS $$
			SELECT set_config('search_path', 'other, public', false) || set_config('my.secret', $1, false) || pg_advisory_lock(7) $$`)
	return runs{SQL: pg, db: db}
}

// of runs a statement as part of a run.
func (r runs) of(t *testing.T, run, source string) any {
	t.Helper()

	in := r.StatementInput(t, source, nil)
	in.RunID, in.ControlID = run, "playbook"
	result, err := r.MakeAttempt(t, in)
	require.NoError(t, err, source)
	return result.Data.Data
}

// writes writes a row to the table rows as part of a run, and tells whose it was.
func (r runs) writes(t *testing.T, run string) string {
	t.Helper()

	r.db.Exec(t, "TRUNCATE rows, other.rows")
	in := r.TableInput(map[string]any{"table": "rows"}, map[string]any{"id": 1})
	in.RunID, in.ControlID, in.OperationKey = run, "playbook", rand.Text()
	_, err := r.MakeAttempt(t, in)
	require.NoError(t, err)
	return fmt.Sprint(r.db.Query(t, "SELECT (SELECT count(*) FROM rows) AS public, (SELECT count(*) FROM other.rows) AS other")[0])
}

// TestPostgresSharesNothingThatAStatementLeaves: what an author writes does not
// reach the next statement, of the same run or of another.
func TestPostgresSharesNothingThatAStatementLeaves(t *testing.T) {
	t.Parallel()

	r := newRuns(t)
	fresh, plain, public := r.of(t, "a", session), r.of(t, "a", seen), r.writes(t, "a")
	require.Equal(t, []any{map[string]any{"name": "public", "self": "postgres", "zone": "UTC"}}, plain)

	for _, leak := range []string{
		"SET search_path = other", "SET SESSION my.secret = 'sesame'", "SET TimeZone = 'Asia/Tokyo'", "SET ROLE pg_monitor",
		"SET SESSION AUTHORIZATION pg_monitor", "CREATE TEMP TABLE whose (name text)", "SELECT 'temp' AS name INTO TEMP whose", "SELECT pg_advisory_lock(7)",
		"WITH x AS (SELECT 'temp' AS name) SELECT * INTO TEMPORARY TABLE whose FROM x", "PREPARE kept AS SELECT 1", "LISTEN kept",
		"DECLARE kept CURSOR WITH HOLD FOR SELECT 1", "DO $$ BEGIN SET search_path = other; PERFORM pg_advisory_lock(7); END $$",
		"SELECT set_config('search_path', 'other', false)", "SELECT set_config /* lower(1) */ ('search_path', 'other', false)",
		"SELECT set_config -- lower\n('search_path', 'other', false)", "SELECT 1 AS a -- x\r, set_config('search_path', 'other', false) AS b",
		"SELECT pg_catalog.set_config('search_path', 'other', false)", `SELECT "set_config"('search_path', 'other', false)`,
		`SELECT U&"\0073et_config"('search_path', 'other', false)`, `SELECT U&"s!0065t_config" UESCAPE '!' ('search_path', 'other', false)`,
		"UPDATE pg_settings SET setting = 'other' WHERE name = 'search_path'", "SELECT leave('x')", "SELECT lower(leave('x'))", "SELECT * FROM leave('x')",
		"WITH x AS (INSERT INTO rows VALUES (1) RETURNING id) SELECT set_config('search_path', 'other', false) FROM x",
		"SELECT name FROM whose WHERE set_config('search_path', 'other', false) = 'other' FOR UPDATE",
		"SELECT E'a'\n'\\'' AS a, set_config('search_path', 'other', false) AS b --'",
	} {
		for _, next := range []string{"a", "b"} {
			r.of(t, "a", seen)
			r.of(t, "a", leak)
			require.Equal(t, plain, r.of(t, next, seen), "%s of %s", leak, next)

			r.of(t, "a", leak)
			require.Equal(t, fresh, r.of(t, next, session), "%s of %s", leak, next)

			r.of(t, "a", leak)
			require.Equal(t, public, r.writes(t, next), "%s of %s", leak, next)
		}
	}
}

// TestPostgresSharesNothingBetweenRuns: what is defined in the database may leave
// things to the plain statements of the same run, and to nothing else.
func TestPostgresSharesNothingBetweenRuns(t *testing.T) {
	t.Parallel()

	r := newRuns(t)
	fresh, plain, public := r.of(t, "a", session), r.of(t, "a", seen), r.writes(t, "a")
	r.db.Exec(t, `CREATE TABLE watched (a text);
		CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM leave('trigger'); RETURN new; END $$;
		CREATE TRIGGER watch AFTER INSERT ON watched FOR EACH ROW EXECUTE FUNCTION watch();
		CREATE VIEW looks AS SELECT leave('view') AS a; CREATE TABLE defaults (a text, b text DEFAULT leave('default'));
		CREATE FUNCTION lower(int) RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT leave('lower') $$;
		CREATE VIEW settings AS SELECT * FROM pg_settings`)

	for _, leak := range []string{
		"INSERT INTO watched VALUES ('a')", "SELECT * FROM looks", "INSERT INTO defaults (a) VALUES ('a')", "SELECT lower(1)",
		"UPDATE settings SET setting = 'other, public' WHERE name = 'search_path'",
		"WITH x AS (INSERT INTO watched VALUES ('a') RETURNING a) SELECT count(*) FROM x", "SELECT a FROM looks FOR UPDATE",
	} {
		r.of(t, "a", leak)
		require.Equal(t, "other", r.of(t, "a", seen).([]any)[0].(map[string]any)["name"], "the session is kept for plain statements: %s", leak)
		require.Equal(t, fresh, r.of(t, "a", session), leak)
		require.Equal(t, plain, r.of(t, "a", seen), leak)

		for next, check := range map[string]func(run string){
			"plain": func(run string) { require.Equal(t, plain, r.of(t, run, seen), leak) },
			"any":   func(run string) { require.Equal(t, fresh, r.of(t, run, session), leak) },
			"rows":  func(run string) { require.Equal(t, public, r.writes(t, run), leak) },
		} {
			r.of(t, "a", leak)
			check("b " + next)
			r.of(t, "a", leak)
			check("") // of a build that did not tell
		}
	}

	in := r.StatementInput(t, seen, nil)
	in.RunID, in.ControlID = "a", "reprocessing"
	r.of(t, "a", "SELECT * FROM looks")
	result, err := r.MakeAttempt(t, in)
	require.NoError(t, err)
	require.Equal(t, plain, result.Data.Data, "a run that makes up for another is not that one")
}

// TestPostgresForgetsWhatItIsTold: of some settings the server tells a change, and
// a session with one is kept for nobody.
func TestPostgresForgetsWhatItIsTold(t *testing.T) {
	t.Parallel()

	r := newRuns(t)
	plain := r.of(t, "a", seen)
	r.db.Exec(t, `GRANT USAGE ON SCHEMA public TO pg_monitor; GRANT SELECT ON whose TO pg_monitor;
		CREATE FUNCTION change() RETURNS text LANGUAGE plpgsql AS $$ BEGIN SET TimeZone = 'Asia/Tokyo'; SET SESSION AUTHORIZATION pg_monitor; RETURN 'a'; END $$;
		CREATE VIEW changes AS SELECT change() AS a`)

	r.of(t, "a", "SELECT * FROM changes")
	require.Equal(t, plain, r.of(t, "a", seen))
}

// TestPostgresFunctionsOfTheServerComeFirst: one with the name of a harmless
// function and its arguments is not called.
func TestPostgresFunctionsOfTheServerComeFirst(t *testing.T) {
	t.Parallel()

	r := newRuns(t)
	r.db.Exec(t, "CREATE FUNCTION lower(text) RETURNS text LANGUAGE sql AS $$ SELECT leave('lower') $$")

	for _, path := range []string{"SELECT 1", "SET search_path = public, pg_catalog", "SELECT set_config('search_path', 'public, pg_catalog', false)"} {
		r.of(t, "a", path)
		require.Equal(t, []any{map[string]any{"a": "x"}}, r.of(t, "a", "SELECT lower('X') AS a"), path)
	}
}

// TestPostgresReadsLiteralsAsTheServer: where a backslash escapes a quote, no
// session is kept, as what looks like a literal may be a call.
func TestPostgresReadsLiteralsAsTheServer(t *testing.T) {
	t.Parallel()

	r := newRuns(t)
	name := r.db.Query(t, "SELECT current_database()::text AS name")[0]["name"]
	r.db.Exec(t, fmt.Sprintf("ALTER DATABASE %q SET standard_conforming_strings = off", name))

	plain := r.of(t, "a", seen)
	r.of(t, "a", `SELECT '\'' AS a, leave('literal') AS b --'`)
	require.Equal(t, "off", r.of(t, "b", "SELECT current_setting('standard_conforming_strings') AS a").([]any)[0].(map[string]any)["a"])
	r.of(t, "a", `SELECT '\'' AS a, leave('literal') AS b --'`)
	require.Equal(t, plain, r.of(t, "a", seen))
}

// TestPostgresClosesIdleSessions: what a trigger has left in a session that was
// kept does not hold up others for long.
func TestPostgresClosesIdleSessions(t *testing.T) {
	t.Parallel()

	r := newRuns(t)
	r.db.Exec(t, "CREATE VIEW looks AS SELECT leave('view') AS a")
	r.of(t, "a", "SELECT * FROM looks")

	const held = "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
	require.EqualValues(t, 1, r.db.Query(t, held)[0]["n"])
	require.Eventually(t, func() bool { return r.db.Query(t, held)[0]["n"] == int64(0) }, testenv.Within(2*time.Minute), 100*time.Millisecond)
}

// TestPostgresPreservesTheRoleOfItsConnection: the settings in a connection's URL
// hold for every statement, not for the first.
func TestPostgresPreservesTheRoleOfItsConnection(t *testing.T) {
	t.Parallel()

	pg, _ := onePostgres(t, "&options=-c%20role%3Dpg_monitor%20-c%20work_mem%3D1MB&application_name=mine")

	for range 3 {
		require.Equal(t, []any{map[string]any{"role": "pg_monitor", "app": "mine", "memory": "1MB"}}, pg.RunStatement(t,
			"SELECT current_user::text AS role, current_setting('application_name') AS app, current_setting('work_mem') AS memory", nil))
		pg.RunStatement(t, "RESET ROLE", nil)
	}
}

// TestPostgresValuesAreBounded: a row that is too large is not read, and rows
// are counted as they come.
func TestPostgresValuesAreBounded(t *testing.T) {
	t.Parallel()

	pg, _ := onePostgres(t, "") // with results of 1 MiB
	pg.RunStatement(t, "SELECT 1 AS a", nil)

	for statement, says := range map[string]string{
		"SELECT repeat('x', 200000000) AS x":                                  "the server sent 200000006 bytes in one row or message",
		"SELECT repeat('x', 1000000) AS x FROM generate_series(1, 100)":       "the result is larger than 1048576 bytes after 1 rows",
		"SELECT NULL AS a FROM generate_series(1, 3000000)":                   "the result is larger than 1048576 bytes after",
		"DO $$ BEGIN RAISE NOTICE '%', repeat('x', 100000000); END $$":        "bytes in one row or message",
		"DO $$ BEGIN RAISE EXCEPTION '%', repeat('x', 100000000); END $$":     "bytes in one row or message",
		"SELECT repeat('x', 1000000) AS a, repeat('y', 1000000) AS b, 1 AS c": "the server sent",
	} {
		in := pg.StatementInput(t, statement, nil)
		in.Step = "big"

		object := pg.FailingCall(t, in)
		require.Equal(t, interpreter.KindPayloadTooLarge, object.Kind, object.Message)
		require.Contains(t, object.Message, `step "big": `)
		require.Contains(t, object.Message, says)
		require.Contains(t, object.Message, "1048576")
		require.Equal(t, []any{map[string]any{"a": 1}}, pg.RunStatement(t, "SELECT 1 AS a", nil), "the next has a connection")
	}
}

// TestPostgresTableChangesBetweenWrites: what a session remembers of a table is not used for one that has changed
// since, with a ledger and without.
func TestPostgresTableChangesBetweenWrites(t *testing.T) {
	t.Parallel()

	for mode, words := range map[string]map[string]any{
		"insert": {"table": "kept"}, "upsert": {"table": "kept", "mode": "upsert", "key": "id"},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()

			pg, db := onePostgres(t, "")
			input := func(row map[string]any) interpreter.ToolInput {
				in := pg.TableInput(words, row)
				in.RunID, in.ControlID, in.OperationKey = "a", "playbook", rand.Text()
				return in
			}
			write := func(row map[string]any) {
				_, err := pg.MakeAttempt(t, input(row))
				require.NoError(t, err)
			}
			names := func() string {
				return fmt.Sprint(db.Query(t, "SELECT string_agg(id || ' ' || name::text, ', ' ORDER BY id) AS all FROM kept")[0]["all"])
			}
			db.Exec(t, "CREATE TABLE kept (id int PRIMARY KEY)")
			write(map[string]any{"id": 1})
			db.Exec(t, "ALTER TABLE kept ADD COLUMN name text")
			write(map[string]any{"id": 2, "name": "1"})
			write(map[string]any{"id": 3, "name": "2"})
			require.Equal(t, "2 1, 3 2", names())
			db.Exec(t, "ALTER TABLE kept ALTER COLUMN name TYPE jsonb USING to_jsonb(name)")
			write(map[string]any{"id": 4, "name": "3"})
			require.Equal(t, `2 "1", 3 "2", 4 "3"`, names())
			db.Exec(t, "ALTER TABLE kept RENAME TO former; CREATE TABLE kept (id int PRIMARY KEY, name varchar(9))")
			write(map[string]any{"id": 5, "name": "4"})
			require.Equal(t, "5 4", names())
			db.Exec(t, "ALTER TABLE kept DROP COLUMN name")
			require.Contains(t, pg.FailingCall(t, input(map[string]any{"id": 6, "name": "5"})).Message, `has no column "name"`)
			db.Exec(t, "DROP TABLE kept")
			require.Contains(t, pg.FailingCall(t, input(map[string]any{"id": 7})).Message, "does not exist")
		})
	}
}

// BenchmarkPostgresSession is what a statement costs with all that is done to
// its connection.
func BenchmarkPostgresSession(b *testing.B) {
	pg, db := onePostgres(b, "")
	db.Exec(b, "CREATE TABLE rows (id int)")

	for name, in := range map[string]interpreter.ToolInput{
		"statement": pg.RawInput("SELECT 1 AS a"),
		"rows":      pg.TableInput(map[string]any{"table": "rows"}, map[string]any{"id": 1}),
	} {
		b.Run(name, func(b *testing.B) {
			for n := range b.N {
				in.OperationKey, in.RunID = fmt.Sprint(n), "run"
				_, err := pg.MakeAttempt(b, in)
				require.NoError(b, err)
			}
		})
	}
}
