package expression

import (
	"fmt"
	"slices"
)

// gatherValues returns the arguments as one list, in which a list among them is replaced by its elements. A nil
// argument counts as an empty list.
func gatherValues(b *Budget, name string, args []any) ([]any, error) {
	var out []any
	for _, arg := range args {
		list, ok := arg.([]any)
		if !ok && arg != nil {
			list = []any{arg}
		}
		if err := b.chargeList(len(list)); err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	for i, v := range out {
		if v == nil {
			return nil, fmt.Errorf("%s cannot use nil, which is the value at index %d; filter(xs, # != nil) leaves it out", name, i)
		}
	}
	return out, nil
}

func extremeOf(name string, direction int) func(*Budget, []any) (any, error) {
	return func(b *Budget, args []any) (any, error) {
		list, err := gatherValues(b, name, args)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		items := make([]item, len(list))
		for i, v := range list {
			if TypeName(v) != "number" && TypeName(v) != "string" {
				return nil, argumentError(name, "numbers or strings", v)
			}
			items[i].key = v
		}
		text, err := checkSortable(name, items)
		if err != nil {
			return nil, err
		}
		if err := b.chargeWork(len(list)/numsPerStep, 0); err != nil {
			return nil, err
		}
		if err := b.chargeRead(text); err != nil {
			return nil, err
		}
		best := list[0]
		for _, v := range list[1:] {
			text, _ := v.(string)
			than, _ := best.(string)
			if err := orderError(name, text, than); err != nil {
				return nil, err
			}
			if direction*compareKeys(v, best) > 0 {
				best = v
			}
		}
		return best, nil
	}
}

func callMean(b *Budget, args []any) (any, error) {
	list, err := gatherValues(b, "mean", args)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if err := numbersOnly(b, "mean", list); err != nil {
		return nil, err
	}
	total, err := opSum(b, list)
	if err != nil {
		return nil, err
	}
	return opDiv(b, total, len(list))
}

func callMedian(b *Budget, args []any) (any, error) {
	list, err := gatherValues(b, "median", args)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if err := numbersOnly(b, "median", list); err != nil {
		return nil, err
	}
	digits := 0
	for _, v := range list {
		digits += longNumberLength(v)
	}
	if err := chargeSort(b, len(list), digits); err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, CompareNumbers)
	middle := list[len(list)/2]
	if len(list)%2 == 1 {
		return middle, nil
	}
	total, err := opAdd(b, list[len(list)/2-1], middle)
	if err != nil {
		return nil, err
	}
	return opDiv(b, total, 2)
}
