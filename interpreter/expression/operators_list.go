package expression

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"reprise/interpreter/lists"
)

// opList returns the list that the function fname processes. nil is the empty list.
func opList(_ *Budget, v any, fname string) ([]any, error) {
	switch v := v.(type) {
	case nil:
		return []any{}, nil
	case []any:
		return v, nil
	case map[string]any:
		return nil, fmt.Errorf("%s needs a list, not a map; keys(x), values(x) and toPairs(x) make one of a map", fname)
	default:
		return nil, argumentError(fname, "a list", v)
	}
}

// splitPair returns the two elements of [key, element].
func splitPair(v any) (key, element any) {
	list, _ := v.([]any)
	if len(list) != 2 {
		return nil, nil // cannot be: the lowering builds pairs
	}
	return list[0], list[1]
}

// opGroup computes groupBy from a list of [key, element]: a map from each rendered key to the list of its elements,
// in their original order.
func opGroup(b *Budget, pairs any) (any, error) {
	list, err := opList(b, pairs, "groupBy")
	if err != nil {
		return nil, err
	}
	if err := b.chargeList(len(list)); err != nil {
		return nil, err
	}
	out, types := map[string]any{}, map[string]string{}
	for _, p := range list {
		key, element := splitPair(p)
		name, err := textOf(b, shortestNumber(key))
		if err != nil {
			return nil, err
		}
		if err := b.chargeRead(len(name)); err != nil {
			return nil, err
		}
		group, _ := out[name].([]any)
		if group == nil {
			if err := b.chargePairs(1); err != nil {
				return nil, err
			}
			types[name] = TypeName(key)
		} else if types[name] != TypeName(key) {
			return nil, mixedGroup(name, types[name], TypeName(key))
		}
		out[name] = append(group, element)
	}
	return out, nil
}

// mixedGroup returns the error for two keys that differ and have the same text.
func mixedGroup(text, a, b string) error {
	hint := "string(.id)"
	if a == "nil" || b == "nil" {
		hint = `.id ?? "none"`
	}
	return fmt.Errorf("groupBy would put keys of two types, %s and %s, into one group, since both become the text %q; make them one type, such as %s",
		a, b, text, hint)
}

// opSortBy computes sortBy from a list of [key, element]. Elements with equal keys keep their order, and nil comes
// first. order is nil, "asc" or "desc".
func opSortBy(b *Budget, pairs, order any) (any, error) {
	list, err := opList(b, pairs, "sortBy")
	if err != nil {
		return nil, err
	}
	down, err := isDescending("sortBy", order)
	if err != nil {
		return nil, err
	}
	items := make([]item, len(list))
	for i, p := range list {
		items[i].key, items[i].element = splitPair(p)
	}
	return sortItems(b, "sortBy", items, down)
}

// item is an element with its sort key.
type item struct{ key, element any }

// isDescending returns whether the argument order of a sort is "desc".
func isDescending(name string, order any) (bool, error) {
	switch order {
	case nil, "asc":
		return false, nil
	case "desc":
		return true, nil
	default:
		return false, argumentError(name, `"asc" or "desc" as the order`, order)
	}
}

func sortItems(b *Budget, name string, items []item, down bool) (any, error) {
	direction := 1
	if down {
		direction = -1
	}
	text, err := checkSortable(name, items)
	if err != nil {
		return nil, err
	}
	if err := chargeSort(b, len(items), text); err != nil {
		return nil, err
	}
	slices.SortStableFunc(items, func(x, y item) int { return direction * compareKeys(x.key, y.key) })
	if err := misorderedKeys(name, items); err != nil {
		return nil, err
	}
	return lists.Map(items, func(one item) any { return one.element }), nil
}

// chargeSort charges for a stable sort of n keys with text bytes in all.
func chargeSort(b *Budget, n, text int) error {
	log := bits.Len(uint(n)) // a length is not negative
	if err := b.chargeWork(n*log/sortPerStep+text/textPerStep*log, 0); err != nil {
		return err
	}
	return b.chargeList(n)
}

// checkSortable checks that the keys can be ordered. It returns the total size of their texts and of the digits of
// long numbers.
func checkSortable(name string, items []item) (text int, err error) {
	var first any
	for _, it := range items {
		switch key := it.key.(type) {
		case nil:
			continue
		case []any, map[string]any:
			return 0, argumentError(name, "numbers, strings or booleans to sort by", key)
		case string:
			text += len(key)
		case json.Number:
			text += longLength(key)
		}
		if first == nil {
			first = it.key
		} else if TypeName(first) != TypeName(it.key) {
			return 0, fmt.Errorf("%s cannot compare %s with %s; the keys must be of one type",
				name, TypeName(first), TypeName(it.key))
		}
	}
	return text, nil
}

// compareKeys orders nil before everything else and false before true.
func compareKeys(x, y any) int {
	if x == nil || y == nil {
		return cmp.Compare(presentValue(x), presentValue(y))
	}
	switch a := x.(type) {
	case string:
		b, _ := y.(string)
		return strings.Compare(a, b)
	case bool:
		return cmp.Compare(truthNumber(a), truthNumber(y))
	default:
		return CompareNumbers(x, y)
	}
}

func presentValue(v any) int { return truthNumber(v != nil) }

func truthNumber(v any) int {
	if Truthy(v) {
		return 1
	}
	return 0
}

// opSum returns the sum of the numbers in a list; the sum of an empty list is 0.
func opSum(b *Budget, list any) (any, error) {
	elements, err := opList(b, list, "sum")
	if err != nil {
		return nil, err
	}
	if err := numbersOnly(b, "sum", elements); err != nil {
		return nil, err
	}
	var total any = 0
	for _, v := range elements {
		if total, err = opAdd(b, total, v); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// numbersOnly charges for reading a list, and refuses elements that are not numbers.
func numbersOnly(b *Budget, name string, list []any) error {
	if err := b.chargeWork(len(list)/numsPerStep+1, 0); err != nil {
		return err
	}
	for i, v := range list {
		if v == nil {
			return fmt.Errorf("%s needs numbers, but the element at index %d is nil; "+
				"give it a value: map(xs, # | default(0))", name, i)
		}
		if TypeName(v) != "number" {
			return fmt.Errorf("%s needs numbers, but the element at index %d is %s", name, i, describeValue(v))
		}
	}
	return nil
}
