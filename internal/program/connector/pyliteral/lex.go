package pyliteral

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The kinds of tokens.
const (
	end = iota
	name
	number
	text
	formatted // an f-string
	otherText // bytes, and texts with escapes that need Python
	operator
	newline
)

type token struct {
	kind       int
	text       string // of a text its value, else its source
	start, end int
}

// isOneOf reports whether a token is one of some operators.
func (t token) isOneOf(operators ...string) bool {
	return t.kind == operator && slices.Contains(operators, t.text)
}

// lexTokens splits source into tokens. Ends of lines within brackets, and comments, are left out.
func lexTokens(source string) (tokens []token, err error) {
	depth := 0
	for at := 0; at < len(source); {
		switch source[at] {
		case ' ', '\t', '\r', '\f', '\\':
			at++
		case '#':
			if length := strings.IndexByte(source[at:], '\n'); length >= 0 {
				at += length
			} else {
				at = len(source)
			}
		case '\n', ';':
			if depth == 0 {
				tokens = append(tokens, token{newline, "\n", at, at + 1})
			}
			at++
		default:
			t, err := nextToken(source, at)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", 1+strings.Count(source[:at], "\n"), err)
			}
			if t.isOneOf("(", "[", "{") {
				depth++
			} else if t.isOneOf(")", "]", "}") {
				depth = max(depth-1, 0)
			}
			tokens = append(tokens, t)
			at = t.end
		}
	}
	return append(tokens, token{end, "", len(source), len(source)}), nil
}

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// nextToken returns the token that begins at a place which is neither space nor comment.
func nextToken(source string, at int) (token, error) {
	if prefix, quotes := quotesAt(source[at:]); quotes > 0 {
		return textToken(source, at, prefix, quotes)
	}
	stop := at + 1
	switch c := source[at]; {
	case isLetter(c):
		for stop < len(source) && (isLetter(source[stop]) || isDigit(source[stop])) {
			stop++
		}
		return token{name, source[at:stop], at, stop}, nil
	case isDigit(c) || c == '.' && stop < len(source) && isDigit(source[stop]):
		for stop < len(source) && (isLetter(source[stop]) || isDigit(source[stop]) || source[stop] == '.' ||
			(source[stop] == '-' || source[stop] == '+') && strings.IndexByte("eE", source[stop-1]) >= 0 && !strings.HasPrefix(source[at:], "0x")) {
			stop++
		}
		return token{number, source[at:stop], at, stop}, nil
	}
	for _, long := range []string{"**", "==", "!=", "<=", ">=", "//", "->", ":="} {
		if strings.HasPrefix(source[at:], long) {
			return token{operator, long, at, at + len(long)}, nil
		}
	}
	return token{operator, source[at:stop], at, stop}, nil
}

// quotesAt returns the prefix of a text, in lower case, and how many quotes open it; 0 if no text begins here.
func quotesAt(rest string) (prefix string, quotes int) {
	at := 0
	for at < len(rest) && at < 2 && strings.IndexByte("rRbBuUfF", rest[at]) >= 0 {
		at++
	}
	if at >= len(rest) || rest[at] != '"' && rest[at] != '\'' {
		return "", 0
	}
	quotes = 1
	if strings.HasPrefix(rest[at:], strings.Repeat(rest[at:at+1], 3)) {
		quotes = 3
	}
	return strings.ToLower(rest[:at]), quotes
}

func textToken(source string, start int, prefix string, quotes int) (token, error) {
	open := start + len(prefix)
	mark := strings.Repeat(source[open:open+1], quotes)
	from := open + quotes
	var b strings.Builder
	t := token{kind: text, start: start}
	if strings.Contains(prefix, "b") {
		t.kind = otherText
	} else if strings.Contains(prefix, "f") {
		t.kind = formatted
	}
	for at := from; at < len(source); {
		switch {
		case strings.HasPrefix(source[at:], mark):
			t.text, t.end = b.String(), at+quotes
			return t, nil
		case source[at] == '\n' && quotes == 1:
			return t, fmt.Errorf("a text has no end")
		case source[at] == '\\' && at+1 < len(source):
			if strings.Contains(prefix, "r") {
				b.WriteString(source[at : at+2])
				at += 2
				continue
			}
			written, length, ok := unescape(source[at:])
			if !ok {
				t.kind = otherText
			}
			b.WriteString(written)
			at += length
		default:
			b.WriteByte(source[at])
			at++
		}
	}
	return t, fmt.Errorf("a text has no end")
}

// simpleEscapes are the escapes of one character.
var simpleEscapes = map[byte]string{
	'\n': "", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v",
}

// unescape returns what the escape at the beginning of a text stands for, and its length; ok is false if that needs
// Python's tables.
func unescape(rest string) (written string, length int, ok bool) {
	c := rest[1]
	if simple, is := simpleEscapes[c]; is {
		return simple, 2, true
	}
	if c >= '0' && c <= '7' {
		length = 2
		for length < 4 && length < len(rest) && rest[length] >= '0' && rest[length] <= '7' {
			length++
		}
		code, _ := strconv.ParseUint(rest[1:length], 8, 16) // digits alone
		return string(rune(code)), length, true
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if digits == 0 { // a backslash that stays, as before \d
		return rest[:2], 2, c != 'N'
	}
	if len(rest) < 2+digits {
		return "", len(rest), false
	}
	code, err := strconv.ParseUint(rest[2:2+digits], 16, 32)
	return string(rune(code)), 2 + digits, err == nil && utf8.ValidRune(rune(code))
}
