package secrets

import (
	"html"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxLayers bounds how often an escaped text is unescaped. Each layer is a pass over the text,
// and "%252525…" has as many layers as digits.
const maxLayers = 4

// layer is a text after some escapes have been undone.
type layer struct {
	text string
	// at holds the original offset of each byte, and of the end; nil for the original text.
	at []int32
}

// originOf returns the original offset of a byte.
func (l layer) originOf(i int) int {
	if l.at == nil {
		return i
	}
	return int(l.at[i])
}

// unescapeOnce undoes one level of escapes: of URLs, of strings in JSON and programs, and of HTML. It returns false if
// there are none.
func (l layer) unescapeOnce() (layer, bool) {
	if strings.IndexByte(l.text, '%') < 0 && strings.IndexByte(l.text, '\\') < 0 && strings.IndexByte(l.text, '&') < 0 {
		return l, false
	}
	out := make([]byte, 0, len(l.text))
	at := make([]int32, 0, len(l.text)+1)
	changed := false
	for i := 0; i < len(l.text); {
		n, encoded := readEscape(l.text[i:])
		if n == 0 {
			out, at = append(out, l.text[i]), append(at, int32(l.originOf(i)))
			i++
			continue
		}
		changed = true
		for range len(encoded) {
			at = append(at, int32(l.originOf(i)))
		}
		out = append(out, encoded...)
		i += n
	}
	return layer{text: string(out), at: append(at, int32(l.originOf(len(l.text))))}, changed
}

// leastWrapped is the length from which a base64 line counts as wrapped at its end: lines of RFC 2045, which
// PostgreSQL's encode and Python's encodebytes write, have 76 characters, those of PEM 64.
const leastWrapped = 60

// joinLines removes line breaks within base64. It returns false if there are none.
func (l layer) joinLines() (layer, bool) {
	var out []byte
	var at []int32
	end := 0 // of the last line that is in out
	for i := strings.IndexByte(l.text, '\n'); i >= 0; {
		line := strings.TrimSuffix(l.text[:i], "\r")
		if i+1 < len(l.text) && isBase64(l.text[i+1]) && len(line)-end >= leastWrapped && !strings.ContainsFunc(line[len(line)-leastWrapped:], isOtherThanBase64) {
			out, at, end = append(out, line[end:]...), l.appendPositions(at, end, len(line)), i+1
		}
		next := strings.IndexByte(l.text[i+1:], '\n')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	if out == nil {
		return l, false
	}
	return layer{text: string(append(out, l.text[end:]...)), at: append(l.appendPositions(at, end, len(l.text)), int32(l.originOf(len(l.text))))}, true
}

// appendPositions appends the original offsets of a range of bytes.
func (l layer) appendPositions(at []int32, start, end int) []int32 {
	for i := start; i < end; i++ {
		at = append(at, int32(l.originOf(i)))
	}
	return at
}

func isOtherThanBase64(r rune) bool { return r >= utf8.RuneSelf || !isBase64(byte(r)) }

// readEscape returns the length of the escape at the start of a text, and the character it stands for; 0 if there is
// none.
func readEscape(text string) (n int, stands string) {
	switch text[0] {
	case '%':
		return hexByte(text, 1)
	case '\\':
		return unescapeBackslash(text)
	case '&':
		return unescapeEntity(text)
	}
	return 0, ""
}

// controls maps the letters after a backslash to the characters that they stand for.
var controls = map[byte]string{
	'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f",
}

func unescapeBackslash(text string) (n int, stands string) {
	if len(text) < 2 {
		return 0, ""
	}
	switch c := text[1]; {
	case c == 'u':
		return unescapeUnit(text)
	case c == 'U':
		if r, ok := parseDigits(text, 2, 8, 16); ok {
			return 10, string(rune(r))
		}
	case c == 'x':
		return hexByte(text, 2)
	case c >= '0' && c <= '7':
		return octalByte(text)
	case controls[c] != "":
		return 2, controls[c]
	case c < utf8.RuneSelf && c > ' ' && !isWord(c):
		return 2, text[1:2]
	}
	return 0, ""
}

// hexByte reads a byte of two hexadecimal digits at an offset.
func hexByte(text string, offset int) (n int, stands string) {
	b, ok := parseDigits(text, offset, 2, 16)
	if !ok {
		return 0, ""
	}
	return offset + 2, string([]byte{byte(b)})
}

// octalByte reads \NNN, which may have fewer digits.
func octalByte(text string) (n int, stands string) {
	for digits := 3; digits > 0; digits-- {
		if b, ok := parseDigits(text, 1, digits, 8); ok && b < 256 {
			return 1 + digits, string([]byte{byte(b)})
		}
	}
	return 0, ""
}

// unescapeUnit reads \uXXXX; a surrogate pair is one character.
func unescapeUnit(text string) (n int, stands string) {
	high, ok := parseDigits(text, 2, 4, 16)
	if !ok {
		return 0, ""
	}
	if low, ok := parseDigits(text, 8, 4, 16); ok && text[6:8] == `\u` {
		if r := utf16.DecodeRune(rune(high), rune(low)); r != utf8.RuneError {
			return 12, string(r)
		}
	}
	return 6, string(rune(high))
}

// longestEntity is the greatest length of an HTML entity, in bytes.
const longestEntity = 33

func unescapeEntity(text string) (n int, stands string) {
	end := strings.IndexByte(text[:min(len(text), longestEntity)], ';')
	if end < 0 {
		return 0, ""
	}
	if stands = html.UnescapeString(text[:end+1]); utf8.RuneCountInString(stands) != 1 {
		return 0, "" // none, or one with letters behind it
	}
	return end + 1, stands
}

// parseDigits parses exactly digits characters at offset in a base; false if they are not a number.
func parseDigits(text string, offset, digits, base int) (int64, bool) {
	if len(text) < offset+digits || text[offset] == '+' || text[offset] == '-' {
		return 0, false
	}
	n, err := strconv.ParseInt(text[offset:offset+digits], base, 32)
	return n, err == nil
}

// isWord reports whether a byte is part of a word.
func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}
