package expression

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// weigher adds up what a value is as JSON without making it. It stops beyond
// its bounds, so that a value that holds itself many times over cannot keep it
// busy. The sums do not depend on the order of maps.
type weigher struct {
	steps, maxSteps int // 1 per element, 2 per entry of a map
	size, maxSize   int // bytes of JSON; an upper bound for floats
}

// walk reports whether the value is within the bounds.
func (w *weigher) walk(v any, depth int) bool {
	switch v := v.(type) {
	case []any:
		w.steps += len(v)
		w.size += max(2, len(v)+1) // brackets and commas
		if depth >= maxDepth || !w.within() {
			return false
		}
		for _, element := range v {
			if !w.walk(element, depth+1) {
				return false
			}
		}
	case map[string]any:
		w.steps += 2 * len(v)
		w.size += max(2, 2*len(v)+1)
		if depth >= maxDepth || !w.within() {
			return false
		}
		for key, element := range v { // any order: only sums are kept
			w.size += quotedSize(key)
			if !w.walk(element, depth+1) {
				return false
			}
		}
	default:
		w.size += scalarSize(v)
	}
	return w.within()
}

func (w *weigher) within() bool { return w.steps <= w.maxSteps && w.size <= w.maxSize }

func scalarSize(v any) int {
	switch v := v.(type) {
	case string:
		return quotedSize(v)
	case json.Number:
		return len(v)
	case int:
		return len(strconv.AppendInt(make([]byte, 0, 20), int64(v), 10))
	case float64:
		return 24
	default:
		return 5 // null, true, false
	}
}

// quotedSize is the length of a text in JSON with its quotes and escapes.
func quotedSize(s string) int {
	size := len(s) + 2
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\f':
			size++
		case c < ' ':
			size += 5
		case c == 0xE2 && i+2 < len(s) && s[i+1] == 0x80 && s[i+2]&^1 == 0xA8:
			size += 3 // U+2028 and U+2029 are escaped
		}
	}
	if !utf8.ValidString(s) {
		size *= 3
	}
	return size
}

// sizeOf gives the length of a value as JSON. ok is false if it is more than
// limit or nested deeper than JSON may be read back.
func sizeOf(v any, limit int) (size int, ok bool) {
	w := weigher{maxSteps: limit, maxSize: limit}
	ok = w.walk(v, 0)
	return w.size, ok
}

// weigh charges for writing a value as JSON before it is done.
func weigh(b *Budget, v any) error {
	w := weigher{maxSteps: b.limits.Steps - b.steps, maxSize: b.limits.Bytes - b.bytes}
	if !w.walk(v, 0) {
		// Which of the bounds ends the walk depends on the order of maps;
		// the error and the budget do not.
		b.steps = b.limits.Steps + 1
		return errTooLarge
	}
	if err := b.charge(w.steps, 0); err != nil {
		return err
	}
	return b.text(w.size)
}

// Size gives how many bytes a canonical value takes in what encoding/json writes
// of a struct that holds it, where <, > and & are escaped too. It makes nothing
// and costs a fraction of writing. ok is false for what is not canonical.
func Size(v any) (bytes int, ok bool) { return keptSize(v, 0) }

func keptSize(v any, depth int) (size int, ok bool) {
	if depth > maxDepth {
		return 0, false
	}
	switch v := v.(type) {
	case nil:
		return len("null"), true
	case bool:
		return len(strconv.FormatBool(v)), true
	case int:
		return scalarSize(v), true
	case json.Number:
		return len(v), isNumber(string(v))
	case float64:
		var digits [24]byte
		return len(jsontext.AppendFloat(digits[:0], v, 64)), isFinite(v)
	case string:
		return keptTextSize(v), true
	case []any:
		return keptListSize(v, depth)
	case map[string]any:
		return keptMapSize(v, depth)
	default:
		return 0, false
	}
}

func keptListSize(list []any, depth int) (size int, ok bool) {
	if list == nil {
		return len("null"), true
	}
	size = max(2, len(list)+1) // brackets and commas
	for _, element := range list {
		n, ok := keptSize(element, depth+1)
		if !ok {
			return 0, false
		}
		size += n
	}
	return size, true
}

func keptMapSize(m map[string]any, depth int) (size int, ok bool) {
	if m == nil {
		return len("null"), true
	}
	size = max(2, 2*len(m)+1)
	for key, element := range m { // any order: only the sum is kept
		n, ok := keptSize(element, depth+1)
		if !ok {
			return 0, false
		}
		size += keptTextSize(key) + n
	}
	return size, true
}

// keptTextSize is the length of a text with its quotes and escapes.
func keptTextSize(s string) int {
	size := len(s) + 2
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			size += int(keptEscapes[c])
			i++
			continue
		}
		char, bytes := utf8.DecodeRuneInString(s[i:])
		switch {
		case char == utf8.RuneError && bytes == 1:
			size += len(`\ufffd`) - bytes
		case char == '\u2028' || char == '\u2029': // JavaScript reads them as line breaks
			size += len(`\u2028`) - bytes
		}
		i += bytes
	}
	return size
}

// keptEscapes is how many bytes an ASCII character takes beside its own.
var keptEscapes = func() (extra [utf8.RuneSelf]uint8) {
	for c := range byte(' ') {
		extra[c] = 5
	}
	for _, c := range []byte("\"\\\b\f\n\r\t") {
		extra[c] = 1
	}
	extra['<'], extra['>'], extra['&'] = 5, 5, 5
	return extra
}()
