package expression

import (
	"time"

	"reprise/interpreter/lists"
)

// TimeText is a time in expressions, nil for the zero time.
func TimeText(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// Values are the values of a list.
func Values(vs []any) []Value {
	return lists.Map(vs, Of)
}

// OrEmpty is a value, or an empty map for nil.
func OrEmpty(v any) any {
	if v == nil {
		return map[string]any{}
	}
	return v
}

// MapOf is a value that is a map, nil for any other.
func MapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// Member is the member of a map, nil where there is none.
func Member(v any, key string) any { return MapOf(v)[key] }
