// Package source represents the text of a playbook: its lines, positions in it, and diagnostics with the snippet
// they point to. It depends only on package lists.
package source

import (
	"bytes"
	"cmp"
	"fmt"
	"unicode/utf8"
)

// File is one source text. It is immutable and safe for concurrent use.
type File struct {
	Name string

	data   []byte
	starts []int // byte offset of every line
	// marks has, for long lines by number, the byte offsets of every markEvery-th column, so that a position far to
	// the right is found without scanning from the left.
	marks map[int][]int
}

// markEvery bounds the columns that are scanned to find a position.
const markEvery = 1024

var byteOrderMark = []byte("\xef\xbb\xbf")

// NewFile indexes the lines of data, which the caller must not change afterwards. Lines end as in YAML (LF, CRLF,
// CR, NEL, LS and PS), because diagnostics use positions of the YAML parser.
func NewFile(name string, data []byte) *File {
	f := &File{Name: name, data: data}
	first := 0
	if bytes.HasPrefix(data, byteOrderMark) {
		first = len(byteOrderMark)
	}
	f.starts = append(f.starts, first)
	f.marks = map[int][]int{}
	for offset, column := first, 0; offset < len(data); {
		r, width := utf8.DecodeRune(data[offset:])
		offset += width
		if !isBreak(r) {
			if column++; column%markEvery == 0 {
				line := len(f.starts)
				f.marks[line] = append(f.marks[line], offset)
			}
			continue
		}
		column = 0
		if r == '\r' && offset < len(data) && data[offset] == '\n' {
			offset++
		}
		f.starts = append(f.starts, offset)
	}
	return f
}

// Bytes returns the unchanged text.
func (f *File) Bytes() []byte { return f.data }

// Lines returns the number of lines. A line break at the end of the text does
// not begin another one.
func (f *File) Lines() int {
	if n := len(f.starts); n > 1 && f.starts[n-1] == len(f.data) {
		return n - 1
	}
	return len(f.starts)
}

// Line returns line n, counted from 1, without its line break; "" for a line
// that the file does not have.
func (f *File) Line(n int) string {
	if n < 1 || n > len(f.starts) {
		return ""
	}
	end := len(f.data)
	if n < len(f.starts) {
		end = f.starts[n]
	}
	line := f.data[f.starts[n-1]:end]
	for len(line) > 0 {
		r, width := utf8.DecodeLastRune(line)
		if !isBreak(r) {
			break
		}
		line = line[:len(line)-width]
	}
	return string(line)
}

// TextUntil returns the text up to and including line n.
func (f *File) TextUntil(n int) []byte {
	if n >= len(f.starts) {
		return f.data
	}
	return f.data[:f.starts[max(n, 0)]]
}

// ByteOffset returns the byte offset of pos, or the end of its line if the line is
// shorter; -1 for a line that the file does not have.
func (f *File) ByteOffset(pos Position) int {
	if pos.Line < 1 || pos.Line > len(f.starts) {
		return -1
	}
	offset, first := f.starts[pos.Line-1], 1
	if marks := f.marks[pos.Line]; len(marks) > 0 && pos.Column > markEvery {
		at := min((pos.Column-1)/markEvery, len(marks))
		offset, first = marks[at-1], at*markEvery+1
	}
	for column := first; column < pos.Column && offset < len(f.data); column++ {
		r, width := utf8.DecodeRune(f.data[offset:])
		if isBreak(r) {
			break
		}
		offset += width
	}
	return offset
}

// Position is a position in a file: line and column from 1, columns counted in runes. The zero value means unknown.
type Position struct{ Line, Column int }

// IsZero reports whether the position is unknown.
func (p Position) IsZero() bool { return p.Line == 0 }

// Compare returns -1 if p is before q in the same file, 0 if they are equal, otherwise +1.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// Before reports whether p is before q in the same file.
func (p Position) Before(q Position) bool { return p.Compare(q) < 0 }

// String returns "line:column", "" for an unknown position.
func (p Position) String() string {
	if p.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d:%d", p.Line, p.Column)
}

// isBreak reports whether YAML ends a line at r.
func isBreak(r rune) bool {
	switch r {
	case '\n', '\r', '\u0085', '\u2028', '\u2029':
		return true
	}
	return false
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' }
