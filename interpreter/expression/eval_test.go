package expression_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

var started = time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)

// testScope is the data of the evaluation tables.
func testScope(t testing.TB) expression.MapScope {
	t.Helper()

	v, err := expression.Decode([]byte(`{
		"n": 3, "f": 1.5, "zero": 0, "neg": -7, "big": 9223372036854775807, "huge": 18446744073709551615,
		"s": "Hello", "e": "", "u": "héllo", "yes": true, "no": false, "null": null,
		"xs": [1, 2, 3], "none_": [], "m": {"a": {"b": {"c": 7}}, "k": "v", "list": [{"x": 1}, {"x": 2}]},
		"users": [{"name": "Ann", "age": 31, "ok": true}, {"name": "Bob", "age": 25, "ok": false}, {"name": "Cy", "ok": 1}],
		"steps": {"fetch one": {"data": [10, 20]}},
		"response": {"paging": {"hasMore": true, "page": "2"}, "data": []},
		"status": 503
	}`))
	require.NoError(t, err)
	return expression.MapScope(v.(map[string]any))
}

func evaluate(t testing.TB, source string, scope expression.Scope) (any, error) {
	t.Helper()

	program, problems := expression.Compile(source)
	require.Empty(t, problems, source)
	return program.Eval(scope, expression.NewBudget(expression.DecisionLimits, started))
}

