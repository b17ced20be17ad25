package expression

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// someValues are fresh values of every type whose elements are in no order, so
// that whoever puts them in one where they stand is seen.
func someValues() []any {
	maps := func() []any {
		return []any{
			map[string]any{"a": 3, "b": []any{2, 1}, "name": "c"},
			map[string]any{"a": 1, "b": []any{9, 8}, "name": "a"},
			map[string]any{"a": 2, "b": []any{}, "name": "b"},
		}
	}
	return []any{
		[]any{3, 1, 2, 1},
		[]any{"c", "a", "b", "a"},
		maps(),
		[]any{[]any{2, 1}, []any{4, 3}},
		[]any{[]any{"k", []any{2, 1}}, []any{"j", 1}},
		map[string]any{"b": []any{3, 1, 2}, "a": map[string]any{"z": maps()}},
		"c,a,b", 2, 1.5, nil, true,
		[]any{},
		map[string]any{},
	}
}

// TestArgumentsStayWhatTheyAre: no operator and no function changes what it is
// given. A result of a step is read by many expressions, in an order that is
// nobody's business.
func TestArgumentsStayWhatTheyAre(t *testing.T) {
	t.Parallel()

	evaluated := 0

	for _, source := range hugeSources() {
		program, problems := Compile(source)
		require.Empty(t, problems)

		for i := range someValues() {
			for j := range someValues() {
				scope, before := MapScope{}, MapScope{}
				for name, at := range map[string]int{"x": i, "y": j, "z": j} {
					scope[name], before[name] = someValues()[at], someValues()[at]
				}

				result, err := program.Eval(scope, NewBudget(DecisionLimits, time.Unix(0, 0)))
				require.Equal(t, before, scope, "%s of %v and %v", source, before["x"], before["y"])

				if err != nil {
					continue
				}

				evaluated++

				again, err := program.Eval(scope, NewBudget(DecisionLimits, time.Unix(0, 0)))
				require.NoError(t, err)
				require.Equal(t, result, again, fmt.Sprintf("%s of %v and %v", source, before["x"], before["y"]))
			}
		}
	}

	require.Greater(t, evaluated, 10_000)
}
