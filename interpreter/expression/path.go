package expression

import (
	"fmt"
	"strconv"
	"strings"
)

// ValueAtPath returns the value at a path such as data.items[0].id. ok is false if the path does not exist, and true if
// its value is nil. Negative indexes count from the end of a list. The error is that of ParsePath.
func ValueAtPath(v any, path string) (found any, ok bool, err error) {
	keys, err := ParsePath(path)
	if err != nil {
		return nil, false, err
	}
	found, ok = FollowKeys(v, keys)
	return found, ok, nil
}

// FollowKeys follows keys, such as the path of a Ref, from v. ok is false if a member is missing.
func FollowKeys(v any, keys []any) (found any, ok bool) {
	for _, key := range keys {
		if v, ok = pathStep(v, key); !ok {
			return nil, false
		}
	}
	return v, true
}

func pathStep(v, key any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		found, ok := v[Text(key)]
		return found, ok
	case []any:
		i, ok := key.(int)
		if i < 0 {
			i += len(v)
		}
		if !ok || i < 0 || i >= len(v) {
			return nil, false
		}
		return v[i], true
	default:
		return nil, false
	}
}

// ParsePath splits a path into its keys: names are strings, whole numbers are ints. Names are separated by dots,
// [0] is an index, and ["any text"] is a name with other characters.
func ParsePath(path string) ([]any, error) {
	keys, err := parseKeys(path, false)
	if err != nil {
		return nil, fmt.Errorf("%q is not a path such as data.items or data[0].id: %w", path, err)
	}
	return keys, nil
}

func parseKeys(path string, pattern bool) (keys []any, err error) {
	rest := path
	for rest != "" || len(keys) == 0 {
		key, behind, err := pathKey(rest, len(keys) == 0, pattern)
		if err != nil {
			return nil, err
		}
		keys, rest = append(keys, key), behind
	}
	return keys, nil
}

// AllOf is the key in a pattern that matches all elements of a list, or all values of a map in the order of their
// keys.
type AllOf struct{}

// ParsePattern is ParsePath for paths in which .* and [*] match all elements; the key is then AllOf. ["*"] is the
// member with that name.
func ParsePattern(path string) ([]any, error) {
	keys, err := parseKeys(path, true)
	if err != nil {
		return nil, fmt.Errorf("%q is not a path such as data.items or items[*].node: %w", path, err)
	}
	return keys, nil
}

// pathKey splits the first key off a path.
func pathKey(path string, first, pattern bool) (key any, rest string, err error) {
	if rest, all := strings.CutPrefix(path, "[*]"); all && pattern {
		return AllOf{}, rest, nil
	}
	if strings.HasPrefix(path, "[") {
		return pathIndex(path)
	}
	if !first {
		var dot bool
		if path, dot = strings.CutPrefix(path, "."); !dot {
			return nil, "", fmt.Errorf("a dot or [ is missing before %q", path)
		}
	}
	end := strings.IndexAny(path, ".[] \t\r\n\"'{}")
	if end < 0 {
		end = len(path)
	}
	if end == 0 {
		return nil, "", fmt.Errorf("a name is missing before %q", path)
	}
	name, rest := path[:end], path[end:]
	if rest != "" && rest[0] != '.' && rest[0] != '[' {
		return nil, "", fmt.Errorf("%q is allowed only in brackets and quotes", rest[:1])
	}
	if pattern && name == "*" {
		return AllOf{}, rest, nil
	}
	if i, err := strconv.Atoi(name); err == nil && strconv.Itoa(i) == name {
		return i, rest, nil
	}
	return name, rest, nil
}

func pathIndex(path string) (key any, rest string, err error) {
	if len(path) > 1 && (path[1] == '"' || path[1] == '\'') {
		end := strings.Index(path[2:], path[1:2]+"]")
		if end < 0 {
			return nil, "", fmt.Errorf("%q is not closed", path)
		}
		return path[2 : 2+end], path[2+end+2:], nil
	}
	inner, rest, ok := strings.Cut(path[1:], "]")
	if !ok {
		return nil, "", fmt.Errorf("%q is not closed", path)
	}
	i, err := strconv.Atoi(inner)
	if err != nil {
		return nil, "", fmt.Errorf("%q is neither an index nor a name in quotes", inner)
	}
	return i, rest, nil
}
