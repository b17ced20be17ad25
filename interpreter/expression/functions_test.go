package expression

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// call evaluates name(args…) with args as a JSON list.
func call(t testing.TB, b *Budget, name, args string) (any, error) {
	t.Helper()

	f := functions[name]
	require.NotNil(t, f, name)

	list := value(t, args).([]any)
	require.GreaterOrEqual(t, len(list), f.min, name)
	require.True(t, f.max < 0 || len(list) <= f.max, name)
	return f.call(b, list)
}

func TestFunctions(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ name, args, result string }{
		// values
		{"type", `[null]`, `"nil"`},
		{"type", `[1.5]`, `"number"`},
		{"type", `[{}]`, `"map"`},
		{"default", `[null, 1]`, `1`},
		{"default", `[0, 1]`, `0`},
		{"default", `[0, 1, true]`, `1`},
		{"default", `["", "x", false]`, `""`},
		{"len", `[null]`, `0`},
		{"len", `["héllo"]`, `5`},
		{"len", `[[1, 2]]`, `2`},
		{"len", `[{"a": 1}]`, `1`},
		{"get", `[{"a": 1}, "a"]`, `1`},
		{"get", `[{"a": null}, "a", 2]`, `2`},
		{"get", `[null, "a", 2]`, `2`},
		{"get", `[[5], 0]`, `5`},

		// text
		{"string", `[null]`, `""`},
		{"string", `[1e6]`, `"1000000"`},
		{"string", `[1e20]`, `"100000000000000000000"`},
		{"string", `[{"b": [1.0], "a": "<"}]`, `"{\"a\":\"<\",\"b\":[1]}"`},
		{"text", `["a", null, 1, [2], true]`, `"a1[2]true"`},
		{"lower", `["ÄB"]`, `"äb"`},
		{"lower", `[null]`, `""`},
		{"lower", `[{"A": 1}]`, `"{\"a\":1}"`},
		{"upper", `["äɐ"]`, `"ÄⱯ"`},
		{"trim", `["  a "]`, `"a"`},
		{"trim", `["xxaxx", "x"]`, `"a"`},
		{"trim", `[5]`, `"5"`},
		{"trimPrefix", `["v1", "v"]`, `"1"`},
		{"trimSuffix", `["a.go", ".go"]`, `"a"`},
		{"hasPrefix", `["abc", "ab"]`, `true`},
		{"hasPrefix", `[null, "ab"]`, `false`},
		{"hasSuffix", `[123, 3]`, `true`},
		{"indexOf", `["héllo", "l"]`, `2`},
		{"indexOf", `["héllo", "x"]`, `-1`},
		{"lastIndexOf", `["héllo", "l"]`, `3`},
		{"split", `["a,b,c", ","]`, `["a","b","c"]`},
		{"split", `["a,b,c", ",", 2]`, `["a","b,c"]`},
		{"split", `["a,b", ",", 0]`, `[]`},
		{"split", `["hé", ""]`, `["h","é"]`},
		{"split", `[null, ","]`, `[""]`},
		{"split", `["", ""]`, `[]`},
		{"replace", `["aaa", "a", "bb"]`, `"bbbbbb"`},
		{"replace", `["aaa", "a", "b", 2]`, `"bba"`},
		{"replace", `["ab", "", "-"]`, `"-a-b-"`},
		{"replace", `[105, 0, ""]`, `"15"`},
		{"join", `[[1, "a", null, [2]], ","]`, `"1,a,,[2]"`},
		{"join", `[["a", "b"]]`, `"ab"`},
		{"join", `[null, ","]`, `""`},
		{"join", `[[], ","]`, `""`},

		// lists
		{"first", `[[1, 2]]`, `1`},
		{"first", `[[]]`, `null`},
		{"first", `[null]`, `null`},
		{"first", `["é1"]`, `"é"`},
		{"last", `[[1, 2]]`, `2`},
		{"last", `["1é"]`, `"é"`},
		{"last", `[""]`, `null`},
		{"take", `[[1, 2, 3], 2]`, `[1,2]`},
		{"take", `[[1], 5]`, `[1]`},
		{"take", `[null, 5]`, `[]`},
		{"reverse", `[[1, 2, 3]]`, `[3,2,1]`},
		{"reverse", `["aé"]`, `"éa"`},
		{"uniq", `[[1, 1.0, "1", [1], [1], null, null, {"b": 1, "a": 2}, {"a": 2, "b": 1}]]`, `[1,"1",[1],null,{"a":2,"b":1}]`},
		{"uniq", `[null]`, `[]`},
		{"concat", `[[1], null, [2, 3]]`, `[1,2,3]`},
		{"concat", `[null]`, `[]`},
		{"flatten", `[[1, [2, [3, []]], {"a": [4]}]]`, `[1,2,3,{"a":[4]}]`},
		{"sort", `[[3, null, 1.5, 2, 18446744073709551615]]`, `[null,1.5,2,3,18446744073709551615]`},
		{"sort", `[["b", "a"], "desc"]`, `["b","a"]`},
		{"sort", `[[true, false]]`, `[false,true]`},
		{"sum", `[[1, 2.5, 0.5]]`, `4`},
		{"sum", `[null]`, `0`},

		// maps
		{"keys", `[{"b": 1, "a": 2, "c": 0}]`, `["a","b","c"]`},
		{"values", `[{"b": 1, "a": 2, "c": 0}]`, `[2,1,0]`},
		{"toPairs", `[{"b": 1, "a": 2}]`, `[["a",2],["b",1]]`},
		{"keys", `[null]`, `[]`},
		{"fromPairs", `[[["a", 1], ["b", 2], ["a", 3]]]`, `{"a":3,"b":2}`},
		{"fromPairs", `[null]`, `{}`},

		// rows
		{"omit", `[{"a": 1, "b": null, "c": 3}, ["a", "x"]]`, `{"b":null,"c":3}`},
		{"omit", `[{"a": 1, "b": 2}, "a"]`, `{"b":2}`},
		{"omit", `[null, ["a"]]`, `{}`},
		{"omit", `[{"a": 1}, []]`, `{"a":1}`},
		{"pick", `[{"a": 1, "b": null, "c": 3}, ["b", "a", "x", "a"]]`, `{"a":1,"b":null}`},
		{"pick", `[{"a": 1}, "a"]`, `{"a":1}`},
		{"pick", `[null, ["a"]]`, `{}`},
		{"merge", `[{"a": 1, "b": {"x": 1}}, null, {"b": {"y": 2}, "c": 3}, {"a": null}]`, `{"a":null,"b":{"y":2},"c":3}`},
		{"merge", `[null]`, `{}`},
		{"rename", `[{"a": 1, "b": 2, "c": 3}, {"a": "b", "b": "a", "x": "y"}]`, `{"a":2,"b":1,"c":3}`},
		{"rename", `[null, {"a": "b"}]`, `{}`},
		{"rename", `[{"a": 1, "b": 2}, {"a": "b", "b": "c"}]`, `{"b":1,"c":2}`},
		{
			"flatten_fields", `[{"id": 1, "geo": {"lat": 2, "place": {"city": "x"}}, "tags": [{"a": 1}], "none": {}}]`,
			`{"geo_lat":2,"geo_place_city":"x","id":1,"none":{},"tags":[{"a":1}]}`,
		},
		{"flatten_fields", `[{"a": {"b": null}}, "."]`, `{"a.b":null}`},
		{"flatten_fields", `[{"a": {"b": 1}}, ""]`, `{"ab":1}`},
		{"flatten_fields", `[null]`, `{}`},
		{"omit_deep", `[{"a": 1, "b": [{"a": 2, "c": {"a": 3, "d": 4}}], "a2": 5}, ["a"]]`, `{"a2":5,"b":[{"c":{"d":4}}]}`},
		{"omit_deep", `[[{"a": 1}, "a", null], "a"]`, `[{},"a",null]`},
		{"omit_deep", `[null, "a"]`, `null`},
		{"omit_deep", `["a", ["a"]]`, `"a"`},
		{"pluck", `[{"a": [{"b": 1}, {"b": null}, {"c": 3}, 4, null, {"b": [5]}]}, "a.*.b"]`, `[1,null,[5]]`},
		{"pluck", `[{"a": [{"b": 1}, {"b": 2}]}, "a[*].b"]`, `[1,2]`},
		{"pluck", `[{"z": {"id": 1}, "y": {"id": 2}}, "*.id"]`, `[2,1]`},
		{"pluck", `[[[1, 2], [], [3]], "*.*"]`, `[1,2,3]`},
		{"pluck", `[{"a": {"b": 1}}, "a.b"]`, `[1]`},
		{"pluck", `[{"a": [1, 2, 3]}, "a[-1]"]`, `[3]`},
		{"pluck", `[{"*": 1, "b": 2}, "[\"*\"]"]`, `[1]`},
		{"pluck", `[null, "a.*"]`, `[]`},
		{"pluck", `["text", "*"]`, `[]`},
		{"snake_case", `["orderID"]`, `"order_id"`},
		{"snake_case", `["HTTPServer2Name"]`, `"http_server2_name"`},
		{"snake_case", `["Order Id (EUR)"]`, `"order_id_eur"`},
		{"snake_case", `["first-name.last"]`, `"first_name_last"`},
		{"snake_case", `["_id__x_"]`, `"_id__x_"`},
		{"snake_case", `[" - _a - _b-"]`, `"_a_b"`},
		{"snake_case", `["ÄpfelBirnen"]`, `"äpfel_birnen"`},
		{"snake_case", `["already_snake_2"]`, `"already_snake_2"`},
		{"snake_case", `[null]`, `""`},
		{"snake_case", `["$%"]`, `""`},
		{"chunk", `[[1, 2, 3, 4, 5], 2]`, `[[1,2],[3,4],[5]]`},
		{"chunk", `[[1, 2], 9223372036854775807]`, `[[1,2]]`},
		{"chunk", `[[1, 2], 1]`, `[[1],[2]]`},
		{"chunk", `[[], 2]`, `[]`},
		{"chunk", `[null, 2]`, `[]`},

		// numbers
		{"int", `["3.7"]`, `3`},
		{"int", `[" 7 "]`, `7`},
		{"int", `["-3.7"]`, `-3`},
		{"int", `["+5"]`, `5`},
		{"int", `["007"]`, `7`},
		{"int", `["-000"]`, `0`},
		{"int", `["1e3"]`, `1000`},
		{"int", `["12345678901234567890"]`, `12345678901234567890`},
		{"int", `["9007199254740993"]`, `9007199254740993`},
		{"int", `[true]`, `1`},
		{"int", `[-1.5]`, `-1`},
		{"int", `[18446744073709551615]`, `18446744073709551615`},
		{"float", `["1.50"]`, `1.5`},
		{"float", `[".5"]`, `0.5`},
		{"float", `["3"]`, `3`},
		{"float", `[false]`, `0`},
		{"abs", `[-3]`, `3`},
		{"abs", `[-1.5]`, `1.5`},
		{"abs", `[-9223372036854775808]`, `9223372036854775808`},
		{"abs", `[-18446744073709551615]`, `18446744073709551615`},
		{"ceil", `[1.2]`, `2`},
		{"ceil", `[-0.5]`, `0`},
		{"floor", `[-1.2]`, `-2`},
		{"floor", `[18446744073709551615]`, `18446744073709551615`},
		{"round", `[2.5]`, `3`},
		{"round", `[-2.5]`, `-3`},
		{"round", `[0.5]`, `1`},
		{"round", `[0.49999999999999994]`, `0`},
		{"round", `[2.345, 2]`, `2.35`},
		{"round", `[1.005, 2]`, `1.01`},
		{"round", `[-1.005, 2]`, `-1.01`},
		{"round", `[9.999, 2]`, `10`},
		{"round", `[1.5, 5]`, `1.5`},
		{"round", `[0.04, 1]`, `0`},
		{"round", `[-0.04, 1]`, `0`},
		{"round", `[1e-7, 7]`, `1e-7`},
		{"round", `[7, 2]`, `7`},
		{"round", `[1250, -2]`, `1300`},
		{"round", `[1249, -2]`, `1200`},
		{"round", `[50, -2]`, `100`},
		{"round", `[49, -2]`, `0`},
		{"round", `[49, -3]`, `0`},
		{"round", `[1234.5, -2]`, `1200`},
		{"round", `[9223372036854775807, -1]`, `9223372036854775810`},
		{"round", `[18446744073709551615, -1]`, `18446744073709551620`},
		{"round", `[1e300, 2]`, `1e+300`},
		{"min", `[3, [1, 2], null]`, `1`},
		{"max", `[[1, 18446744073709551615, 2.5]]`, `18446744073709551615`},
		{"max", `["a", "b"]`, `"b"`},
		{"min", `[[]]`, `null`},
		{"mean", `[[1, 2]]`, `1.5`},
		{"mean", `[null]`, `null`},
		{"median", `[[3, 1, 2]]`, `2`},
		{"median", `[4, 1, 2, 3]`, `2.5`},
		{"bitand", `[6, 3]`, `2`},
		{"bitor", `[6, 3]`, `7`},
		{"bitxor", `[6, 3]`, `5`},

		// time
		{"now", `[]`, `"2026-03-01T10:30:00.5Z"`},
		{"date", `["2026-03-01"]`, `"2026-03-01T00:00:00Z"`},
		{"date", `["2026-03-01T12:00:00+02:00"]`, `"2026-03-01T10:00:00Z"`},
		{"date", `["2026-03-01T12:00:00.25Z"]`, `"2026-03-01T12:00:00.25Z"`},
		{"date", `["2026-03-01 12:00:00"]`, `"2026-03-01T12:00:00Z"`},
		{"date", `["Sun, 01 Mar 2026 12:00:00 GMT"]`, `"2026-03-01T12:00:00Z"`},
		{"date", `["Sun, 01 Mar 2026 12:00:00 -0500"]`, `"2026-03-01T17:00:00Z"`},
		{"date", `["01.03.2026", "02.01.2006"]`, `"2026-03-01T00:00:00Z"`},
		{"date", `[0]`, `"1970-01-01T00:00:00Z"`},
		{"unix", `["1970-01-01T00:01:00Z"]`, `60`},
		{"unix", `["1969-12-31T23:59:59.5Z"]`, `-0.5`},
		{"unix", `["2026-03-01T12:30:00.25Z"]`, `1772368200.25`},
		{"latest", `["2026-01-01T10:00:00+02:00", "2026-01-01T09:00:00Z"]`, `"2026-01-01T09:00:00Z"`},
		{"latest", `["2026-01-01", "Thu, 01 Jan 2026 00:00:01 GMT", 1767225600]`, `"Thu, 01 Jan 2026 00:00:01 GMT"`},
		{"latest", `["2026-01-01", "2026-01-01T00:00:00Z"]`, `"2026-01-01"`},
		{"latest", `[["2026-01-01", "2026-01-03"], "2026-01-02"]`, `"2026-01-03"`},
		{"latest", `[[]]`, `null`},
		{"earliest", `["2026-01-01T10:00:00+02:00", "2026-01-01T09:00:00Z"]`, `"2026-01-01T10:00:00+02:00"`},
		{"earliest", `["1969-12-31", 0]`, `"1969-12-31"`},
		{"duration", `["1h30m"]`, `5400`},
		{"duration", `["500ms"]`, `0.5`},
		{"duration", `[90]`, `90`},

		// JSON
		{"toJSON", `[{"b": [1.0, null], "a": "<é>"}]`, `"{\"a\":\"<é>\",\"b\":[1,null]}"`},
		{"toJSON", `[null]`, `"null"`},
		{"fromJSON", `["{\"a\": [1.0, 18446744073709551615, 1e2]}"]`, `{"a":[1,18446744073709551615,100]}`},
		{"toBase64", `["héllo"]`, `"aMOpbGxv"`},
		{"toBase64", `[null]`, `""`},
		{"fromBase64", `["aMOpbGxv"]`, `"héllo"`},
		{"fromBase64", `["YQ=="]`, `"a"`},
		{"fromBase64", `["YQ"]`, `"a"`},
		{"fromBase64", `["Pz8_"]`, `"???"`},
	} {
		t.Run(c.name+c.args, func(t *testing.T) {
			t.Parallel()

			result, err := call(t, fresh(), c.name, c.args)
			require.NoError(t, err)
			require.Equal(t, c.result, encoded(t, result))
			requireCanonical(t, result)
		})
	}
}

