package expression

import (
	"fmt"
	"maps"
	"slices"

	"reprise/interpreter/lists"
)

// mapFunctions process entries in the order of their keys, and treat nil as the empty map.
var mapFunctions = []function{
	{
		name: "keys", min: 1, max: 1, signature: "keys(map)",
		doc:  "The keys of the map, sorted.",
		call: mapEntries("keys", 1, func(key string, _ any) any { return key }),
	},
	{
		name: "values", min: 1, max: 1, signature: "values(map)",
		doc:  "The values of the map in the order of their keys.",
		call: mapEntries("values", 1, func(_ string, v any) any { return v }),
	},
	{
		name: "toPairs", min: 1, max: 1, signature: "toPairs(map)",
		doc:  "The entries of the map as [key, value], sorted by key.",
		call: mapEntries("toPairs", 3, func(key string, v any) any { return []any{key, v} }),
	},
	{
		name: "fromPairs", min: 1, max: 1, signature: "fromPairs(pairs)",
		doc: "The map that a list of [key, value] describes. If a key comes twice, the last value stays.", call: callFromPairs,
	},
}

// mapEntries returns a function that makes a list from the results of take for each entry. items is the number of
// list elements to charge per entry.
func mapEntries(name string, items int, take func(key string, v any) any) func(*Budget, []any) (any, error) {
	return func(b *Budget, args []any) (any, error) {
		m, ok := args[0].(map[string]any)
		if !ok && args[0] != nil {
			return nil, argumentError(name, "a map", args[0])
		}
		if err := chargeSort(b, len(m)*items, 0); err != nil {
			return nil, err
		}
		if err := b.chargeKeys(m); err != nil {
			return nil, err
		}
		out := lists.Map(slices.Sorted(maps.Keys(m)), func(key string) any { return take(key, m[key]) })
		return out, nil
	}
}

func callFromPairs(b *Budget, args []any) (any, error) {
	list, err := opList(b, args[0], "fromPairs")
	if err != nil {
		return nil, err
	}
	if err := b.chargePairs(len(list)); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(list))
	for i, v := range list {
		entry, ok := v.([]any)
		if !ok || len(entry) != 2 {
			return nil, fmt.Errorf("fromPairs needs a list of [key, value], but the element at index %d is %s", i, describeValue(v))
		}
		key, ok := entry[0].(string)
		if !ok {
			return nil, fmt.Errorf("fromPairs needs strings as keys, but that of the element at index %d is %s; "+
				"string(x) makes one", i, describeValue(entry[0]))
		}
		if err := b.chargeRead(len(key)); err != nil {
			return nil, err
		}
		out[key] = entry[1]
	}
	return out, nil
}
