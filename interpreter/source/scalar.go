package source

// Style is the style of a YAML scalar.
type Style int

// The styles of scalars.
const (
	Plain Style = iota
	SingleQuoted
	DoubleQuoted
	Literal
	Folded
)

// ScalarPositions returns the position in the file of each rune of value, and one more for its end. start is where
// the YAML parser says that the scalar begins: at its tag or anchor if it has one, or at the | or > of a block
// scalar.
// It decodes the scalar again from the file's text, because the parser keeps only the decoded value. If that
// gives another value, every position is start.
func (f *File) ScalarPositions(start Position, style Style, value string) []Position {
	runes := []rune(value)
	if offset := f.ByteOffset(start); offset >= 0 {
		r := &replay{cursor: cursor{data: f.data, offset: offset, pos: start}, value: runes}
		if r.replayStyle(style) {
			return append(r.places, r.pos)
		}
	}
	places := make([]Position, len(runes)+1)
	for i := range places {
		places[i] = start
	}
	return places
}

// replay decodes a scalar again, and compares it with its value.
type replay struct {
	cursor

	value  []rune
	places []Position
	failed bool
}

// place is a decoded rune and its position.
type place struct {
	r   rune
	pos Position
}

// replayStyle reports whether the text at the cursor decodes to the value.
func (r *replay) replayStyle(style Style) bool {
	r.skipProperties()
	switch style {
	case SingleQuoted, DoubleQuoted:
		r.nextRune() // the opening quote
		r.replayFlow(style)
	case Literal, Folded:
		r.replayBlock(style == Folded)
	default:
		r.replayFlow(style)
	}
	return !r.failed && len(r.places) == len(r.value)
}

// skipProperties skips tags and anchors before the scalar.
func (r *replay) skipProperties() {
	for r.peekRune() == '!' || r.peekRune() == '&' {
		for !r.atEnd() && !isBlank(r.peekRune()) && !isBreak(r.peekRune()) {
			r.nextRune()
		}
		for isBlank(r.peekRune()) || isBreak(r.peekRune()) {
			r.nextRune()
			if r.peekRune() == '#' {
				r.skipLine()
			}
		}
	}
}

// isDone reports whether nothing is left to compare.
func (r *replay) isDone() bool { return r.failed || len(r.places) == len(r.value) }

// compareRune compares one decoded rune with the value.
func (r *replay) compareRune(p place) {
	if r.isDone() {
		return
	}
	if r.value[len(r.places)] != p.r {
		r.failed = true
		return
	}
	r.places = append(r.places, p.pos)
}

// copyRune compares the next rune, which is not escaped.
func (r *replay) copyRune() {
	pos := r.pos
	r.compareRune(place{r.nextRune(), pos})
}

// cursor is a position in the text that moves rune by rune.
type cursor struct {
	data   []byte
	offset int
	pos    Position
}

func (c *cursor) atEnd() bool { return c.offset >= len(c.data) }

// peekRune returns the rune at the cursor, -1 at the end of the text.
func (c *cursor) peekRune() rune {
	r, _ := decodeRune(c.data[c.offset:])
	return r
}

// nextRune moves on by one rune, or one line break, and returns it. Line breaks are returned as YAML decodes them:
// LS and PS unchanged, others as LF.
func (c *cursor) nextRune() rune {
	r, width := decodeRune(c.data[c.offset:])
	c.offset += width
	if !isBreak(r) {
		c.pos.Column++
		return r
	}
	if r == '\r' && !c.atEnd() && c.data[c.offset] == '\n' {
		c.offset++
	}
	c.pos = Position{Line: c.pos.Line + 1, Column: 1}
	if r == '\u2028' || r == '\u2029' {
		return r
	}
	return '\n'
}

// skipLine moves to the end of the line.
func (c *cursor) skipLine() {
	for !c.atEnd() && !isBreak(c.peekRune()) {
		c.nextRune()
	}
}
