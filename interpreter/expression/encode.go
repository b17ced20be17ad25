package expression

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"
)

// Encode writes a canonical value as compact JSON with sorted keys and without
// HTML escapes. A number that is not finite is an error.
func Encode(v any) ([]byte, error) {
	scratch, _ := buffers.Get().(*[]byte)
	out, ok := appendValue((*scratch)[:0], v, 0)
	if !ok {
		return encodeWithReasons(v)
	}
	if cap(out) > keptBuffer {
		return out, nil
	}
	*scratch = out
	defer buffers.Put(scratch)
	return bytes.Clone(out), nil
}

// buffers are used again, so that what is written needs no more memory than its
// size. Large ones are given away.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

const keptBuffer = 1 << 20

// encodeWithReasons is Encode by encoding/json, which takes more than canonical
// values, and says what is wrong with the others. It is several times slower.
func encodeWithReasons(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// appendValue writes a value, byte for byte as encoding/json does. It gives
// false for what is not canonical.
func appendValue(out []byte, v any, depth int) ([]byte, bool) {
	if depth > maxDepth {
		return out, false
	}
	switch v := v.(type) {
	case nil:
		return append(out, "null"...), true
	case bool:
		return strconv.AppendBool(out, v), true
	case int:
		return strconv.AppendInt(out, int64(v), 10), true
	case float64:
		return appendFloat(out, v)
	case string:
		return appendText(out, v), true
	case json.Number:
		return append(out, v...), isNumber(string(v))
	case []any:
		return appendList(out, v, depth)
	case map[string]any:
		return appendMap(out, v, depth)
	default:
		return out, false
	}
}

func appendList(out []byte, list []any, depth int) ([]byte, bool) {
	if list == nil {
		return append(out, "null"...), true
	}
	out = append(out, '[')
	for i, element := range list {
		if i > 0 {
			out = append(out, ',')
		}
		var ok bool
		if out, ok = appendValue(out, element, depth+1); !ok {
			return out, false
		}
	}
	return append(out, ']'), true
}

func appendMap(out []byte, m map[string]any, depth int) ([]byte, bool) {
	if m == nil {
		return append(out, "null"...), true
	}
	const usual = 16 // as many keys need no memory of their own
	keys := make([]string, 0, usual)
	for key := range m { // any order: they are sorted
		keys = append(keys, key)
	}
	slices.Sort(keys)
	out = append(out, '{')
	for i, key := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, key), ':')
		var ok bool
		if out, ok = appendValue(out, m[key], depth+1); !ok {
			return out, false
		}
	}
	return append(out, '}'), true
}

// appendFloat writes the shortest digits that mean the number, as ECMAScript
// does: with an exponent where it is very small or very large.
func appendFloat(out []byte, f float64) ([]byte, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return out, false
	}
	const digitsBegin = 1e-6
	if magnitude := math.Abs(f); magnitude == 0 || (magnitude >= digitsBegin && magnitude < digitsEnd) {
		return strconv.AppendFloat(out, f, 'f', -1, 64), true
	}
	out = strconv.AppendFloat(out, f, 'e', -1, 64)
	if n := len(out); n >= 4 && out[n-4] == 'e' && out[n-3] == '-' && out[n-2] == '0' { // e-09 is written e-9
		out = append(out[:n-2], out[n-1])
	}
	return out, true
}

// appendText writes a text in quotes.
func appendText(out []byte, s string) []byte {
	out = append(out, '"')
	done := 0 // up to here it is written
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			char, size := utf8.DecodeRuneInString(s[i:])
			if escaped := escapedRune(char, size); escaped != "" {
				out = append(append(out, s[done:i]...), escaped...)
				done = i + size
			}
			i += size
			continue
		}
		if escapes[c] > 0 {
			out = appendEscape(append(out, s[done:i]...), c)
			done = i + 1
		}
		i++
	}
	return append(append(out, s[done:]...), '"')
}

// escapes is how many bytes an ASCII character takes beside its own.
var escapes = func() (extra [utf8.RuneSelf]uint8) {
	for c := range byte(' ') {
		extra[c] = 5
	}
	for _, c := range []byte("\"\\\b\f\n\r\t") {
		extra[c] = 1
	}
	return extra
}()

func appendEscape(out []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(out, '\\', c)
	case '\b':
		return append(out, `\b`...)
	case '\f':
		return append(out, `\f`...)
	case '\n':
		return append(out, `\n`...)
	case '\r':
		return append(out, `\r`...)
	case '\t':
		return append(out, `\t`...)
	}
	const digits = "0123456789abcdef"
	return append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}

// escapedRune is what stands for a character beyond ASCII that cannot stand for
// itself: U+2028 and U+2029, which JavaScript reads as line breaks, and bytes
// that are not UTF-8. It is "" for all others.
func escapedRune(char rune, size int) string {
	switch {
	case char == utf8.RuneError && size == 1:
		return `\ufffd`
	case char == '\u2028':
		return `\u2028`
	case char == '\u2029':
		return `\u2029`
	}
	return ""
}
