package lsp

import (
	"strings"
	"unicode/utf8"

	"go.lsp.dev/protocol"

	"reprise/interpreter/source"
)

// text is a document split into lines. Editors count UTF-16 units from 0, diagnostics characters from 1, and Go
// bytes.
type text []string

func newText(content string) text {
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(content), "\n")
}

// lineAt returns a line; "" beyond the end.
func (t text) lineAt(n int) string {
	if n < 0 || n >= len(t) {
		return ""
	}
	return t[n]
}

// byteOffset converts an editor's position in a line to a byte offset.
func byteOffset(line string, units uint32) int {
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

// countUnits counts the UTF-16 units of a text.
func countUnits(text string) uint32 {
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

// rangeOf converts a range of bytes in a line to an editor's range.
func rangeOf(t text, line, from, to int) protocol.Range {
	content := t.lineAt(line)
	from, to = min(from, len(content)), min(to, len(content))
	return protocol.Range{
		Start: protocol.Position{Line: uint32(line), Character: countUnits(content[:from])}, //nolint:gosec // lines of a document
		End:   protocol.Position{Line: uint32(line), Character: countUnits(content[:to])},   //nolint:gosec // lines of a document
	}
}

// positionOf converts an offset to an editor's position. Editors end lines at LF, CRLF or CR; YAML has more line
// breaks, so diagnostics may count lines differently.
func positionOf(content string, at int) protocol.Position {
	before := content[:min(max(at, 0), len(content))]
	if strings.HasSuffix(before, "\r") && strings.HasPrefix(content[len(before):], "\n") {
		before = before[:len(before)-1]
	}
	begin := strings.LastIndexAny(before, "\r\n") + 1
	lines := strings.Count(before, "\n") + strings.Count(before, "\r") - strings.Count(before, "\r\n")
	return protocol.Position{Line: uint32(lines), Character: countUnits(before[begin:])} //nolint:gosec // lines of a document
}

// wordAt returns the range of the word, or character, that begins at a position.
func (d *document) wordAt(place source.Position) protocol.Range {
	start := positionOf(d.content, d.file.ByteOffset(place))
	line := int(start.Line)
	from := byteOffset(d.text.lineAt(line), start.Character)
	to := from
	for rest := d.text.lineAt(line); to < len(rest) && isWord(rest[to]); to++ {
	}
	if rest := d.text.lineAt(line)[from:]; to == from && rest != "" {
		_, size := utf8.DecodeRuneInString(rest)
		to += size
	}
	return rangeOf(d.text, line, from, to)
}

// isWord reports whether a byte may be part of a name.
func isWord(b byte) bool {
	return b == '_' || b == '-' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// wordAt returns the name around a byte of a line, and where it begins.
func wordAt(line string, at int) (name string, from int) {
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
