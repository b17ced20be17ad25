package expression

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
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
