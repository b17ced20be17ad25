package expression

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// closeString returns the offset behind the string that starts at from, or
// false if it is not closed. It knows no escape but the quote's own, which is
// all that finding the end needs; templates use it to find their }}.
func closeString(text []rune, from int) (int, bool) {
	quote := text[from]
	for i := from + 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote != '`':
			i++
		case text[i] != quote:
		case quote == '`' && i+1 < len(text) && text[i+1] == '`':
			i++
		default:
			return i + 1, true
		}
	}
	return len(text), false
}

func (l *lexer) string() {
	from := l.at
	end, closed := closeString(l.text, from)
	if !closed {
		fail(from, from+1, codeSyntax, fmt.Sprintf("the text that starts with %c is never closed", l.text[from]))
	}
	l.at = end
	body := l.text[from+1 : end-1]
	if l.text[from] == '`' {
		l.add(tokenString, strings.ReplaceAll(string(body), "``", "`"), from)
		return
	}
	l.add(tokenString, unescape(body, from+1), from)
}

// simpleEscapes are the escapes of one letter that JSON, Python and Go share.
var simpleEscapes = map[rune]rune{
	'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', 'a': '\a', 'v': '\v',
	'\\': '\\', '"': '"', '\'': '\'', '/': '/', '`': '`',
}

// hexEscapes gives the number of digits behind \x, \u and \U.
var hexEscapes = map[rune]int{'x': 2, 'u': 4, 'U': 8}

// unescape undoes the escapes of a quoted text. An escape that means nothing
// stays as written, so that the \d of a pattern needs no second backslash.
func unescape(body []rune, offset int) string {
	var out strings.Builder
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			out.WriteRune(body[i])
			continue
		}
		i++ // a quoted text cannot end with a backslash: it would escape the quote
		if digits := hexEscapes[body[i]]; digits > 0 {
			i = unescapeHex(&out, body, i, digits, offset)
			continue
		}
		if r, ok := simpleEscapes[body[i]]; ok {
			out.WriteRune(r)
		} else {
			out.WriteRune('\\')
			out.WriteRune(body[i])
		}
	}
	return out.String()
}

// unescapeHex writes the character of the \x, \u or \U whose letter stands at
// i and returns the offset of its last digit. Two \u that are the halves of
// one character are taken together, as in JSON.
func unescapeHex(out *strings.Builder, body []rune, i, digits, offset int) int {
	r, ok := hexRune(body, i+1, digits)
	if !ok {
		fail(offset+i-1, offset+i+1, codeSyntax,
			fmt.Sprintf(`\%c needs %d hexadecimal digits; a backslash itself is written \\`, body[i], digits))
	}
	end := i + digits
	if utf16.IsSurrogate(r) && digits == 4 && end+2 < len(body) && body[end+1] == '\\' && body[end+2] == 'u' {
		if low, ok := hexRune(body, end+3, 4); ok {
			r, end = utf16.DecodeRune(r, low), end+6
		}
	}
	if utf16.IsSurrogate(r) || r > unicode.MaxRune || r == unicode.ReplacementChar && digits == 4 && end != i+digits {
		fail(offset+i-1, offset+end+1, codeSyntax, fmt.Sprintf("%q is not a character", string(body[i-1:end+1])))
	}
	out.WriteRune(r)
	return end
}

func hexRune(body []rune, from, digits int) (rune, bool) {
	if from+digits > len(body) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(body[from:from+digits]), 16, 32)
	if err != nil || n > 1<<31-1 {
		return 0, false
	}
	return rune(n), true
}
