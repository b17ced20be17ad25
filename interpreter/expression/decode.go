package expression

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads one JSON text into a canonical value. Text behind it, nesting
// of more than 1000 levels, and what is not JSON are errors; so are numbers of
// more than 1000 digits, whose error wraps ErrLongNumber. A key that stands twice
// has its last value, and bytes that are not UTF-8 become U+FFFD, as in
// encoding/json.
func Decode(data []byte) (any, error) {
	r := reader{data: data}
	v, ok := r.value(0)
	if r.space(); ok && r.at == len(data) {
		return v, nil
	}
	if r.refused != nil {
		return nil, r.refused
	}
	return nil, whyNot(data)
}

// whyNot says what is wrong with a text, and where, without the keys that lead
// there. It is not asked for values: pages and batches would take 4 to 11 % more
// of the processor.
func whyNot(data []byte) error {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, err := decoder.ReadValue()
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("not JSON: the text is empty")
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: %w at byte %d%s", syntax.Err, syntax.ByteOffset, inLine(data[:min(int(syntax.ByteOffset), len(data))]))
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("not JSON: there is more text behind the value")
	}
	return errDepth
}

// inLine says in which line a text ends, of text with more than one.
func inLine(text []byte) string {
	if lines := bytes.Count(text, []byte("\n")); lines > 0 {
		return fmt.Sprintf(" (line %d)", lines+1)
	}
	return ""
}

// reader reads JSON into canonical values in one pass. Its methods give false
// for everything that Decode refuses, and say why only in refused.
type reader struct {
	data []byte
	at   int
	// stack holds the elements of open lists and the entries of open maps, so
	// that each can be made at its size.
	stack []any
	names []string
	// known are keys read before: the rows of a page share theirs.
	known [64]string
	// unescaped is the last text that had escapes.
	unescaped []byte
	// refused is why JSON is not read that is right as such.
	refused error
}

func (r *reader) value(depth int) (any, bool) {
	r.space()
	if depth > maxDepth || r.at >= len(r.data) {
		return nil, false
	}
	switch c := r.data[r.at]; c {
	case '{':
		return r.object(depth)
	case '[':
		return r.list(depth)
	case '"':
		text, ok := r.text()
		return string(text), ok
	case 'n':
		return nil, r.word("null")
	case 't':
		return true, r.word("true")
	case 'f':
		return false, r.word("false")
	default:
		return r.number()
	}
}

