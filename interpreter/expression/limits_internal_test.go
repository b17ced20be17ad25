package expression

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLimitsOfText passes maxEdits and maxSpan.
func TestLimitsOfText(t *testing.T) {
	t.Parallel()
	const name = "fetch_users"
	near, far := name[maxEdits-1:], name[maxEdits:]
	require.Equal(t, name, Suggest(near, []string{name}))
	require.Empty(t, Suggest(far, []string{name}), "%d letters are missing", maxEdits)

	for filling, whole := range map[int]bool{10: true, maxSpan: false} {
		text := []rune("{{ '}}" + strings.Repeat("x", filling) + "' }}")
		want := Placeholder{End: len(text)}
		if !whole { // the quote ends too far away, so the first braces count
			want.End = len("{{ '}}")
		}
		require.Equal(t, want, FindSpan(text, 0), filling)
	}
}

// TestLimitsOfNumbers passes mostEpoch and mostExponent, in both directions.
func TestLimitsOfNumbers(t *testing.T) {
	t.Parallel()
	for _, seconds := range []float64{2 * mostEpoch, -2 * mostEpoch, 1e300, -1e300} {
		_, err := readTime(NewBudget(DecisionLimits, time.Time{}), "date", []any{seconds})
		require.ErrorContains(t, err, "beyond the year 9999", seconds)
	}
	for number, want := range map[string]int{
		fmt.Sprintf("1e%d", mostExponent+1): 1, "1e99999999999999999999": 1, "-1e99999999999999999999": -1,
		fmt.Sprintf("1e-%d", mostExponent+1): 1, "-1e-99999999999999999999": -1,
	} {
		for _, digits := range []string{"", strings.Repeat("7", 100)} {
			d := decimalOfNumber(json.Number(strings.Replace(number, "1e", "1"+digits+"e", 1)))
			require.Equal(t, want < 0, d.negative, number)
			require.Equal(t, strings.Contains(number, "e-"), d.point < 0, "the sign of the exponent of %s", number)
		}
	}
}

// TestLimitOfNotes passes mostNotes: the first are kept.
func TestLimitOfNotes(t *testing.T) {
	t.Parallel()
	b := NewBudget(DecisionLimits, time.Time{})
	for i := range mostNotes + 5 {
		b.addNote(i, fmt.Sprint("note ", i))
	}
	b.PlaceNotes(0, func(int) string { return "" })
	notes := b.Notes()
	require.Len(t, notes, mostNotes)
	require.Contains(t, notes[mostNotes-1], fmt.Sprint(mostNotes-1))
}
