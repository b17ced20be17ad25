package expression

import (
	"unicode/utf8"

	"reprise/interpreter/lists"
)

// listFunctions treat nil as the empty list.
var listFunctions = []function{
	{
		name: "first", min: 1, max: 1, signature: "first(xs)",
		doc: "The first element or character, or nil.", call: atEnd("first", 0),
	},
	{
		name: "last", min: 1, max: 1, signature: "last(xs)",
		doc: "The last element or character, or nil.", call: atEnd("last", -1),
	},
	{
		name: "take", min: 2, max: 2, signature: "take(xs, n)",
		doc: "The first n elements.", call: callTake,
	},
	{
		name: "reverse", min: 1, max: 1, signature: "reverse(xs)",
		doc: "The elements or characters from the last to the first.", call: callReverse,
	},
	{
		name: "uniq", min: 1, max: 1, signature: "uniq(xs)",
		doc: "The elements without duplicates; the first of each stays.", call: callUniq,
	},
	{
		name: "concat", min: 1, max: -1, signature: "concat(xs, …)",
		doc: "The elements of all lists in one list.", call: callConcat,
	},
	{
		name: "flatten", min: 1, max: 1, signature: "flatten(xs)",
		doc: "The elements, with nested lists replaced by their elements at every depth.", call: callFlatten,
	},
	{
		name: "chunk", min: 2, max: 2, signature: "chunk(xs, n)",
		doc: "The elements in lists of n; the last list has what is left.", call: callChunk,
	},
	{
		name: "sort", min: 1, max: 2, signature: `sort(xs[, "desc"])`,
		doc: "The elements in ascending order: numbers, strings or booleans, nil first. Equal elements keep their order.", call: callSort,
	},
}

func atEnd(name string, index int) func(*Budget, []any) (any, error) {
	return func(_ *Budget, args []any) (any, error) {
		if s, ok := args[0].(string); ok { // without a walk over the text
			return endCharacter(s, index), nil
		}
		list, err := opList(nil, args[0], name)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		if index < 0 {
			return list[len(list)-1], nil
		}
		return list[0], nil
	}
}

func endCharacter(s string, index int) any {
	if s == "" {
		return nil
	}
	if index < 0 {
		_, size := utf8.DecodeLastRuneInString(s)
		return s[len(s)-size:]
	}
	_, size := utf8.DecodeRuneInString(s)
	return s[:size]
}

func callTake(b *Budget, args []any) (any, error) {
	list, err := opList(b, args[0], "take")
	if err != nil {
		return nil, err
	}
	n, err := wholeArgument("take", "the number of elements", args, 1)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, argumentError("take", "a number of elements that is not negative", args[1])
	}
	n = min(n, len(list))
	return list[:n:n], nil
}

func callReverse(b *Budget, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		if err := b.chargeWork(len(s)/indexPerStep, len(s)); err != nil {
			return nil, err
		}
		out := make([]byte, 0, len(s))
		for len(s) > 0 {
			_, size := utf8.DecodeLastRuneInString(s)
			out = append(out, s[len(s)-size:]...)
			s = s[:len(s)-size]
		}
		return string(out), nil
	}
	list, err := opList(b, args[0], "reverse")
	if err != nil {
		return nil, err
	}
	if err := b.chargeList(len(list)); err != nil {
		return nil, err
	}
	out := make([]any, len(list))
	for i, v := range list {
		out[len(list)-1-i] = v
	}
	return out, nil
}

// callUniq compares elements by their JSON, so that it takes linear time.
func callUniq(b *Budget, args []any) (any, error) {
	list, err := opList(b, args[0], "uniq")
	if err != nil {
		return nil, err
	}
	if err := b.chargeList(len(list)); err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(list))
	out := []any{}
	for _, v := range list {
		if err := chargeWeight(b, v); err != nil {
			return nil, err
		}
		key, err := Encode(v)
		if err != nil {
			return nil, err
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			out = append(out, v)
		}
	}
	return out, nil
}

func callConcat(b *Budget, args []any) (any, error) {
	lists := make([][]any, len(args))
	for i, arg := range args {
		list, err := opList(b, arg, "concat")
		if err != nil {
			return nil, err
		}
		lists[i] = list
	}
	return concatLists(b, lists...)
}

func callFlatten(b *Budget, args []any) (any, error) {
	list, err := opList(b, args[0], "flatten")
	if err != nil {
		return nil, err
	}
	return flattenLists(b, []any{}, list, 0)
}

func flattenLists(b *Budget, out, list []any, depth int) ([]any, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	if err := b.chargeList(len(list)); err != nil {
		return nil, err
	}
	for _, v := range list {
		inner, ok := v.([]any)
		if !ok {
			out = append(out, v)
			continue
		}
		var err error
		if out, err = flattenLists(b, out, inner, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func callChunk(b *Budget, args []any) (any, error) {
	list, err := opList(b, args[0], "chunk")
	if err != nil {
		return nil, err
	}
	n, err := wholeArgument("chunk", "the number of elements", args, 1)
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, argumentError("chunk", "a number of elements of at least 1", args[1])
	}
	n = min(n, max(len(list), 1))
	count := (len(list) + n - 1) / n
	if err := b.chargeList(count); err != nil {
		return nil, err
	}
	out := make([]any, count)
	for i := range out {
		from, to := i*n, min((i+1)*n, len(list))
		out[i] = list[from:to:to]
	}
	return out, nil
}

func callSort(b *Budget, args []any) (any, error) {
	list, err := opList(b, args[0], "sort")
	if err != nil {
		return nil, err
	}
	down, err := isDescending("sort", argumentAt(args, 1))
	if err != nil {
		return nil, err
	}
	items := lists.Map(list, func(v any) item { return item{key: v, element: v} })
	return sortItems(b, "sort", items, down)
}
