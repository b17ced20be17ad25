package source_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/source"
)

func TestLines(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, text string
		want       []string
	}{
		{"empty", "", []string{""}},
		{"no break at the end", "a\nb", []string{"a", "b"}},
		{"break at the end", "a\nb\n", []string{"a", "b"}},
		{"windows", "a\r\n\r\nb\r\n", []string{"a", "", "b"}},
		{"old mac", "a\rb", []string{"a", "b"}},
		{"as YAML breaks lines", "a\u2028b\u0085c", []string{"a", "b", "c"}},
		{"byte order mark", "\ufeffa\nb", []string{"a", "b"}},
		{"not UTF-8", "a\xff\nb", []string{"a\xff", "b"}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			file := source.NewFile("x.yaml", []byte(tt.text))
			require.Equal(t, len(tt.want), file.Lines())

			for i, line := range tt.want {
				require.Equal(t, line, file.Line(i+1))
			}

			require.Empty(t, file.Line(0))
			require.Empty(t, file.Line(len(tt.want)+1))
			require.Equal(t, []byte(tt.text), file.Bytes())
			require.Equal(t, tt.text, string(file.TextUntil(len(tt.want))))
		})
	}

	file := source.NewFile("x.yaml", []byte("a\nb\nc"))
	require.Empty(t, file.TextUntil(0))
	require.Equal(t, "a\nb\n", string(file.TextUntil(2)))
}

func TestDiagnosticString(t *testing.T) {
	t.Parallel()

	d := source.Diagnostic{File: "a.yaml", Pos: source.Position{Line: 6, Column: 5}, Code: "unknown-key", Message: "unknown key"}
	require.Equal(t, "a.yaml:6:5: unknown key [unknown-key]", d.String())

	d.Severity = source.Warning
	require.Equal(t, "a.yaml:6:5: warning: unknown key [unknown-key]", d.String())

	d.Pos, d.Code = source.Position{}, ""
	require.Equal(t, "a.yaml: warning: unknown key", d.String())

	d.File = ""
	require.Equal(t, "warning: unknown key", d.String())
}

func TestDiagnosticsSort(t *testing.T) {
	t.Parallel()

	at := func(line, column int, code, message string) source.Diagnostic {
		return source.Diagnostic{Pos: source.Position{Line: line, Column: column}, Code: code, Message: message}
	}
	warning := at(1, 1, "b", "x")
	warning.Severity = source.Warning

	ds := source.Diagnostics{
		at(10, 1, "a", "x"), at(2, 3, "b", "y"), at(2, 3, "b", "x"), at(2, 3, "a", "z"), at(2, 1, "c", "x"), at(2, 3, "b", "y"), warning,
	}
	ds.Sort()

	require.Equal(t, source.Diagnostics{
		warning, at(2, 1, "c", "x"), at(2, 3, "a", "z"), at(2, 3, "b", "x"), at(2, 3, "b", "y"), at(10, 1, "a", "x"),
	}, ds)
	require.True(t, ds.HasErrors())
	require.Len(t, ds.Errors(), 5)
	require.Equal(t, source.Diagnostics{warning}, ds.Warnings())
	require.False(t, ds.Warnings().HasErrors())
	require.Equal(t, ":1:1: warning: x [b]\n:2:1: x [c]", ds[:2].Error())
}

func TestDiagnosticsLimit(t *testing.T) {
	t.Parallel()

	ds := source.Diagnostics{{Message: "a", Severity: source.Warning}, {Message: "b"}, {Message: "c"}}
	ds.Limit(3, "too-large")
	require.Len(t, ds, 3)

	ds.Limit(1, "too-large")
	require.Equal(t, "warning: a\n2 more problems are not shown [too-large]", ds.Error())
	require.True(t, ds.HasErrors())
}

