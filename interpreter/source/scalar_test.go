package source_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/source"
)

// places writes positions as "line:col" of each rune and of the end.
func places(positions []source.Position) string {
	texts := make([]string, len(positions))
	for i, pos := range positions {
		texts[i] = pos.String()
	}
	return strings.Join(texts, " ")
}

func TestScalarPositions(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, text   string
		line, column int
		style        source.Style
		value        string
		want         string
	}{
		{"plain", "a: xyz", 1, 4, source.Plain, "xyz", "1:4 1:5 1:6 1:7"},
		{"plain, empty", "a:", 1, 3, source.Plain, "", "1:3"},
		{"plain, over lines", "a: x \n  y\n\n  z", 1, 4, source.Plain, "x y\nz", "1:4 1:6 2:3 3:1 4:3 4:4"},
		{"plain, tag and anchor", "a: !!str &x  yz", 1, 4, source.Plain, "yz", "1:14 1:15 1:16"},
		{"plain, tag above", "a: !!str # note\n  yz", 1, 4, source.Plain, "yz", "2:3 2:4 2:5"},
		{"plain, wide runes", "ключ: я日x", 1, 7, source.Plain, "я日x", "1:7 1:8 1:9 1:10"},
		{"plain, Windows", "a: x\r\n  y\r\n", 1, 4, source.Plain, "x y", "1:4 1:5 2:3 2:4"},
		{"single quotes", "a: 'x''y'", 1, 4, source.SingleQuoted, "x'y", "1:5 1:6 1:8 1:9"},
		{"single quotes, blanks kept", "a: ' x '", 1, 4, source.SingleQuoted, " x ", "1:5 1:6 1:7 1:8"},
		{"single quotes, over lines", "a: 'x\n\n\n  y'", 1, 4, source.SingleQuoted, "x\n\ny", "1:5 2:1 3:1 4:3 4:4"},
		{"double quotes", `a: "x\ny"`, 1, 4, source.DoubleQuoted, "x\ny", "1:5 1:6 1:8 1:9"},
		{"double quotes, codes", `a: "\x41\u00e9\U0001F600!"`, 1, 4, source.DoubleQuoted, "Aé😀!", "1:5 1:9 1:15 1:25 1:26"},
		{"double quotes, joined lines", "a: \"x \\\n   y\\\n\n z\"", 1, 4, source.DoubleQuoted, "x y\nz", "1:5 1:6 2:4 3:1 4:2 4:3"},
		{"literal", "a: |\n  x\n   y\n\n  z\n", 1, 4, source.Literal, "x\n y\n\nz\n", "2:3 2:4 3:3 3:4 3:5 4:1 5:3 5:4 6:1"},
		{"literal, kept breaks", "a: |+ # note\n  x\n\n", 1, 4, source.Literal, "x\n\n", "2:3 2:4 3:1 4:1"},
		{"literal, dropped break", "a: |-\n  x\nb: 1", 1, 4, source.Literal, "x", "2:3 2:4"},
		{"literal, no break at the end", "a: |\n  x", 1, 4, source.Literal, "x", "2:3 2:4"},
		{"literal, stated indentation", "a:\n  b: |2\n      x\n", 2, 6, source.Literal, "  x\n", "3:5 3:6 3:7 3:8 4:1"},
		{"literal, empty lines first", "a: |\n\n  x\n", 1, 4, source.Literal, "\nx\n", "2:1 3:3 3:4 4:1"},
		{"literal in a list", "- |\n x\n", 1, 3, source.Literal, "x\n", "2:2 2:3 3:1"},
		{"folded", "a: >\n  x\n  y\n\n  z\n", 1, 4, source.Folded, "x y\nz\n", "2:3 2:4 3:3 4:1 5:3 5:4 6:1"},
		{"folded, indented lines", "a: >\n  x\n   y\n  z\n", 1, 4, source.Folded, "x\n y\nz\n", "2:3 2:4 3:3 3:4 3:5 4:3 4:4 5:1"},
		{"folded, tag", "a: !!str >-\n  x\n  y\n", 1, 4, source.Folded, "x y", "2:3 2:4 3:3 3:4"},
		{"not what stands there", "a: xyz", 1, 4, source.Plain, "other", "1:4 1:4 1:4 1:4 1:4 1:4"},
		{"more than stands there", "a: xyz", 1, 4, source.Plain, "xyz!", "1:4 1:4 1:4 1:4 1:4"},
		{"no such line", "a: xyz", 9, 4, source.Plain, "x", "9:4 9:4"},
		{"unknown escape", `a: "\q"`, 1, 4, source.DoubleQuoted, "q", "1:4 1:4"},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			file := source.NewFile("x.yaml", []byte(tt.text))
			start := source.Position{Line: tt.line, Column: tt.column}
			require.Equal(t, tt.want, places(file.ScalarPositions(start, tt.style, tt.value)))
		})
	}
}

// FuzzScalarPositions checks that no text makes the replay panic or give
// another number of places than asked for.
func FuzzScalarPositions(f *testing.F) {
	f.Add("a: \"x\\u00e9\"", 1, 4, 2, "xé")
	f.Add("a: |2-\n\n  x\r\n", 1, 4, 3, "x")
	f.Add("&a !b\n>", 1, 1, 4, "\xff")
	f.Fuzz(func(t *testing.T, text string, line, column, style int, value string) {
		file := source.NewFile("x.yaml", []byte(text))
		start := source.Position{Line: line % 100, Column: column % 1000}
		got := file.ScalarPositions(start, source.Style(style%5), value)
		require.Len(t, got, len([]rune(value))+1, fmt.Sprintf("%q", value))
	})
}
