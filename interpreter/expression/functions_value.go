package expression

import (
	"unicode/utf8"
)

// valueFunctions work on values of any type.
var valueFunctions = []function{
	{
		name: "type", min: 1, max: 1, signature: "type(x)",
		doc:  `The type of x: "nil", "boolean", "number", "string", "list" or "map".`,
		call: func(_ *Budget, args []any) (any, error) { return TypeName(args[0]), nil },
	},
	{
		name: "default", min: 2, max: 3, signature: "default(x, value[, true])",
		doc:  "x, or the value if x is nil. With true, the value also replaces false, 0 and empty texts, lists and maps.",
		call: callDefault,
	},
	{
		name: "len", min: 1, max: 1, signature: "len(x)",
		doc:  "The number of elements, entries or characters; 0 for nil.",
		call: callLen,
	},
	{
		name: "get", min: 2, max: 3, signature: "get(x, key[, value])",
		doc:  "The member of x, or the value if the member is nil.",
		call: func(b *Budget, args []any) (any, error) { return opGet(b, args[0], args[1], argumentAt(args, 2)) },
	},
}

// argumentAt returns the n-th argument, or nil if it was not given.
func argumentAt(args []any, n int) any {
	if n < len(args) {
		return args[n]
	}
	return nil
}

// wholeArgument returns the n-th argument as an int. what names the argument in the error.
func wholeArgument(name, what string, args []any, n int) (int, error) {
	i, ok := args[n].(int)
	if !ok {
		return 0, argumentError(name, "a whole number as "+what, args[n])
	}
	return i, nil
}

func callDefault(_ *Budget, args []any) (any, error) {
	if args[0] == nil || Truthy(argumentAt(args, 2)) && !Truthy(args[0]) {
		return args[1], nil
	}
	return args[0], nil
}

func callLen(b *Budget, args []any) (any, error) {
	switch v := args[0].(type) {
	case nil:
		return 0, nil
	case []any:
		return len(v), nil
	case map[string]any:
		return len(v), nil
	case string:
		if err := b.chargeRead(len(v)); err != nil {
			return nil, err
		}
		return utf8.RuneCountInString(v), nil
	default:
		return nil, argumentError("len", "a list, a map or a string", v)
	}
}
