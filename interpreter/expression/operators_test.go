package expression

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type binary func(b *Budget, x, y any) (any, error)

var binaries = map[string]binary{
	"==": opEqual, "!=": opNotEqual, "<": opLess, "<=": opLessEq, ">": opGreater, ">=": opGreaterEq,
	"+": opAdd, "-": opSub, "*": opMul, "/": opDiv, "%": opMod, "**": opPow, "..": opRange,
	"in": opIn, "contains": opContains, "startsWith": opStartsWith, "endsWith": opEndsWith,
}

func value(t testing.TB, source string) any {
	t.Helper()

	v, err := Decode([]byte(source))
	require.NoError(t, err, source)
	return v
}

func fresh() *Budget {
	return NewBudget(DecisionLimits, time.Date(2026, 3, 1, 12, 30, 0, 500_000_000, time.FixedZone("", 7200)))
}

func TestOperators(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ x, op, y, result string }{
		// exact whole numbers
		{`9223372036854775806`, "+", `1`, `9223372036854775807`},
		{`-9223372036854775807`, "-", `1`, `-9223372036854775808`},
		{`3037000499`, "*", `3037000499`, `9223372030926249001`},
		{`9007199254740993`, "/", `1`, `9007199254740993`},
		{`9223372036854775806`, "/", `2`, `4611686018427387903`},
		{`9007199254740993`, "/", `7`, `1286742750677284.8`},
		{`4`, "/", `2`, `2`},
		{`3`, "/", `2`, `1.5`},
		{`-7`, "%", `3`, `-1`},
		{`7`, "%", `-3`, `1`},
		{`-9223372036854775808`, "%", `-1`, `0`},
		{`0.5`, "+", `0.5`, `1`},
		{`0.1`, "+", `0.2`, `0.30000000000000004`},
		{`18446744073709551615`, "+", `0.5`, `18446744073709552000`},
		{`1e300`, "*", `10`, `1e+301`},

		// powers
		{`2`, "**", `62`, `4611686018427387904`},
		{`-2`, "**", `63`, `-9223372036854775808`},
		{`2`, "**", `-1`, `0.5`},
		{`1.5`, "**", `2`, `2.25`},
		{`0`, "**", `0`, `1`},
		{`1`, "**", `9223372036854775807`, `1`},
		{`10`, "**", `-400`, `0`},

		// text and lists
		{`"a"`, "+", `"b"`, `"ab"`},
		{`[1]`, "+", `[2]`, `[1,2]`},
		{`1`, "..", `3`, `[1,2,3]`},
		{`3`, "..", `1`, `[]`},
		{`-1`, "..", `-1`, `[-1]`},

		// equality
		{`1`, "==", `1.0`, `true`},
		{`"1"`, "==", `1`, `false`},
		{`null`, "==", `false`, `false`},
		{`[1, {"a": null}]`, "==", `[1, {"a": null}]`, `true`},
		{`{"a": 1}`, "!=", `{"a": 1, "b": 2}`, `true`},

		// order, exact at any size
		{`18446744073709551615`, ">", `9223372036854775807`, `true`},
		{`18446744073709551614`, "<", `18446744073709551615`, `true`},
		{`-18446744073709551615`, "<", `-9223372036854775808`, `true`},
		{`100000000000000000000000`, ">", `99999999999999999999999`, `true`},
		{`1e400`, ">", `1e300`, `true`},
		{`-1e400`, "<", `1e300`, `true`},
		{`1e400`, "<", `1e401`, `true`},
		{`1e99999999999999999999`, ">", `1e400`, `true`},
		{`1.5`, "<", `2`, `true`},
		{`-1.5`, "<=", `-1`, `true`},
		{`"a"`, "<", `"b"`, `true`},
		{`"Z"`, "<", `"a"`, `true`},

		// nil
		{`null`, "<", `1`, `false`},
		{`1`, "<", `null`, `false`},
		{`null`, ">=", `null`, `false`},
		{`null`, "in", `[1, null]`, `true`},
		{`null`, "in", `[1]`, `false`},
		{`null`, "in", `"null"`, `false`},
		{`null`, "in", `{"null": 1}`, `false`},
		{`1`, "in", `null`, `false`},
		{`null`, "contains", `"a"`, `false`},
		{`"a"`, "contains", `null`, `false`},
		{`null`, "startsWith", `"a"`, `false`},
		{`"a"`, "endsWith", `null`, `false`},

		// membership
		{`1.0`, "in", `[1]`, `true`},
		{`"1"`, "in", `[1]`, `false`},
		{`[1]`, "in", `[[1]]`, `true`},
		{`"ell"`, "in", `"hello"`, `true`},
		{`"a"`, "in", `{"a": null}`, `true`},
		{`1`, "in", `{"1": 1}`, `false`},
		{`"hello"`, "contains", `"ell"`, `true`},
		{`"hello"`, "startsWith", `"he"`, `true`},
		{`"hello"`, "endsWith", `"lo"`, `true`},
	} {
		t.Run(c.x+" "+c.op+" "+c.y, func(t *testing.T) {
			t.Parallel()

			result, err := binaries[c.op](fresh(), value(t, c.x), value(t, c.y))
			require.NoError(t, err)
			require.Equal(t, c.result, encoded(t, result))
			requireCanonical(t, result)
		})
	}
}

