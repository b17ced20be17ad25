package expression

import (
	"fmt"
	"slices"

	"github.com/expr-lang/expr/builtin"
)

// functionPrefix starts the name of a helper that calls a function of the language.
const functionPrefix = "$f:"

// helpers are the functions that lowered trees call. All but $truthy take the budget as their first argument. The
// table is read-only.
var helpers = helperTable()

func helperTable() map[string]*builtin.Function {
	table := map[string]*builtin.Function{}
	add := func(name string, call func(args ...any) (any, error)) {
		table[name] = &builtin.Function{Name: name, Func: call}
	}
	add("$truthy", func(args ...any) (any, error) { return Truthy(args[0]), nil })
	add("$decide", func(args ...any) (any, error) {
		return budgetOf(args).DecideTruth(args[1], args[2].(int)), nil // a constant of lowering
	})
	addOperators(add)
	addLoopHelpers(add)
	for _, name := range functionNames() {
		if call := functions[name].call; call != nil {
			add(functionPrefix+name, func(args ...any) (any, error) { return call(budgetOf(args), args[1:]) })
		}
	}
	return table
}

// budgetOf returns the budget, which lowering puts first in the arguments.
func budgetOf(args []any) *Budget {
	return args[0].(*Budget) // Eval passes nothing else
}

func addOperators(add func(string, func(...any) (any, error))) {
	for name, op := range map[string]func(b *Budget, x any) (any, error){ // any order: each fills its own entry
		"$neg": opNeg, "$pos": opPos, "$group": opGroup, "$sum": opSum, "$key": opKey,
	} {
		add(name, func(args ...any) (any, error) { return op(budgetOf(args), args[1]) })
	}
	for name, op := range map[string]func(b *Budget, x, y any) (any, error){ // any order: each sets its own entry
		"$index": opIndex,
		"$less":  opLess, "$lessEq": opLessEq, "$greater": opGreater, "$greaterEq": opGreaterEq,
		"$add": opAdd, "$sub": opSub, "$mul": opMul, "$div": opDiv, "$mod": opMod, "$pow": opPow,
		"$startsWith": opStartsWith, "$endsWith": opEndsWith,
		"$range": opRange, "$sortBy": opSortBy,
	} {
		add(name, func(args ...any) (any, error) { return op(budgetOf(args), args[1], args[2]) })
	}
	for name, op := range map[string]noting{ // any order: each sets its own entry
		"$equal": {op: opEqual}, "$notEqual": {op: opNotEqual, none: true}, "$in": {op: opIn, lists: true}, "$contains": {op: opContains, lists: true},
	} {
		add(name, func(args ...any) (any, error) { return op.callNoting(budgetOf(args), args[1], args[2], args[3].(int)) }) // the lowering puts a constant there
	}
	add("$path", func(args ...any) (any, error) {
		return opPath(budgetOf(args), args[1], args[2].([]any)) // the lowering puts a constant there
	})
	add("$matches", func(args ...any) (any, error) {
		return opMatches(budgetOf(args), args[1], args[2].(*pattern)) // the lowering puts a constant there
	})
	add(textFunction, func(args ...any) (any, error) { return opText(budgetOf(args), args[1:]) })
	add("$slice", func(args ...any) (any, error) { return opSlice(budgetOf(args), args[1], args[2], args[3]) })
}

// addLoopHelpers adds the helpers that loops, and the lists and maps created in loops, call to charge for their
// work.
func addLoopHelpers(add func(string, func(...any) (any, error))) {
	add("$list", func(args ...any) (any, error) {
		return opList(budgetOf(args), args[1], args[2].(string)) // a constant of lowering
	})
	add("$elements", func(args ...any) (any, error) {
		budgetOf(args).noteMisspelt(args[1], args[2].([]elementMember)) // the lowering puts a constant there
		return args[1], nil
	})
	add("$reversed", func(args ...any) (any, error) { return reversedList(budgetOf(args), args[1]) })
	add("$fromEnd", func(args ...any) (any, error) {
		list, _ := args[1].([]any)
		if i, ok := args[2].(int); ok {
			return len(list) - 1 - i, nil
		}
		return nil, nil // nothing was found
	})
	charge := func(name string, of func(b *Budget, n int) error) {
		add(name, func(args ...any) (any, error) {
			return nil, of(budgetOf(args), args[1].(int)) // the lowering puts a constant there
		})
	}
	charge("$tick", func(b *Budget, n int) error { return b.chargeWork(n, 0) })
	charge("$nextRow", func(b *Budget, n int) error {
		b.row++
		b.Renew()
		return b.chargeWork(n, 0)
	})
	charge("$madeList", (*Budget).chargeList)
	charge("$madeMap", (*Budget).chargePairs)
}

// opKey returns the key of a map from a computed value.
func opKey(b *Budget, key any) (any, error) {
	switch TypeName(key) {
	case "string", "number", "boolean":
		name, err := textOf(b, key)
		if err != nil {
			return nil, err
		}
		return name, b.chargeRead(len(name))
	default:
		return nil, fmt.Errorf("the key of a map must be text, a number or a boolean, not %s", TypeName(key))
	}
}

func reversedList(b *Budget, list any) (any, error) {
	from, _ := list.([]any)
	if err := b.chargeList(len(from)); err != nil {
		return nil, err
	}
	to := slices.Clone(from)
	slices.Reverse(to)
	return to, nil
}