func TestEval(t *testing.T) {
	t.Parallel()

	scope := testScope(t)

	for _, c := range []struct{ source, result string }{
		// members: what is missing is nil at any depth
		{`m.a.b.c`, `7`},
		{`m.a.x.y.z`, `null`},
		{`unknown.a[0].b`, `null`},
		{`s.a`, `null`},
		{`n.a.b`, `null`},
		{`xs.a`, `null`},
		{`xs[0]`, `1`},
		{`xs[-1]`, `3`},
		{`xs[9]`, `null`},
		{`xs.1`, `2`},
		{`m["a"]["b"].c`, `7`},
		{`m[s]`, `null`},
		{`m["k"]`, `"v"`},
		{`steps["fetch one"].data[1]`, `20`},
		{`m?.a?.q?.r`, `null`},
		{`m.list[n - 2].x`, `2`},
		{`m.get("k")`, `"v"`},
		{`m.get("q", 5)`, `5`},
		{`(null).x`, `null`},
		{`xs[1:]`, `[2,3]`},
		{`xs[:-1]`, `[1,2]`},
		{`u[1]`, `"é"`},
		{`u[1:3]`, `"él"`},
		{`null[0:1]`, `null`},

		// numbers
		{`1 + 2 * 3`, `7`},
		{`4 / 2`, `2`},
		{`3 / 2`, `1.5`},
		{`-7 % 3`, `-1`},
		{`2 ** 10`, `1024`},
		{`-2 ** 2`, `-4`},
		{`2 ** 3 ** 2`, `512`},
		{`1.0`, `1`},
		{`1e2`, `100`},
		{`big`, `9223372036854775807`},
		{`huge`, `18446744073709551615`},
		{`18446744073709551615 == huge`, `true`},
		{`-9223372036854775808`, `-9223372036854775808`},
		{`0.1 + 0.2`, `0.30000000000000004`},
		{`+n - -n`, `6`},
		{`-f`, `-1.5`},
		{`1..4`, `[1,2,3,4]`},
		{`3 in 1..4`, `true`},

		// comparison
		{`n == 3 and n != 4`, `true`},
		{`"1" == 1`, `false`},
		{`null == 0`, `false`},
		{`null == false`, `false`},
		{`xs == [1, 2, 3]`, `true`},
		{`m.a == {"b": {"c": 7}}`, `true`},
		{`null < 1`, `false`},
		{`not (null < 1)`, `true`},
		{`1 < n < 5`, `true`},
		{`1 < n < 3`, `false`},
		{`"a" < "b"`, `true`},
		{`2 in xs`, `true`},
		{`9 not in xs`, `true`},
		{`"ell" in s`, `true`},
		{`"k" in m`, `true`},
		{`1 in null`, `false`},
		{`null in xs`, `false`},
		{`s contains "ell"`, `true`},
		{`null contains "a"`, `false`},
		{`s startsWith "He" and s endsWith "lo"`, `true`},
		{`s matches "^H.l+o$"`, `true`},
		{`null matches "a"`, `false`},
		{`s not matches '^\d+$'`, `true`},
		{`f == 1.5`, `true`},
		{`3.0 == n`, `true`},
		{`let x = 1; x == "a"`, `false`},
		{`[1, "a"] == xs`, `false`},
		{`1 == "a"`, `false`},

		// truth
		{`zero or "x"`, `"x"`},
		{`n or "x"`, `3`},
		{`e or none_ or {} or "last"`, `"last"`},
		{`zero and n`, `0`},
		{`n and s`, `"Hello"`},
		{`n > 1 and s`, `"Hello"`},
		{`n > 9 and s`, `false`},
		{`n > 1 or s`, `true`},
		{`n > 9 or s`, `"Hello"`},
		{`yes and no`, `false`},
		{`not e`, `true`},
		{`!xs`, `false`},
		{`not null and not zero`, `true`},
		{`e ? 1 : 2`, `2`},
		{`xs ? "some" : "none"`, `"some"`},
		{`s ?: "x"`, `"Hello"`},
		{`e ?: "x"`, `"x"`},
		{`"a" if zero else "b"`, `"b"`},
		{`if none_ { 1 } else if n { 2 } else { 3 }`, `2`},
		{`null ?? "d"`, `"d"`},
		{`zero ?? "d"`, `0`},
		{`m.q ?? m.k ?? 1`, `"v"`},
		{`null if n else 1`, `null`},
		{`(yes ? null : null) == null`, `true`},

		// text, lists, maps
		{`s ~ "-" ~ n ~ null ~ true`, `"Hello-3true"`},
		{`"a" ~ xs ~ {"k": 1.0}`, `"a[1,2,3]{\"k\":1}"`},
		{`"a" + "b"`, `"ab"`},
		{`xs + [4]`, `[1,2,3,4]`},
		{`{a: n, "b": s, (s): 1, (n): 2}`, `{"3":2,"Hello":1,"a":3,"b":"Hello"}`},
		{`[n, null, [s]]`, `[3,null,["Hello"]]`},
		{`(500, 502)`, `[500,502]`},
		{`status in (500, 502, 503)`, `true`},

		// Jinja
		{`response.paging.page | int + 1`, `3`},
		{`s | lower`, `"hello"`},
		{`xs | length`, `3`},
		{`null | length`, `0`},
		{`null | lower`, `""`},
		{`null | default("d")`, `"d"`},
		{`"3.7" | int`, `3`},
		{`2.345 | round(2)`, `2.35`},
		{`xs | first`, `1`},
		{`xs | last`, `3`},
		{`null | first`, `null`},
		{`xs | join("-")`, `"1-2-3"`},
		{`s | replace("l", "L")`, `"HeLLo"`},
		{`m.a | tojson`, `"{\"b\":{\"c\":7}}"`},
		{`s | b64encode`, `"SGVsbG8="`},
		{`n | string`, `"3"`},
		{`n | float`, `3`},
		{`x is defined`, `false`},
		{`null is none`, `true`},
		{`m.a is mapping and xs is sequence and s is string and f is number and yes is boolean`, `true`},
		{`yes is true and no is false and n is not true`, `true`},
		{`'t' if yes | string | lower == 'true' else 'f'`, `"t"`},
		{`xs | map(# * 2) | sum`, `12`},

		// predicates
		{`filter(users, .age > 26)`, `[{"age":31,"name":"Ann","ok":true}]`},
		{`map(filter(users, .ok), .name)`, `["Ann","Cy"]`},
		{`users | filter(.ok) | map(.name) | join(",")`, `"Ann,Cy"`},
		{`any(users, .age == null)`, `true`},
		{`all(users, .name)`, `true`},
		{`none(users, .name == "Zed")`, `true`},
		{`one(users, .age == 25)`, `true`},
		{`count(users, .ok)`, `2`},
		{`sum(users, .age ?? 0)`, `56`},
		{`find(users, .age < 30).name`, `"Bob"`},
		{`findLast(users, .ok).name`, `"Cy"`},
		{`findIndex(users, .name == "Cy")`, `2`},
		{`findLastIndex(users, .name == "Q")`, `null`},
		{`1 + findLastIndex(xs, # < 3)`, `2`},
		{`[n, findLast(xs, # < 3), findLast(null, # < 3), n]`, `[3,2,null,3]`},
		{`map(xs, let y = #; findLast(xs, # <= y) * 2)`, `[2,4,6]`},
		{`sortBy(users, .name, "desc") | map(.name)`, `["Cy","Bob","Ann"]`},
		{`sortBy(users, .age) | map(.name)`, `["Cy","Bob","Ann"]`},
		{`groupBy(xs, # % 2 == 0 ? "even" : "odd")`, `{"even":[2],"odd":[1,3]}`},
		{`reduce(xs, #acc + #, 10)`, `16`},
		{`reduce(xs, #acc + #)`, `6`},
		{`reduce(none_, #acc + #, 0)`, `0`},
		{`map(xs, #index)`, `[0,1,2]`},
		{`map(xs, {"v": #, "m": # * 10})`, `[{"m":10,"v":1},{"m":20,"v":2},{"m":30,"v":3}]`},
		{`map(xs, [#, [#]])`, `[[1,[1]],[2,[2]],[3,[3]]]`},
		{`map(xs, null)`, `[null,null,null]`},
		{`map(xs, let y = #; y + 1)`, `[2,3,4]`},
		{`map(xs, let y = #; map(xs, # * y))`, `[[1,2,3],[2,4,6],[3,6,9]]`},
		{`map(null, # + 1)`, `[]`},
		{`filter([1, "a", null], # == "a")`, `["a"]`},
		{`filter(users, {let a = .age; a and a > 30}) | len`, `1`},
		{`map(xs, # > 1 and #)`, `[false,2,3]`},

		// let
		{`let a = n; let b = a + 1; a * b`, `12`},
		{`let m = m.a; m.b.c`, `7`},
		{`(let x = 1; x) + (let x = 2; x)`, `3`},

		// names that expr knows otherwise
		{`date`, `null`},
		{`count`, `null`},
		{`type == null`, `true`},
		{`filter is not defined`, `true`},

		// time
		{`now()`, `"2026-03-01T12:30:00Z"`},
	} {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()

			result, err := evaluate(t, c.source, scope)
			require.NoError(t, err)

			got, err := expression.Encode(result)
			require.NoError(t, err)
			require.Equal(t, c.result, string(got))

			canonical, err := expression.Canonical(result)
			require.NoError(t, err)
			require.Equal(t, canonical, result, "the result is canonical")

			program, _ := expression.Compile(c.source)
			again, err := evaluate(t, program.Printed(), scope)
			require.NoError(t, err, program.Printed())
			require.Equal(t, result, again, program.Printed())
		})
	}
}

