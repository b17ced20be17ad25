package postgres_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// writePage writes a page of two rows as part of a run.
func writePage(t *testing.T, pg tooltest.SQL, run string, page int) {
	t.Helper()

	in := pg.TableInput(map[string]any{"table": "rows"}, []any{map[string]any{"id": 2 * page, "v": `a"b\c`}, map[string]any{"id": 2*page + 1, "v": nil}})
	in.OperationKey, in.RunID, in.ControlID = fmt.Sprint("page ", page), run, "playbook"
	_, err := pg.MakeAttempt(t, in)
	require.NoError(t, err)
}

// notesPrepared has a trigger note, with each write to the table rows, what is prepared in its session.
const notesPrepared = `CREATE TABLE prepared (id int GENERATED ALWAYS AS IDENTITY, statements text);
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO prepared (statements) SELECT coalesce(string_agg(statement, E'\n' ORDER BY statement), '') FROM pg_prepared_statements WHERE name <> '';
		RETURN NULL; END $$;
	CREATE TRIGGER note AFTER INSERT ON rows FOR EACH STATEMENT EXECUTE FUNCTION note()`

// prepared is what was prepared with each write so far.
func prepared(t *testing.T, db *testenv.Database) []string {
	t.Helper()

	var statements []string
	for _, row := range db.Query(t, "SELECT statements FROM prepared ORDER BY id") {
		statements = append(statements, fmt.Sprint(row["statements"]))
	}
	return statements
}

// TestUsualWritesArePrepared: a session prepares what it sends for each page, and another run has nothing of that.
func TestUsualWritesArePrepared(t *testing.T) {
	t.Parallel()

	pg, db := onePostgres(t, "")
	db.Exec(t, "CREATE TABLE rows (id int, v text);"+notesPrepared)
	for page := range 20 {
		writePage(t, pg, string("ab"[page/10]), page)
	}
	with := prepared(t, db)
	require.Empty(t, with[0])
	require.Contains(t, with[9], `FROM unnest($1::integer[], $2::text[])`)
	require.Contains(t, with[9], "INSERT INTO reprise_writes")
	require.Equal(t, with[8], with[9], "each is prepared once")
	require.Empty(t, with[10], "another run has its own session")
	require.Equal(t, with[9], with[19])
	require.Equal(t, []map[string]any{{"n": int64(40), "least": int32(0), "most": int32(39), "texts": int64(20)}},
		db.Query(t, `SELECT count(*) AS n, min(id) AS least, max(id) AS most, count(*) FILTER (WHERE v = 'a"b\c') AS texts FROM rows`))
}

// TestWritesWithoutWhatWasPrepared: a pooler, or a trigger, may lose what a session has prepared.
func TestWritesWithoutWhatWasPrepared(t *testing.T) {
	t.Parallel()

	pg, db := onePostgres(t, "")
	db.Exec(t, "CREATE TABLE rows (id int UNIQUE, v text);"+notesPrepared)
	db.Exec(t, `CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'DEALLOCATE ALL'; RETURN NULL; END $$`)
	for page := range 10 {
		writePage(t, pg, "a", page)
		if page == 7 {
			db.Exec(t, "CREATE TRIGGER z_lose AFTER INSERT ON rows FOR EACH STATEMENT EXECUTE FUNCTION lose()")
		}
	}
	with := prepared(t, db)
	require.NotEmpty(t, with[8])
	require.Empty(t, with[9])
	require.Equal(t, []map[string]any{{"n": int64(20)}}, db.Query(t, "SELECT count(*) AS n FROM rows"))
}

// TestPreparedWritesFollowTheTable: a statement that was prepared writes to the table as it is by now.
func TestPreparedWritesFollowTheTable(t *testing.T) {
	t.Parallel()

	pg, db := onePostgres(t, "")
	db.Exec(t, "CREATE TABLE rows (id int, v text)")
	page := 0
	for _, change := range []string{
		"ALTER TABLE rows ALTER COLUMN id TYPE numeric", "ALTER TABLE rows ALTER COLUMN v TYPE varchar(5)", "ALTER TABLE rows ADD COLUMN more int DEFAULT 7",
		"ALTER TABLE rows RENAME TO old; CREATE TABLE rows (v text, id bigint); INSERT INTO rows SELECT v, id FROM old",
	} {
		for range 6 {
			writePage(t, pg, "a", page)
			page++
		}
		db.Exec(t, change)
	}
	writePage(t, pg, "a", page)
	require.Equal(t, []map[string]any{{"n": int64(50), "last": int64(49)}}, db.Query(t, "SELECT count(*) AS n, max(id) AS last FROM rows"))
}

// TestWritesOfChildrenArePrepared: a page of parents with children is sent by prepared statements, also after they are lost. Each page asks
// whether others read the tables.
func TestWritesOfChildrenArePrepared(t *testing.T) {
	t.Parallel()

	pg, db := onePostgres(t, "")
	db.Exec(t, "CREATE TABLE rows (id int PRIMARY KEY, v text); CREATE TABLE lines (row_id int, line int, PRIMARY KEY (row_id, line));"+notesPrepared)
	children := fields{"lines": fields{"table": "lines", "key": []any{"row_id", "line"}, "with": fields{"row_id": "id"}}}
	writeParent := func(page int) {
		in := pg.TableInput(fields{"table": "rows", "mode": "upsert", "key": "id", "children": children}, []any{fields{"id": page, "lines": []any{fields{"line": 1}, fields{"line": 2}}}})
		in.OperationKey, in.RunID, in.ControlID = fmt.Sprint("page ", page), "a", "playbook"
		_, err := pg.MakeAttempt(t, in)
		require.NoError(t, err)
	}
	for page := range 10 {
		writeParent(page)
	}
	with := prepared(t, db)
	for _, part := range []string{`INSERT INTO "rows"`, `INSERT INTO "lines"`, `SELECT EXISTS`, "c.xmin"} {
		require.Contains(t, with[9], part)
	}
	db.Exec(t, `CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'DEALLOCATE ALL'; RETURN NULL; END $$;
		CREATE TRIGGER z_lose AFTER INSERT ON rows FOR EACH STATEMENT EXECUTE FUNCTION lose()`)
	for page := range 3 {
		writeParent(10 + page)
	}
	replace := pg.TableInput(fields{"table": "lines", "mode": "replace", "key": []any{"row_id", "line"}}, nil)
	replace.Staging = &interpreter.Staging{ID: "0123456789abcdef0123", Do: interpreter.StagingBegin}
	_, err := pg.MakeAttempt(t, replace)
	require.NoError(t, err)
	writeParent(13)
	newer := db.Query(t, "SELECT quote_ident(relname) AS name FROM pg_class WHERE relname LIKE 'reprise_newer_%' AND relkind = 'r'")
	require.Len(t, newer, 1)
	require.Equal(t, []map[string]any{{"row_id": int32(13), "line": int32(1)}, {"row_id": int32(13), "line": int32(2)}},
		db.Query(t, fmt.Sprint("SELECT row_id, line FROM ", newer[0]["name"], " ORDER BY line")))
	require.Equal(t, []map[string]any{{"n": int64(28)}}, db.Query(t, "SELECT count(*) AS n FROM lines"))
}
