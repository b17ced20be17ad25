package expression

import (
	"fmt"
	"maps"
	"slices"

	"reprise/interpreter/lists"
)

// rowFunctions change rows and the values nested in them. They treat a nil map as the empty map.
var rowFunctions = []function{
	{
		name: "omit", min: 2, max: 2, signature: "omit(map, names)",
		doc: "The map without the fields of these names, a list or one text.", call: callOmit,
	},
	{
		name: "omit_deep", min: 2, max: 2, signature: "omit_deep(x, names)",
		doc: "x without the fields of these names, in maps and lists at every depth.", call: callOmitDeep,
	},
	{
		name: "pick", min: 2, max: 2, signature: "pick(map, names)",
		doc: "The fields of the map that have one of these names, a list or one text. A name that the map lacks is left out.", call: callPick,
	},
	{
		name: "merge", min: 1, max: -1, signature: "merge(map, …)",
		doc: "The fields of all maps in one map. If a field comes twice, the last value stays, nil too; nested maps are not merged.", call: callMerge,
	},
	{
		name: "rename", min: 2, max: 2, signature: "rename(map, names)",
		doc: "The map with other names for its fields, as in {old: \"new\"}. A field that the map lacks is skipped. Two fields of one name are an error.", call: callRename,
	},
	{
		name: "flatten_fields", min: 1, max: 2, signature: "flatten_fields(map[, separator])",
		doc: "The map with the fields of nested maps in their place, their names joined by the separator, _ by default. " +
			"Lists and empty maps stay. Two fields of one name are an error.",
		call: callFlattenFields,
	},
	{
		name: "pluck", min: 2, max: 2, signature: "pluck(x, path)",
		doc: "A list of the values at a path such as \"items.*.id\", in which * is each element of a list, or each value of a map. " +
			"What is missing is left out.",
		call: callPluck, written: map[int]func(string) error{1: patternProblem},
	},
}

// mapOf returns an argument as a map. nil is the empty map; other values are an error.
func mapOf(name string, v any) (map[string]any, error) {
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, argumentError(name, "a map", v)
	}
	return m, nil
}

// chargeCopy charges for a map with the entries of m, including its long keys.
func (b *Budget) chargeCopy(m map[string]any) error {
	text := 0
	for key := range m { // any order: only the sum is kept
		text += longLength(key)
	}
	if err := b.chargeRead(text); err != nil {
		return err
	}
	return b.chargePairs(len(m))
}

// fieldNames returns the set of field names in an argument, which is a list of texts or one text.
func fieldNames(b *Budget, name string, v any) (map[string]bool, error) {
	list, isList := v.([]any)
	if text, isText := v.(string); isText {
		list, isList = []any{text}, true
	}
	if !isList {
		return nil, argumentError(name, "a list of names", v)
	}
	if err := b.chargePairs(len(list)); err != nil {
		return nil, err
	}
	names := make(map[string]bool, len(list))
	for i, one := range list {
		text, ok := one.(string)
		if !ok {
			return nil, fmt.Errorf("%s needs texts as names, but the element at index %d is %s", name, i, describeValue(one))
		}
		if err := b.chargeRead(longLength(text)); err != nil {
			return nil, err
		}
		names[text] = true
	}
	return names, nil
}

func callOmit(b *Budget, args []any) (any, error) {
	m, err := mapOf("omit", args[0])
	if err != nil {
		return nil, err
	}
	names, err := fieldNames(b, "omit", args[1])
	if err != nil {
		return nil, err
	}
	if err := b.chargeCopy(m); err != nil {
		return nil, err
	}
	out := make(map[string]any, len(m))
	for key, v := range m { // any order: the result is a map
		if !names[key] {
			out[key] = v
		}
	}
	return out, nil
}

func callOmitDeep(b *Budget, args []any) (any, error) {
	names, err := fieldNames(b, "omit_deep", args[1])
	if err != nil {
		return nil, err
	}
	return withoutFields(b, args[0], names, 0)
}

