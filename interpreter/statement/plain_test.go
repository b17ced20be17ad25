package statement_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/statement"
)

// TestPlain: a statement is plain where every parenthesis is known to call
// nothing, or a function that leaves nothing in its session.
func TestPlain(t *testing.T) {
	t.Parallel()

	plain := func(source string) bool {
		parsed, _ := statement.Parse(source, statement.Postgres)
		return parsed.IsPlain()
	}

	for _, source := range []string{
		"SELECT 1", "select 1;", "(SELECT 1) UNION (SELECT 2)", "VALUES (1), (2)", "SELECT * FROM t WHERE a = ANY({{ xs }}) AND (b OR c)",
		"SELECT lower(a), COUNT(*), coalesce(b, ''), now() FROM t GROUP BY (a) HAVING (count(*) > 1) ORDER BY (a) LIMIT (1 + 1)",
		"SELECT id FROM jobs WHERE done IS NULL ORDER BY id LIMIT 10 FOR UPDATE SKIP LOCKED",
		"WITH a AS (DELETE FROM t RETURNING *), b AS MATERIALIZED (SELECT 1) INSERT INTO s.u (x, y) SELECT x, y FROM a RETURNING (x)",
		"WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT sum(i) FROM n",
		`INSERT INTO "My Table" ("a", b) VALUES ({{ a }}, '{{ b }}') ON CONFLICT (a) DO UPDATE SET b = excluded.b`,
		"SELECT sum(a) OVER (PARTITION BY (b) ORDER BY (c)), count(*) FILTER (WHERE (a > 1)) OVER (w) FROM t",
		"UPDATE t SET a = a::numeric(10, 2), b = CAST(b AS varchar(10)), c = extract(year FROM d) WHERE id IN (1, 2) AND EXISTS (SELECT 1)",
		"DELETE FROM t USING (SELECT 1 AS x) AS u (x) WHERE t.a = u.x",
		"SELECT 'set_config(1)', $$pg_notify(1)$$, E'\\'set_config(1)', a /* set_config(1) /* */ pg_sleep(1) */ FROM t -- nextval(1)",
		"SELECT 'it''s set_config(1)' AS \"set_config(1)\"", "INSERT INTO t SELECT * FROM jsonb_to_recordset({{ rows }}) AS x (a int)",
		"SELECT DATE '{{ day }}', INTERVAL '{{ n }} days'", "SELECT xs[1], xs[(1):(2)] FROM t JOIN u ON (t.a = u.a)",
	} {
		_, problems := statement.Parse(source, statement.Postgres)
		require.Empty(t, problems, source)
		require.True(t, plain(source), source)
	}

	for _, source := range []string{
		"SET a = 1", "RESET ALL", "LISTEN c", "PREPARE p AS SELECT 1", "EXECUTE p", "DO $$ BEGIN END $$", "CALL p()", "CREATE TABLE t (a int)",
		"EXPLAIN ANALYZE SELECT 1", "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "LOCK t", "TABLE t", "MERGE INTO t USING u ON a = b WHEN MATCHED THEN DELETE",
		"SELECT set_config('a', 'b', false)", "SELECT Set_Config ('a', 'b', false)", "SELECT set_config/* */('a', 'b', false)",
		"SELECT set_config -- x\n ('a', 'b', false)", "SELECT 1 -- x\r, set_config('a', 'b', false)", "SELECT * FROM pg_advisory_lock(1)",
		"SELECT mine()", "SELECT lower(mine(1))", "SELECT pg_catalog.set_config('a', 'b', false)", "SELECT public.lower('a')", "SELECT s . lower('a')",
		`SELECT "lower"('a')`, `SELECT "set_config"('a', 'b', false)`, `SELECT U&"\0073et_config"('a', 'b', false)`,
		`SELECT U&"s!0065t_config" UESCAPE '!' ('a', 'b', false)`, `SELECT pg_catalog."set_config"('a', 'b', false)`,
		"SELECT 1 INTO TEMP kept", "SELECT * INTO kept FROM t", "WITH x AS (SELECT 1) SELECT * INTO TEMPORARY kept FROM x",
		"UPDATE pg_settings SET setting = '1' WHERE name = 'work_mem'", `UPDATE "pg_settings" SET setting = '1'`,
		`UPDATE U&"p\0067_settings" SET setting = '1'`, "UPDATE pg_catalog.pg_settings SET setting = '1'",
		"SELECT E'a'\n'\\'', set_config('a', 'b', false), '", "SELECT E'a'\n'\\'' , mine() --'", "SELECT 1 OPERATOR(public.+) 2",
		"INSERT INTO t SELECT * FROM a JOIN b ON conflict(1)", "INSERT INTO t SELECT * FROM a JOIN b ON conflict(1) WHERE true",
		"SELECT by(1)", "SELECT over(1)", "SELECT filter(1)", "SELECT a, partition, by(1)", "SELECT set(1)", "SELECT recursive(1)", "SELECT materialized(1)",
		"SELECT ran\u212a() OVER (w)", "SELECT ma\u212ae_date(1, 2, 3)", "SELECT $1", "SELECT 1$$ 'x $$",
		"SELECT nextval('s')", "SELECT currval('s')", "SELECT current_setting('a')", "SELECT txid_current()", "SELECT * FROM pg_locks",
	} {
		require.False(t, plain(source), source)
	}

	sqlite, _ := statement.Parse("SELECT 1", statement.SQLite)
	require.False(t, sqlite.IsPlain())
}
