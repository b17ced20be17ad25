package statement_test

import (
	"strings"
	"testing"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/statement"
)

// marker is a value that must never be found in the text of a statement.
const marker = "zz'); DROP TABLE t; --"

// FuzzStatement looks for panics, for offsets outside the source, and for
// values that become text of a statement.
func FuzzStatement(f *testing.F) {
	for _, seed := range []string{
		"SELECT {{ a }}", "SELECT 'x {{ a }} ''y''' FROM t WHERE b = $$ {{ c }} $$;", "SELECT \"{{ a }}\"",
		"SELECT $1, {{ a }} /* {{ b */ -- {{ c }}\n", "INSERT INTO t (a) VALUES ('{{ a | replace(\"'\", \"''\") }}')",
		"SELECT INTERVAL '{{ n }}' day to second (3)", "SELECT timestamp(3) with time zone '{{ n }}'", "SELECT E'\\'{{ a }}'",
		"CREATE TRIGGER a BEGIN SELECT 1; END", "SELECT [a{{ b }}], `c`", "SELECT '{{ \"}}' }}", "{{", "'{{", "$a$ {{", "SELECT ((", "))",
		"SELECT {% if %}", "U&'{{ a }}'", "é'{{ a }}'", "SELECT 1e5, .5, 0x1F, 1_000{{ a }}",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, source string) {
		for _, dialect := range []statement.Dialect{statement.Postgres, statement.SQLite} {
			check(t, source, dialect)
		}
	})
}

func check(t *testing.T, source string, dialect statement.Dialect) {
	t.Helper()

	s, problems := statement.Parse(source, dialect)
	length := len([]rune(source))
	failed := false

	for _, problem := range problems {
		failed = failed || !problem.Warning
		if problem.Offset < 0 || problem.Offset > length || problem.End < problem.Offset || problem.Message == "" {
			t.Fatalf("%q: problem %+v lies outside the %d runes of the source", source, problem, length)
		}
	}

	if failed {
		return
	}

	for _, ref := range s.Refs() {
		if ref.Offset < 0 || ref.Offset >= length {
			t.Fatalf("%q: reference %+v lies outside the source", source, ref)
		}
	}

	values, err := s.Render(everything{}, expression.NewBudget(expression.DecisionLimits, time.Unix(0, 0)))
	if err != nil {
		return
	}

	numbered := s.NumberParams(values, true, true)
	if strings.Contains(numbered.Text, marker) && !strings.Contains(source, marker) {
		t.Fatalf("%q: a value became part of %q", source, numbered.Text)
	}

	for _, index := range numbered.Order {
		if index < 0 || index >= len(values) {
			t.Fatalf("%q: parameter %d of %d", source, index, len(values))
		}
	}
}

// everything is a scope in which every name is the marker.
type everything struct{}

func (everything) Lookup(string) (any, bool) { return marker, true }
