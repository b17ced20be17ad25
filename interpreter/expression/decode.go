package expression

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Decode reads one JSON text into a canonical value. Errors are trailing text, more than 1000 levels of nesting,
// invalid JSON, and numbers with more than 1000 digits, for which the error wraps ErrLongNumber. As in
// encoding/json, the last value of a repeated key counts, and bytes that are not UTF-8 become U+FFFD.
func Decode(data []byte) (any, error) { return decodeAll(reader{data: data}) }

// DecodeExact is Decode for input from outside. It also refuses texts that a value cannot represent exactly, such
// as an object with a repeated name or half of a surrogate pair; the error then wraps ErrInexact.
func DecodeExact(data []byte) (any, error) { return decodeAll(reader{data: data, exact: true}) }

// ErrInexact is wrapped by the errors of DecodeExact for JSON that a value cannot represent exactly.
var ErrInexact = errors.New("a value would lose data")

func decodeAll(r reader) (any, error) {
	v, ok := r.readValue(0)
	if r.skipSpace(); ok && r.at == len(r.data) {
		return v, nil
	}
	if r.refused != nil {
		return nil, r.refused
	}
	return nil, decodeError(r.data)
}

// decodeError returns the error of a text that Decode refused: what is wrong, and at which byte and line. The error does
// not name the keys that lead to the position: tracking keys while values are read would cost 4 to 11 % more
// processor time for pages and batches.
func decodeError(data []byte) error {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, err := decoder.ReadValue()
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("not JSON: the text is empty")
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: %w at byte %d%s", syntax.Err, syntax.ByteOffset, lineSuffix(data[:min(int(syntax.ByteOffset), len(data))]))
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("not JSON: there is more text after the value")
	}
	return errDepth
}

// lineSuffix returns " (line N)" for the line in which the text ends, or "" if the text has only one line.
func lineSuffix(text []byte) string {
	if lines := bytes.Count(text, []byte("\n")); lines > 0 {
		return fmt.Sprintf(" (line %d)", lines+1)
	}
	return ""
}

// reader reads JSON into canonical values in one pass. Its methods return false for everything that Decode refuses;
// only refused holds a reason.
type reader struct {
	data []byte
	at   int
	// stack holds the elements of open lists and the entries of open maps until their number is known, so that each
	// list or map is allocated once.
	stack []any
	names []string
	// known caches keys that were read before, because the rows of a page share their keys.
	known [64]string
	// unescaped is the memory of the last text that had escapes.
	unescaped []byte
	// exact makes the reader refuse JSON that a value cannot represent exactly.
	exact bool
	// refused is the reason for refusing valid JSON.
	refused error
}

func (r *reader) readValue(depth int) (any, bool) {
	r.skipSpace()
	if depth > maxDepth || r.at >= len(r.data) {
		return nil, false
	}
	switch c := r.data[r.at]; c {
	case '{':
		return r.readObject(depth)
	case '[':
		return r.readList(depth)
	case '"':
		text, ok := r.readText()
		return string(text), ok
	case 'n':
		return nil, r.readWord("null")
	case 't':
		return true, r.readWord("true")
	case 'f':
		return false, r.readWord("false")
	default:
		return r.readNumber()
	}
}

