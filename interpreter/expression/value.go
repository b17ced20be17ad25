package expression

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"reprise/interpreter/lists"
)

// Whole numbers are kept in int, which must have 64 bits. This line does not compile if it has fewer.
const _ = uint(math.MaxUint64)

// maxDepth is how deeply lists and maps may be nested. Decoding, copying and comparing are recursive, and Go ends a
// program whose stack overflows.
const maxDepth = 1000

var errDepth = fmt.Errorf("lists and maps are nested more than %d deep", maxDepth)

// Value carries a canonical value through JSON without changing it. Structs that Temporal stores use it instead of
// any, because decoding into any turns 1 into a float64 and loses digits of large numbers.
type Value struct{ Data any }

// Of wraps a canonical value.
func Of(v any) Value { return Value{Data: v} }

// MarshalJSON writes the value as Encode does.
func (v Value) MarshalJSON() ([]byte, error) { return Encode(v.Data) }

// UnmarshalJSON reads the value as Decode does.
func (v *Value) UnmarshalJSON(data []byte) error {
	decoded, err := Decode(data)
	if err != nil {
		return err
	}
	v.Data = decoded
	return nil
}

// IsZero reports whether the value is nil, for the JSON option omitzero.
func (v Value) IsZero() bool { return v.Data == nil }

// Canonical converts a Go value to the form that all values of the language have: nil, bool, int, float64, string
// in valid UTF-8, []any, map[string]any, and json.Number for numbers that int and float64 cannot hold. A canonical
// value is unchanged by Encode and Decode.
// Whole numbers are int, including 1.0 and 1e2. Whole numbers beyond 64 bits stay as they were written. Times
// become RFC 3339 text in UTC; invalid UTF-8 becomes U+FFFD, as in encoding/json. NaN, infinity, other types, and
// more than 1000 levels of nesting are errors. Lists and maps are copied.
func Canonical(v any) (any, error) { return canonicalAt(v, 0) }

func canonicalAt(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	switch v := v.(type) {
	case nil, bool:
		return v, nil
	case string:
		return validText(v), nil
	case []any:
		return canonicalList(v, depth)
	case map[string]any:
		return canonicalMap(v, depth)
	case []string:
		return canonicalList(v, depth)
	case map[string]string:
		return canonicalMap(v, depth)
	case []map[string]any:
		return canonicalList(v, depth)
	case Value:
		return canonicalAt(v.Data, depth)
	case json.RawMessage:
		return Decode(v)
	case time.Time:
		return timeText(v), nil
	default:
		return canonicalNumber(v)
	}
}

func canonicalList[T any](list []T, depth int) (any, error) {
	out := make([]any, len(list))
	for i, element := range list {
		v, err := canonicalAt(element, depth+1)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func canonicalMap[T any](m map[string]T, depth int) (any, error) {
	out := make(map[string]any, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		v, err := canonicalAt(m[key], depth+1)
		if err != nil {
			return nil, err
		}
		out[validText(key)] = v
	}
	return out, nil
}

// validText replaces each byte that is not UTF-8 by U+FFFD.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// Truthy reports whether a value counts as true: false, nil, 0, "", the empty list and the empty map are false,
// everything else is true.
func Truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	default:
		return true // a json.Number: zero would be an int
	}
}

// Text renders a value as in mixed text: nil is empty, numbers are digits, text is itself, lists and maps are JSON.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case json.Number:
		return string(v)
	default:
		data, err := Encode(v)
		if err != nil {
			return fmt.Sprint(v) // not canonical
		}
		return string(data)
	}
}

// TypeName returns the type of a canonical value as messages and type() name it: nil, boolean, number, string,
// list, map.
func TypeName(v any) string {
	switch v.(type) {
	case nil:
		return "nil"
	case bool:
		return "boolean"
	case int, float64, json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "list"
	case map[string]any:
		return "map"
	default:
		return fmt.Sprintf("%T", v) // not canonical
	}
}

// TimeText returns a time as expressions see it, or nil for the zero time.
func TimeText(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// Values wraps each value of a list.
func Values(vs []any) []Value {
	return lists.Map(vs, Of)
}

// MapOrEmpty returns v, or an empty map if v is nil.
func MapOrEmpty(v any) any {
	if v == nil {
		return map[string]any{}
	}
	return v
}

// MapOf returns v if it is a map, and nil if not.
func MapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// MapMember returns the member of a map, or nil if there is none.
func MapMember(v any, key string) any { return MapOf(v)[key] }

// MergeMaps merges overlay into base and returns the result. Maps are merged entry by entry at every depth; any other
// value in overlay, including nil, replaces the value in base. If overlay itself is nil, base is returned. Neither
// argument is changed; the result shares with them the parts that were not merged.
func MergeMaps(base, overlay any) any {
	if overlay == nil {
		return base
	}
	return mergeValues(base, overlay)
}

func mergeValues(base, overlay any) any {
	below, ok := base.(map[string]any)
	if !ok {
		return overlay
	}
	above, ok := overlay.(map[string]any)
	if !ok {
		return overlay
	}
	out := maps.Clone(below)
	if out == nil {
		out = map[string]any{}
	}
	//workflowcheck:ignore the result is a map again, so the order never shows
	for key, v := range above { // any order: each entry is merged by itself
		if old, ok := out[key]; ok {
			v = mergeValues(old, v)
		}
		out[key] = v
	}
	return out
}
