package expression

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Encode writes a canonical value as compact JSON with sorted keys and without HTML escapes, byte for byte as
// encoding/json does. A number that is not finite is an error.
func Encode(v any) ([]byte, error) {
	scratch, _ := buffers.Get().(*buffer)
	out, ok := scratch.appendValue(scratch.bytes[:0], v, 0)
	if !ok {
		return encodeWithReasons(v)
	}
	if cap(out) > reusedBytes {
		return out, nil
	}
	defer scratch.releaseMemory(out)
	return bytes.Clone(out), nil
}

// EncodedSize returns the size of the value as encoding/json writes it, with '<', '>' and '&' escaped.
func (v Value) EncodedSize() (size int, err error) {
	scratch, _ := buffers.Get().(*buffer)
	out, ok := scratch.appendValue(scratch.bytes[:0], v.Data, 0)
	if !ok {
		if out, err = encodeWithReasons(v.Data); err != nil {
			return 0, err
		}
	}
	const escape = len(`\u003c`)
	size = len(out)
	for _, b := range out {
		if b == '<' || b == '>' || b == '&' {
			size += escape - 1
		}
	}
	scratch.releaseMemory(out)
	return size, nil
}

// buffers are reused, so that encoding allocates no more than the result. Large buffers are not kept.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

const (
	reusedBytes = 1 << 20
	reusedKeys  = 1000
)

// buffer is the memory that is used to encode a value.
type buffer struct {
	bytes []byte
	// keys holds the sorted keys of the maps that are being written, the innermost map last.
	keys []string
}

// releaseMemory returns the buffer, with the memory of the written bytes, to the pool.
func (b *buffer) releaseMemory(out []byte) {
	if cap(out) > reusedBytes {
		return
	}
	if cap(b.keys) > reusedKeys {
		b.keys = nil
	}
	clear(b.keys[:cap(b.keys)]) // otherwise the texts that the keys are parts of would stay in memory
	b.bytes, b.keys = out, b.keys[:0]
	buffers.Put(b)
}

// encodeWithReasons encodes with encoding/json, which accepts more than canonical values and explains its errors,
// but is several times slower than Encode.
func encodeWithReasons(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// appendValue writes a value. It returns false for a value that is not canonical.
func (b *buffer) appendValue(out []byte, v any, depth int) ([]byte, bool) {
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
		return jsontext.AppendFloat(out, v, 64), !math.IsNaN(v) && !math.IsInf(v, 0)
	case string:
		return appendText(out, v)
	case json.Number:
		return append(out, v...), isNumber(string(v))
	case []any:
		return b.appendList(out, v, depth)
	case map[string]any:
		return b.appendMap(out, v, len(b.keys), depth)
	default:
		return out, false
	}
}

func (b *buffer) appendList(out []byte, list []any, depth int) ([]byte, bool) {
	if list == nil {
		return append(out, "null"...), true
	}
	out = append(out, '[')
	first := len(b.keys)
	for i, element := range list {
		if i > 0 {
			out = append(out, ',')
		}
		var ok bool
		if row, isMap := element.(map[string]any); isMap {
			out, ok = b.appendMap(out, row, first, depth+1)
		} else {
			out, ok = b.appendValue(out, element, depth+1)
		}
		if !ok {
			return out, false
		}
	}
	b.keys = b.keys[:first]
	return append(out, ']'), true
}

// appendMap writes a map and leaves its sorted keys in b.keys[first:]. On entry these may be the keys of the
// previous map of the same list: rows usually have the same keys, which then need not be sorted again.
func (b *buffer) appendMap(out []byte, m map[string]any, first, depth int) ([]byte, bool) {
	if depth > maxDepth {
		return out, false
	}
	if m == nil {
		return append(out, "null"...), true
	}
	if len(b.keys)-first == len(m) {
		if written, found, ok := b.appendMembers(out, m, first, depth); found {
			return written, ok
		}
	}
	b.keys = b.keys[:first]
	//workflowcheck:ignore the keys are sorted before anyone sees them
	for key := range m { // any order: they are sorted
		b.keys = append(b.keys, key)
	}
	slices.Sort(b.keys[first:])
	out, _, ok := b.appendMembers(out, m, first, depth)
	return out, ok
}

