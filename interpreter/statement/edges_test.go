package statement_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/statement"
)

// outcome is the numbered text of a statement, or its problems: code, place and
// what has to be written instead.
func outcome(source string, d statement.Dialect) string {
	s, problems := statement.Parse(source, d)
	if len(problems) == 0 {
		return s.NumberParams(nil, true, false).Text
	}
	said := make([]string, len(problems))
	for i, problem := range problems {
		runes := []rune(source)
		what := strings.TrimPrefix(problem.Message, "a template becomes a bind parameter, which is a value and cannot be ")
		said[i] = problem.Code + " at " + string(runes[problem.Offset:problem.End]) + ": " + strings.Split(what, ": ")[0]
	}
	return strings.Join(said, "; ")
}

// TestEdges are statements at the edges of the rules, each with all that is said
// about it.
func TestEdges(t *testing.T) {
	t.Parallel()
	const (
		pg, lite = statement.Postgres, statement.SQLite
		glued    = "template-not-a-value at {{ a }}: part of a name"
		operand  = "template-not-a-value at {{ a }}: directly after another operand"
		column   = "template-not-a-value at {{ a }}: the name of a column"
		order    = "template-not-a-value at {{ a }}: a column to order or group by"
		unclosed = `syntax at {{: "{{" is never closed; to write two braces as text use {{ '{{' }}`
		missing  = `syntax at +: a value is missing after "+"`
		create   = "template-not-a-value at {{ a }}: in a statement that starts with CREATE"
	)
	for _, test := range []struct {
		dialect      statement.Dialect
		source, want string
	}{
		// Where a number ends: a sign belongs to it behind its e only.
		{pg, "SELECT 1-{{ a }}", "SELECT 1-$1"},
		{pg, "SELECT 1+{{ a }}", "SELECT 1+$1"},
		{pg, "SELECT 1e5-{{ a }}", "SELECT 1e5-$1"},
		{pg, "SELECT 1e-{{ a }}", glued},
		{pg, "SELECT 1e+{{ a }}", glued},
		{pg, "SELECT 1E-{{ a }}", glued},
		{pg, "SELECT 1E+{{ a }}", glued},
		{pg, "SELECT 9{{ a }}", glued},
		{pg, "SELECT 0 {{ a }}", operand},
		{pg, "SELECT 9 {{ a }}", operand},
		// A dollar alone is no placeholder; the server says what it thinks of it.
		{pg, "SELECT $ {{ a }}", "SELECT $ $1"},
		{pg, "SELECT a$ {{ a }}", `template-not-a-value at {{ a }}: directly after "a$"`},
		// Doubled quotes end no name; a second bracket does.
		{pg, `SELECT "x""{{ a }}"`, `template-not-a-value at "x""{{ a }}": a name in double quotes`},
		{lite, `SELECT [x]]{{ a }}`, operand},
		{lite, "SELECT [{{ a }}]]", "template-not-a-value at [{{ a }}]: a name in double quotes"},
		// The template that swallowed the end of its literal.
		{pg, "SELECT '{{ a '", unclosed},
		{pg, "SELECT {{ a", unclosed},
		{pg, "SELECT {{ a + }}", missing},
		{pg, "SELECT 'x {{ a + }}'", missing},
		{pg, "SELECT '{{ a }} {% if a %}'", "jinja-block at {% if a %}: {% if a %} is not accepted; write {{ a if a else b }}"},
		// Comments with templates, close to what is beside them.
		{pg, "SELECT {{ a }}/* {{ b }} */+1", "SELECT $1 +1"},
		{pg, "SELECT 1/* {{ b }} */{{ a }}", operand},
		{pg, "SELECT {{ a }} /* {{ b }} */", "SELECT $1"},
		{pg, "SELECT 1/* {{ b }} */", "SELECT 1"},
		// Only PostgreSQL's comments go into each other.
		{pg, "SELECT 1 /* /* {{ b }} */ {{ c }} */ + {{ a }}", "SELECT 1   + $1"},
		{lite, "SELECT 1 /* /* {{ b }} */ + {{ a }}", "SELECT 1   + ?1"},
		// What stands at the end.
		{pg, "SELECT {{ a }} +", "SELECT $1 +"},
		{pg, "SELECT {{ a }}, $a", `own-placeholder at $a: "$a" cannot be combined with templates, which become numbered parameters themselves`},
		// What the words of a name would mean elsewhere.
		{pg, "SELECT b0 {{ a }}", `template-not-a-value at {{ a }}: directly after "b0"`},
		{pg, "SELECT 1 ORDER BY t.limit, {{ a }}", order},
		{pg, "SELECT t.select {{ a }}", operand},
		{pg, "SELECT x.numeric(3) '{{ a }}'", "template-not-a-value at '{{ a }}': directly after another operand"},
		// CREATE TABLE … AS: of the statement, not of a column.
		{pg, "CREATE TABLE t (b, c) AS SELECT {{ a }}", "CREATE TABLE t (b, c) AS SELECT $1"},
		{pg, "CREATE TABLE t (b numeric(3)) AS (SELECT {{ a }})", "CREATE TABLE t (b numeric(3)) AS (SELECT $1)"},
		{pg, "CREATE GLOBAL TEMPORARY TABLE t AS SELECT {{ a }}", "CREATE GLOBAL TEMPORARY TABLE t AS SELECT $1"},
		{pg, "CREATE TABLE t (b text GENERATED ALWAYS AS ({{ a }}) STORED)", create},
		// What a list orders or groups by.
		{pg, "SELECT 1 GROUP BY b, {{ a }}", order},
		{pg, "SELECT 1 ORDER BY b, {{ a }} DESC", order},
		{pg, "SELECT 1 ORDER BY b, {{ a }}::text", order},
		{pg, "SELECT 1 ORDER BY b, {{ a }} IS NULL", "SELECT 1 ORDER BY b, $1 IS NULL"},
		{pg, "SELECT 1 ORDER BY b, {{ a }} || c", "SELECT 1 ORDER BY b, $1 || c"},
		{pg, "SELECT 1 WHERE b LIKE 'x' ORDER BY c, {{ a }}", order},
		// Lists of names, and lists that only look like them.
		{pg, "INSERT INTO t (SELECT b, {{ a }})", "INSERT INTO t (SELECT b, $1)"},
		{pg, `INSERT INTO "t" ({{ a }}) VALUES (1)`, column},
		{pg, "INSERT INTO s.t ({{ a }}) VALUES (1)", column},
		{pg, `INSERT INTO d.s."t" ({{ a }}) VALUES (1)`, column},
		{pg, "WITH x ({{ a }}) AS (SELECT 1) SELECT 1", column},
		{pg, "WITH RECURSIVE x ({{ a }}) AS (SELECT 1) SELECT 1", column},
		{pg, "SELECT 1 FROM t AS x ({{ a }})", column},
		{
			pg, "WITH x AS MATERIALIZED (DELETE FROM t RETURNING b, {{ a }}) SELECT 1",
			"WITH x AS MATERIALIZED (DELETE FROM t RETURNING b, $1) SELECT 1",
		},
		{pg, "SELECT max (b, {{ a }})", "SELECT max (b, $1)"},
		{pg, `SELECT "max" ({{ a }})`, `SELECT "max" ($1)`},
		// Placeholders of the author.
		{pg, "SELECT $1, :x", "SELECT $1, :x"},
		{lite, "SELECT ?1, :x, @y, ?", "SELECT ?1, :x, @y, ?"},
		{pg, "SELECT {{ a }} WHERE b IN (?)", `own-placeholder at ?: "?" cannot be combined with templates, which become numbered parameters themselves`},
		{pg, "SELECT b[1] ? {{ a }}, f(b) ? 'x'", "SELECT b[1] ? $1, f(b) ? 'x'"},
		// An END without its BEGIN ends nothing.
		{lite, "CREATE FUNCTION f() END; SELECT 1", "statement-not-one at SELECT: a second statement starts here"},
		// The types in front of a literal.
		{pg, "SELECT INTERVAL '{{ a }}' SECOND(", "template-not-a-value at INTERVAL '{{ a }}' SECOND: the name of a function"},
		{pg, "SELECT INTERVAL '{{ a }}' SECOND(3", "template-not-a-value at INTERVAL '{{ a }}' SECOND: the name of a function"},
		{pg, "SELECT numeric () '{{ a }}'", `template-not-a-value at '{{ a }}': directly after another operand`},
		{pg, "(3) '{{ a }}'", "template-not-a-value at '{{ a }}': a whole statement"},
	} {
		t.Run(string(test.dialect)+" "+test.source, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, outcome(test.source, test.dialect))
		})
	}
}

