package incremental_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/incremental"
)

func mustParse(t *testing.T, as incremental.CursorType, value any) incremental.Cursor {
	t.Helper()
	c, err := incremental.Parse(as, value)
	require.NoError(t, err)
	require.Equal(t, value, c.Value.Data, "it is kept digit for digit")
	return c
}

func TestCursorIsParsed(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		as    incremental.CursorType
		value any
		says  string // "" where it is one
	}{
		{incremental.Time, "2024-05-06T07:08:09Z", ""},
		{incremental.Time, "2024-05-06T07:08:09.123456789+02:00", ""},
		{incremental.Time, "2024-05-06", ""},
		{incremental.Time, " 2024-05-06T07:08:09Z ", ""},
		{incremental.Time, "2024-05-06T07:08Z", ""},
		{incremental.Time, "2024-05-06 07:08:09.123+00", ""},
		{incremental.Time, "20240506T070809+0200", ""},
		{incremental.Time, "Mon, 06 May 2024 07:08:09 GMT", ""},
		{incremental.Time, "yesterday", `"yesterday" is no time such as 2024-01-31T10:00:00Z or 2024-01-31 10:00+02`},
		{incremental.Time, 1714979289, "1714979289 is no time such as 2024-01-31T10:00:00Z or 2024-01-31 10:00+02"},
		{incremental.Time, nil, "nil is no time such as 2024-01-31T10:00:00Z or 2024-01-31 10:00+02"},
		{incremental.Time, strings.Repeat("2", 5000), "a string is no time such as 2024-01-31T10:00:00Z or 2024-01-31 10:00+02"},
		{incremental.Date, "2024-02-29", ""},
		{incremental.Date, "2023-02-29", `"2023-02-29" is no date such as 2024-01-31`},
		{incremental.Date, "2024-02-29T00:00:00Z", `"2024-02-29T00:00:00Z" is no date such as 2024-01-31`},
		{incremental.Date, 20240229, "20240229 is no date such as 2024-01-31"},
		{incremental.Integer, 7, ""},
		{incremental.Integer, -7, ""},
		{incremental.Integer, "7", ""},
		{incremental.Integer, math.MaxInt64, ""},
		{incremental.Integer, math.MinInt64, ""},
		{incremental.Integer, "9223372036854775807", ""},
		{incremental.Integer, "9223372036854775808", `"9223372036854775808" has more than 64 bits, the most of type integer`},
		{incremental.Integer, json.Number("9223372036854775808"), "9223372036854775808 has more than 64 bits, the most of type integer"},
		{incremental.Integer, "007", `"007" is no integer`},
		{incremental.Integer, "+7", `"+7" is no integer`},
		{incremental.Integer, "", `"" is no integer`},
		{incremental.Integer, 7.5, "7.5 is no integer"},
		{incremental.Integer, true, "true is no integer"},
		{incremental.Integer, []any{1}, "[1] is no integer"},
		{incremental.Text, "", ""},
		{incremental.Text, "ä", ""},
		{incremental.Text, strings.Repeat("a", 1000), ""},
		{incremental.Text, strings.Repeat("a", 1001), "a string of 1001 bytes is too long for a cursor, which has at most 1000"},
		{incremental.Text, 7, "7 is no text"},
		{incremental.Token, map[string]any{"next": 7}, ""},
	} {
		c, err := incremental.Parse(test.as, test.value)
		if test.says != "" {
			require.EqualError(t, err, test.says)
			require.True(t, c.IsZero())
			continue
		}
		require.NoError(t, err, "%v", test.value)
		require.Equal(t, test.value, c.Value.Data)
		require.Equal(t, test.as == incremental.Token, c.Position == nil)
	}
}

// TestCursorFormsAreOnePosition: the same instant, day or number is one position.
func TestCursorFormsAreOnePosition(t *testing.T) {
	t.Parallel()

	for as, forms := range map[incremental.CursorType][]any{
		incremental.Time: {
			"2024-05-06T00:00:00Z", "2024-05-06", "2024-05-06T02:00:00+02:00", "2024-05-05T19:00:00.000-05:00", "Mon, 06 May 2024 00:00:00 GMT",
		},
		incremental.Integer: {42, "42", json.Number("42")},
	} {
		for _, form := range forms {
			require.Equal(t, mustParse(t, as, forms[0]).Position, mustParse(t, as, form).Position, "%v", form)
		}
	}
}