func TestFunctionErrors(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ name, args, message string }{
		{"len", `[5]`, `len needs a list, a map or a string, not a number`},
		{"int", `[null]`, `int cannot make a number of nil; if it may be missing, x is defined ? int(x) : nil keeps it missing, and x | default(0) | int makes 0 of it`},
		{"float", `[null]`, `float cannot make a number of nil; if it may be missing, x is defined ? float(x) : nil keeps it missing, and x | default(0) | float makes 0 of it`},
		{"int", `["abc"]`, `int cannot make a number of the string "abc"; if it may be empty, write x | default(0, true) | int`},
		{"float", `[""]`, `float cannot make a number of the string ""; if it may be empty, write x | default(0, true) | float`},
		{"int", `[[]]`, `int cannot make a number of a list; if that means no value, write x | default(0, true) | int`},
		{"int", `["0x10"]`, `int cannot make a number of the string "0x10"; if it may be empty, write x | default(0, true) | int`},
		{"int", `["1_000"]`, `int cannot make a number of the string "1_000"; if it may be empty, write x | default(0, true) | int`},
		{"int", `["inf"]`, `int cannot make a number of the string "inf"; if it may be empty, write x | default(0, true) | int`},
		{"int", `[1e300]`, `int cannot hold 1e+300`},
		{"int", `[1e400]`, `int cannot hold 1e400`},
		{"abs", `[null]`, `abs needs a number, not nil; if it may be missing, x is defined ? abs(x) : nil keeps it missing, and x | default(0) | abs takes it for 0`},
		{"round", `["2.5"]`, `round needs a number, not the string "2.5"; int(x) or float(x) makes one`},
		{"round", `[2.5, 0.5]`, `round needs a whole number as the number of digits, not a number`},
		{"sum", `[[1, null]]`, `sum needs numbers, but the element at index 1 is nil; give it a value: map(xs, # | default(0))`},
		{"sum", `[["1"]]`, `sum needs numbers, but the element at index 0 is the string "1"`},
		{"min", `[[1, null]]`, `min cannot use nil, which is the value at index 1; filter(xs, # != nil) leaves it out`},
		{"max", `[1, "a"]`, `max cannot compare number with string; the keys must be of one type`},
		{"max", `[true]`, `max needs numbers or strings, not a boolean`},
		{"join", `["abc", ","]`, `join needs a list, not the string "abc"; split makes a list of a string`},
		{"join", `[{}, ","]`, `join needs a list, not a map; keys(x), values(x) and toPairs(x) make one of a map`},
		{"first", `[{}]`, `first needs a list, not a map; keys(x), values(x) and toPairs(x) make one of a map`},
		{"take", `[[1], -1]`, `take needs a number of elements that is not negative, not a number`},
		{"sort", `[[1, "a"]]`, `sort cannot compare number with string; the keys must be of one type`},
		{"keys", `[[1]]`, `keys needs a map, not a list`},
		{"omit", `[[], ["a"]]`, `omit needs a map, not a list`},
		{"omit", `[{}, null]`, `omit needs a list of names, not nil`},
		{"omit", `[{}, ["a", 1]]`, `omit needs texts as names, but the element at index 1 is a number`},
		{"omit_deep", `[{}, {}]`, `omit_deep needs a list of names, not a map`},
		{"pick", `["a", ["a"]]`, `pick needs a map, not the string "a"`},
		{"pick", `[{}, 1]`, `pick needs a list of names, not a number`},
		{"merge", `[{}, [1]]`, `merge needs a map, not a list`},
		{"rename", `[1, {}]`, `rename needs a map, not a number`},
		{"rename", `[{}, ["a"]]`, `rename needs a map of old and new names, such as {id: "user_id"}, not a list`},
		{"rename", `[{}, null]`, `rename needs a map of old and new names, such as {id: "user_id"}, not nil`},
		{"rename", `[{}, {"a": null}]`, `rename needs texts as new names, but that of "a" is nil`},
		{"rename", `[{"a": 1, "b": 2}, {"a": "b"}]`, `rename would give two fields the name "b": "a" and "b"; leave one of them out with omit first`},
		{"flatten_fields", `[[{}]]`, `flatten_fields needs a map, not a list`},
		{"flatten_fields", `[{}, 1]`, `flatten_fields needs a text as the separator, not a number`},
		{"flatten_fields", `[{"a_b": 1, "a": {"b": 2}}]`, `flatten_fields would give two fields the name "a_b": "a.b" and "a_b"; leave one of them out with omit first`},
		{"pluck", `[{}, 1]`, `pluck needs a path such as "items.*.id", not a number`},
		{"pluck", `[{}, "a..b"]`, `pluck: "a..b" is not a path such as data.items or items[*].node: a name is missing before ".b"`},
		{"pluck", `[{}, ""]`, `pluck: "" is not a path such as data.items or items[*].node: a name is missing before ""`},
		{"chunk", `[[1], 0]`, `chunk needs a number of elements of at least 1, not a number`},
		{"chunk", `[[1], "2"]`, `chunk needs a whole number as the number of elements, not the string "2"`},
		{"chunk", `["abc", 2]`, `chunk needs a list, not the string "abc"`},
		{"latest", `["2026-01-01", null]`, `latest cannot use nil, which is its argument 2; if a time may be missing, give it a value with default(…)`},
		{"latest", `[["2026-01-01", null]]`, `latest cannot use nil, which is the value at index 1; filter(xs, # != nil) leaves it out`},
		{"latest", `["2026-01-01", "soon"]`, `latest cannot read a time from the string "soon"; it reads 2006-01-02T15:04:05Z, 2006-01-02, Mon, 02 Jan 2006 15:04:05 GMT and the like; other forms need a layout, and zones an offset`},
		{"earliest", `[true]`, `earliest needs text such as 2006-01-02T15:04:05Z, or seconds since 1970, not a boolean`},
		{"earliest", `[1767225600000]`, `earliest: 1767225600000 seconds since 1970 are beyond the year 9999; divide milliseconds by 1000`},
		{"duration", `["P1DT2H"]`, `duration cannot read the string "P1DT2H", which is ISO 8601; add it to a time with add_time(t, "1d2h"), or write a duration such as 90s or 24h`},
		{"duration", `["P"]`, `duration cannot read the string "P"; expected a duration such as 500ms, 90s or 1h30m`},
		{"date", `["03/02/2026", "%d/%m/%Y"]`, `date: the layout "%d/%m/%Y" is one of strftime; write "02/01/2006"`},
		{"format_time", `["2026-01-01", "%Y-%m-%d"]`, `format_time: the layout "%Y-%m-%d" is one of strftime; write "2006-01-02"`},
		{"fromPairs", `[[["a"]]]`, `fromPairs needs a list of [key, value], but the element at index 0 is a list`},
		{"fromPairs", `[[[1, 2]]]`, `fromPairs needs strings as keys, but that of the element at index 0 is a number; string(x) makes one`},
		{"bitand", `[1.5, 1]`, `bitand needs a whole number as its first argument, not a number`},
		{"date", `["Sun, 01 Mar 2026 12:00:00 EST"]`, `date cannot read a time from the string "Sun, 01 Mar 2026 12:00:00 EST"; ` +
			`it reads 2006-01-02T15:04:05Z, 2006-01-02, Mon, 02 Jan 2006 15:04:05 GMT and the like; other forms need a layout, and zones an offset`},
		{"date", `["x", "15:04 MST"]`, `date: the layout "15:04 MST" has a zone by name, whose meaning depends on the machine; use an offset (-0700)`},
		{"date", `["x", "2006"]`, `date cannot read the string "x" with the layout "2006"`},
		{"date", `[null]`, `date needs text such as 2006-01-02T15:04:05Z, or seconds since 1970, not nil`},
		{"date", `[1772368200000]`, `date: 1772368200000 seconds since 1970 are beyond the year 9999; divide milliseconds by 1000`},
		{"duration", `["1 day"]`, `duration cannot read the string "1 day"; expected a duration such as 500ms, 90s or 1h30m`},
		{"fromJSON", `["{"]`, `fromJSON cannot read the string "{": not JSON: unexpected EOF at byte 1`},
		{"fromJSON", `["{\"a\": 1, \"a\": 2}"]`, `fromJSON cannot read the string "{\"a\": 1, \"a\": 2}": the key "a" occurs twice in the object that ends at byte 16: a value would lose data`},
		{"fromJSON", `["\"\\ud800\""]`, `fromJSON cannot read the string "\"\\ud800\"": the text at byte 0 has half of a surrogate pair, which is not a character: a value would lose data`},
		{"fromJSON", `[null]`, `fromJSON needs a string, not nil`},
		{"fromBase64", `["/w=="]`, `fromBase64 would return bytes that are not UTF-8 text; use a tool for bytes`},
		{"fromBase64", `["%"]`, `fromBase64 cannot read the string "%": illegal base64 data at input byte 0`},
	} {
		t.Run(c.name+c.args, func(t *testing.T) {
			t.Parallel()

			_, err := call(t, fresh(), c.name, c.args)
			require.EqualError(t, err, c.message)
		})
	}
}

