package expression_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

func compiled(t *testing.T, source string) *expression.Program {
	t.Helper()
	program, problems := expression.Compile(source)
	require.Empty(t, problems, source)
	return program
}

// TestMixed: status is a number and class a text; nothing is known of other names.
func TestMixed(t *testing.T) {
	t.Parallel()
	typeOf := func(root string, path []any) expression.Type {
		if root == "error" && len(path) == 1 {
			return map[any]expression.Type{"status": expression.NumberType, "class": expression.TextType}[path[0]]
		}
		return expression.AnyType
	}
	for source, written := range map[string]string{
		`error.status == "503"`:               `"503"`,
		`"503" != error.status`:               `"503"`,
		`error.status in ["429", "503"]`:      `"429"`,
		`error.class == 4`:                    `4`,
		`error and (error.status > "4" or x)`: `"4"`,
		`len(rows) == "0"`:                    `"0"`,
		`rows | length == "0"`:                `"0"`,
		`upper(x) == 3`:                       `3`,
		`filter(rows, len(.name) == "3")`:     `"3"`,
		`error.status == 503`:                 "",
		`error.status in ["429", 503]`:        "",
		`status in ["429", 503]`:              "",
		`error.status in []`:                  "",
		`error.class == "final"`:              "",
		`error.other == "3"`:                  "",
		`string(error.status) == "503"`:       "",
		`error.status == nil`:                 "",
		`error[name] == "503"`:                "",
		`error.status ~ "" == "503"`:          "",
		`"3" == 3`:                            "",
	} {
		found := compiled(t, source).MixedComparisons(typeOf)
		if written == "" {
			require.Empty(t, found, source)
			continue
		}
		require.NotEmpty(t, found, source)
		require.Equal(t, written, found[0].Written, source)
		require.Equal(t, written, source[found[0].Offset:found[0].Offset+len(written)], source)
	}
}

// TestMixedShowsBothSides: a list has each of its texts, and a name its members.
func TestMixedShowsBothSides(t *testing.T) {
	t.Parallel()
	found := compiled(t, `steps.fetch.error["status"] in ["429", '503']`).MixedComparisons(func(string, []any) expression.Type { return expression.NumberType })
	require.Len(t, found, 2)
	require.Equal(t, "'503'", found[1].Written)
	require.Equal(t, "steps.fetch.error.status", found[0].Other)
}

// TestImplies: what is implied is so for all values, which a few show.
func TestImplies(t *testing.T) {
	t.Parallel()
	conditions := []string{
		"x == 503", "x == 502", "x >= 500", "x > 500", "x > 499", "x < 504", "x <= 503", "x in [503]", "x in [502, 503]", "x in [503, 'a']",
		"x >= 500 and x < 504", "x == 503 and y", "y", "y and x == 503", "x == 503 or y", "y or x >= 500", "not y", "x != 503", "x >= 500.5", "y == 503",
	}
	implied := 0
	for _, a := range conditions {
		for _, b := range conditions {
			if !compiled(t, a).Implies(compiled(t, b)) {
				continue
			}
			implied++
			for _, x := range []any{nil, 499, 499.5, 500, 500.5, 502, 502.5, 503, 503.5, 504} {
				for _, y := range []any{nil, true, 503} {
					scope := expression.MapScope{"x": x, "y": y}
					if holds(t, a, scope) {
						require.True(t, holds(t, b, scope), "%s, so %s: %v", a, b, scope)
					}
				}
			}
		}
	}
	require.Equal(t, 94, implied)
}

func holds(t *testing.T, source string, scope expression.MapScope) bool {
	t.Helper()
	value, err := compiled(t, source).Eval(scope, expression.NewBudget(expression.DecisionLimits, time.Now()))
	require.NoError(t, err, "%s: %v", source, scope)
	return expression.Truthy(value)
}
