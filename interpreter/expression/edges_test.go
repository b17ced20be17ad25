package expression_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

// TestEvalEdges are the first and last cases of rules: what is at 0, at an end, or
// just inside a bound.
func TestEvalEdges(t *testing.T) {
	t.Parallel()

	data, err := expression.Decode([]byte(`{
		"n": 3, "least": -9223372036854775808, "huge": 18446744073709551615, "low": -18446744073709551615, "lower": -18446744073709551616,
		"e23": 1e23, "digits": 100000000000000000000000, "other": 99999999999999991611392, "long": 123456789012345678.5, "xs": [1, 2, 3], "s": "Hello", "empty": []
	}`))
	require.NoError(t, err)

	scope := expression.MapScope(data.(map[string]any))

	for source, result := range map[string]string{
		// numbers beyond 64 bits, on either side
		`[n < huge, n > huge, huge < n, huge > n]`: `[true,false,false,true]`,
		`[n < low, n > low, low < n, low > n]`:     `[false,true,true,false]`,
		`[lower < low, low < lower, low < huge]`:   `[true,false,true]`,
		`[e23 < digits, e23 > digits]`:             `[false,false]`,
		`[e23 < digits + 0.5, digits == e23]`:      `[false,true]`,
		`[e23 == other, e23 > other]`:              `[false,true]`, // 1e23 has the float of other

		// digits that a float does not have
		`[long == 123456789012345680, long < 123456789012345679, long > 123456789012345678]`:  `[false,true,true]`,
		`[1.10 == 1.1, 1.10 in [1.1], "1.10" == string(1.10), 19.90, -19.90, 1.0, 1e2, -0.0]`: `[true,true,true,19.90,-19.90,1,100,0]`,
		`[long, [long], {"a": long}, toJSON(long), string(long), long ~ ""]`: `[123456789012345678.5,[123456789012345678.5],` +
			`{"a":123456789012345678.5},"123456789012345678.5","123456789012345678.5","123456789012345678.5"]`,
		`[int(long), floor(long), ceil(long), int(-long), floor(-long), ceil(-long), round(long), round(-long)]`: `[123456789012345678,123456789012345678,` +
			`123456789012345679,-123456789012345678,-123456789012345679,-123456789012345678,123456789012345679,-123456789012345679]`,
		`[round(12345678901234567890.125, 2), round(1.10, 1), round(19.95, 1), round(1.005, 2), abs(-19.90)]`:          `[12345678901234567890.13,1.1,20,1.01,19.90]`,
		`[int(0.00000000012345678901234567890), ceil(0.00000000012345678901234567890), int(1e-400), round(1e-400, 3)]`: `[0,1,0,0]`,
		`[19.90 + 0, 19.90 * 2, long - 0, sum([0.10, 0.20]), mean([1.10, 1.10])]`:                                      `[19.9,39.8,123456789012345680,0.30000000000000004,1.1]`,
		`[max(1.10, 1.1), min(2.50, 3), sort([1.10, 1.01, 1.1])]`:                                                      `[1.10,2.50,[1.01,1.10,1.1]]`,
		`[groupBy([1.10, 1.1], #), add_time("2024-01-01T00:00:00Z", 1.50), unix(date(1700000000.50))]`:                 `[{"1.1":[1.10,1.1]},"2024-01-01T00:00:01.5Z",1700000000.5]`,
		`[float("+1.5"), float(".50"), float("5."), float("007.25"), float("123456789012345678.5")]`:                   `[1.5,0.5,5,7.25,123456789012345678.5]`,

		// arithmetic that is just not too large
		`n - 0`:       `3`,
		`1 * least`:   `-9223372036854775808`,
		`least * 1`:   `-9223372036854775808`,
		`least % -1`:  `0`,
		`least + 0`:   `-9223372036854775808`,
		`least - 0`:   `-9223372036854775808`,
		`0 - (n - 3)`: `0`,

		// what stands at 0
		`s[0]`:                          `"H"`,
		`s[0:2]`:                        `"He"`,
		`xs[0:2]`:                       `[1,2]`,
		`take(xs, 0)`:                   `[]`,
		`indexOf("abc", "a")`:           `0`,
		`lastIndexOf("abc", "a")`:       `0`,
		`indexOf("abc", "d")`:           `-1`,
		`split("a,b", ",", 0)`:          `[]`,
		`replace("aa", "a", "b", 0)`:    `"aa"`,
		`replace("aa", "a", "b", 1)`:    `"ba"`,
		`int("+9007199254740993")`:      `9007199254740993`,
		`int("0009007199254740993")`:    `9007199254740993`,
		`int("-0009007199254740993")`:   `-9007199254740993`,
		`[int("+0"), int("-00")]`:       `[0,0]`,
		`date(253402300799) is defined`: `true`,

		// what is true without being a truth value
		`(n - 3) ? "yes" : "no"`:             `"no"`,
		`(n + 1) ? "yes" : "no"`:             `"yes"`,
		`-n ? "yes" : "no"`:                  `"yes"`,
		`filter(xs, # > 9) ? "yes" : "no"`:   `"no"`,
		`map(xs, #) ? "yes" : "no"`:          `"yes"`,
		`not filter(xs, # > 9)`:              `true`,
		`any(xs, filter(xs, # > 9))`:         `false`,
		`[one(xs, # == 1), none(xs, # > 3)]`: `[true,true]`,

		"\"\\U0010ffff\" == \"\U0010ffff\"": `true`,
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()

			got, err := evaluate(t, source, scope)
			require.NoError(t, err)

			text, err := expression.Encode(got)
			require.NoError(t, err)
			require.Equal(t, result, string(text))
		})
	}

	for source, says := range map[string]string{
		`groupBy([1, 1.0, "1"], #)`: `groupBy would put keys of two types, number and string, into one group, since both become the text "1"; make them one type, such as string(.id)`,
		`groupBy(["", nil], #)`:     `groupBy would put keys of two types, string and nil, into one group, since both become the text ""; make them one type, such as .id ?? "none"`,
		`s < xs`:                    "cannot compare string with list; only two numbers or two strings have an order",
		`xs < n`:                    "cannot compare list with number; only two numbers or two strings have an order",
		`xs < s`:                    "cannot compare list with string; only two numbers or two strings have an order",
		`n < s`:                     "int(x) or float(x) makes a number of a string",
		`s < n`:                     "int(x) or float(x) makes a number of a string",
		`take(xs, -1)`:              "not negative",
		`date(253402300800)`:        "beyond the year 9999",
		`least - 1`:                 "64 bits",
		`-1 * least`:                "64 bits",
		`int("+")`:                  "int",
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()

			_, err := evaluate(t, source, scope)
			require.ErrorContains(t, err, says)
		})
	}
}