func (r *reader) space() {
	for r.at < len(r.data) {
		switch r.data[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

func (r *reader) word(word string) bool {
	end := r.at + len(word)
	if end > len(r.data) || string(r.data[r.at:end]) != word {
		return false
	}
	r.at = end
	return true
}

// is reads the character if it comes next.
func (r *reader) is(c byte) bool {
	r.space()
	if r.at >= len(r.data) || r.data[r.at] != c {
		return false
	}
	r.at++
	return true
}

func (r *reader) list(depth int) (any, bool) {
	r.at++
	if r.is(']') {
		return []any{}, true
	}
	start := len(r.stack)
	for {
		v, ok := r.value(depth + 1)
		if !ok {
			return nil, false
		}
		r.stack = append(r.stack, v)
		if r.is(']') {
			break
		}
		if !r.is(',') {
			return nil, false
		}
	}
	list := make([]any, len(r.stack)-start)
	copy(list, r.stack[start:])
	r.stack = r.stack[:start]
	return list, true
}

func (r *reader) object(depth int) (any, bool) {
	r.at++
	if r.is('}') {
		return map[string]any{}, true
	}
	start, first := len(r.stack), len(r.names)
	for {
		key, ok := r.key()
		if !ok {
			return nil, false
		}
		v, ok := r.value(depth + 1)
		if !ok {
			return nil, false
		}
		r.names, r.stack = append(r.names, key), append(r.stack, v)
		if r.is('}') {
			break
		}
		if !r.is(',') {
			return nil, false
		}
	}
	object := make(map[string]any, len(r.stack)-start)
	for i, key := range r.names[first:] {
		object[key] = r.stack[start+i] // the last of several wins
	}
	r.names, r.stack = r.names[:first], r.stack[:start]
	return object, true
}

// key reads a key and the colon behind it.
func (r *reader) key() (string, bool) {
	if r.space(); r.at >= len(r.data) || r.data[r.at] != '"' {
		return "", false
	}
	text, ok := r.text()
	if !ok || !r.is(':') {
		return "", false
	}
	if len(text) == 0 {
		return "", true
	}
	place := &r.known[(len(text)*7+int(text[0])+31*int(text[len(text)-1]))%len(r.known)]
	if *place != string(text) {
		*place = string(text)
	}
	return *place, true
}

// text reads a quoted text. The bytes are valid until the next call.
func (r *reader) text() ([]byte, bool) {
	start := r.at + 1
	ascii := true
	for i := start; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			r.at = i + 1
			if ascii {
				return r.data[start:i], true
			}
			return validBytes(r.data[start:i]), true
		case c == '\\':
			return r.escaped(start, i)
		case c < ' ':
			return nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false
}

// validBytes replaces each byte that is not UTF-8 by U+FFFD.
func validBytes(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	return []byte(validText(string(text)))
}

// escaped reads a text that has escapes from at on.
func (r *reader) escaped(start, at int) ([]byte, bool) {
	r.unescaped = append(r.unescaped[:0], r.data[start:at]...)
	for r.at = at; r.at < len(r.data); {
		switch c := r.data[r.at]; {
		case c == '"':
			r.at++
			return validBytes(r.unescaped), true
		case c < ' ':
			return nil, false
		case c != '\\':
			r.unescaped = append(r.unescaped, c)
			r.at++
		default:
			char, ok := r.escape()
			if !ok {
				return nil, false
			}
			r.unescaped = utf8.AppendRune(r.unescaped, char)
		}
	}
	return nil, false
}

// escape reads what begins with a backslash.
func (r *reader) escape() (rune, bool) {
	if r.at+1 >= len(r.data) {
		return 0, false
	}
	c := r.data[r.at+1]
	if c == 'u' {
		return r.unicode()
	}
	r.at += 2
	switch c {
	case '"', '\\', '/':
		return rune(c), true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}

// unicode reads \uXXXX, or two of them that make one character. A half of a
// pair without the other becomes U+FFFD.
func (r *reader) unicode() (rune, bool) {
	char, ok := r.hex(r.at)
	if !ok {
		return 0, false
	}
	r.at += len(`\u0000`)
	if !utf16.IsSurrogate(char) {
		return char, true
	}
	if other, ok := r.hex(r.at); ok {
		if both := utf16.DecodeRune(char, other); both != utf8.RuneError {
			r.at += len(`\u0000`)
			return both, true
		}
	}
	return utf8.RuneError, true
}

// hex is the number in a \uXXXX that stands at a place.
func (r *reader) hex(at int) (rune, bool) {
	end := at + len(`\u0000`)
	if end > len(r.data) || r.data[at] != '\\' || r.data[at+1] != 'u' {
		return 0, false
	}
	var n rune
	for _, c := range r.data[at+2 : end] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | rune(c)
	}
	return n, true
}

// number reads a number of JSON's grammar. Most are short whole numbers.
func (r *reader) number() (any, bool) {
	start := r.at
	negative := r.data[r.at] == '-'
	if negative {
		r.at++
	}
	first := r.at
	whole := r.digits()
	if r.at == first || (r.data[first] == '0' && r.at > first+1) {
		return nil, false
	}
	isWhole, ok := r.fraction()
	if !ok {
		return nil, false
	}
	if r.at-start > maxDigits {
		if err := CheckDigits(string(r.data[start:r.at])); err != nil {
			r.refused = fmt.Errorf("at byte %d: %w", start, err)
			return nil, false
		}
	}
	const surelyFit = 18 // digits of an int
	if !isWhole || r.at-first > surelyFit {
		return numberFromText(string(r.data[start:r.at])), true
	}
	if negative {
		whole = -whole
	}
	return whole, true
}

// digits reads as many as there are. What they are worth is right for as many
// as fit into an int.
func (r *reader) digits() (worth int) {
	for r.at < len(r.data) && '0' <= r.data[r.at] && r.data[r.at] <= '9' {
		worth = worth*10 + int(r.data[r.at]-'0')
		r.at++
	}
	return worth
}

// fraction reads what may stand behind the whole part of a number.
func (r *reader) fraction() (isNone, ok bool) {
	isNone, ok = true, true
	if r.among(".") {
		isNone, ok = false, r.someDigits()
	}
	if ok && r.among("eE") {
		r.among("+-")
		isNone, ok = false, r.someDigits()
	}
	return isNone, ok
}

// among reads the next character if it is one of some.
func (r *reader) among(some string) bool {
	if r.at >= len(r.data) || strings.IndexByte(some, r.data[r.at]) < 0 {
		return false
	}
	r.at++
	return true
}

func (r *reader) someDigits() bool {
	before := r.at
	r.digits()
	return r.at > before
}
