package expression_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

func TestCanonical(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		name string
		in   any
		out  any
	}{
		{"nil", nil, nil},
		{"int32", int32(7), 7},
		{"uint8", uint8(7), 7},
		{"largest uint64", uint64(math.MaxUint64), json.Number("18446744073709551615")},
		{"uint64 within int", uint64(9), 9},
		{"whole float", 3.0, 3},
		{"fraction", 1.5, 1.5},
		{"float32", float32(0.5), 0.5},
		{"minus zero", math.Copysign(0, -1), 0},
		{"least int as float", -9223372036854775808.0, math.MinInt64},
		{"just beyond int", 9223372036854775808.0, json.Number("9223372036854776000")},
		{"digits below 1e21", 1e20, json.Number("100000000000000000000")},
		{"exponent from 1e21", 1e21, 1e21},
		{"number int", json.Number("-5"), -5},
		{"number minus zero", json.Number("-0"), 0},
		{"number with exponent", json.Number("1e2"), 100},
		{"number beyond int", json.Number("123456789012345678901234567890"), json.Number("123456789012345678901234567890")},
		{"number beyond float", json.Number("1e400"), json.Number("1e400")},
		{"text", "é", "é"},
		{"not UTF-8", "a\xff\xfeb", "a\ufffd\ufffdb"},
		{"texts", []string{"a", "b"}, []any{"a", "b"}},
		{"map of texts", map[string]string{"k\xff": "v"}, map[string]any{"k\ufffd": "v"}},
		{"nil list", []any(nil), []any{}},
		{"nil map", map[string]any(nil), map[string]any{}},
		{"time", time.Date(2026, 1, 2, 3, 4, 5, 600, time.FixedZone("", 3600)), "2026-01-02T02:04:05.0000006Z"},
		{"raw", json.RawMessage(`{"a":[1.0]}`), map[string]any{"a": []any{1}}},
		{"value", expression.Of([]any{1}), []any{1}},
		{"nested", []any{map[string]any{"a": int64(1)}}, []any{map[string]any{"a": 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()

			got, err := expression.Canonical(c.in)
			require.NoError(t, err)
			require.Equal(t, c.out, got)
		})
	}
}

// TestCanonicalRefuses passes maxDepth.
func TestCanonicalRefuses(t *testing.T) {
	t.Parallel()

	circle := map[string]any{}
	circle["me"] = circle

	for message, v := range map[string]any{
		"NaN is not a number":   math.NaN(),
		"+Inf is not a number":  []any{math.Inf(1)},
		`"1 " is not a number`:  json.Number("1 "),
		`"0x1" is not a number`: json.Number("0x1"),
		`"" is not a number`:    json.Number(""),
		"values of type struct": struct{}{},
		"values of type map[in": map[any]any{},
		"more than 1000 deep":   circle,
		"not JSON":              json.RawMessage("{"),
	} {
		_, err := expression.Canonical(v)
		require.ErrorContains(t, err, message)
	}
}

func TestCanonicalCopies(t *testing.T) {
	t.Parallel()

	list := []any{1, map[string]any{"a": 1}}

	copied, err := expression.Canonical(list)
	require.NoError(t, err)

	list[0] = 2
	list[1].(map[string]any)["a"] = 2

	require.Equal(t, []any{1, map[string]any{"a": 1}}, copied)
}

func TestDecode(t *testing.T) {
	t.Parallel()

	for source, message := range map[string]string{
		``:    "the text is empty",
		`  `:  "the text is empty",
		`1 2`: "more text after",
		`1}`:  "more text after",
		`{a}`: "not JSON: invalid character 'a' at start of string (expecting '\"') at byte 1",
		`NaN`: "not JSON: invalid character 'N' at start of value at byte 0",

		`{"a": [1, 2`:           "not JSON: unexpected EOF at byte 11",
		`{"password": "x" "y"}`: `not JSON: invalid character '"' after object value (expecting ',' or '}') at byte 17`,
		strings.Repeat("[", 1002) + strings.Repeat("]", 1002): "more than 1000 deep",
	} {
		_, err := expression.Decode([]byte(source))
		require.ErrorContains(t, err, message, source)
	}

	deep := strings.Repeat("[", 1001) + strings.Repeat("]", 1001)
	v, err := expression.Decode([]byte(deep))
	require.NoError(t, err)
	require.Equal(t, deep, expression.Text(v))
}

