package expression_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

// TestChargesStay: what an evaluation is charged decides where one ends that is too
// large, and a replay has to end there as well. So these figures never change.
func TestChargesStay(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("abcdefghij", 100)
	numbers, rows, wide := make([]any, 200), make([]any, 50), map[string]any{}

	for i := range numbers {
		numbers[i] = (i * 7) % 200
	}

	for i := range rows {
		rows[i] = map[string]any{"id": i, "name": fmt.Sprintf("%s%d", long[:100], (i*7)%50)}
		wide[fmt.Sprintf("%s%d", long[:50], i)] = i
	}

	digits := strings.Repeat("7", 500)
	scope := expression.MapScope{
		"long": long, "numbers": numbers, "rows": rows, "wide": wide, "n": json.Number(digits), "m": json.Number(digits[1:] + "8"),
		"few": []any{1, 2, 3}, "texts": []any{long, long + "a", long + "b"},
	}

	charged := map[string]string{
		`1`:                                   "0 steps, 0 bytes",
		`few`:                                 "0 steps, 0 bytes",
		`few[0] + 1`:                          "0 steps, 0 bytes",
		`[1, 2, 3]`:                           "0 steps, 0 bytes",
		`{a: 1, b: few}`:                      "0 steps, 0 bytes",
		`map(few, [#, #])`:                    "6 steps, 96 bytes",
		`map(few, {a: #})`:                    "9 steps, 144 bytes",
		`[map(few, #), [1, 2]]`:               "3 steps, 0 bytes",
		`map(few, map(few, [1]))`:             "21 steps, 144 bytes",
		`filter(numbers, # > 5)`:              "210 steps, 0 bytes",
		`long`:                                "0 steps, 0 bytes",
		`long ~ long`:                         "32 steps, 2000 bytes",
		`long == long ~ ""`:                   "31 steps, 1000 bytes",
		`long < long ~ "a"`:                   "31 steps, 1001 bytes",
		`long contains "jab"`:                 "15 steps, 0 bytes",
		`long matches "a+b"`:                  "313 steps, 0 bytes",
		`upper(long)`:                         "54 steps, 1500 bytes",
		`replace(long, "a", "bc")`:            "50 steps, 1100 bytes",
		`split(long, "a")`:                    "46 steps, 1616 bytes",
		`split(long, "")`:                     "203 steps, 16032 bytes",
		`trim(long)`:                          "30 steps, 0 bytes",
		`indexOf(long, "jx")`:                 "15 steps, 0 bytes",
		`indexOf(long, long)`:                 "30 steps, 0 bytes",
		`lastIndexOf(long, long[0:200])`:      "80 steps, 0 bytes",
		`join(map(numbers, string(#)), ", ")`: "252 steps, 888 bytes",
		`join(texts, long)`:                   "157 steps, 5002 bytes",
		`toBase64(long)`:                      "56 steps, 1336 bytes",
		`fromBase64(toBase64(long))`:          "92 steps, 2672 bytes",
		`toJSON(wide)`:                        "192 steps, 2881 bytes",
		`fromJSON(toJSON(rows))`:              "788 steps, 16178 bytes",
		`fromJSON("[1,2,3]")`:                 "5 steps, 71 bytes",
		`min(numbers)`:                        "51 steps, 3200 bytes",
		`max(numbers)`:                        "51 steps, 3200 bytes",
		`sum(numbers)`:                        "26 steps, 0 bytes",
		`mean(numbers)`:                       "78 steps, 3200 bytes",
		`median(numbers)`:                     "278 steps, 6400 bytes",
		`sort(numbers)`:                       "236 steps, 3200 bytes",
		`sort(texts)`:                         "140 steps, 48 bytes",
		`sortBy(rows, #.name)`:                "663 steps, 800 bytes",
		`groupBy(rows, #.id % 3)`:             "158 steps, 944 bytes",
		`uniq(numbers)`:                       "236 steps, 3690 bytes",
		`uniq(texts)`:                         "96 steps, 3056 bytes",
		`flatten([numbers, [few, [few]]])`:    "41 steps, 3376 bytes",
		`concat(numbers, few)`:                "36 steps, 3248 bytes",
		`reverse(numbers)`:                    "36 steps, 3200 bytes",
		`take(numbers, 10)`:                   "0 steps, 0 bytes",
		`keys(wide)`:                          "86 steps, 800 bytes",
		`values(wide)`:                        "46 steps, 800 bytes",
		`toPairs(wide)`:                       "215 steps, 2400 bytes",
		`fromPairs(toPairs(wide))`:            "314 steps, 4800 bytes",
		`n < m`:                               "15 steps, 0 bytes",
		`n == m`:                              "15 steps, 0 bytes",
		`n in [m, n]`:                         "32 steps, 0 bytes",
		`-n < 0`:                              "14 steps, 0 bytes",
		`max(n, m)`:                           "24 steps, 32 bytes",
		`int(string(n)) == n`:                 "29 steps, 0 bytes",
		`long in texts`:                       "16 steps, 0 bytes",
		`5 in numbers`:                        "116 steps, 0 bytes",
		`wide[keys(wide)[0]]`:                 "44 steps, 800 bytes",
		`1..100`:                              "13 steps, 1600 bytes",
		`(1..50)[10:20]`:                      "7 steps, 800 bytes",
		`date("2026-01-02")`:                  "0 steps, 0 bytes",
		`string(rows)`:                        "445 steps, 6081 bytes",
		`long[10:20]`:                         "62 steps, 0 bytes",
		`all(numbers, # >= 0)`:                "200 steps, 0 bytes",
		`reduce(numbers, #acc + #, 0)`:        "200 steps, 0 bytes",
		`find(rows, #.id == 49).name`:         "51 steps, 0 bytes",
		`abs(n)`:                              "14 steps, 0 bytes",
		`add_time("2026-01-31T00:00:00Z", "1mo", "Europe/Berlin")`: "2 steps, 20 bytes",
		`any(numbers, # > 198)`:          "58 steps, 0 bytes",
		`bitand(12, 10)`:                 "0 steps, 0 bytes",
		`bitor(12, 10)`:                  "0 steps, 0 bytes",
		`bitxor(12, 10)`:                 "0 steps, 0 bytes",
		`ceil(n)`:                        "14 steps, 0 bytes",
		`count(numbers, # > 5)`:          "200 steps, 0 bytes",
		`default(wide.nothing, long)`:    "15 steps, 0 bytes",
		`duration("1h30m")`:              "0 steps, 0 bytes",
		`findIndex(rows, #.id == 49)`:    "50 steps, 0 bytes",
		`findLast(rows, #.id == 0).name`: "58 steps, 800 bytes",
		`findLastIndex(rows, #.id == 0)`: "57 steps, 800 bytes",
		`first(numbers)`:                 "0 steps, 0 bytes",
		`float(string(n))`:               "14 steps, 0 bytes",
		`floor(n)`:                       "14 steps, 0 bytes",
		`format_time("2026-01-02T00:00:00Z", "Monday 2006-01-02 15:04", "Europe/Berlin")`: "2 steps, 23 bytes",
		`get(wide, long)`:             "15 steps, 0 bytes",
		`hasPrefix(long, long[:500])`: "84 steps, 0 bytes",
		`hasSuffix(long, long[500:])`: "84 steps, 0 bytes",
		`last(numbers)`:               "0 steps, 0 bytes",
		`len(long)`:                   "15 steps, 0 bytes",
		`lower(long)`:                 "54 steps, 1500 bytes",
		`none(numbers, # > 200)`:      "200 steps, 0 bytes",
		`now()`:                       "0 steps, 0 bytes",
		`one(numbers, # == 5)`:        "200 steps, 0 bytes",
		`round(n, 3)`:                 "14 steps, 0 bytes",
		`start_of("2026-01-31T00:00:00Z", "month", "Europe/Berlin")`: "2 steps, 20 bytes",
		`text(long, n, few)`: "51 steps, 1514 bytes",
		`time_range("2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z", "1d", "Europe/Berlin")`: "140 steps, 2124 bytes",
		`trimPrefix(long, "abc")`:                          "30 steps, 0 bytes",
		`trimSuffix(long, "hij")`:                          "30 steps, 0 bytes",
		`type(n)`:                                          "0 steps, 0 bytes",
		`omit(wide, keys(wide))`:                           "244 steps, 5600 bytes",
		`omit_deep([rows, wide], "name")`:                  "406 steps, 8080 bytes",
		`pick(wide, keys(wide))`:                           "289 steps, 5600 bytes",
		`merge(wide, rows[0], wide)`:                       "250 steps, 4896 bytes",
		`rename(wide, {"a": long})`:                        "305 steps, 5616 bytes",
		`flatten_fields({a: wide, b: {c: rows[0]}}, long)`: "3900 steps, 69290 bytes",
		`pluck([rows, wide], "*.*.name")`:                  "279 steps, 1608 bytes",
		`snake_case(long)`:                                 "93 steps, 2500 bytes",
		`chunk(numbers, 3)`:                                "21 steps, 1072 bytes",
		`latest(time_range("2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z", "1d"), "2026-05-01")`: "188 steps, 3084 bytes",
		`earliest("2026-01-01", 0, 1.5)`: "6 steps, 48 bytes",
		`unix("2026-01-02")`:             "0 steps, 0 bytes",
	}
	for source, want := range charged {
		t.Run(source, func(t *testing.T) {
			t.Parallel()

			program, problems := expression.Compile(source)
			require.Empty(t, problems)

			b := expression.NewBudget(expression.DecisionLimits, started)
			_, err := program.Eval(scope, b)
			require.NoError(t, err)

			steps, bytes := b.Used()
			require.Equal(t, want, fmt.Sprintf("%d steps, %d bytes", steps, bytes))
		})
	}

	calls := strings.Join(slices.Collect(maps.Keys(charged)), "\n")

	var lacking []string
	for _, f := range expression.FunctionDocs() {
		if !regexp.MustCompile(`\b` + f.Name + `\(`).MatchString(calls) {
			lacking = append(lacking, f.Signature)
		}
	}

	require.Empty(t, lacking, "these functions have no row: write a call of each with a large argument, and the charge that the test then reports; it never changes again")
}
