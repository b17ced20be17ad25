package statement_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/statement"
)

// number parses a statement without problems and numbers it without casts.
func number(t *testing.T, source string, d statement.Dialect) string {
	t.Helper()
	s, problems := statement.Parse(source, d)
	require.Empty(t, problems, source)
	return s.NumberParams(nil, true, false).Text
}

// first is the text of the source where the first problem is.
func first(source string, problems []statement.Problem) string {
	runes := []rune(source)
	return string(runes[problems[0].Offset:min(problems[0].End, len(runes))])
}

func TestTemplatesBecomeParameters(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		name, source, postgres, sqlite string // "" where the dialect does not have it
	}{
		{"bare", "SELECT {{ a }}", "SELECT $1", "SELECT ?1"},
		{"literal", "SELECT '{{ a }}'", "SELECT $1", "SELECT ?1"},
		{"text in a literal", "SELECT 'a {{ a }} b {{ b }}'", "SELECT $1", "SELECT ?1"},
		{"like", "SELECT 1 WHERE x LIKE '%{{ q }}%'", "SELECT 1 WHERE x LIKE $1", "SELECT 1 WHERE x LIKE ?1"},
		{"quotes in the expression", "SELECT '{{ a | default('x') }}', 'it''s'", "SELECT $1, 'it''s'", "SELECT ?1, 'it''s'"},
		{"other literals stay", "SELECT '{a}', 'b''c', {{ d }}", "SELECT '{a}', 'b''c', $1", "SELECT '{a}', 'b''c', ?1"},
		{"equal templates share", "SELECT f({{ n }}) FROM t GROUP BY f({{n}})", "SELECT f($1) FROM t GROUP BY f($1)", "SELECT f(?1) FROM t GROUP BY f(?1)"},
		{"bare and literal do not", "SELECT {{ n }}, '{{ n }}'", "SELECT $1, $2", "SELECT ?1, ?2"},
		{"trailing semicolon", "SELECT {{ a }} ; ", "SELECT $1", "SELECT ?1"},
		{"no templates", "SELECT 1;;", "SELECT 1", "SELECT 1"},
		{"keyword before a quote", "SELECT'{{ a }}'AS b", "SELECT $1 AS b", "SELECT ?1 AS b"},
		{"line comment", "SELECT 1 -- it's {{ old }}\n, {{ a }}", "SELECT 1  \n, $1", "SELECT 1  \n, ?1"},
		{"block comment", "SELECT /* {{ old ' */ {{ a }}", "SELECT   $1", "SELECT   ?1"},
		{"plain comments stay", "SELECT /*+ hint */ {{ a }}", "SELECT /*+ hint */ $1", "SELECT /*+ hint */ ?1"},
		{"nested comment", "SELECT /* a /* b */ c */ {{ a }}", "SELECT /* a /* b */ c */ $1", ""},
		{"dollar quotes", "SELECT $${{ a | tojson }}$$::json, $q$it's {{ b }}$q$", "SELECT $1::json, $2", ""},
		{"dollar quotes stay", "SELECT $$ ; -- ' $$, {{ a }}", "SELECT $$ ; -- ' $$, $1", ""},
		{"cast", "SELECT {{ a }}::int, '{{ b }}'::jsonb", "SELECT $1::int, $2::jsonb", ""},
		{"interval", "SELECT now() - INTERVAL '{{ n }} days'", "SELECT now() - CAST($1 AS INTERVAL)", ""},
		{"interval with fields", "SELECT interval '{{ n }}' second(3) AS x", "SELECT CAST(CAST($1 AS text) || ' second' AS interval second(3)) AS x", ""},
		{"date", "SELECT DATE '{{ d }}', x > TIMESTAMP '{{ d }} 10:00'", "SELECT CAST($1 AS DATE), x > CAST($2 AS TIMESTAMP)", ""},
		{"with time zone", "SELECT timestamp with time zone '{{ d }}'", "SELECT CAST($1 AS timestamp with time zone)", ""},
		{"sized type", "SELECT numeric(10, 2) '{{ d }}', timestamp(3) without time zone '{{ d }}'", "SELECT CAST($1 AS numeric(10, 2)), CAST($2 AS timestamp(3) without time zone)", ""},
		{"double precision", "SELECT double precision '{{ d }}'", "SELECT CAST($1 AS double precision)", ""},
		{"any", "SELECT 1 WHERE id = ANY({{ ids }})", "SELECT 1 WHERE id = ANY($1)", ""},
		{"in a list", "SELECT 1 WHERE id IN ({{ a }}, {{ b }})", "SELECT 1 WHERE id IN ($1, $2)", "SELECT 1 WHERE id IN (?1, ?2)"},
		{"limit", "SELECT 1 LIMIT {{ n }} OFFSET {{ m }}", "SELECT 1 LIMIT $1 OFFSET $2", "SELECT 1 LIMIT ?1 OFFSET ?2"},
		{
			"insert", "INSERT INTO s.t (a, b) VALUES ({{ a }}, '{{ b }}') ON CONFLICT (a) DO UPDATE SET b = {{ b }} RETURNING {{ c }}",
			"INSERT INTO s.t (a, b) VALUES ($1, $2) ON CONFLICT (a) DO UPDATE SET b = $3 RETURNING $4",
			"INSERT INTO s.t (a, b) VALUES (?1, ?2) ON CONFLICT (a) DO UPDATE SET b = ?3 RETURNING ?4",
		},
		{"insert select", "INSERT INTO t (SELECT {{ a }})", "INSERT INTO t (SELECT $1)", "INSERT INTO t (SELECT ?1)"},
		{"update", "UPDATE t SET a = {{ a }}, b = {{ b }} WHERE c = {{ c }}", "UPDATE t SET a = $1, b = $2 WHERE c = $3", "UPDATE t SET a = ?1, b = ?2 WHERE c = ?3"},
		{"distinct from", "SELECT 1 WHERE a IS DISTINCT FROM {{ a }}", "SELECT 1 WHERE a IS DISTINCT FROM $1", "SELECT 1 WHERE a IS DISTINCT FROM ?1"},
		{
			"extract and its like", "SELECT extract(year from {{ d }}::date), substring({{ s }} from {{ n }} for {{ m }}), position({{ a }} in {{ b }}), overlay({{ a }} placing {{ b }} from 1), trim(both {{ a }} from {{ b }})",
			"SELECT extract(year from $1::date), substring($2 from $3 for $4), position($5 in $6), overlay($5 placing $6 from 1), trim(both $5 from $6)", "",
		},
		{"function in from", "SELECT * FROM json_each({{ a }}), f({{ b }}, {{ c }})", "SELECT * FROM json_each($1), f($2, $3)", "SELECT * FROM json_each(?1), f(?2, ?3)"},
		{"between", "SELECT 1 WHERE a BETWEEN {{ a }} AND {{ b }} AND NOT {{ c }}", "SELECT 1 WHERE a BETWEEN $1 AND $2 AND NOT $3", "SELECT 1 WHERE a BETWEEN ?1 AND ?2 AND NOT ?3"},
		{"case", "SELECT CASE WHEN a = {{ a }} THEN {{ b }} ELSE {{ c }} END", "SELECT CASE WHEN a = $1 THEN $2 ELSE $3 END", "SELECT CASE WHEN a = ?1 THEN ?2 ELSE ?3 END"},
		{"order by something calculated", "SELECT 1 ORDER BY a, {{ x }} || b", "SELECT 1 ORDER BY a, $1 || b", "SELECT 1 ORDER BY a, ?1 || b"},
		{"array", "SELECT ARRAY[{{ a }}, {{ b }}], xs[1:{{ n }}], xs[{{ n }}]", "SELECT ARRAY[$1, $2], xs[1:$3], xs[$3]", ""},
		{"json operators", "SELECT a ? 'x', a ->> {{ k }}, a ? {{ k }}, (b) ?| {{ ks }}", "SELECT a ? 'x', a ->> $1, a ? $1, (b) ?| $2", ""},
		{
			"merge", "MERGE INTO t USING (SELECT {{ a }} AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET b = {{ b }} WHEN NOT MATCHED THEN INSERT (id) VALUES ({{ a }})",
			"MERGE INTO t USING (SELECT $1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET b = $2 WHEN NOT MATCHED THEN INSERT (id) VALUES ($1)", "",
		},
		{"with", "WITH x (a) AS (SELECT {{ a }}) SELECT * FROM x JOIN y USING (id)", "WITH x (a) AS (SELECT $1) SELECT * FROM x JOIN y USING (id)", "WITH x (a) AS (SELECT ?1) SELECT * FROM x JOIN y USING (id)"},
		{"create table as", "CREATE TEMP TABLE IF NOT EXISTS x AS SELECT {{ a }} AS a", "CREATE TEMP TABLE IF NOT EXISTS x AS SELECT $1 AS a", "CREATE TEMP TABLE IF NOT EXISTS x AS SELECT ?1 AS a"},
		{"explain", "EXPLAIN (ANALYZE) SELECT {{ a }}", "EXPLAIN (ANALYZE) SELECT $1", ""},
		{"call", "CALL p({{ a }})", "CALL p($1)", ""},
		{"values", "VALUES ({{ a }}, {{ b }})", "VALUES ($1, $2)", "VALUES (?1, ?2)"},
		{"parenthesis", "(SELECT {{ a }}) UNION (SELECT 2)", "(SELECT $1) UNION (SELECT 2)", ""},
		{"zone", "SELECT now() AT TIME ZONE {{ z }}", "SELECT now() AT TIME ZONE $1", ""},
		{"sqlite is", "SELECT a IS {{ a }}, a GLOB '{{ b }}*'", "", "SELECT a IS ?1, a GLOB ?2"},
		{"sqlite replace", "REPLACE INTO [my table] (`a`) VALUES ({{ a }})", "", "REPLACE INTO [my table] (`a`) VALUES (?1)"},
		{"sqlite function", "SELECT date('{{ d }}', '+{{ n }} days')", "SELECT date($1, $2)", "SELECT date(?1, ?2)"},
		{"map in a template", `SELECT {{ {"a": {"b": 1}} }}`, "SELECT $1", "SELECT ?1"},
		{"braces in a template", `SELECT '{{ "}}" }}', '{{ '{{' }}'`, "SELECT $1, $2", "SELECT ?1, ?2"},
		{
			"trigger with its statements", "CREATE TRIGGER x AFTER INSERT ON t BEGIN UPDATE t SET a = 1; SELECT CASE WHEN 1 THEN 2 END; END;", "",
			"CREATE TRIGGER x AFTER INSERT ON t BEGIN UPDATE t SET a = 1; SELECT CASE WHEN 1 THEN 2 END; END",
		},
		{"names are not words", `SELECT "from".x, t.from FROM "it's" t WHERE a = {{ a }}`, `SELECT "from".x, t.from FROM "it's" t WHERE a = $1`, `SELECT "from".x, t.from FROM "it's" t WHERE a = ?1`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			if test.postgres != "" {
				require.Equal(t, test.postgres, number(t, test.source, statement.Postgres))
			}

			if test.sqlite != "" {
				require.Equal(t, test.sqlite, number(t, test.source, statement.SQLite))
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()

	const pg, lite = statement.Postgres, statement.SQLite

	for _, test := range []struct {
		dialect                   statement.Dialect
		source, at, code, message string
	}{
		{pg, "SELECT * FROM {{ t }}", "{{ t }}", statement.CodeNotAValue, "cannot be a table: write the table's name"},
		{pg, "SELECT * FROM a, {{ t }}", "{{ t }}", statement.CodeNotAValue, "cannot be a table"},
		{pg, "SELECT * FROM a JOIN {{ t }} ON true", "{{ t }}", statement.CodeNotAValue, "cannot be a table"},
		{pg, "INSERT INTO {{ t }} VALUES (1)", "{{ t }}", statement.CodeNotAValue, "cannot be a table"},
		{pg, "INSERT INTO '{{ t }}' VALUES (1)", "'{{ t }}'", statement.CodeNotAValue, "cannot be a table"},
		{pg, "UPDATE {{ t }} SET a = 1", "{{ t }}", statement.CodeNotAValue, "cannot be a table"},
		{pg, "DELETE FROM {{ t }}", "{{ t }}", statement.CodeNotAValue, "cannot be a table"},
		{pg, "TABLE {{ t }}", "{{ t }}", statement.CodeNotAValue, "starts with TABLE"},
		{pg, "SELECT 1 ORDER BY {{ c }}", "{{ c }}", statement.CodeNotAValue, "a column to order or group by"},
		{pg, "SELECT 1 ORDER BY '{{ c }}' DESC", "'{{ c }}'", statement.CodeNotAValue, "a column to order or group by"},
		{pg, "SELECT 1 GROUP BY {{ c }}", "{{ c }}", statement.CodeNotAValue, "a column to order or group by"},
		{pg, "SELECT 1 ORDER BY a, {{ c }} LIMIT 1", "{{ c }}", statement.CodeNotAValue, "a column to order or group by"},
		{pg, `SELECT "{{ c }}" FROM t`, `"{{ c }}"`, statement.CodeNotAValue, "a name in double quotes"},
		{lite, "SELECT [{{ c }}] FROM t", "[{{ c }}]", statement.CodeNotAValue, "a name in double quotes"},
		{pg, "SELECT a FROM s.{{ t }}", "{{ t }}", statement.CodeNotAValue, "part of a name with dots"},
		{pg, "SELECT {{ t }}.c FROM t", "{{ t }}", statement.CodeNotAValue, "part of a name with dots"},
		{pg, "SELECT a FROM s . {{ t }}", "{{ t }}", statement.CodeNotAValue, "part of a name with dots"},
		{pg, "SELECT idx_{{ t }}", "{{ t }}", statement.CodeNotAValue, "part of a name"},
		{pg, "SELECT {{ t }}_x", "{{ t }}", statement.CodeNotAValue, "part of a name"},
		{pg, "SELECT {{ f }}(1)", "{{ f }}", statement.CodeNotAValue, "the name of a function"},
		{pg, "SELECT {{ f }} (1)", "{{ f }}", statement.CodeNotAValue, "the name of a function"},
		{pg, "SELECT a::{{ t }}", "{{ t }}", statement.CodeNotAValue, "a type"},
		{pg, "SELECT a AS {{ n }}", "{{ n }}", statement.CodeNotAValue, "a name or a query"},
		{pg, "SELECT 1 WHERE a IN {{ xs }}", "{{ xs }}", statement.CodeNotAValue, "write = ANY({{ ids }})"},
		{lite, "SELECT 1 WHERE a IN {{ xs }}", "{{ xs }}", statement.CodeNotAValue, "json_each"},
		{pg, "SELECT 1 WHERE a IS {{ x }}", "{{ x }}", statement.CodeNotAValue, "IS NOT DISTINCT FROM"},
		{pg, "UPDATE t SET {{ c }} = 1", "{{ c }}", statement.CodeNotAValue, "a column"},
		{pg, "UPDATE t SET a = 1, {{ c }} = 1", "{{ c }}", statement.CodeNotAValue, "a column"},
		{pg, "INSERT INTO t ({{ c }}, b) VALUES (1, 2)", "{{ c }}", statement.CodeNotAValue, "the name of a column"},
		{pg, "INSERT INTO t (a, {{ c }}) VALUES (1, 2)", "{{ c }}", statement.CodeNotAValue, "the name of a column"},
		{pg, "INSERT INTO t VALUES (1) ON CONFLICT ({{ c }}) DO NOTHING", "{{ c }}", statement.CodeNotAValue, "the name of a column"},
		{pg, "SELECT 1 FROM a JOIN b USING ({{ c }})", "{{ c }}", statement.CodeNotAValue, "the name of a column"},
		{pg, "INSERT INTO t VALUES {{ rows }}", "{{ rows }}", statement.CodeNotAValue, "many rows are written with table"},
		{pg, "SELECT INTERVAL {{ n }}", "{{ n }}", statement.CodeNotAValue, "INTERVAL '{{ n }} days'"},
		{pg, "SELECT INTERVAL '{{ n }}' DAY TO SECOND", "'{{ n }}'", statement.CodeNotAValue, "write the units into the literal"},
		{pg, "SELECT a {{ b }} c", "{{ b }}", statement.CodeNotAValue, "directly after"},
		{pg, "SELECT {{ a }} {{ b }}", "{{ b }}", statement.CodeNotAValue, "directly after another operand"},
		{pg, "SELECT '{{ a }}' 'b'", "'{{ a }}'", statement.CodeNotAValue, "put both into one literal"},
		{pg, "{{ query }}", "{{ query }}", statement.CodeNotAValue, "a whole statement"},
		{pg, "'{{ query }}'", "'{{ query }}'", statement.CodeNotAValue, "a whole statement"},
		{pg, "SELECT E'{{ a }}'", "E'{{ a }}'", statement.CodeNotAValue, "is not allowed in E'…'"},
		{pg, `SELECT e'\'{{ a }}'`, `e'\'{{ a }}'`, statement.CodeNotAValue, "is not allowed in E'…'"},
		{pg, "SELECT U&'{{ a }}'", "U&'{{ a }}'", statement.CodeNotAValue, "is not allowed in U&'…'"},
		{lite, "SELECT x'{{ a }}'", "x'{{ a }}'", statement.CodeNotAValue, "is not allowed in X'…'"},
		{pg, "DO $$ BEGIN PERFORM {{ a }}; END $$", "$$ BEGIN PERFORM {{ a }}; END $$", statement.CodeNotAValue, "starts with DO"},
		{pg, "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $f$ SELECT {{ a }} $f$", "$f$ SELECT {{ a }} $f$", statement.CodeNotAValue, "starts with CREATE"},
		{pg, "CREATE TABLE {{ t }} (a int)", "{{ t }}", statement.CodeNotAValue, "only CREATE TABLE … AS SELECT accepts values"},
		{pg, "CREATE TABLE {{ t }} AS SELECT 1", "{{ t }}", statement.CodeNotAValue, "starts with CREATE"},
		{pg, "CREATE TABLE t (a int DEFAULT {{ a }})", "{{ a }}", statement.CodeNotAValue, "starts with CREATE"},
		{pg, "CREATE VIEW v AS SELECT {{ a }}", "{{ a }}", statement.CodeNotAValue, "starts with CREATE"},
		{pg, "ALTER TABLE t ALTER a SET DEFAULT {{ a }}", "{{ a }}", statement.CodeNotAValue, "starts with ALTER"},
		{pg, "SET x = '{{ a }}'", "'{{ a }}'", statement.CodeNotAValue, "set_config('name', {{ value }}, true)"},
		{pg, "NOTIFY c, '{{ a }}'", "'{{ a }}'", statement.CodeNotAValue, "pg_notify"},
		{lite, "PRAGMA user_version = {{ a }}", "{{ a }}", statement.CodeNotAValue, "starts with PRAGMA"},
		{pg, "SELECT $1, {{ a }}", "$1", statement.CodeOwnPlaceholder, `"$1" cannot be combined with templates`},
		{pg, "SELECT 1 WHERE a = ? AND b = {{ b }}", "?", statement.CodeOwnPlaceholder, `"?" cannot be combined with templates`},
		{lite, "SELECT ?, {{ a }}", "?", statement.CodeOwnPlaceholder, `"?" cannot`},
		{lite, "SELECT ?2, {{ a }}", "?2", statement.CodeOwnPlaceholder, `"?2" cannot`},
		{lite, "SELECT :name, {{ a }}", ":name", statement.CodeOwnPlaceholder, `":name" cannot`},
		{lite, "SELECT @name, '{{ a }}'", "@name", statement.CodeOwnPlaceholder, `"@name" cannot`},
		{lite, "SELECT $name, {{ a }}", "$name", statement.CodeOwnPlaceholder, `"$name" cannot`},
		{pg, "SELECT 1; SELECT 2", "SELECT", statement.CodeNotOne, "a second statement starts here"},
		{pg, "SELECT '{{ a }}'; DROP TABLE t; --", "DROP", statement.CodeNotOne, "a second statement starts here"},
		{pg, "", "", statement.CodeNotOne, "the statement is empty"},
		{pg, " -- nothing\n;", " -- nothing\n;", statement.CodeNotOne, "the statement is empty"},
		{pg, "BEGIN", "BEGIN", statement.CodeNotOne, `"begin" needs a second statement`},
		{lite, "COMMIT", "COMMIT", statement.CodeNotOne, `"commit" needs a second statement`},
		{pg, "COPY t FROM STDIN", "COPY", statement.CodeNotOne, "streams outside the statement"},
		{pg, "SELECT 'abc", "'", statement.CodeSyntax, "is not closed with '"},
		{pg, "SELECT $$abc", "$", statement.CodeSyntax, "is not closed with $$"},
		{pg, `SELECT "abc`, `"`, statement.CodeSyntax, "is not closed"},
		{pg, "SELECT /* abc", "/*", statement.CodeSyntax, `has no "*/"`},
		{pg, "SELECT {% x", "{", statement.CodeSyntax, `unexpected "{"`},
		{pg, "SELECT 1 }}", "}", statement.CodeSyntax, `unexpected "}"`},
	} {
		t.Run(test.source, func(t *testing.T) {
			t.Parallel()

			_, problems := statement.Parse(test.source, test.dialect)
			require.NotEmpty(t, problems)
			require.Equal(t, test.code, problems[0].Code, problems[0].Message)
			require.Equal(t, test.at, first(test.source, problems))
			require.Contains(t, problems[0].Message, test.message)
			require.False(t, problems[0].Warning)
		})
	}
}

func TestProblemsOfExpressions(t *testing.T) {
	t.Parallel()

	source := "SELECT 'it''s ü {{ a + }}', {{ b b }}, $x$ {{ nosuch(1) }} $x$"
	_, problems := statement.Parse(source, statement.Postgres)
	require.Len(t, problems, 3)

	before := func(n int) string { return string([]rune(source)[:problems[n].Offset]) }
	require.True(t, strings.HasPrefix(before(0), "SELECT 'it''s ü {{ a"), before(0))
	require.True(t, strings.HasSuffix(before(1), "{{ b "), before(1))
	require.True(t, strings.HasSuffix(before(2), "$x$ {{ "), before(2))

	_, problems = statement.Parse("SELECT '{{ a ', 1", statement.Postgres)
	require.NotEmpty(t, problems)

	_, problems = statement.Parse("SELECT {% if a %}1{% endif %}", statement.Postgres)
	require.NotEmpty(t, problems)
	require.Equal(t, "jinja-block", problems[0].Code)
}

func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()

	_, problems := statement.Parse("SELECT {{ f }}(1) FROM {{ t }} ORDER BY {{ c }}", statement.Postgres)
	require.Len(t, problems, 3)
	require.Less(t, problems[0].Offset, problems[1].Offset)
	require.Less(t, problems[1].Offset, problems[2].Offset)
}
