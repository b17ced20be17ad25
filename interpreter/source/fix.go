package source

import (
	"bytes"
	"slices"

	"reprise/interpreter/lists"
)

// Fix replaces the text Old at the position of a diagnostic, where a quote may precede it. It has no effect if
// another text is there.
type Fix struct{ Old, New string }

// IsZero reports whether there is no fix.
func (f Fix) IsZero() bool { return f == Fix{} }

// Edit replaces bytes of a file.
type Edit struct {
	From, To int // byte offsets
	At       Position
	New      string
	Of       Diagnostic // the diagnostic that it fixes
}

// EditFor returns the edit that fixes a diagnostic; false if the diagnostic has no fix.
func (f *File) EditFor(d Diagnostic) (Edit, bool) {
	from, at := f.ByteOffset(d.Pos), d.Pos
	if d.Fix.IsZero() || from < 0 {
		return Edit{}, false
	}
	if from < len(f.data) && (f.data[from] == '"' || f.data[from] == '\'') && !bytes.HasPrefix(f.data[from:], []byte(d.Fix.Old)) {
		from++
		at.Column++
	}
	to := from + len(d.Fix.Old)
	if !bytes.HasPrefix(f.data[from:], []byte(d.Fix.Old)) || to < len(f.data) && isNameByte(f.data[to-1]) && isNameByte(f.data[to]) {
		return Edit{}, false
	}
	return Edit{From: from, To: to, At: at, New: d.Fix.New, Of: d}, true
}

func isNameByte(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// TextBetween returns the text between two positions, "" if it is empty or one of them is unknown.
func (f *File) TextBetween(from, to Position) string {
	first, last := f.ByteOffset(from), f.ByteOffset(to)
	if first < 0 || last < first {
		return ""
	}
	return string(f.data[first:last])
}

// AllEdits returns the edits for all diagnostics, sorted and without overlaps.
func (f *File) AllEdits(found Diagnostics) []Edit {
	edits := lists.Pick(found, f.EditFor)
	slices.SortStableFunc(edits, func(a, b Edit) int { return a.From - b.From })
	end := -1
	return slices.DeleteFunc(edits, func(e Edit) bool {
		over := e.From < end
		end = max(end, e.To)
		return over
	})
}

// ApplyEdits returns the text with edits from AllEdits applied.
func (f *File) ApplyEdits(edits []Edit) []byte {
	var text []byte
	at := 0
	for _, e := range edits {
		text = append(append(text, f.data[at:e.From]...), e.New...)
		at = e.To
	}
	return append(text, f.data[at:]...)
}

// Change is one rewrite in a file.
type Change struct {
	Pos  Position
	What string
}
