package expression

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

func opNotEqual(b *Budget, x, y any) (any, error) {
	equal, err := equalValues(b, x, y)
	return !equal, err
}

func opEqual(b *Budget, x, y any) (any, error) { return equalValues(b, x, y) }

// equalValues compares two values. Lists and maps are compared in order, maps in the order of their keys, for one
// step per element and two per entry, so that a budget always ends at the same element. Texts, long numbers and
// long keys are charged by their length.
func equalValues(b *Budget, x, y any) (bool, error) {
	switch x := x.(type) {
	case nil:
		return y == nil, nil
	case bool:
		v, ok := y.(bool)
		return ok && x == v, nil
	case string:
		if v, ok := y.(string); ok {
			return equalTexts(b, x, v)
		}
	case int, float64, json.Number:
		if TypeName(y) == "number" {
			return equalNumbers(b, x, y)
		}
	case []any:
		if v, ok := y.([]any); ok {
			return equalLists(b, x, v)
		}
	case map[string]any:
		if v, ok := y.(map[string]any); ok {
			return equalMaps(b, x, v)
		}
	}
	return false, nil
}

func equalTexts(b *Budget, x, y string) (bool, error) {
	if len(x) != len(y) {
		return false, nil
	}
	if err := b.chargeRead(len(x)); err != nil {
		return false, err
	}
	return x == y, nil
}

func equalNumbers(b *Budget, x, y any) (bool, error) {
	if err := b.chargeNumbers(x, y); err != nil {
		return false, err
	}
	return CompareNumbers(x, y) == 0, nil
}

func equalLists(b *Budget, x, y []any) (bool, error) {
	if len(x) != len(y) {
		return false, nil
	}
	for i := range x {
		if err := b.chargeWork(1, 0); err != nil {
			return false, err
		}
		if equal, err := equalValues(b, x[i], y[i]); err != nil || !equal {
			return false, err
		}
	}
	return true, nil
}

func equalMaps(b *Budget, x, y map[string]any) (bool, error) {
	if len(x) != len(y) {
		return false, nil
	}
	if err := b.chargeWork(2*len(x), 0); err != nil {
		return false, err
	}
	if err := b.chargeKeys(x); err != nil {
		return false, err
	}
	for _, key := range slices.Sorted(maps.Keys(x)) {
		v, ok := y[key]
		if !ok {
			return false, nil
		}
		if equal, err := equalValues(b, x[key], v); err != nil || !equal {
			return false, err
		}
	}
	return true, nil
}

func opLess(b *Budget, x, y any) (any, error) {
	return compareOrdered(b, x, y, func(order int) bool { return order < 0 })
}

func opLessEq(b *Budget, x, y any) (any, error) {
	return compareOrdered(b, x, y, func(order int) bool { return order <= 0 })
}

func opGreater(b *Budget, x, y any) (any, error) {
	return compareOrdered(b, x, y, func(order int) bool { return order > 0 })
}

func opGreaterEq(b *Budget, x, y any) (any, error) {
	return compareOrdered(b, x, y, func(order int) bool { return order >= 0 })
}

// compareOrdered compares two numbers or two texts. The result is false if either value is nil.
func compareOrdered(b *Budget, x, y any, holds func(order int) bool) (any, error) {
	if x == nil || y == nil {
		return false, nil
	}
	s, isText := x.(string)
	t, bothText := y.(string)
	switch {
	case isText && bothText:
		if err := b.chargeRead(min(len(s), len(t))); err != nil {
			return nil, err
		}
		if err := orderError("the comparison", s, t); err != nil {
			return nil, err
		}
		return holds(strings.Compare(s, t)), nil
	case TypeName(x) == "number" && TypeName(y) == "number":
		if err := b.chargeNumbers(x, y); err != nil {
			return nil, err
		}
		return holds(CompareNumbers(x, y)), nil
	default:
		return nil, comparisonError(x, y)
	}
}

func comparisonError(x, y any) error {
	a, b := TypeName(x), TypeName(y)
	hint := "only two numbers or two strings have an order"
	if a == "string" && b == "number" || a == "number" && b == "string" {
		hint = "int(x) or float(x) makes a number of a string, string(x) a string of a number"
	}
	return fmt.Errorf("cannot compare %s with %s; %s", a, b, hint)
}

// opIn reports whether a list contains x, a map has the key x, or a text contains the text x. Nothing is in nil,
// and nil is only in a list that contains it.
func opIn(b *Budget, x, container any) (any, error) {
	switch v := container.(type) {
	case nil:
		return false, nil
	case []any:
		return inList(b, x, v)
	case map[string]any:
		key, ok := x.(string)
		if !ok {
			return false, nil
		}
		if err := b.chargeRead(len(key)); err != nil {
			return nil, err
		}
		_, ok = v[key]
		return ok, nil
	case string:
		part, ok := x.(string)
		if !ok {
			if x == nil {
				return false, nil
			}
			return nil, fmt.Errorf("cannot look for a %s in a string; string(x) makes a string", TypeName(x))
		}
		return strings.Contains(v, part), b.chargeRead(len(v) + len(part))
	default:
		return nil, fmt.Errorf("cannot look for a value in a %s; a list, a map or a string can hold one", TypeName(container))
	}
}

func inList(b *Budget, x any, list []any) (bool, error) {
	for _, element := range list {
		if err := b.chargeWork(1, 0); err != nil {
			return false, err
		}
		if equal, err := equalValues(b, x, element); err != nil || equal {
			return equal, err
		}
	}
	return false, nil
}

func opContains(b *Budget, container, x any) (any, error) { return opIn(b, x, container) }

func opStartsWith(b *Budget, x, prefix any) (any, error) {
	return hasAffix(b, "startsWith", x, prefix, strings.HasPrefix)
}

func opEndsWith(b *Budget, x, suffix any) (any, error) {
	return hasAffix(b, "endsWith", x, suffix, strings.HasSuffix)
}

func hasAffix(b *Budget, name string, x, part any, has func(s, part string) bool) (any, error) {
	if x == nil || part == nil {
		return false, nil
	}
	s, ok := x.(string)
	if !ok {
		return nil, fmt.Errorf("%s needs strings on both sides, not %s; string(x) makes one", name, describeValue(x))
	}
	p, ok := part.(string)
	if !ok {
		return nil, fmt.Errorf("%s needs strings on both sides, not %s; string(x) makes one", name, describeValue(part))
	}
	return has(s, p), b.chargeRead(min(len(s), len(p)))
}
