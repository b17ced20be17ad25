package expression

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Encode writes a canonical value as compact JSON with sorted keys and without
// HTML escapes, byte for byte as encoding/json does. A number that is not finite
// is an error.
func Encode(v any) ([]byte, error) {
	w, _ := writers.Get().(*writer)
	w.out.Reset()
	w.encoder.Reset(&w.out, jsontext.AllowDuplicateNames(true), jsontext.EscapeForJS(true))
	if !w.value(v) {
		return encodeWithReasons(v)
	}
	out := bytes.TrimSuffix(w.out.Bytes(), []byte("\n"))
	if cap(out) > keptBuffer {
		return out, nil
	}
	defer writers.Put(w)
	return bytes.Clone(out), nil
}

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

// writer writes canonical values. Its methods give false for what is not.
type writer struct {
	encoder *jsontext.Encoder
	out     bytes.Buffer
}

// writers are used again, so that what is written needs no more memory than its
// size. Large ones are given away.
var writers = sync.Pool{New: func() any { return &writer{encoder: new(jsontext.Encoder)} }}

const keptBuffer = 1 << 20

func (w *writer) value(v any) bool {
	if w.encoder.StackDepth() > maxDepth {
		return false
	}
	switch v := v.(type) {
	case nil:
		return w.token(jsontext.Null)
	case bool:
		return w.token(jsontext.Bool(v))
	case int:
		return w.token(jsontext.Int(int64(v)))
	case float64:
		return isFinite(v) && w.token(jsontext.Float(v))
	case string:
		return w.token(jsontext.String(v))
	case json.Number:
		return isNumber(string(v)) && w.encoder.WriteValue(jsontext.Value(v)) == nil
	case []any:
		return w.list(v)
	case map[string]any:
		return w.object(v)
	default:
		return false
	}
}

func (w *writer) token(token jsontext.Token) bool { return w.encoder.WriteToken(token) == nil }

func (w *writer) list(list []any) bool {
	if list == nil {
		return w.token(jsontext.Null)
	}
	ok := w.token(jsontext.BeginArray)
	for _, element := range list {
		if !ok {
			return false
		}
		ok = w.value(element)
	}
	return ok && w.token(jsontext.EndArray)
}

func (w *writer) object(m map[string]any) bool {
	if m == nil {
		return w.token(jsontext.Null)
	}
	const usual = 16 // as many keys need no memory of their own
	keys := make([]string, 0, usual)
	for key := range m { // any order: they are sorted
		keys = append(keys, key)
	}
	slices.Sort(keys)
	ok := w.token(jsontext.BeginObject)
	for _, key := range keys {
		if !ok {
			return false
		}
		ok = w.token(jsontext.String(key)) && w.value(m[key])
	}
	return ok && w.token(jsontext.EndObject)
}

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