func encoded(t testing.TB, v any) string {
	t.Helper()

	data, err := Encode(v)
	require.NoError(t, err)
	return string(data)
}

func requireCanonical(t testing.TB, v any) {
	t.Helper()

	again, err := Canonical(v)
	require.NoError(t, err)
	require.Equal(t, again, v)
}

func TestOperatorErrors(t *testing.T) {
	t.Parallel()

	const huge = "18446744073709551615 does not fit in 64 bits, so arithmetic would change its digits; compare it or pass it on as it is, " +
		"or calculate with it in SQL or Python"
	for _, c := range []struct{ x, op, y, message string }{
		{`9223372036854775807`, "+", `1`, `the result does not fit in 64 bits`},
		{`18446744073709551615`, "+", `0`, huge},
		{`1`, "-", `18446744073709551615`, huge},
		{`18446744073709551615`, "/", `5`, huge},
		{`18446744073709551615`, "%", `7`, huge},
		{`18446744073709551615`, "**", `1`, huge},
		{`2`, "**", `64`, `the result does not fit in 64 bits`},
		{`-9223372036854775808`, "-", `1`, `the result does not fit in 64 bits`},
		{`-9223372036854775808`, "*", `-1`, `the result does not fit in 64 bits`},
		{`4611686018427387904`, "*", `2`, `the result does not fit in 64 bits`},
		{`-9223372036854775808`, "/", `-1`, `the result does not fit in 64 bits`},
		{`1`, "/", `0`, `division by zero`},
		{`1.5`, "/", `0`, `division by zero`},
		{`1`, "%", `0`, `division by zero`},
		{`0`, "**", `-1`, `division by zero`},
		{`1.5`, "%", `2`, `% needs whole numbers`},
		{`1e308`, "*", `10`, `the result is not a finite number`},
		{`1e400`, "+", `1`, `1e400 is too large to calculate with`},
		{`2`, "**", `0.5`, `the exponent of ** must be a whole number of 64 bits`},
		{`10`, "**", `400`, `the result does not fit in 64 bits`},
		{`10.5`, "**", `400`, `the result is not a finite number`},
		{`"a"`, "+", `1`, `cannot add string and number (+): ~ joins text, as in a ~ b; int(x) or float(x) makes a number of a string`},
		{`"5"`, "*", `2`, `cannot multiply string and number (*): int(x) or float(x) makes a number of a string`},
		{`[1]`, "-", `[1]`, `cannot subtract list and list (-): both sides must be numbers`},
		{`true`, "+", `1`, `cannot add boolean and number (+): both sides must be numbers`},
		{`"5"`, "<", `10`, `cannot compare string with number; int(x) or float(x) makes a number of a string, string(x) a string of a number`},
		{`true`, "<", `false`, `cannot compare boolean with boolean; only two numbers or two strings have an order`},
		{`[1]`, ">", `[0]`, `cannot compare list with list; only two numbers or two strings have an order`},
		{`1`, "in", `"1"`, `cannot look for a number in a string; string(x) makes a string`},
		{`1`, "in", `5`, `cannot look for a value in a number; a list, a map or a string can hold one`},
		{`1`, "startsWith", `"1"`, `startsWith needs strings on both sides, not a number; string(x) makes one`},
		{`1.5`, "..", `3`, `the ends of .. must be whole numbers of 64 bits`},
		{`-9223372036854775808`, "..", `9223372036854775807`, `the expressions of one decision may make 4194304 bytes of text and lists, ` +
			`and this makes more; take the part that is needed, or do the work in a tool`},
	} {
		t.Run(c.x+" "+c.op+" "+c.y, func(t *testing.T) {
			t.Parallel()

			_, err := binaries[c.op](fresh(), value(t, c.x), value(t, c.y))
			require.EqualError(t, err, c.message)
		})
	}
}

