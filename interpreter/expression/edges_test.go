package expression_test

import (
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
		"e23": 1e23, "digits": 99999999999999991611392, "xs": [1, 2, 3], "s": "Hello", "empty": []
	}`))
	require.NoError(t, err)

	scope := expression.MapScope(data.(map[string]any))

	for source, result := range map[string]string{
		// numbers beyond 64 bits, on either side
		`[n < huge, n > huge, huge < n, huge > n]`: `[true,false,false,true]`,
		`[n < low, n > low, low < n, low > n]`:     `[false,true,true,false]`,
		`[lower < low, low < lower, low < huge]`:   `[true,false,true]`,
		`[e23 < digits, e23 > digits]`:             `[false,false]`,
		`[e23 < digits + 0, digits == e23]`:        `[false,true]`,

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
		`s < xs`:             "cannot compare string with list; only two numbers or two strings have an order",
		`xs < n`:             "cannot compare list with number; only two numbers or two strings have an order",
		`s < n`:              "int(x) or float(x) makes a number of a string",
		`take(xs, -1)`:       "not negative",
		`date(253402300800)`: "beyond the year 9999",
		`least - 1`:          "64 bits",
		`-1 * least`:         "64 bits",
		`int("+")`:           "int",
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