func (r *reader) skipSpace() {
	for r.at < len(r.data) {
		switch r.data[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

func (r *reader) readWord(word string) bool {
	end := r.at + len(word)
	if end > len(r.data) || string(r.data[r.at:end]) != word {
		return false
	}
	r.at = end
	return true
}

// acceptByte skips white space, and reads the next byte if it is c.
func (r *reader) acceptByte(c byte) bool {
	r.skipSpace()
	if r.at >= len(r.data) || r.data[r.at] != c {
		return false
	}
	r.at++
	return true
}

func (r *reader) readList(depth int) (any, bool) {
	r.at++
	if r.acceptByte(']') {
		return []any{}, true
	}
	start := len(r.stack)
	for {
		v, ok := r.readValue(depth + 1)
		if !ok {
			return nil, false
		}
		r.stack = append(r.stack, v)
		if r.acceptByte(']') {
			break
		}
		if !r.acceptByte(',') {
			return nil, false
		}
	}
	list := make([]any, len(r.stack)-start)
	copy(list, r.stack[start:])
	r.stack = r.stack[:start]
	return list, true
}

func (r *reader) readObject(depth int) (any, bool) {
	r.at++
	if r.acceptByte('}') {
		return map[string]any{}, true
	}
	start, first := len(r.stack), len(r.names)
	for {
		key, ok := r.readKey()
		if !ok {
			return nil, false
		}
		v, ok := r.readValue(depth + 1)
		if !ok {
			return nil, false
		}
		r.names, r.stack = append(r.names, key), append(r.stack, v)
		if r.acceptByte('}') {
			break
		}
		if !r.acceptByte(',') {
			return nil, false
		}
	}
	object := make(map[string]any, len(r.stack)-start)
	for i, key := range r.names[first:] {
		object[key] = r.stack[start+i] // the last of repeated keys wins
	}
	if r.exact && len(object) < len(r.stack)-start {
		return nil, r.hasTwice(r.names[first:])
	}
	r.names, r.stack = r.names[:first], r.stack[:start]
	return object, true
}

// hasTwice reports whether a name is repeated in an object, and sets refused. The error names the current byte as
// the end of the object.
func (r *reader) hasTwice(names []string) bool {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			r.refused = fmt.Errorf("the key %q occurs twice in the object that ends at byte %d: %w", name, r.at, ErrInexact)
		}
	}
	return false
}

// readKey reads a key and the colon after it.
func (r *reader) readKey() (string, bool) {
	if r.skipSpace(); r.at >= len(r.data) || r.data[r.at] != '"' {
		return "", false
	}
	text, ok := r.readText()
	if !ok || !r.acceptByte(':') {
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

// readText reads a quoted text. The returned bytes are valid until the next call.
func (r *reader) readText() ([]byte, bool) {
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
			return r.readEscaped()
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

// readEscaped reads a quoted text with escapes. Half a surrogate pair, and bytes that are not UTF-8, become U+FFFD.
func (r *reader) readEscaped() ([]byte, bool) {
	start := r.at
	for r.at++; r.at < len(r.data) && r.data[r.at] != '"'; r.at++ {
		if r.data[r.at] == '\\' {
			r.at++
		}
	}
	if r.at >= len(r.data) {
		return nil, false
	}
	r.at++
	quoted := r.data[start:r.at]
	text, err := jsontext.AppendUnquote(r.unescaped[:0], quoted)
	if err == nil {
		r.unescaped = text
		return text, true
	}
	if r.exact && utf8.Valid(quoted) {
		if r.refused == nil {
			r.refused = fmt.Errorf("the text at byte %d has half of a surrogate pair, which is not a character: %w", start, ErrInexact)
		}
		return nil, false
	}
	var mended string
	err = json.Unmarshal(quoted, &mended)
	return []byte(mended), err == nil
}

// readNumber reads a number in JSON's grammar. Short whole numbers, the most common kind, take the fast path.
func (r *reader) readNumber() (any, bool) {
	start := r.at
	negative := r.data[r.at] == '-'
	if negative {
		r.at++
	}
	first := r.at
	whole := r.readDigits()
	if r.at == first || (r.data[first] == '0' && r.at > first+1) {
		return nil, false
	}
	isWhole, ok := r.readFraction()
	if !ok {
		return nil, false
	}
	if r.at-start > maxDigits {
		if err := CheckDigits(string(r.data[start:r.at])); err != nil {
			r.refused = fmt.Errorf("at byte %d: %w", start, err)
			return nil, false
		}
	}
	const surelyFit = 18 // this many digits always fit into an int
	if !isWhole || r.at-first > surelyFit {
		return numberFromText(string(r.data[start:r.at])), true
	}
	if negative {
		whole = -whole
	}
	return whole, true
}

// readDigits reads all digits that come next and returns their value. The value is correct only if it fits into an
// int.
func (r *reader) readDigits() (worth int) {
	for r.at < len(r.data) && '0' <= r.data[r.at] && r.data[r.at] <= '9' {
		worth = worth*10 + int(r.data[r.at]-'0')
		r.at++
	}
	return worth
}

// readFraction reads the fraction and the exponent of a number, if there are any. isNone reports that there was
// neither; ok is false if one is incomplete.
func (r *reader) readFraction() (isNone, ok bool) {
	isNone, ok = true, true
	if r.acceptAny(".") {
		isNone, ok = false, r.someDigits()
	}
	if ok && r.acceptAny("eE") {
		r.acceptAny("+-")
		isNone, ok = false, r.someDigits()
	}
	return isNone, ok
}

// acceptAny reads the next byte if it is one of the characters in some.
func (r *reader) acceptAny(some string) bool {
	if r.at >= len(r.data) || strings.IndexByte(some, r.data[r.at]) < 0 {
		return false
	}
	r.at++
	return true
}

func (r *reader) someDigits() bool {
	before := r.at
	r.readDigits()
	return r.at > before
}