func TestArithmeticWithNilNamesTheSide(t *testing.T) {
	t.Parallel()

	for _, op := range []string{"+", "-", "*", "/", "%", "**", ".."} {
		for _, c := range []struct {
			x, y any
			left bool
		}{{nil, 1, true}, {1, nil, false}, {nil, nil, true}, {nil, "a", true}} {
			_, err := binaries[op](fresh(), c.x, c.y)

			var missing *nilOperand

			require.ErrorAs(t, err, &missing, op)
			require.Equal(t, nilOperand{op: op, left: c.left}, *missing)
		}
	}

	_, err := opNeg(fresh(), nil)
	require.EqualError(t, err, `the right side of - is missing (nil); give it a value with default(…)`)
}

func TestSigns(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ x, negative any }{
		{5, -5},
		{1.5, -1.5},
		{math.MinInt, json.Number("9223372036854775808")},
		{json.Number("9223372036854775808"), math.MinInt},
		{json.Number("-18446744073709551615"), json.Number("18446744073709551615")},
	} {
		got, err := opNeg(fresh(), c.x)
		require.NoError(t, err)
		require.Equal(t, c.negative, got)

		got, err = opPos(fresh(), c.x)
		require.NoError(t, err)
		require.Equal(t, c.x, got)
	}

	_, err := opNeg(fresh(), "5")
	require.EqualError(t, err, `- needs a number, not the string "5"`)
}

func TestMembers(t *testing.T) {
	t.Parallel()

	data := value(t, `{"a": {"b": [10, 20]}, "s": "héllo", "n": 5}`)

	for _, c := range []struct {
		keys   []any
		result string
	}{
		{[]any{"a", "b", 0}, `10`},
		{[]any{"a", "b", -1}, `20`},
		{[]any{"a", "b", 2}, `null`},
		{[]any{"a", "b", -3}, `null`},
		{[]any{"a", "b", "x"}, `null`},
		{[]any{"a", "b", 0.5}, `null`},
		{[]any{"a", 0}, `null`},
		{[]any{"x", "y", 0}, `null`},
		{[]any{"n", "y"}, `null`},
		{[]any{"s", 1}, `"é"`},
		{[]any{"s", -1}, `"o"`},
		{[]any{"s", 5}, `null`},
		{[]any{"s", -6}, `null`},
		{[]any{"s", "x"}, `null`},
	} {
		result, err := opPath(fresh(), data, c.keys)
		require.NoError(t, err)
		require.Equal(t, c.result, encoded(t, result), "%v", c.keys)
	}

	fallback, err := opGet(fresh(), value(t, `{"k": null}`), "k", 7)
	require.NoError(t, err)
	require.Equal(t, 7, fallback)
}

func TestSlices(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		base     string
		from, to any
		result   string
	}{
		{`[1, 2, 3]`, 1, nil, `[2,3]`},
		{`[1, 2, 3]`, nil, -1, `[1,2]`},
		{`[1, 2, 3]`, -2, nil, `[2,3]`},
		{`[1, 2, 3]`, 2, 1, `[]`},
		{`[1, 2, 3]`, -9, 9, `[1,2,3]`},
		{`"héllo"`, 1, 3, `"él"`},
		{`"héllo"`, -2, nil, `"lo"`},
		{`"héllo"`, 4, 2, `""`},
		{`null`, 0, 1, `null`},
	} {
		result, err := opSlice(fresh(), value(t, c.base), c.from, c.to)
		require.NoError(t, err)
		require.Equal(t, c.result, encoded(t, result), "%s %v %v", c.base, c.from, c.to)
	}

	_, err := opSlice(fresh(), 5, 0, 1)
	require.EqualError(t, err, "only a list or a string has slices, not a number")
	_, err = opSlice(fresh(), []any{}, "a", nil)
	require.EqualError(t, err, `the bounds of a slice must be whole numbers, not the string "a"`)
}