func TestEvalErrors(t *testing.T) {
	t.Parallel()

	scope := testScope(t)

	for _, c := range []struct {
		source  string
		at      int
		message string
	}{
		{`1 + response.paging.zz`, 4, `response.paging.zz is missing (nil), so "1 + response.paging.zz" cannot be calculated; ` +
			`if it may be missing, use a default: (response.paging.zz | default(0))`},
		{`(n * zz) - 1`, 5, `zz is missing (nil), so "n * zz" cannot be calculated; ` +
			`if it may be missing, use a default: (zz | default(0))`},
		{`n + (m.q or null)`, 5, `m.q or null is missing (nil), so "n + (m.q or null)" cannot be calculated; ` +
			`if it may be missing, use a default: default(m.q or null, 0)`},
		{`-m.q`, 1, `m.q is missing (nil), so "-m.q" cannot be calculated; if it may be missing, use a default: (m.q | default(0))`},
		{`"é" ~ (q ** 2)`, 7, `q is missing (nil), so "q ** 2" cannot be calculated; ` +
			`if it may be missing, use a default: (q | default(0))`},
		{`1 + users.total`, 4, `users.total is missing (nil), as users is a list of 3, so "1 + users.total" cannot be calculated; ` +
			`if it may be missing, use a default: (users.total | default(0))`},
		{`1 + m.list[0].rows`, 4, `m.list[0].rows is missing (nil), so "1 + m.list[0].rows" cannot be calculated; ` +
			`if it may be missing, use a default: (m.list[0].rows | default(0))`},
		{`map(users, .age + 1)`, 11, `.age is missing (nil), so ".age + 1" cannot be calculated; ` +
			`if it may be missing, use a default: (.age | default(0))`},
		{`reduce(none_, #acc + #)`, 0, `reduce of an empty list needs a start value, as in reduce(xs, #acc + #, 0)`},
	} {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()

			_, err := evaluate(t, c.source, scope)

			var located *expression.Error

			require.ErrorAs(t, err, &located)
			require.Equal(t, c.message, located.Message)
			require.Equal(t, c.message, located.Error())
			require.Equal(t, c.at, located.Offset)
		})
	}
}

