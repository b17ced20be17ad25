package statement_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
	"reprise/interpreter/statement"
)

func render(t *testing.T, source string, d statement.Dialect, scope expression.MapScope) []any {
	t.Helper()

	s, problems := statement.Parse(source, d)
	for _, problem := range problems {
		require.True(t, problem.Warning, "%s: %s", source, problem.Message)
	}

	values, err := s.Render(scope, expression.NewBudget(expression.DecisionLimits, time.Time{}))
	require.NoError(t, err)
	return values
}

func TestRender(t *testing.T) {
	t.Parallel()

	scope := expression.MapScope{
		"n": 7, "text": "it's", "yes": true, "list": []any{1, "b", nil}, "map": map[string]any{"a": 1},
		"big": json.Number("12345678901234567890"), "f": 2.5, "none": nil,
	}

	for _, test := range []struct {
		source string
		want   []any
	}{
		{
			"SELECT {{ n }}, {{ text }}, {{ yes }}, {{ list }}, {{ map }}, {{ big }}, {{ none }}",
			[]any{7, "it's", true, []any{1, "b", nil}, map[string]any{"a": 1}, json.Number("12345678901234567890"), nil},
		},
		{"SELECT '{{ n }}', '{{ yes }}', '{{ f }}', '{{ big }}'", []any{"7", "true", "2.5", "12345678901234567890"}},
		{"SELECT '{{ list }}', '{{ map }}'", []any{`[1,"b",null]`, `{"a":1}`}},
		{"SELECT '{{ none }}'", []any{nil}},
		{"SELECT ' {{ none }}', '{{ none }}\n', 'a{{ none }}b', '{{ none }}{{ none }}'", []any{" ", "\n", "ab", ""}},
		{"SELECT ' {{ n }} '", []any{" 7 "}},
		{"SELECT '{{ n }}\n'", []any{"7\n"}},
		{"SELECT 'a {{ n }}\n'", []any{"a 7\n"}},
		{"SELECT '{{ text }}'", []any{"it's"}},
		{"SELECT 'it''s {{ text }} ''{{ n }}'''", []any{"it's it's '7'"}},
		{"SELECT '%{{ text }}%'", []any{"%it's%"}},
		{"SELECT $$it''s {{ text }}$$", []any{"it''s it's"}},
		{`SELECT '\{{ text }}\'`, []any{`\it's\`}},
		{"SELECT '{{ '{{' }} x'", []any{"{{ x"}},
		{"SELECT {{ n + 1 }}", []any{8}},
		{`SELECT '{{ text | replace("'", "''") }}', {{ text | replace('\'', '\'\'') }}`, []any{"it's", "it's"}},
		{`SELECT '{{ text | replace("'", "-") }}'`, []any{"it-s"}},
		{"SELECT {{ n }} -- {{ 1 + none }}", []any{7}},
		{"SELECT 1", []any{}},
	} {
		require.Equal(t, test.want, render(t, test.source, statement.Postgres, scope), test.source)
	}
}

func TestReplaceIsDroppedWithWarning(t *testing.T) {
	t.Parallel()

	source := `SELECT 'a {{ x | replace("'", "''") }}', 'b'`
	_, problems := statement.Parse(source, statement.Postgres)
	require.Len(t, problems, 1)
	require.True(t, problems[0].Warning)
	require.Equal(t, statement.CodeReplaceDropped, problems[0].Code)
	require.True(t, strings.HasPrefix(source[problems[0].Offset:], "| replace"))

	// Not final, not this replacement: kept.
	for _, source := range []string{
		`SELECT '{{ x | replace("'", "''") | string }}'`, `SELECT '{{ x | replace("''", "'") }}'`, `SELECT {{ replace(x, "'", "''") }}`,
	} {
		_, problems := statement.Parse(source, statement.Postgres)
		require.Empty(t, problems, source)
	}
}

func TestErrorsHaveTheirPlace(t *testing.T) {
	t.Parallel()

	for _, source := range []string{
		"SELECT {{ 1 + text }}", "SELECT 'ü it''s ''{{ 1 + text }}'", "SELECT $q$ {{ text }} {{ 1 + text }}$q$",
		"SELECT '{{ text }}', ' {{ 1 + text }} '",
	} {
		s, problems := statement.Parse(source, statement.Postgres)
		require.Empty(t, problems)

		_, err := s.Render(expression.MapScope{"text": "x"}, expression.NewBudget(expression.DecisionLimits, time.Time{}))

		var e *expression.Error
		require.True(t, errors.As(err, &e), source)

		from := len([]rune(source[:strings.Index(source, "1 +")]))
		require.GreaterOrEqual(t, e.Offset, from, source)
		require.LessOrEqual(t, e.Offset, from+4, source)
	}
}

func TestRefs(t *testing.T) {
	t.Parallel()

	source := "SELECT 'it''s {{ a.b }}', {{ c }}, INTERVAL '{{ d }} days' -- {{ e }}"
	s, problems := statement.Parse(source, statement.Postgres)
	require.Empty(t, problems)

	var roots []string
	for _, ref := range s.Refs() {
		roots = append(roots, ref.Root)
		require.True(t, strings.HasPrefix(source[ref.Offset:], ref.Root), ref.Root)
	}

	require.Equal(t, []string{"a", "c", "d"}, roots)
	require.Len(t, s.Templates(), 3)
	require.Equal(t, 3, s.Params())
	require.Equal(t, "select", s.Verb())
}

func TestNumbering(t *testing.T) {
	t.Parallel()

	s, problems := statement.Parse("SELECT {{ a }}, {{ b }}, {{ a }}, '{{ a }}', {{ c }}, {{ d }}, {{ e }}, {{ f }}", statement.Postgres)
	require.Empty(t, problems)

	values := []any{1, 1 << 40, 1, "1", 2.5, true, "x", []any{1}}

	n := s.NumberParams(values, true, true)
	require.Equal(t, "SELECT $1::int4, $2::int8, $1::int4, $3, $4::numeric, $5::bool, $6, $7", n.Text)
	require.Equal(t, []int{0, 1, 3, 4, 5, 6, 7}, n.Order)

	n = s.NumberParams(values, false, false)
	require.Equal(t, "SELECT $1, $2, $3, $4, $5, $6, $7, $8", n.Text)
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, n.Order)
}

func TestSourceOffset(t *testing.T) {
	t.Parallel()

	source := "SELECT /* {{ x }} */ {{ first }}, 'ü{{ second }}' FROM nowhere"
	s, problems := statement.Parse(source, statement.Postgres)
	require.Empty(t, problems)

	n := s.NumberParams([]any{1, "x"}, true, true)

	offset, inParam := n.SourceOffset(len([]rune(n.Text[:strings.Index(n.Text, "nowhere")])))
	require.False(t, inParam)
	require.Equal(t, "nowhere", string([]rune(source)[offset:]))

	offset, inParam = n.SourceOffset(strings.Index(n.Text, "$2"))
	require.True(t, inParam)
	require.Equal(t, "'ü{{ second }}'", s.ParamSource(offset))
}

func TestTooManyTemplates(t *testing.T) {
	t.Parallel()

	_, problems := statement.Parse("SELECT "+strings.Repeat("{{ a }}, ", 1000)+"{{ a }}", statement.SQLite)
	require.Len(t, problems, 1)
	require.Equal(t, statement.CodeTooLarge, problems[0].Code)
}
