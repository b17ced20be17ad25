package expression_test

import (
	"testing"

	"github.com/expr-lang/expr"
	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

// Ordinary expressions give what expr itself gives. Where the language means
// something else on purpose, the expression is not in this list but in
// TestEval.
func TestAgreesWithExpr(t *testing.T) {
	t.Parallel()

	scope := testScope(t)

	for _, source := range []string{
		`1 + 2 * 3 - 4`, `(1 + 2) * 3`, `7 / 2`, `8 % 3`, `-7 % 3`, `2 ** 3`, `2 ^ 3`, `-2 ** 2`, `2 ** 3 ** 2`, `-n + +n`,
		`n + f`, `n * f - 2`, `1_000 + 0x10`, `1.5e2`, `n > 2`, `n >= 3 and n <= 3`, `n < f`, `1 < n < 5`, `3 > n > 1`,
		`n == 3`, `n != 3`, `s == "Hello"`, `s != 'x'`, `"a" < "b"`, `yes and not no`, `yes && !no`, `no || yes`,
		`yes or no and no`, `(yes or no) and no`, `not (n == 3)`, `!(n > 5)`, `n == 3 ? "three" : "other"`,
		`no ? 1 : yes ? 2 : 3`, `if n > 2 { "big" } else { "small" }`, `null ?? 5`, `m.q ?? "d"`, `m.k ?? "d"`,
		`(m.q ?? n) + 1`, `m.a.b.c`, `m["k"]`, `m.list[0].x`, `m.list[-1].x`, `xs[0] + xs[1]`, `xs[1:]`, `xs[:2]`, `xs[1:2]`,
		`m?.a?.b`, `unknown?.a`, `2 in xs`, `5 not in xs`, `"k" in m`, `"z" not in m`, `s contains "ell"`, `s startsWith "He"`,
		`s endsWith "lo"`, `s matches "^H"`, `s not matches "z"`, `s + "!"`, `1..5`, `len(1..5)`, `len(xs)`, `len(s)`, `len(m)`,
		`[1, n, "a", nil]`, `{"a": n, b: [s]}`, `{}`, `[]`, `len({"a": 1})`,
		`all(xs, # > 0)`, `any(xs, # > 2)`, `none(xs, # > 5)`, `one(xs, # == 2)`, `filter(xs, # > 1)`, `map(xs, # * 2)`,
		`count(xs, # > 1)`, `find(xs, # > 1)`, `findIndex(xs, # > 1)`, `findLast(xs, # < 3)`, `findLastIndex(xs, # < 3)`,
		`find(xs, # > 9)`, `reduce(xs, #acc + #)`, `reduce(xs, #acc + #, 10)`, `reduce(xs, #acc + #index, 0)`, `map(xs, #index)`,
		`sum(xs)`, `sum(m.list, .x)`, `filter(m.list, .x > 1)`, `map(m.list, .x + n)`, `sortBy(m.list, .x)`, `sortBy(m.list, .x, "desc")`,
		`map(filter(users, .name != "Bob"), .age)`, `filter(users, {let a = .name; a > "B"})`, `map(xs, {{"v": #}})`,
		`map(xs, {let y = #; map(xs, # * y)})`, `any(m.list, any(xs, # == 3))`,
		`xs | len()`, `xs | map(# + 1) | filter(# > 2)`, `s | lower()`, `s | upper() | lower()`,
		`min(3, 1, 2)`, `max(xs)`, `abs(neg)`, `ceil(f)`, `floor(f)`, `round(f)`, `int("5")`, `float("1.5")`, `string(n)`,
		`trim("  a ")`, `upper(s)`, `lower(s)`, `split("a,b", ",")`, `join(["a", "b"], "-")`, `replace(s, "l", "L")`,
		`indexOf(s, "l")`, `lastIndexOf(s, "l")`, `hasPrefix(s, "He")`, `hasSuffix(s, "lo")`, `trimPrefix(s, "He")`, `trimSuffix(s, "lo")`,
		`first(xs)`, `last(xs)`, `take(xs, 2)`, `reverse(xs)`, `concat(xs, [4])`, `flatten([[1], [2, [3]]])`, `uniq([1, 1, 2])`,
		`sort([3, 1, 2])`, `sort([3, 1, 2], "desc")`, `mean(xs)`, `median(xs)`, `toBase64(s)`, `fromBase64("SGVsbG8=")`,
		`fromJSON("{\"a\": [1.5, null]}")`, `get(m, "k")`, `get(xs, 5)`, `bitand(6, 3)`, `bitor(6, 3)`, `bitxor(6, 3)`,
		`let x = n; x * x`, `let x = n; let y = x + 1; x * y`, `[let x = 1; x, 2]`, `"a\tb\u00e9"`, "`raw\\n`", `'it\'s'`,
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()

			compiled, err := expr.Compile(source, expr.Env(map[string]any{}), expr.AllowUndefinedVariables())
			require.NoError(t, err)

			theirs, err := expr.Run(compiled, map[string]any(scope))
			require.NoError(t, err)

			want, err := expression.Canonical(plain(theirs))
			require.NoError(t, err)

			ours, err := evaluate(t, source, scope)
			require.NoError(t, err)
			require.Equal(t, want, ours)

			printed, _ := expression.Compile(source)
			_, err = expr.Compile(printed.Printed(), expr.Env(map[string]any{}), expr.AllowUndefinedVariables())
			require.NoError(t, err, "expr reads what is printed: %s", printed.Printed())
		})
	}
}

// plain turns expr's typed lists into the kinds that JSON has.
func plain(v any) any {
	switch v := v.(type) {
	case []int:
		out := make([]any, len(v))
		for i := range v {
			out[i] = v[i]
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	default:
		return v
	}
}
