package source

import (
	"fmt"
	"strings"
	"unicode"
)

// snippetWidth bounds the shown columns of a long line.
const snippetWidth = 120

// FormatDiagnostic returns three lines: the diagnostic, the line it points to, and a caret below the column.
// Without a position it returns only the first. The note follows, indented.
func (f *File) FormatDiagnostic(d Diagnostic) string {
	if d.Pos.IsZero() || d.Pos.Line > len(f.starts) {
		return d.String() + "\n" + indentNote(d.Note)
	}
	line, caret := cutSnippet([]rune(f.Line(d.Pos.Line)), d.Pos.Column)
	return d.String() + "\n" + line + "\n" + caret + "\n" + indentNote(d.Note)
}

// indentNote indents a note, to distinguish it from lines of the file.
func indentNote(note string) string {
	const margin = "        "
	var b strings.Builder
	for line := range strings.Lines(note) {
		b.WriteString(margin + visibleText([]rune(strings.TrimRight(line, "\n"))) + "\n")
	}
	return b.String()
}

// FormatFirst formats the first n diagnostics and adds the number of others. A file of 1 MiB can have half a
// million.
func (f *File) FormatFirst(ds Diagnostics, n int) string {
	some, more := ds.FirstOf(n)
	text := f.FormatAll(some)
	if more > 0 {
		text += fmt.Sprintf("%s: and %d more\n", f.Name, more)
	}
	return text
}

// FormatAll formats all diagnostics in the given order.
func (f *File) FormatAll(ds Diagnostics) string {
	var b strings.Builder
	for _, d := range ds {
		b.WriteString(f.FormatDiagnostic(d))
	}
	return b.String()
}

// cutSnippet shortens a long line around column, and returns it with the line of the caret. Tabs are kept in both,
// so that they align at any tab width.
func cutSnippet(line []rune, column int) (text, caret string) {
	at := min(max(column-1, 0), len(line))
	var before, after string
	if len(line) > snippetWidth {
		from := max(0, at-snippetWidth/2)
		to := min(len(line), from+snippetWidth)
		from = max(0, to-snippetWidth)
		if from > 0 {
			before = "…"
		}
		if to < len(line) {
			after = "…"
		}
		line, at = line[from:to], at-from
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", len([]rune(before))))
	for _, r := range line[:at] {
		if r == '\t' {
			b.WriteByte('\t')
			continue
		}
		b.WriteString(strings.Repeat(" ", runeWidth(r)))
	}
	return before + visibleText(line) + after, b.String() + "^"
}

// visibleText replaces control characters, which could move the caret or do worse.
func visibleText(line []rune) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, string(line))
}

// wide has the ranges that terminals draw in two columns: East Asian Wide and Fullwidth of Unicode's annex 11, and
// emoji.
var wide = [][2]rune{
	{0x1100, 0x115F},
	{0x2E80, 0x303E},
	{0x3041, 0x33FF},
	{0x3400, 0x4DBF},
	{0x4E00, 0x9FFF},
	{0xA000, 0xA4CF},
	{0xA960, 0xA97F},
	{0xAC00, 0xD7A3},
	{0xF900, 0xFAFF},
	{0xFE30, 0xFE6F},
	{0xFF00, 0xFF60},
	{0xFFE0, 0xFFE6},
	{0x1F300, 0x1F64F},
	{0x1F680, 0x1F6FF},
	{0x1F900, 0x1F9FF},
	{0x1FA70, 0x1FAFF},
	{0x20000, 0x3FFFD},
}

// runeWidth returns the number of columns in which a terminal draws r.
func runeWidth(r rune) int {
	if r == 0x200D || unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	for _, span := range wide {
		if span[0] <= r && r <= span[1] {
			return 2
		}
	}
	return 1
}