// TestPositionsAreOrderedAsCursors compares random pairs.
func TestPositionsAreOrderedAsCursors(t *testing.T) {
	t.Parallel()

	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	earliest, latest := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	instant := func() time.Time {
		return time.Unix(earliest.Unix()+random.Int64N(latest.Unix()-earliest.Unix()), random.Int64N(1e9)).In(time.FixedZone("", random.IntN(24*60)*60-12*60*60))
	}
	for range 5000 {
		a, b := instant(), instant()
		if random.IntN(2) == 0 {
			b = a.Add(time.Duration(random.Int64N(5) - 2))
		}
		if a.Year() < 1 || b.Year() < 1 || a.Year() > 9999 || b.Year() > 9999 {
			continue
		}
		requireOrder(t, incremental.Time, a.Format(time.RFC3339Nano), b.Format(time.RFC3339Nano), a.Compare(b))
		days := func(at time.Time) time.Time { return at.UTC().Truncate(24 * time.Hour) }
		requireOrder(t, incremental.Date, days(a).Format(time.DateOnly), days(b).Format(time.DateOnly), days(a).Compare(days(b)))

		n, m := int(random.Uint64())>>random.IntN(64), int(random.Uint64())>>random.IntN(64)
		requireOrder(t, incremental.Integer, n, fmt.Sprint(m), cmp.Compare(n, m))

		x, y := randomText(random), randomText(random)
		requireOrder(t, incremental.Text, string(x), string(y), comparePoints(x, y))
	}
}

func requireOrder(t *testing.T, as incremental.CursorType, a, b any, want int) {
	t.Helper()
	require.Equal(t, want, bytes.Compare(mustParse(t, as, a).Position, mustParse(t, as, b).Position), "%v and %v", a, b)
}

func randomText(random *rand.Rand) []rune {
	points := []rune{'A', 'a', 'ß', 'ä', '\u07ff', '\u0800', '\ufffd', '\uffff', '\U00010000', '\U0010ffff', ' ', 0}
	text := make([]rune, random.IntN(4))
	for i := range text {
		text[i] = points[random.IntN(len(points))]
	}
	return text
}

func comparePoints(a, b []rune) int {
	for i := range min(len(a), len(b)) {
		if order := cmp.Compare(a[i], b[i]); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(a), len(b))
}

func TestBeforeIsLessTheLag(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		as    incremental.CursorType
		value any
		lag   incremental.Lag
		want  any
	}{
		{incremental.Time, "2024-05-06T07:08:09+02:00", 0, "2024-05-06T07:08:09+02:00"}, // as the row has it
		{incremental.Time, "2024-05-06T07:08:09+02:00", incremental.Lag(10 * time.Minute), "2024-05-06T06:58:09+02:00"},
		{incremental.Time, "2024-05-06 07:08:09", incremental.Lag(10 * time.Minute), "2024-05-06 06:58:09"},
		{incremental.Time, "2024-05-06 07:08:09.120+02", incremental.Lag(10 * time.Minute), "2024-05-06 06:58:09.120+02"},
		{incremental.Time, "2024-05-06T07:08:09.5Z", incremental.Lag(10 * time.Millisecond), "2024-05-06T07:08:09.49Z"},
		{incremental.Time, "2024-05-06T07:08", incremental.Lag(time.Second), "2024-05-06T07:07:59"},
		{incremental.Time, "20240506T0708Z", incremental.Lag(time.Second), "20240506T070759Z"},
		{incremental.Time, "2024-05-06T07:08", incremental.Lag(time.Minute), "2024-05-06T07:07"},
		{incremental.Time, "2024-05-06 00:08:09 UTC", incremental.Lag(time.Hour), "2024-05-05 23:08:09 UTC"},
		{incremental.Time, "2024-05-06", incremental.Lag(time.Hour), "2024-05-05T23:00:00Z"},
		{incremental.Time, "Mon, 06 May 2024 07:08:09 GMT", incremental.Lag(time.Hour), "2024-05-06T06:08:09Z"},
		{incremental.Time, "2024-01-01T00:00:00.000000001Z", 2, "2023-12-31T23:59:59.999999999Z"},
		{incremental.Date, "2024-03-01", 1, "2024-02-29"},
		{incremental.Date, "1970-01-01", 1, "1969-12-31"},
		{incremental.Integer, 5, 10, -5},
		{incremental.Integer, "5", 10, "-5"},
		{incremental.Integer, math.MinInt64 + 3, 10, math.MinInt64},
		{incremental.Text, "b", 10, "b"},
		{incremental.Token, "b", 10, "b"},
	} {
		before := incremental.Form{Type: test.as}.BeforeLag(mustParse(t, test.as, test.value), test.lag)
		require.Equal(t, test.want, before.Value.Data)
		require.Equal(t, mustParse(t, test.as, test.want), before, "value and position are of one point")
	}
	require.True(t, incremental.Form{Type: incremental.Time}.BeforeLag(incremental.Cursor{}, 7).IsZero())
}