// A slice of a list has no room behind it: appending cannot change the list
// that it was taken from.
func TestSliceHasNoRoom(t *testing.T) {
	t.Parallel()

	list := []any{1, 2, 3}
	part, err := opSlice(fresh(), list, 0, 1)
	require.NoError(t, err)

	_ = append(part.([]any), "changed")

	require.Equal(t, []any{1, 2, 3}, list)
}

// TestMatches passes maxPattern.
func TestMatches(t *testing.T) {
	t.Parallel()

	p, err := compilePattern(`^a+$`)
	require.NoError(t, err)

	for text, want := range map[any]bool{"aaa": true, "ab": false, nil: false} {
		got, err := opMatches(fresh(), text, p)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}

	_, err = opMatches(fresh(), 5, p)
	require.EqualError(t, err, "matches needs a string on its left, not a number; string(x) makes one")
	_, err = compilePattern(`(`)
	require.ErrorContains(t, err, `"(" is not a valid RE2 pattern`)
	_, err = compilePattern(`a{501}`)
	require.ErrorContains(t, err, "instructions, 500 are allowed")
}

func TestGroupAndSort(t *testing.T) {
	t.Parallel()

	groups, err := opGroup(fresh(), value(t, `[[1, "a"], [1.0, "b"], [true, "c"], [null, "d"], [[1], "e"], [1, "f"]]`))
	require.NoError(t, err)
	require.Equal(t, `{"":["d"],"1":["a","b","f"],"[1]":["e"],"true":["c"]}`, encoded(t, groups))

	keyed := value(t, `[[2, "a"], [1, "b"], [null, "c"], [2, "d"], [1.5, "e"], [null, "f"]]`)

	up, err := opSortBy(fresh(), keyed, nil)
	require.NoError(t, err)
	require.Equal(t, `["c","f","b","e","a","d"]`, encoded(t, up))

	down, err := opSortBy(fresh(), keyed, "desc")
	require.NoError(t, err)
	require.Equal(t, `["a","d","e","b","c","f"]`, encoded(t, down))

	_, err = opSortBy(fresh(), value(t, `[[1, "a"], ["1", "b"]]`), nil)
	require.EqualError(t, err, "sortBy cannot compare number with string; the keys must be of one type")
	_, err = opSortBy(fresh(), value(t, `[[[1], "a"]]`), nil)
	require.EqualError(t, err, "sortBy needs numbers, strings or booleans to sort by, not a list")
	_, err = opSortBy(fresh(), keyed, "up")
	require.EqualError(t, err, `sortBy needs "asc" or "desc" as the order, not the string "up"`)
}

// Equal keys keep their order at every length, not only at those for which a
// library happens to be stable.
func TestSortIsStable(t *testing.T) {
	t.Parallel()

	pairs := make([]any, 5000)
	for i := range pairs {
		pairs[i] = []any{i % 3, i}
	}

	result, err := opSortBy(fresh(), pairs, "asc")
	require.NoError(t, err)

	list := result.([]any)
	for i := 1; i < len(list); i++ {
		before, after := list[i-1].(int), list[i].(int)
		require.True(t, before%3 < after%3 || before%3 == after%3 && before < after, "at %d", i)
	}
}

func TestListOfPredicates(t *testing.T) {
	t.Parallel()

	list, err := opList(fresh(), nil, "filter")
	require.NoError(t, err)
	require.Equal(t, []any{}, list)

	_, err = opList(fresh(), map[string]any{}, "filter")
	require.EqualError(t, err, "filter needs a list, not a map; keys(x), values(x) and toPairs(x) make one of a map")
	_, err = opList(fresh(), "abc", "filter")
	require.EqualError(t, err, `filter needs a list, not the string "abc"`)
}
