package source

import "unicode/utf8"

func decodeRune(data []byte) (rune, int) {
	if len(data) == 0 {
		return -1, 0
	}
	return utf8.DecodeRune(data)
}

// replayFlow replays the plain and the quoted styles: it folds lines and replaces quotes and escapes. It stops when
// the value is complete, so it need not know where the scalar ends.
func (r *replay) replayFlow(style Style) {
	for !r.isDone() && !r.atEnd() {
		switch c := r.peekRune(); {
		case isBlank(c) || isBreak(c):
			r.whiteSpace()
		case style == SingleQuoted && c == '\'':
			pos := r.pos
			r.nextRune()
			r.compareRune(place{r.nextRune(), pos})
		case style == DoubleQuoted && c == '\\':
			r.replayEscape()
		default:
			r.copyRune()
		}
	}
}

// whiteSpace replays blanks and line breaks between two words. Blanks beside a break are dropped, a single break
// becomes a space, and the first of several breaks is dropped.
func (r *replay) whiteSpace() {
	var blanks []place
	for isBlank(r.peekRune()) {
		pos := r.pos
		blanks = append(blanks, place{r.nextRune(), pos})
	}
	if !isBreak(r.peekRune()) {
		for _, blank := range blanks {
			r.compareRune(blank)
		}
		return
	}
	first := r.pos
	broken := r.nextRune()
	rest := r.skipBreaks()
	switch {
	case broken != '\n':
		r.compareRune(place{broken, first})
	case len(rest) == 0:
		r.compareRune(place{' ', first})
	}
	for _, p := range rest {
		r.compareRune(p)
	}
}

// skipBreaks skips blanks and line breaks and returns the breaks.
func (r *replay) skipBreaks() []place {
	var breaks []place
	for {
		switch c := r.peekRune(); {
		case isBlank(c):
			r.nextRune()
		case isBreak(c):
			pos := r.pos
			breaks = append(breaks, place{r.nextRune(), pos})
		default:
			return breaks
		}
	}
}

// escapes are the one-character escapes in double quotes (YAML 1.2.2, section 5.7).
var escapes = map[rune]rune{
	'0': 0, 'a': '\a', 'b': '\b', 't': '\t', '\t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r',
	'e': '\x1b', ' ': ' ', '"': '"', '\'': '\'', '/': '/', '\\': '\\',
	'N': '\u0085', '_': '\u00a0', 'L': '\u2028', 'P': '\u2029',
}

var hexDigits = map[rune]int{'x': 2, 'u': 4, 'U': 8}

// replayEscape replays a backslash in double quotes. Before a line break it joins the lines.
func (r *replay) replayEscape() {
	start := r.pos
	r.nextRune()
	if isBreak(r.peekRune()) {
		r.nextRune()
		for _, p := range r.skipBreaks() {
			r.compareRune(p)
		}
		return
	}
	name := r.nextRune()
	if digits, ok := hexDigits[name]; ok {
		var code rune
		for range digits {
			code = code<<4 | hexValue(r.nextRune())
		}
		r.compareRune(place{code, start})
		return
	}
	c, ok := escapes[name]
	if !ok {
		r.failed = true
		return
	}
	r.compareRune(place{c, start})
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
