package expression_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

// TestNamesOfFunctions: before a bracket, and behind a pipe, a name is the function,
// elsewhere what the scope holds.
func TestNamesOfFunctions(t *testing.T) {
	t.Parallel()
	for _, f := range expression.FunctionDocs() {
		if f.Name == "none" {
			continue // the constant; no step may have the name
		}
		scope := expression.MapScope{f.Name: map[string]any{"rows": []any{1, 2}, "n": 3}}
		for _, source := range []string{
			"NAME.n", "NAME['n']", "NAME.rows | length + 1", "let x = NAME; x.n", "len(NAME.rows) + 1", "sum(map(NAME.rows, #))", "sum(map(NAME.rows, # + NAME.n)) - 6",
			"NAME == NAME ? NAME.n : 0", "NAME?.n", "NAME.get('n')", "get({a: NAME.n}, 'a')", "(NAME).n",
		} {
			source = strings.ReplaceAll(source, "NAME", f.Name)
			program, problems := expression.Compile(source)
			require.Empty(t, problems, source)
			require.True(t, slices.ContainsFunc(program.Refs(), func(r expression.Ref) bool { return r.Root == f.Name }), source)
			value, err := program.Eval(scope, expression.NewBudget(expression.DecisionLimits, time.Unix(0, 0)))
			require.NoError(t, err, source)
			require.Equal(t, 3, value, source)
		}
	}
}