func TestLongNumbersAreRefused(t *testing.T) {
	t.Parallel()

	digits := strings.Repeat("7", expression.MaxDigits)

	for _, number := range []string{digits, "-" + digits, "0." + digits[1:], digits[2:] + "e99"} {
		_, err := expression.Decode([]byte(`{"n": [` + number + `]}`))
		require.NoError(t, err)
	}

	for number, message := range map[string]string{
		digits + "7":                     "at byte 7: the number 7777777777777777777777777777777777777777… has 1001 digits: a number may have at most 1000",
		"-" + digits + "7":               "at byte 7: the number -777777777777777777777777777777777777777… has 1001 digits",
		"0." + digits:                    "has 1001 digits",
		digits[1:] + "e99":               "has 1001 digits",
		strings.Repeat("7", 1_000_000):   "has 1000000 digits",
		"1e" + strings.Repeat("9", 1001): "has 1002 digits",
	} {
		_, err := expression.Decode([]byte(`{"n": [` + number + `]}`))
		require.ErrorIs(t, err, expression.ErrLongNumber)
		require.ErrorContains(t, err, message)

		_, err = expression.Canonical([]any{json.Number(number)})
		require.ErrorIs(t, err, expression.ErrLongNumber)

		var v expression.Value

		require.ErrorIs(t, json.Unmarshal([]byte(number), &v), expression.ErrLongNumber)
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()

	data, err := expression.Encode(map[string]any{"b": "<&>", "a": []any{1, 1.5, nil, true, json.Number("1e400")}})
	require.NoError(t, err)
	require.Equal(t, `{"a":[1,1.5,null,true,1e400],"b":"<&>"}`, string(data))

	_, err = expression.Encode(math.NaN())
	require.Error(t, err)
}

// Whatever a value holds, a trip through encoding/json, which is what Temporal
// makes, gives the same value back.
func TestCanonicalIsAFixedPoint(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(1, 2))

	for range 20_000 {
		v, err := expression.Canonical(randomValue(random, 4))
		require.NoError(t, err)

		again, err := expression.Canonical(v)
		require.NoError(t, err)
		require.Equal(t, v, again)

		data, err := json.Marshal(expression.Of(v))
		require.NoError(t, err)

		var back expression.Value

		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, v, back.Data, "%s", data)
		require.True(t, expression.Equal(v, back.Data), "%s", data)
	}
}

func randomValue(random *rand.Rand, depth int) any {
	kinds := 12
	if depth == 0 {
		kinds = 10
	}

	switch random.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return random.IntN(2) == 0
	case 2:
		return int(random.Uint64())
	case 3:
		return random.Uint64()
	case 4:
		return finite(math.Float64frombits(random.Uint64()))
	case 5: // around the borders: 2^53, 2^63, 1e21
		return math.Ldexp(random.Float64()-0.5, 50+random.IntN(25))
	case 6:
		return float64(random.IntN(2000)-1000) / 8
	case 7:
		return json.Number(strings.Repeat("9", 1+random.IntN(40)))
	case 8:
		return json.Number("-1" + strings.Repeat("0", random.IntN(40)) + ".5e" + []string{"-400", "-3", "0", "5", "400"}[random.IntN(5)])
	case 9:
		return randomText(random)
	case 10:
		list := make([]any, random.IntN(4))
		for i := range list {
			list[i] = randomValue(random, depth-1)
		}
		return list
	default:
		m := map[string]any{}
		for range random.IntN(4) {
			m[randomText(random)] = randomValue(random, depth-1)
		}
		return m
	}
}

