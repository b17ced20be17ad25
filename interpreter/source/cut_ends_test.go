package source_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/source"
)

// TestCutEndsReturnsBothEnds: the beginning and the end of a long text stay, whole runes, and the text between is counted.
func TestCutEndsReturnsBothEnds(t *testing.T) {
	t.Parallel()
	require.Equal(t, "short", source.CutEnds("short", 200))
	for _, text := range []string{"begin" + strings.Repeat("é", 20_000) + "end", "begin\n" + strings.Repeat("a line\n", 5000) + "end"} {
		cut := source.CutEnds(text, 16<<10)
		require.LessOrEqual(t, len(cut), 16<<10)
		require.True(t, utf8.ValidString(cut))
		require.True(t, strings.HasPrefix(cut, "begin") && strings.HasSuffix(cut, "end"))
		require.Regexp(t, `\n… \d+ bytes (with \d+ line breaks )?left out …\n`, cut)
	}
}
