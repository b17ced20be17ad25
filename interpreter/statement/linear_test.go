package statement_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/statement"
)

// TestReadingIsLinear reads statements of n and of 8n runes that repeat what
// has to be looked for an end, and compares. Where a look for an end may go
// through all of the rest, the longer one takes 64 times as long.
func TestReadingIsLinear(t *testing.T) {
	t.Parallel()

	const short, factor, most = 8_000, 8, 24

	for _, part := range []string{
		"{{ a }}, ", "{{ ", "{{", "'{{ a }}' ", "{{ { }} ", "{{ ' }} ", "{{ \" }} '", "{{ [ }}", "{{ a + }} ", "{{- a }} ",
		"{", "}", "{% ", "{%", "{# ", "{% if %}", "{% raw", "{{ {% ", "$a$", "$$", "$a", "$é$ ", "'", "\"", "`", "[", "'{{ ", "\"{{ ", "$a${{ ",
		"/*", "/* {{ */ ", "--{{\n", "/*{{*/ {{ a }}, ", "a.", "a.b(", "(", ")", "((a", "1,", "x(1,1,", "a ", ";", "; a", "?", "?, ", "-", "--", "é",
		"U&'", "e'\\", "E'{{ a }}' ", "INTERVAL '{{ a }}' ", "interval '1' day to second(", "time with time zone ", "numeric(1, 1) ", "(1,1,1)'{{ a }}' ",
		"case ", "begin ", "CREATE FUNCTION ", "CREATE TABLE x AS SELECT ", "\ufeff",
	} {
		for _, dialect := range []statement.Dialect{statement.Postgres, statement.SQLite} {
			for _, before := range []string{"", "SELECT ", "SELECT {{ a }}, '"} {
				read := func(n int) time.Duration {
					source := before + strings.Repeat(part, n/len(part))
					began := time.Now()
					s, _ := statement.Parse(source, dialect)
					s.NumberParams(nil, true, true)
					return time.Since(began)
				}

				// What others do to the machine only ever makes one look slower, and
				// may go on for a while.
				const tries = 200

				linear, many := false, time.Hour
				for try := 0; try < tries && !linear; try++ {
					few := max(read(short), 200*time.Microsecond)
					many = min(many, read(short*factor))
					linear = many < most*few
				}

				require.True(t, linear, "%s: %q repeated behind %q", dialect, part, before)
			}
		}
	}
}