// TestCastsOfKnownValues: who asks for a text without values gets one without casts.
func TestCastsOfKnownValues(t *testing.T) {
	t.Parallel()
	s, problems := statement.Parse("SELECT {{ a }}, {{ b }}", statement.Postgres)
	require.Empty(t, problems)
	require.Equal(t, "SELECT $1, $2", s.NumberParams(nil, true, true).Text)
	require.Equal(t, "SELECT $1::int4, $2", s.NumberParams([]any{1}, true, true).Text)
}

// TestMostTemplates passes maxParams.
func TestMostTemplates(t *testing.T) {
	t.Parallel()
	before := "SELECT " + strings.Repeat("{{ a }}, ", 999)
	s, problems := statement.Parse(before+"{{ a }}", statement.SQLite)
	require.Empty(t, problems)
	require.Equal(t, 1000, s.Params())
	// The last one is read, and is what the literal lacks an end for.
	const unclosed = `syntax at {{: "{{" is never closed; to write two braces as text use {{ '{{' }}`
	require.Equal(t, unclosed, outcome(before+"'{{ a '", statement.SQLite))
	require.Equal(t, `sql-syntax at ": a name that starts with " is not closed`, outcome(before+`"{{ a }}`, statement.SQLite))
	// Behind them nothing is read, so nothing is said about it.
	for _, last := range []string{"{{ a }}", "'{{ a }}'", "'{{ a", `"{{ a }}"`, "$${{ a }}$$", "{{ 1 + }}"} {
		require.Equal(t, "too-large at {{: a statement has at most 1000 templates", outcome(before+"{{ a }}, "+last, statement.Postgres), last)
	}
}

