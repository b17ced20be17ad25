package source

import "unicode/utf8"

func decodeRune(data []byte) (rune, int) {
	if len(data) == 0 {
		return -1, 0
	}
	return utf8.DecodeRune(data)
}

// flow replays the plain and the quoted styles: lines are folded, quotes and
// escapes undone. It stops when the value is complete, so it need not know
// where the scalar ends.
func (r *replay) flow(style Style) {
	for !r.done() && !r.atEnd() {
		switch c := r.peek(); {
		case isBlank(c) || isBreak(c):
			r.whiteSpace()
		case style == SingleQuoted && c == '\'':
			pos := r.pos
			r.next()
			r.emit(place{r.next(), pos})
		case style == DoubleQuoted && c == '\\':
			r.escape()
		default:
			r.copyRune()
		}
	}
}

// whiteSpace replays blanks and line breaks between two words: blanks beside a
// break go, a single break is a space, of several the first goes.
func (r *replay) whiteSpace() {
	var blanks []place
	for isBlank(r.peek()) {
		pos := r.pos
		blanks = append(blanks, place{r.next(), pos})
	}
	if !isBreak(r.peek()) {
		for _, blank := range blanks {
			r.emit(blank)
		}
		return
	}
	first := r.pos
	broken := r.next()
	rest := r.breaks()
	switch {
	case broken != '\n':
		r.emit(place{broken, first})
	case len(rest) == 0:
		r.emit(place{' ', first})
	}
	for _, p := range rest {
		r.emit(p)
	}
}

// breaks moves past blanks and line breaks and returns the breaks.
func (r *replay) breaks() []place {
	var breaks []place
	for {
		switch c := r.peek(); {
		case isBlank(c):
			r.next()
		case isBreak(c):
			pos := r.pos
			breaks = append(breaks, place{r.next(), pos})
		default:
			return breaks
		}
	}
}

// escapes are the escapes of one character in double quotes (YAML 1.2.2,
// section 5.7).
var escapes = map[rune]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', '\t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r',
	'e': '\x1b', ' ': ' ', '"': '"', '\'': '\'', '/': '/', '\\': '\\',
	'N': '\u0085', '_': '\u00a0', 'L': '\u2028', 'P': '\u2029',
}

var hexDigits = map[rune]int{'x': 2, 'u': 4, 'U': 8}

// escape replays a backslash in double quotes. Before a line break it joins
// the lines.
func (r *replay) escape() {
	start := r.pos
	r.next()
	if isBreak(r.peek()) {
		r.next()
		for _, p := range r.breaks() {
			r.emit(p)
		}
		return
	}
	name := r.next()
	if digits, ok := hexDigits[name]; ok {
		var code rune
		for range digits {
			code = code<<4 | hexValue(r.next())
		}
		r.emit(place{code, start})
		return
	}
	c, ok := escapes[name]
	if !ok {
		r.failed = true
		return
	}
	r.emit(place{c, start})
}

func hexValue(r rune) rune {
	switch {
	case '0' <= r && r <= '9':
		return r - '0'
	case 'a' <= r && r <= 'f':
		return r - 'a' + 10
	case 'A' <= r && r <= 'F':
		return r - 'A' + 10
	}
	return 0
}
