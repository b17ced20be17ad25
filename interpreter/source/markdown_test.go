package source_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/source"
)

func TestCodeHoldsTextsOfOthers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{" \n", ""},
		{"HTTP 503", "`HTTP 503`"},
		{"`[a](http://x)` | <b>", "`'[a](http://x)' ¦ <b>`"},
		{"two\r\nlines\x00", "`two lines\\u0000`"},
		{"to \u202eeve\u200b", "`to \\u202eeve\\u200b`"},
		{strings.Repeat("x", 30), "`" + strings.Repeat("x", 24) + "…`"},
	} {
		require.Equal(t, c.want, source.MarkdownCode(c.text, 24), "%q", c.text)
	}
}

func TestProseIsNothingButText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"Two words, and a name: it's fine.", `Two words, and a name\: it's fine\.`},
		{"one\n\n    two", "one\n\ntwo"},
		{"![p](http://x/y_z) <b> `c` a|b $1", "\\!\\[p\\]\\(http\\://x/y\\_z\\) \\<b\\> \\`c\\` a\\|b \\$1"},
		{"# no\n- list\n\x1b[31m", "\\# no\n\\- list\n\\\\u001b\\[31m"},
		{"heading\n====", "heading\n\\=\\=\\=\\="},
	} {
		require.Equal(t, c.want, source.ProseText(c.text), "%q", c.text)
	}
}