func TestFormat(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("a", 300) + "X" + strings.Repeat("b", 300)

	tests := []struct {
		name, line  string
		column      int
		text, caret string
	}{
		{name: "start", line: "key: 1", column: 1, text: "key: 1", caret: "^"},
		{name: "middle", line: "key: 1", column: 6, text: "key: 1", caret: "     ^"},
		{name: "behind the end", line: "key:", column: 99, text: "key:", caret: "    ^"},
		{name: "tabs stay tabs", line: "\ta:\tb", column: 5, text: "\ta:\tb", caret: "\t  \t^"},
		{name: "wide runes take two columns", line: "日本: x", column: 5, text: "日本: x", caret: "      ^"},
		{name: "combining marks take none", line: "e\u0301: x", column: 5, text: "e\u0301: x", caret: "   ^"},
		{name: "control characters are not shown", line: "a\x1b[31m: b", column: 7, text: "a\ufffd[31m: b", caret: "      ^"},
		{
			name: "long lines are cut", line: long, column: 301,
			text:  "…" + strings.Repeat("a", 60) + "X" + strings.Repeat("b", 59) + "…",
			caret: strings.Repeat(" ", 61) + "^",
		},
		{
			name: "long lines are cut at their start", line: long, column: 1,
			text: strings.Repeat("a", 120) + "…", caret: "^",
		},
		{
			name: "long lines are cut at their end", line: long, column: 601,
			text: "…" + strings.Repeat("b", 120), caret: strings.Repeat(" ", 120) + "^",
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			file := source.NewFile("x.yaml", []byte("first\n"+tt.line+"\nlast\n"))
			d := source.Diagnostic{File: "x.yaml", Pos: source.Position{Line: 2, Column: tt.column}, Message: "bad"}
			require.Equal(t, d.String()+"\n"+tt.text+"\n"+tt.caret+"\n", file.FormatDiagnostic(d))
		})
	}

	file := source.NewFile("x.yaml", []byte("a: 1"))
	nowhere := source.Diagnostic{File: "x.yaml", Message: "bad"}
	require.Equal(t, "x.yaml: bad\n", file.FormatDiagnostic(nowhere))

	here := source.Diagnostic{File: "x.yaml", Pos: source.Position{Line: 1, Column: 4}, Message: "bad"}
	require.Equal(t, "x.yaml: bad\nx.yaml:1:4: bad\na: 1\n   ^\n", file.FormatAll(source.Diagnostics{nowhere, here}))
}

func TestPosition(t *testing.T) {
	t.Parallel()

	require.Equal(t, "3:7", source.Position{Line: 3, Column: 7}.String())
	require.Empty(t, source.Position{}.String())
	require.True(t, source.Position{Line: 3, Column: 7}.Before(source.Position{Line: 4, Column: 1}))
	require.True(t, source.Position{Line: 3, Column: 7}.Before(source.Position{Line: 3, Column: 8}))
	require.False(t, source.Position{Line: 3, Column: 7}.Before(source.Position{Line: 3, Column: 7}))
}

// TestNote checks that a note stands below the caret, apart from the file.
func TestNote(t *testing.T) {
	t.Parallel()

	file := source.NewFile("f.yaml", []byte("a: 1\n"))
	d := source.Diagnostic{
		File: "f.yaml", Pos: source.Position{Line: 1, Column: 4}, Code: "x", Message: "old", Severity: source.Warning,
		Note: "b:\n  - 1\n",
	}
	require.Equal(t, "f.yaml:1:4: warning: old [x]\na: 1\n   ^\n        b:\n          - 1\n", file.FormatDiagnostic(d))
	require.Equal(t, "f.yaml:1:4: warning: old [x]", d.String())

	d.Pos = source.Position{}
	require.Equal(t, "f.yaml: warning: old [x]\n        b:\n          - 1\n", file.FormatDiagnostic(d))
}

// TestPlacesInLongLines: a place far to the right is found as one at the left is.
func TestPlacesInLongLines(t *testing.T) {
	t.Parallel()

	line := []rune(strings.Repeat("aé語😀b", 1000))
	file := source.NewFile("x.yaml", []byte("first\n"+string(line)+"\r\nlast"))

	for column := range len(line) {
		require.Equal(t, len("first\n")+len(string(line[:column])), file.ByteOffset(source.Position{Line: 2, Column: column + 1}), column)
	}

	end := len("first\n") + len(string(line))
	require.Equal(t, end, file.ByteOffset(source.Position{Line: 2, Column: len(line) + 1}))
	require.Equal(t, end, file.ByteOffset(source.Position{Line: 2, Column: 100_000}))
	require.Equal(t, end+len("\r\nla"), file.ByteOffset(source.Position{Line: 3, Column: 3}))
}