// Errors whose text belongs to the operators and functions: here only the
// place matters, and that there is an error at all.
func TestEvalErrorPlaces(t *testing.T) {
	t.Parallel()

	scope := testScope(t)

	for _, c := range []struct {
		source string
		at     int
	}{
		{`n + s`, 2},
		{`s < n`, 2},
		{`1 + n / zero`, 6},
		{`n % zero`, 2},
		{`big + 1`, 4},
		{`"é" ~ int(m)`, 6},
		{`null | int`, 7},
		{`s | int`, 4},
		{`filter(s, # == "H")`, 0},
		{`any(m, # == 1)`, 0},
		{`{(m): 1}`, 2},
		{`m matches "a"`, 2},
		{`sortBy(xs, #, "up")`, 0},
	} {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()

			_, err := evaluate(t, c.source, scope)

			var located *expression.Error

			require.ErrorAs(t, err, &located)
			require.Equal(t, c.at, located.Offset, located.Message)
			require.NotContains(t, located.Message, "interface conversion")
		})
	}
}

func TestNowNeedsATime(t *testing.T) {
	t.Parallel()

	program, problems := expression.Compile(`1 + unix(now())`)
	require.Empty(t, problems)

	_, err := program.Eval(expression.MapScope{}, expression.NewBudget(expression.DecisionLimits, time.Time{}))

	var located *expression.Error

	require.ErrorAs(t, err, &located)
	require.Equal(t, 9, located.Offset)
}

// A result that is small in memory can be huge as JSON.
func TestResultSize(t *testing.T) {
	t.Parallel()

	source := `let v0 = [1]; `
	for i := range 30 {
		source += `let v` + string(rune('a'+i%26)) + string(rune('a'+i/26)) + ` = [` + last(i) + `, ` + last(i) + `]; `
	}

	_, err := evaluate(t, source+last(30), expression.MapScope{})
	require.ErrorContains(t, err, "the result has more than 4194304 bytes as JSON")

	big := make([]any, 1000)
	for i := range big {
		big[i] = string(make([]byte, 5000))
	}

	_, err = evaluate(t, `{"a": big}`, expression.MapScope{"big": big})
	require.ErrorContains(t, err, "the result has more than 4194304 bytes as JSON")
}

func last(i int) string {
	if i == 0 {
		return "v0"
	}

	i--
	return "v" + string(rune('a'+i%26)) + string(rune('a'+i/26))
}

// What an expression returns crosses Temporal unchanged.
func TestResultsSurviveJSON(t *testing.T) {
	t.Parallel()

	scope := testScope(t)

	for _, source := range []string{`big`, `huge`, `4 / 2`, `2.5 ** 70`, `1e20`, `[big, 1.5, {"a": huge}]`, `100000.0 * 10`} {
		result, err := evaluate(t, source, scope)
		require.NoError(t, err, source)

		data, err := json.Marshal(expression.Of(result))
		require.NoError(t, err, source)

		var back expression.Value

		require.NoError(t, json.Unmarshal(data, &back), source)
		require.Equal(t, result, back.Data, source)
	}
}

// TestConditionsAreCheap: a condition is evaluated for every policy after every
// attempt.
func TestConditionsAreCheap(t *testing.T) { // it counts allocations
	scope := expression.MapScope{
		"error":  map[string]any{"status": 503, "class": "rate_limited"},
		"_retry": map[string]any{"attempt": 2}, "response": map[string]any{"paging": map[string]any{"hasMore": true}},
	}
	decision := budget()

	for _, source := range conditions {
		condition, problems := expression.ParseCondition(source)
		require.Empty(t, problems)
		require.Less(t, testing.AllocsPerRun(1000, func() { _, _ = condition.Render(scope, decision) }), 5.0, source)
	}
}

// TestEvaluationsLeaveNothingBehind: what one has seen is gone for the next,
// also when it failed, had predicates or let.
func TestEvaluationsLeaveNothingBehind(t *testing.T) {
	t.Parallel()

	for _, source := range []string{`x`, `let y = x; y`, `first([x] | map(# ?? x))`, `[1, 2, x][2]`} {
		program, problems := expression.Compile(source)
		require.Empty(t, problems)

		failing, problems := expression.Compile(`x + [1]`)
		require.Empty(t, problems)

		for range 3 {
			v, err := program.Eval(expression.MapScope{"x": "seen"}, budget())
			require.NoError(t, err)
			require.Equal(t, "seen", v, source)

			_, err = failing.Eval(expression.MapScope{"x": "seen"}, budget())
			require.Error(t, err)

			v, err = program.Eval(expression.MapScope{}, budget())
			require.NoError(t, err)
			require.Nil(t, v, source)
		}
	}
}