func finite(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0.25
	}
	return f
}

func randomText(random *rand.Rand) string {
	letters := []string{"a", "é", "\xff", "\xe2\x80\xa8", "<", `"`, `\`, "\n", "\x00", "\x7f", "𝄞", "\xed\xa0\x80"}

	var out strings.Builder
	for range random.IntN(6) {
		out.WriteString(letters[random.IntN(len(letters))])
	}
	return out.String()
}

func TestTruthy(t *testing.T) {
	t.Parallel()

	for _, v := range []any{nil, false, 0, "", []any{}, map[string]any{}} {
		require.False(t, expression.Truthy(v), "%#v", v)
	}

	for _, v := range []any{true, 1, -1, 0.5, json.Number("1e400"), "0", "false", " ", []any{nil}, map[string]any{"": nil}} {
		require.True(t, expression.Truthy(v), "%#v", v)
	}
}

func TestTextAndTypeName(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		v          any
		text, name string
	}{
		{nil, "", "nil"},
		{true, "true", "boolean"},
		{-7, "-7", "number"},
		{1.5, "1.5", "number"},
		{1e21, "1e+21", "number"},
		{json.Number("18446744073709551615"), "18446744073709551615", "number"},
		{"007", "007", "string"},
		{[]any{1, "a", nil}, `[1,"a",null]`, "list"},
		{map[string]any{"b": 1, "a": "<"}, `{"a":"<","b":1}`, "map"},
	} {
		require.Equal(t, c.text, expression.Text(c.v))
		require.Equal(t, c.name, expression.TypeName(c.v))
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()

	list := []any{1, map[string]any{"a": []any{nil}}}

	for _, c := range []struct {
		a, b  any
		equal bool
	}{
		{nil, nil, true},
		{nil, false, false},
		{nil, 0, false},
		{"1", 1, false},
		{1, true, false},
		{json.Number("9223372036854775808"), math.MaxInt64, false},
		{json.Number("18446744073709551615"), json.Number("18446744073709551615"), true},
		{json.Number("1000000000000000000000"), 1e21, true},
		{json.Number("1e400"), json.Number("10e399"), true},
		{json.Number("1e400"), json.Number("-1e400"), false},
		{json.Number("1e9223372036854775807"), 1, false},
		{json.Number("1e9223372036854775807"), json.Number("-1e9223372036854775807"), false},
		{list, []any{1, map[string]any{"a": []any{nil}}}, true},
		{list, []any{1, map[string]any{"a": []any{0}}}, false},
		{map[string]any{"a": nil}, map[string]any{"b": nil}, false},
		{[]any{}, map[string]any{}, false},
	} {
		require.Equal(t, c.equal, expression.Equal(c.a, c.b), "%v == %v", c.a, c.b)
		require.Equal(t, c.equal, expression.Equal(c.b, c.a), "%v == %v", c.b, c.a)
	}
}

func TestValueIsOmittedWhenNil(t *testing.T) {
	t.Parallel()

	data, err := json.Marshal(struct {
		A expression.Value `json:"a,omitzero"`
		B expression.Value `json:"b,omitzero"`
	}{B: expression.Of(0)})
	require.NoError(t, err)
	require.JSONEq(t, `{"b":0}`, string(data))
}

func TestMerge(t *testing.T) {
	t.Parallel()

	base := decode(t, `{"a": {"b": 1, "c": [1, 2], "kept": 1}, "d": 1, "e": {"f": 1}, "kept": 2}`)
	overlay := decode(t, `{"a": {"b": 2, "c": [3]}, "d": null, "e": 5, "g": {"h": 1}}`)

	merged := expression.MergeMaps(base, overlay)
	require.Equal(t, decode(t, `{"a": {"b": 2, "c": [3], "kept": 1}, "d": null, "e": 5, "g": {"h": 1}, "kept": 2}`), merged)
	require.Equal(t, decode(t, `{"a": {"b": 1, "c": [1, 2], "kept": 1}, "d": 1, "e": {"f": 1}, "kept": 2}`), base)
	require.Equal(t, overlay, expression.MergeMaps(map[string]any(nil), overlay))

	require.Equal(t, base, expression.MergeMaps(base, nil))
	require.Equal(t, overlay, expression.MergeMaps(nil, overlay))
	require.Equal(t, 1, expression.MergeMaps(base, 1))
	require.Equal(t, base, expression.MergeMaps([]any{1}, base))
}

func decode(t testing.TB, source string) any {
	t.Helper()

	v, err := expression.Decode([]byte(source))
	require.NoError(t, err, source)
	return v
}

func TestPath(t *testing.T) {
	t.Parallel()

	data := decode(t, `{"data": {"items": [{"id": 1}, {"id": 2}], "x y": 3, "nothing": null, "5": "five"}}`)

	for _, c := range []struct {
		path  string
		value any
		found bool
	}{
		{"data.items[1].id", 2, true},
		{"data.items[-1].id", 2, true},
		{"data.items.0.id", 1, true},
		{`data["x y"]`, 3, true},
		{`data['x y']`, 3, true},
		{"data.nothing", nil, true},
		{"data.5", "five", true},
		{"data.items[2]", nil, false},
		{"data.items[-3]", nil, false},
		{"data.items.id", nil, false},
		{"data.zz.id", nil, false},
		{"data.nothing.id", nil, false},
	} {
		value, found, err := expression.ValueAtPath(data, c.path)
		require.NoError(t, err, c.path)
		require.Equal(t, c.found, found, c.path)
		require.Equal(t, c.value, value, c.path)
	}

	for _, path := range []string{"", ".", "a.", ".a", "a..b", "a[", "a[x]", "a[1", `a["b`, "a b", "a[0]b", `a"b"`, "{{ a }}"} {
		_, err := expression.ParsePath(path)
		require.ErrorContains(t, err, "is not a path such as data.items", path)
	}

	keys, err := expression.ParsePath(`a.b[0]["c.d"].2`)
	require.NoError(t, err)
	require.Equal(t, []any{"a", "b", 0, "c.d", 2}, keys)
}

func TestSuggest(t *testing.T) {
	t.Parallel()

	known := []string{"response", "result", "retry", "workload", "error", "page", "pages"}

	for name, want := range map[string]string{
		"respnse":  "response",
		"reponse":  "response",
		"resposne": "response",
		"Response": "response",
		"workloda": "workload",
		"paeg":     "page",
		"errors":   "error",
		"xyz":      "",
		"a":        "",
		"":         "",
	} {
		require.Equal(t, want, expression.Suggest(name, known), name)
	}

	require.Equal(t, "aac", expression.Suggest("aab", []string{"aad", "aac"}), "by the alphabet")

	for name, other := range map[string]string{
		"include": "exclude", "exclude": "include", "Import": "export", "min_rows": "max_rows", "max_rows": "min_rows", "gt": "lt", "row_desc": "row_asc",
	} {
		require.Empty(t, expression.Suggest(name, []string{other}), "%s is the opposite of %s", name, other)
	}
	require.Equal(t, "excludes", expression.Suggest("exclude", []string{"include", "excludes"}))
	require.Equal(t, "include", expression.Suggest("inclde", []string{"exclude", "include"}))
}

// TestNumbersPreserveTheirDigits: what is written is what was read, but that a number without a fraction is plain digits.
func TestNumbersPreserveTheirDigits(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]any{
		"7": 7, "-7": -7, "0": 0, "-0": 0, "0.0": 0, "-0.00": 0, "0e5": 0, "7.0": 7, "1e2": 100, "1.50e1": 15, "70e-1": 7,
		"9223372036854775807.0": 9223372036854775807, "12345678901234567e2": 1234567890123456700,
		"18446744073709551615": json.Number("18446744073709551615"), "18446744073709551615.0": json.Number("18446744073709551615"),
		"1e20": json.Number("100000000000000000000"), "12345678901234567890e1": json.Number("123456789012345678900"),
		"123456789012345678901234.0": json.Number("123456789012345678901234"),
		"19.9":                       19.9, "-0.1": -0.1, "1E-7": 1e-7, "1e21": 1e21, "0.30000000000000004": 0.30000000000000004, "1.7976931348623157e308": 1.7976931348623157e308,
		"19.90": json.Number("19.90"), "99999999999999.99": json.Number("99999999999999.99"), "100000000.000000001": json.Number("100000000.000000001"),
		"123456789012345678.5": json.Number("123456789012345678.5"), "1.234567890123456789": json.Number("1.234567890123456789"),
		"1e400": json.Number("1e400"), "-1e-400": json.Number("-1e-400"), "1.10e-7": json.Number("1.10e-7"), "1.7976931348623159e308": json.Number("1.7976931348623159e308"),
		"4.9406564584124654e-324": json.Number("4.9406564584124654e-324"), "5e-324": 5e-324,
	} {
		got := decode(t, text)
		require.Equal(t, want, got, text)

		written, err := expression.Encode(got)
		require.NoError(t, err)
		require.Equal(t, want, decode(t, string(written)), "%s as %s", text, written)

		same, isNumber := expression.ParseNumber(text)
		require.True(t, isNumber, text)
		require.Equal(t, want, same)
	}
	for _, text := range []string{"", "e5", ".", "+", "-", "+-5", "--5", "1..2", "1e", "1e+", "5.e", "0x10", "1_0", " 1", "Infinity", "."} {
		_, isNumber := expression.ParseNumber(text)
		require.False(t, isNumber, text)
	}
}