// TestCursorsPreserveTheirLag: of two cursors the later stays the later, whatever the lag.
func TestCursorsPreserveTheirLag(t *testing.T) {
	t.Parallel()

	const seed = 11
	random := rand.New(rand.NewPCG(seed, seed))
	for range 2000 {
		lag := incremental.Lag(random.Int64N(1000))
		a, b := random.IntN(4000)-2000, random.IntN(4000)-2000
		x := incremental.Form{Type: incremental.Integer}.BeforeLag(mustParse(t, incremental.Integer, a), lag)
		y := incremental.Form{Type: incremental.Integer}.BeforeLag(mustParse(t, incremental.Integer, b), lag)
		require.Equal(t, cmp.Compare(a, b), bytes.Compare(x.Position, y.Position))
		require.Equal(t, a-int(lag), x.Value.Data)
	}
}

func TestCursorTravels(t *testing.T) {
	t.Parallel()

	for _, c := range []incremental.Cursor{
		{},
		mustParse(t, incremental.Integer, math.MinInt64),
		mustParse(t, incremental.Time, "0001-01-01T00:00:00Z"),
		mustParse(t, incremental.Token, map[string]any{"a": []any{json.Number("12345678901234567890"), nil}}),
	} {
		encoded, err := json.Marshal(c)
		require.NoError(t, err)
		var back incremental.Cursor
		require.NoError(t, json.Unmarshal(encoded, &back))
		require.Equal(t, c, back)
	}
}

func TestAtIsTheCursorOfATime(t *testing.T) {
	t.Parallel()

	now := time.Date(2024, 5, 6, 1, 2, 3, 4, time.FixedZone("", 2*60*60))
	at, ok := incremental.CursorAt(incremental.Time, now)
	require.True(t, ok)
	require.Equal(t, mustParse(t, incremental.Time, "2024-05-05T23:02:03.000000004Z"), at)
	at, ok = incremental.CursorAt(incremental.Date, now)
	require.True(t, ok)
	require.Equal(t, mustParse(t, incremental.Date, "2024-05-05"), at)
	for _, as := range []incremental.CursorType{incremental.Integer, incremental.Text, incremental.Token} {
		_, ok = incremental.CursorAt(as, now)
		require.False(t, ok, as)
	}
	early, _ := incremental.CursorAt(incremental.Date, time.Date(1969, 12, 31, 12, 0, 0, 0, time.UTC))
	require.Equal(t, mustParse(t, incremental.Date, "1969-12-31"), early)
}

// TestBehind: how far a watermark is behind, of types that are times.
func TestBehind(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		as    incremental.CursorType
		value any
		want  time.Duration
		known bool
	}{
		{incremental.Time, "2026-01-31T10:57:30+01:00", 2*time.Minute + 30*time.Second, true},
		{incremental.Time, "2026-01-29", 58 * time.Hour, true},
		{incremental.Time, "2026-02-01T00:00:00Z", 0, true},
		{incremental.Time, "0001-01-01T00:00:00Z", 1<<63 - 1, true},
		{incremental.Date, "2026-01-31", 0, true},
		{incremental.Date, "2026-01-28", 72 * time.Hour, true},
		{incremental.Date, "2026-02-03", 0, true},
		{incremental.Integer, 1769853600, 0, false},
		{incremental.Text, "2026-01-31", 0, false},
		{incremental.Token, "2026-01-31", 0, false},
	} {
		cursor, err := incremental.Parse(row.as, row.value)
		require.NoError(t, err)
		behind, known := incremental.BehindNow(row.as, cursor, now)
		require.Equal(t, row.known, known, "%s %v", row.as, row.value)
		require.Equal(t, row.want, behind, "%s %v", row.as, row.value)
	}
	_, known := incremental.BehindNow(incremental.Time, incremental.Cursor{}, now)
	require.False(t, known, "it has not moved")
}