// appendMembers writes a map with the keys b.keys[first:]. found is false if the map lacks one of them.
func (b *buffer) appendMembers(out []byte, m map[string]any, first, depth int) (written []byte, found, ok bool) {
	out = append(out, '{')
	behind := len(b.keys)
	for i := first; i < behind; i++ {
		value, has := m[b.keys[i]]
		if !has {
			return out, false, false
		}
		if i > first {
			out = append(out, ',')
		}
		if out, ok = appendText(out, b.keys[i]); !ok {
			return out, true, false
		}
		out, ok = b.appendValue(append(out, ':'), value, depth+1)
		b.keys = b.keys[:behind]
		if !ok {
			return out, true, false
		}
	}
	return append(out, '}'), true, true
}

// appendText writes a quoted text. It returns false for a text that is not UTF-8.
func appendText(out []byte, s string) ([]byte, bool) {
	if isSimple(s) {
		return append(append(append(out, '"'), s...), '"'), true
	}
	start := len(out)
	out, err := jsontext.AppendQuote(out, s)
	if strings.IndexByte(s, lineBreak[0]) >= 0 && (strings.Contains(s, lineBreak) || strings.Contains(s, paragraph)) {
		out = append(out[:start], forJavaScript.Replace(string(out[start:]))...)
	}
	return out, err == nil
}

// isSimple reports whether a text is ASCII that needs no escapes.
func isSimple(s string) bool {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b > '~' || b == '"' || b == '\\' {
			return false
		}
	}
	return true
}

// The characters that JavaScript reads as line breaks are escaped, as encoding/json does.
const lineBreak, paragraph = "\u2028", "\u2029"

var forJavaScript = strings.NewReplacer(lineBreak, `\u2028`, paragraph, `\u2029`)

// ShortDigest returns a short digest of values, for comparisons within one call.
func ShortDigest(vs ...any) string { return Digest(vs...)[:16] }

// Digest returns a stable digest of values as hexadecimal text.
func Digest(vs ...any) string { return hex.EncodeToString(DigestBytes(vs...)) }

// clearID is the number of bytes of a long ID that stay readable. Temporal accepts IDs of at most 1,000 bytes.
const clearID = 900

// BoundedID shortens a workflow ID to a length that Temporal accepts. Different IDs stay different.
func BoundedID(id string) string {
	if len(id) <= clearID {
		return id
	}
	digest := sha256.Sum256([]byte(id))
	return id[:clearID] + "~" + hex.EncodeToString(digest[:16])
}

// DigestBytes returns the digest of values in bytes.
func DigestBytes(vs ...any) []byte {
	digest := SumWith(nil, vs...)
	return digest[:]
}

// SumWith returns the digest of values followed by the bytes after. It allocates nothing.
func SumWith(after []byte, vs ...any) [sha256.Size]byte {
	scratch, _ := buffers.Get().(*buffer)
	out := scratch.bytes[:0]
	for _, v := range vs {
		before := len(out)
		var ok bool
		if out, ok = scratch.appendValue(out, v, 0); !ok {
			scratch.keys = scratch.keys[:0]
			out = appendAny(out[:before], v)
		}
		out = withLength(out, before)
	}
	out = append(out, after...)
	digest := sha256.Sum256(out)
	scratch.releaseMemory(out)
	return digest
}

// appendAny writes a value that is not canonical.
func appendAny(out []byte, v any) []byte {
	encoded, err := encodeWithReasons(v)
	if err != nil {
		return fmt.Append(out, v)
	}
	return append(out, encoded...)
}

// withLength inserts the length of the bytes after offset before, in front of them.
func withLength(out []byte, before int) []byte {
	var digits [len("9223372036854775807:")]byte
	prefix := append(strconv.AppendInt(digits[:0], int64(len(out)-before), 10), ':')
	return slices.Insert(out, before, prefix...)
}