// withoutFields returns a value without the fields of these names, at any depth.
func withoutFields(b *Budget, v any, names map[string]bool, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	switch v := v.(type) {
	case []any:
		if err := b.chargeWork(len(v), len(v)*bytesPerItem); err != nil {
			return nil, err
		}
		out := make([]any, len(v))
		for i, element := range v {
			var err error
			if out[i], err = withoutFields(b, element, names, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		if err := b.chargeCopy(v); err != nil {
			return nil, err
		}
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) { // sorted, so that the budget always ends at the same field
			if names[key] {
				continue
			}
			var err error
			if out[key], err = withoutFields(b, v[key], names, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

func callPick(b *Budget, args []any) (any, error) {
	m, err := mapOf("pick", args[0])
	if err != nil {
		return nil, err
	}
	names, err := fieldNames(b, "pick", args[1])
	if err != nil {
		return nil, err
	}
	if err := b.chargePairs(min(len(names), len(m))); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for key := range names { // any order: the result is a map
		if v, has := m[key]; has {
			out[key] = v
		}
	}
	return out, nil
}

func callMerge(b *Budget, args []any) (any, error) {
	out := map[string]any{}
	for _, arg := range args {
		m, err := mapOf("merge", arg)
		if err != nil {
			return nil, err
		}
		if err := b.chargeCopy(m); err != nil {
			return nil, err
		}
		maps.Copy(out, m)
	}
	return out, nil
}

func callRename(b *Budget, args []any) (any, error) {
	m, err := mapOf("rename", args[0])
	if err != nil {
		return nil, err
	}
	names, isMap := args[1].(map[string]any)
	if !isMap {
		return nil, argumentError("rename", `a map of old and new names, such as {id: "user_id"}`, args[1])
	}
	old, err := b.sortedKeys(names)
	if err != nil {
		return nil, err
	}
	for _, key := range old {
		text, ok := names[key].(string)
		if !ok {
			return nil, fmt.Errorf("rename needs texts as new names, but that of %q is %s", shortText(key), describeValue(names[key]))
		}
		if err := b.chargeRead(longLength(text)); err != nil {
			return nil, err
		}
	}
	keys, err := b.sortedKeys(m)
	if err != nil {
		return nil, err
	}
	fields := newFields(b, "rename", len(keys))
	for _, key := range keys {
		name := key
		if other, ok := names[key].(string); ok {
			name = other
		}
		if err := fields.addField(name, key, m[key]); err != nil {
			return nil, err
		}
	}
	return fields.made, nil
}

// sortedKeys returns the sorted keys of a map and charges for sorting them.
func (b *Budget) sortedKeys(m map[string]any) ([]string, error) {
	if err := chargeSort(b, len(m), 0); err != nil {
		return nil, err
	}
	if err := b.chargeKeys(m); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(m)), nil
}

// fields is a map that a function builds with new field names. Two fields of the same name are an error.
type fields struct {
	budget *Budget
	name   string
	made   map[string]any
	from   map[string]string
}

func newFields(b *Budget, name string, n int) *fields {
	return &fields{budget: b, name: name, made: make(map[string]any, min(n, 1000)), from: make(map[string]string, min(n, 1000))}
}

// addField sets a field. from is the original name of the field, for the error.
func (f *fields) addField(name, from string, v any) error {
	if err := f.budget.chargeRead(2 * longLength(name)); err != nil {
		return err
	}
	if err := f.budget.chargePairs(2); err != nil {
		return err
	}
	if other, taken := f.from[name]; taken {
		return fmt.Errorf("%s would give two fields the name %q: %q and %q; leave one of them out with omit first",
			f.name, shortText(name), shortText(other), shortText(from))
	}
	f.made[name], f.from[name] = v, from
	return nil
}

func callFlattenFields(b *Budget, args []any) (any, error) {
	const name = "flatten_fields"
	m, err := mapOf(name, args[0])
	if err != nil {
		return nil, err
	}
	separator := "_"
	if len(args) > 1 {
		text, ok := args[1].(string)
		if !ok {
			return nil, argumentError(name, "a text as the separator", args[1])
		}
		separator = text
	}
	out := newFields(b, name, len(m))
	if err := flattenInto(b, out, m, flatPrefix{separator: separator}); err != nil {
		return nil, err
	}
	return out.made, nil
}

// flatPrefix is the prefix for the field names of a nested map.
type flatPrefix struct {
	name, path, separator string
	depth                 int
}

func flattenInto(b *Budget, out *fields, m map[string]any, prefix flatPrefix) error {
	if prefix.depth > maxDepth {
		return errDepth
	}
	keys, err := b.sortedKeys(m)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := b.chargeText(len(prefix.name) + len(prefix.path) + 2*len(key) + 1); err != nil {
			return err
		}
		name, path := prefix.name+key, prefix.path+key
		nested, isMap := m[key].(map[string]any)
		if !isMap || len(nested) == 0 {
			if err := out.addField(name, path, m[key]); err != nil {
				return err
			}
			continue
		}
		if err := b.chargeText(len(prefix.separator)); err != nil {
			return err
		}
		inner := flatPrefix{name: name + prefix.separator, path: path + ".", separator: prefix.separator, depth: prefix.depth + 1}
		if err := flattenInto(b, out, nested, inner); err != nil {
			return err
		}
	}
	return nil
}

func patternProblem(path string) error {
	_, err := ParsePattern(path)
	return err
}

func callPluck(b *Budget, args []any) (any, error) {
	path, ok := args[1].(string)
	if !ok {
		return nil, argumentError("pluck", `a path such as "items.*.id"`, args[1])
	}
	if err := b.chargeWork(len(path)/indexPerStep+1, len(path)); err != nil {
		return nil, err
	}
	keys, err := ParsePattern(path)
	if err != nil {
		return nil, fmt.Errorf("pluck: %w", err)
	}
	out := []any{}
	err = pluckValues(b, args[0], keys, func(v any) error {
		out = append(out, v)
		return b.chargeWork(1, bytesPerItem)
	})
	return out, err
}

// pluckValues calls give with each value that the keys of a pattern lead to.
func pluckValues(b *Budget, v any, keys []any, give func(v any) error) error {
	for i, key := range keys {
		if err := b.chargeWork(1, 0); err != nil {
			return err
		}
		if _, all := key.(AllOf); !all {
			next, ok := pathStep(v, key)
			if !ok {
				return nil
			}
			v = next
			continue
		}
		elements, err := elementsOf(b, v)
		if err != nil {
			return err
		}
		for _, element := range elements {
			if err := pluckValues(b, element, keys[i+1:], give); err != nil {
				return err
			}
		}
		return nil
	}
	return give(v)
}

// elementsOf returns the elements of a list, or the values of a map in the order of their keys. Other values have
// none.
func elementsOf(b *Budget, v any) ([]any, error) {
	switch v := v.(type) {
	case []any:
		return v, nil
	case map[string]any:
		keys, err := b.sortedKeys(v)
		return lists.Map(keys, func(key string) any { return v[key] }), err
	}
	return nil, nil
}
