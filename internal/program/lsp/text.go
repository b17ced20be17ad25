package lsp

import (
	"strings"
	"unicode/utf8"

	"go.lsp.dev/protocol"

	"reprise/interpreter/source"
)

// text is a document by its lines. Editors count UTF-16 units from 0, positions of
// diagnostics characters from 1, and Go bytes.
type text []string

func newText(content string) text {
	lines := strings.Split(content, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
	}
	return lines
}

// line is one of the document, "" beyond its end.
func (t text) line(n int) string {
	if n < 0 || n >= len(t) {
		return ""
	}
	return t[n]
}

// offset is the byte of a line at which an editor's position is.
func offset(line string, units uint32) int {
	at := 0
	for at < len(line) && units > 0 {
		r, size := utf8.DecodeRuneInString(line[at:])
		width := unitsOf(r)
		if width > units {
			break
		}
		units -= width
		at += size
	}
	return at
}

// units counts the UTF-16 units of a text.
func units(text string) uint32 {
	n := uint32(0)
	for _, r := range text {
		n += unitsOf(r)
	}
	return n
}

func unitsOf(r rune) uint32 {
	const beyond = 0xffff // such a character takes two
	if r > beyond {
		return 2
	}
	return 1
}

// span is the range of bytes of a line.
func span(t text, line, from, to int) protocol.Range {
	content := t.line(line)
	from, to = min(from, len(content)), min(to, len(content))
	return protocol.Range{
		Start: protocol.Position{Line: uint32(line), Character: units(content[:from])}, //nolint:gosec // lines of a document
		End:   protocol.Position{Line: uint32(line), Character: units(content[:to])},   //nolint:gosec // lines of a document
	}
}

// at is the range of what begins at a place: a word, or a character.
func (t text) at(place source.Position) protocol.Range {
	line := max(place.Line-1, 0)
	content := t.line(line)
	from := 0
	for n := 1; n < place.Column && from < len(content); n++ {
		_, size := utf8.DecodeRuneInString(content[from:])
		from += size
	}
	to := from
	for to < len(content) && isWord(content[to]) {
		to++
	}
	if to == from && from < len(content) {
		_, size := utf8.DecodeRuneInString(content[from:])
		to += size
	}
	return span(t, line, from, to)
}

// isWord reports whether a byte may stand in a name.
func isWord(b byte) bool {
	return b == '_' || b == '-' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// word is the name around a byte of a line, and where it begins.
func word(line string, at int) (name string, from int) {
	from = min(at, len(line))
	to := from
	for from > 0 && isWord(line[from-1]) {
		from--
	}
	for to < len(line) && isWord(line[to]) {
		to++
	}
	return line[from:to], from
}