// TestReadingEdges: the reader ends where the data does, and takes every digit of a
// character's number.
func TestReadingEdges(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		`"\`, `"\u`, `"\u00`, `"\ud83d\`, `"\ud83d\u`, `"\ud83d\u00`, `"\n`, `"`, `-`, `[-]`, `[1.]`, `[1e]`, `[1e+]`, `[.5]`, `[1.e5]`, `tru`, `[1,`, `{"a":`,
	} {
		_, err := expression.Decode([]byte(text))
		require.Error(t, err, text)
	}

	for text, want := range map[string]string{
		`"\u0039\u00af\u00fa\u00AF\u0030"`: "9\u00af\u00fa\u00af0", `"\ud83d\ude00"`: "😀", `"é\n"`: "é\n", "\"a\xffb\"": "a\ufffdb",
		"\"a\u2028\"": "a\u2028",
	} {
		got, err := expression.Decode([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

// TestSizeIsWhatIsWritten: what is counted is what encoding/json writes.
func TestSizeIsWhatIsWritten(t *testing.T) {
	t.Parallel()

	for _, value := range []any{
		nil, true, false, 0, -1, 12345, 1.5, -1e-7, 1e21, json.Number("18446744073709551615"),
		"", "a", "é", "\u2028", "\u2029", "a\u2028\u2029b", "\u2027\u202a", "\ufffd", "a\xffb", "\xe2\x80", "\x00\x1f \x7f", "\"\\\n\r\t\b\f", "<>&", "😀",
		[]any{},
		[]any{1},
		[]any{1, "b", nil},
		[]any{[]any{[]any{}}},
		map[string]any{},
		map[string]any{"a": 1},
		map[string]any{"a": 1, "é\n": []any{2, 3}},
	} {
		text, err := json.Marshal(value)
		require.NoError(t, err)

		counted, ok := expression.SizeOf(value, 100)
		require.True(t, ok)
		require.GreaterOrEqual(t, counted, len(text)-18, "%s", text) // <, > and & stay in what expressions write
	}
}

// TestDepthIsBounded: lists and maps go a thousand deep, whatever is done with them.
func TestDepthIsBounded(t *testing.T) {
	t.Parallel()

	for depth, fits := range map[int]bool{1000: true, 1001: false} {
		for name, around := range map[string]func(any) any{
			"lists": func(v any) any { return []any{v} },
			"maps":  func(v any) any { return map[string]any{"a": v} },
		} {
			var value any = 1
			for range depth {
				value = around(value)
			}

			_, err := expression.Canonical(value)
			require.Equal(t, fits, err == nil, "Canonical of %d %s", depth, name)

			_, ok := expression.SizeOf(value, 1<<20)
			require.Equal(t, fits, ok, "sizeOf %d %s", depth, name)

			text, err := json.Marshal(value)
			require.NoError(t, err)

			_, err = expression.Decode(text)
			require.Equal(t, fits, err == nil, "Decode of %d %s", depth, name)
		}
	}
}

// TestSuggestEdges: swapped neighbours are one change, and half of a name at most is
// changed.
func TestSuggestEdges(t *testing.T) {
	t.Parallel()

	for _, test := range []struct{ name, known, want string }{
		{"ab", "ba", "ba"},
		{"abcd", "badc", "badc"},
		{"a", "b", ""},
		{"ab", "cd", ""},
		{"ab", "ac", "ac"},
		{"abc", "xyz", ""},
		{"abcde", "abc", "abc"},
		{"abcdef", "abc", ""},
		{"abc", "abcde", ""},
		{"abcd", "abcdef", "abcdef"},
		{"abcd", "abcdefg", ""},
		{"Name", "name", "name"},
		{"name", "name", ""},
		{"", "a", ""},
	} {
		require.Equal(t, test.want, expression.Suggest(test.name, []string{test.known}), "%s for %s", test.known, test.name)
	}

	long := strings.Repeat("a", 100)
	require.Equal(t, long+"b", expression.Suggest(long, []string{long + "b"}))
	require.Empty(t, expression.Suggest(long+"a", []string{long + "b"}))
}

// TestPlacesOfProblems: an editor marks exactly what is wrong, in the order of the
// text.
func TestPlacesOfProblems(t *testing.T) {
	t.Parallel()

	compile := func(source string) []expression.Problem {
		_, problems := expression.Compile(source)
		return problems
	}
	template := func(source string) []expression.Problem {
		_, problems := expression.ParseTemplate(source)
		return problems
	}
	condition := func(source string) []expression.Problem {
		_, problems := expression.ParseCondition(source)
		return problems
	}

	for _, test := range []struct {
		parse  func(string) []expression.Problem
		source string
		want   string // code and what is marked
	}{
		{template, "{{- a }}", "jinja-block {{-"},
		{template, "{{ a -}}", "jinja-block -}}"},
		{template, "{{-1 }}{{-.5}}", ""},
		{template, "{{-.}}", "jinja-block {{-|syntax ."},
		{template, "{{-}}", "jinja-block {{-|syntax "},
		{template, "x {{ a", "syntax {{"},
		{template, "{{ a }", "syntax {{"},
		{template, "{{}}", "syntax "},
		{template, "{{ a }} {", ""},
		{template, "{{ {a: {}}}}", ""},
		{template, "{", ""},
		{template, "{% x", ""},
		{template, "x {% if %}{% end %} y", "jinja-block {% if %}|jinja-block {% end %}"},
		{template, "{# a #}{{ a }}", "jinja-block {# a #}"},
		{template, "{{ '{% x %}' }}{% y %}", "jinja-block {% y %}"},
		{template, "{{ lowr(a) }} {% x %} {{ b c }}", "unknown-function lowr|jinja-block {% x %}|syntax c"},
		{condition, "a {", "syntax {"},
		{condition, "{", "syntax {"},
		{condition, "'{{' == a", ""},
		{condition, "a == '{{' ~ '{{ b'", ""},
		{condition, "'a'{{ b }}", "condition-text 'a'"},
		{condition, "a }}", "syntax }"},
		{compile, `"é\u12"`, `syntax \u`},
		{compile, `"ab\ud83dx"`, `syntax \ud83d`},
		{compile, `"\ud83d\u0041"`, `syntax \ud83d\u0041`},
		{compile, `A"x"`, `syntax "x"`},
		{compile, `B"x"`, "syntax B"},
		{compile, "[1, 2,]", ""},
		{compile, "lowr(b) ~ (b c)", "unknown-function lowr|syntax c"},
	} {
		var said []string
		for _, problem := range test.parse(test.source) {
			said = append(said, problem.Code+" "+string([]rune(test.source)[problem.Offset:problem.End]))
		}

		require.Equal(t, test.want, strings.Join(said, "|"), "%s", test.source)
	}
}

// TestChargesAddUp: what was charged before counts when a value is written.
func TestChargesAddUp(t *testing.T) {
	t.Parallel()

	program, problems := expression.Compile(`toJSON(x)`)
	require.Empty(t, problems)

	scope := expression.MapScope{"x": strings.Repeat("a", 1000)}
	b := expression.NewBudget(expression.Limits{Steps: 10_000, Bytes: 2500}, started)

	for range 2 {
		_, err := program.Eval(scope, b)
		require.NoError(t, err)
	}

	_, err := program.Eval(scope, b)
	require.Error(t, err)
}

// TestDecodeExact: what others write is refused where a value would lose a part of it, with the place; what Decode
// reads otherwise is read.
func TestDecodeExact(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		`{"v":1,"v":2}`:                          `the key "v" occurs twice in the object that ends at byte 13`,
		`[{"a":{"b":1,"c":2,"b":null}}]`:         `the key "b" occurs twice in the object that ends at byte 28`,
		`{"v":1,"\u0076":2}`:                     `the key "v" occurs twice in the object that ends at byte 18`,
		`["ok","\ud83d"]`:                        `the text at byte 6 has half of a surrogate pair`,
		`{"a\udc00":1}`:                          `the text at byte 1 has half of a surrogate pair`,
		"{\"v\":1,\n\"v\":{\"w\":\"\\ud83dx\"}}": `half of a surrogate pair`,
	} {
		_, err := expression.DecodeExact([]byte(text))
		require.ErrorIs(t, err, expression.ErrInexact, text)
		require.ErrorContains(t, err, want, text)
		_, err = expression.Decode([]byte(text))
		require.NoError(t, err, text)
	}

	for _, text := range []string{`{"v":1,"V":2,"w":{"v":3}}`, `["\ud83d\ude00","\u00e9"]`, `{"":1}`, `[{"a":1},{"a":2}]`, `{}`} {
		exact, err := expression.DecodeExact([]byte(text))
		require.NoError(t, err, text)
		plain, err := expression.Decode([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, plain, exact, text)
	}
	_, err := expression.DecodeExact([]byte(`{"v":1,"v"`))
	require.ErrorContains(t, err, "not JSON")
}

// TestPlainText: numbers have digits alone, as far as these are no more than a number may have; everything else is as Text has it.
func TestPlainText(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		value any
		want  string
	}{
		{2.3e49, "23000000000000000000000000000000000000000000000000"},
		{-1e-7, "-0.0000001"},
		{1e21, "1000000000000000000000"},
		{5e-324, "0." + strings.Repeat("0", 323) + "5"},
		{0.5, "0.5"},
		{json.Number("1.20e-3"), "0.00120"},
		{json.Number("-0.150e1"), "-1.50"},
		{json.Number("0.1e5"), "10000"},
		{json.Number("0.00e1"), "0.0"},
		{json.Number("1.50E+1"), "15.0"},
		{json.Number("19.90"), "19.90"},
		{json.Number("1e999"), "1" + strings.Repeat("0", 999)},
		{json.Number("1e1000"), "1e1000"},
		{json.Number("1e-1002"), "1e-1002"},
		{json.Number("1e99999999999999999999"), "1e99999999999999999999"},
		{json.Number("0e-99999999999999999999"), "0e-99999999999999999999"},
		{json.Number("0e1001"), "0"},
		{"1e3", "1e3"},
		{map[string]any{"a": 1e21}, `{"a":1e+21}`},
		{7, "7"},
		{nil, ""},
	} {
		require.Equal(t, test.want, expression.PlainText(test.value))
	}
}