// TestMostProblems passes maxProblems.
func TestMostProblems(t *testing.T) {
	t.Parallel()
	for _, n := range []int{99, 100, 101, 150} {
		_, problems := statement.Parse("BEGIN "+strings.Repeat("}", n)+"{{ 1 + }}", statement.SQLite)
		require.Len(t, problems, 100, "%d braces", n)
	}
}

// TestProblemsOfOnePlace checks that what is found first at a place is said first.
func TestProblemsOfOnePlace(t *testing.T) {
	t.Parallel()
	require.Equal(t, `syntax at {{: "{{" is never closed; to write two braces as text use {{ '{{' }}; template-not-a-value at {{ a: a table`,
		outcome("SELECT 1 FROM {{ a", statement.Postgres))
}

func TestWholeNumbersAsLiterals(t *testing.T) {
	t.Parallel()
	s, problems := statement.Parse("SELECT {{ a }}", statement.Postgres)
	require.Empty(t, problems)
	for value, want := range map[int]string{
		math.MaxInt32: "int4", math.MaxInt32 + 1: "int8", math.MinInt32: "int4", math.MinInt32 - 1: "int8",
	} {
		require.Equal(t, "SELECT $1::"+want, s.NumberParams([]any{value}, true, true).Text)
	}
}

// TestEverySourceOffset asks for every place of a text.
func TestEverySourceOffset(t *testing.T) {
	t.Parallel()
	source := "SELECT b, {{ a }}+1"
	s, problems := statement.Parse(source, statement.Postgres)
	require.Empty(t, problems)
	n := s.NumberParams([]any{1}, true, false)
	require.Equal(t, "SELECT b, $1+1", n.Text)
	for at := range len(n.Text) {
		offset, inParam := n.SourceOffset(at)
		switch {
		case at < 10:
			require.Equal(t, at, offset)
			require.False(t, inParam)
		case at < 12:
			require.Equal(t, 10, offset)
			require.True(t, inParam)
		default:
			require.Equal(t, at-12+17, offset)
			require.False(t, inParam)
		}
	}
	for offset := range len(source) {
		want := ""
		if offset >= 10 && offset < 17 {
			want = "{{ a }}"
		}
		require.Equal(t, want, s.ParamSource(offset), "%d", offset)
	}
}