// TestRandomNumbersPreserveTheirDigits compares with exact arithmetic.
func TestRandomNumbersPreserveTheirDigits(t *testing.T) {
	t.Parallel()

	random := rand.New(rand.NewPCG(5, 6))

	digits := func(most int) string {
		text := make([]byte, 1+random.IntN(most))
		for i := range text {
			text[i] = "0123456789"[random.IntN(10)]
		}
		return string(text)
	}
	for range 20_000 {
		text := strings.TrimLeft(digits(25), "0")
		if text == "" {
			text = "0"
		}
		if random.IntN(3) > 0 {
			text += "." + digits(22)
		}
		if random.IntN(3) == 0 {
			text += fmt.Sprintf("e%d", random.IntN(60)-30)
		}
		if random.IntN(2) == 0 {
			text = "-" + text
		}

		written, err := expression.Encode(decode(t, text))
		require.NoError(t, err)

		want, isNumber := new(big.Rat).SetString(text)
		require.True(t, isNumber)
		got, isNumber := new(big.Rat).SetString(string(written))
		require.True(t, isNumber)
		require.Zero(t, want.Cmp(got), "%s became %s", text, written)

		if want.IsInt() && len(want.Num().String()) < 21 {
			require.Equal(t, want.Num().String(), string(written), text)
		} else if !strings.Contains(text, "e") && !want.IsInt() {
			require.Equal(t, text, string(written))
		}

		other := decode(t, strings.TrimLeft(digits(3), "0")+"1."+digits(20))
		exact, _ := new(big.Rat).SetString(expression.Text(other))
		require.Equal(t, want.Cmp(exact), expression.CompareNumbers(decode(t, text), other), "%s and %v", text, other)

		float, _ := want.Float64()
		rounded, _ := new(big.Rat).SetString(strconv.FormatFloat(float, 'g', -1, 64))
		require.Equal(t, want.Cmp(rounded) != 0, expression.IsRounded(json.Number(text)), text)
	}
}