func TestNowWithoutTime(t *testing.T) {
	t.Parallel()

	_, err := call(t, NewBudget(DecisionLimits, time.Time{}), "now", `[]`)
	require.EqualError(t, err, "now() is not available here: no attempt or decision has started")
}

// The table is consistent: what the compiler relies on, and what the docs show.
func TestFunctionTable(t *testing.T) {
	t.Parallel()

	for name, f := range functions {
		require.Equal(t, name, f.name)
		require.True(t, f.max < 0 || f.min <= f.max, "%s: max is the most arguments, -1 for any number", name)
		require.Equal(t, f.predicate == needsPredicate, f.call == nil, "%s needs a call, unless it has a predicate", name)
		require.True(t, strings.HasPrefix(f.signature, name+"("), "%s: the signature begins with the name", name)
		require.True(t, strings.HasSuffix(f.doc, "."), "%s: doc is one sentence", name)
		require.Empty(t, refused[name], "%s is a function now: remove it from refused in functions.go", name)
	}

	for alias, name := range filterAliases {
		require.NotNil(t, functions[name], alias)
		require.Nil(t, functions[alias], alias)
		require.Empty(t, refused[alias], alias)
	}

	docs := FunctionDocs()
	require.Len(t, docs, len(functions))

	for i, name := range functionNames() {
		require.Equal(t, name, docs[i].Name)
	}
}

// TestTableRefusesAnEqualName: a function does not take the place of another one.
func TestTableRefusesAnEqualName(t *testing.T) {
	t.Parallel()

	require.PanicsWithValue(t, "two functions are called take: take(xs, n) and take(text)", func() {
		functionTable([]function{{name: "take", signature: "take(xs, n)"}, {name: "drop"}}, []function{{name: "take", signature: "take(text)"}})
	})
	require.Len(t, functionTable(listFunctions), len(listFunctions))
}
