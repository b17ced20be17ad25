package source_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/source"
)

func TestCut(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		name, text string
		most       int
		want       string
	}{
		{"nothing", "", 0, ""},
		{"short", "abc", 4, "abc"},
		{"exact", "abcd", 4, "abcd"},
		{"long", "abcde", 4, "abcd…"},
		{"to nothing", "a", 0, "…"},
		{"runes of several bytes, exact", "äö€😀", 4, "äö€😀"},
		{"runes of several bytes", "äö€😀x", 4, "äö€😀…"},
		{"bytes that are no text, exact", "a\xff\xfe", 3, "a\xff\xfe"},
		{"bytes that are no text", "a\xff\xfebc", 3, "a\uFFFD\uFFFD…"},
		{"an override is closed", "a\u202Eevil and more", 4, "a\u202Eev\u202C…"},
		{"an isolate is closed", "\u2067abc", 2, "\u2067a\u2069…"},
		{"in the order that they need", "\u202A\u2068\u202Bxyz", 4, "\u202A\u2068\u202Bx\u202C\u2069\u202C…"},
		{"what is closed already", "\u202Ax\u202C\u2066y\u2069z.", 7, "\u202Ax\u202C\u2066y\u2069z…"},
		{"an isolate closes what is in it", "\u2066\u202Ex\u2069yz", 5, "\u2066\u202Ex\u2069y…"},
		{"the end of an embedding outside", "\u202E\u2066x\u202Cyz", 5, "\u202E\u2066x\u202Cy\u2069\u202C…"},
		{"an end without a beginning", "\u2069\u202Cxy", 3, "\u2069\u202Cx…"},
		{"not cut", "a\u202Eb", 3, "a\u202Eb"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, source.CutText(test.text, test.most))
		})
	}
}
