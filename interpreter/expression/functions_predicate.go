package expression

// predicateFunctions evaluate an expression once per element. # is the element and .name is one of its members. The
// compiler builds the loops.
var predicateFunctions = []function{
	{
		name: "all", min: 2, max: 2, signature: "all(xs, condition)", predicate: needsPredicate,
		doc: "Whether the condition is true for every element; true for an empty list.",
	},
	{
		name: "any", min: 2, max: 2, signature: "any(xs, condition)", predicate: needsPredicate,
		doc: "Whether the condition is true for at least one element.",
	},
	{
		name: "none", min: 2, max: 2, signature: "none(xs, condition)", predicate: needsPredicate,
		doc: "Whether the condition is true for no element.",
	},
	{
		name: "one", min: 2, max: 2, signature: "one(xs, condition)", predicate: needsPredicate,
		doc: "Whether the condition is true for exactly one element.",
	},
	{
		name: "filter", min: 2, max: 2, signature: "filter(xs, condition)", predicate: needsPredicate,
		doc: "The elements for which the condition is true.",
	},
	{
		name: "map", min: 2, max: 2, signature: "map(xs, expression)", predicate: needsPredicate,
		doc: "The value of the expression for every element; #index is the index of the element.",
	},
	{
		name: "find", min: 2, max: 2, signature: "find(xs, condition)", predicate: needsPredicate,
		doc: "The first element for which the condition is true, or nil.",
	},
	{
		name: "findIndex", min: 2, max: 2, signature: "findIndex(xs, condition)", predicate: needsPredicate,
		doc: "The index of the first element for which the condition is true, or nil.",
	},
	{
		name: "findLast", min: 2, max: 2, signature: "findLast(xs, condition)", predicate: needsPredicate,
		doc: "The last element for which the condition is true, or nil.",
	},
	{
		name: "findLastIndex", min: 2, max: 2, signature: "findLastIndex(xs, condition)", predicate: needsPredicate,
		doc: "The index of the last element for which the condition is true, or nil.",
	},
	{
		name: "count", min: 2, max: 2, signature: "count(xs, condition)", predicate: needsPredicate,
		doc: "The number of elements for which the condition is true. For the length of a list, use len(xs).",
	},
	{
		name: "groupBy", min: 2, max: 2, signature: "groupBy(xs, key)", predicate: needsPredicate,
		doc: "The elements grouped by the key: a map of lists in their order. Keys become text; 1 beside \"1\", or nil beside \"\", is an error.",
	},
	{
		name: "sortBy", min: 2, max: 3, signature: `sortBy(xs, key[, "desc"])`, predicate: needsPredicate,
		doc: "The elements sorted by the key. Elements with equal keys keep their order; nil comes first.",
	},
	{
		name: "reduce", min: 2, max: 3, signature: "reduce(xs, expression[, start])", predicate: needsPredicate,
		doc: "Folds the list into one value: #acc is the value so far, # the element. Without a start, the first element is the start.",
	},
	{
		name: "sum", min: 1, max: 2, signature: "sum(xs[, expression])", predicate: mayPredicate,
		doc:  "The sum of the numbers, or of the expression for every element; 0 for an empty list.",
		call: func(b *Budget, args []any) (any, error) { return opSum(b, args[0]) },
	},
}
