package source_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/source"
)

func TestReadableShowsWhatHides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"5 EUR to Bob\nnow", "5 EUR to Bob\nnow"},
		{"two\r\nlines\r", "two\nlines\\u000d"},
		{"\x1b[2J\x00\t\x85", `\u001b[2J\u0000 \x85`},
		{"a\u202eb\u2066c\u200f", `a\u202eb\u2066c\u200f`},
		{"a\u200bb\ufeff\u00ad\u2060\U000e0041", `a\u200bb\ufeff\u00ad\u2060\ue0041`},
		{"\u2028\u2029\u3164\u2800\u115f", `\u2028\u2029\u3164\u2800\u115f`},
		{"a\u00a0b\u2003c", "a b c"},
		{"می\u200cخواهم 👩\u200d👧", "می\u200cخواهم 👩\u200d👧"},
		{"a\u200db", `a\u200db`},
		{"e\u0301 \u0338", "e\u0301 \u0338"},
		{"\u0338x", `\u0338x`},
		// mostMarks are shown as they are
		{"a" + strings.Repeat("\u0338", 6), "a" + strings.Repeat("\u0338", 4) + `\u0338\u0338`},
		{"\xff", `\xff`},
	} {
		require.Equal(t, c.want, source.ReadableText(c.text), "%q", c.text)
	}
}

func TestShortenReturnsBothEnds(t *testing.T) {
	t.Parallel()
	require.Equal(t, "short", source.ShortenMiddle("short", 8))
	require.Equal(t, "abcdef … yz", source.ShortenMiddle("abcdefghijklmnopqrstuvwxyz", 8))
}
