package incremental_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/incremental"
)

// TestSlices: the slices of a call follow each other without a gap, to the end.
func TestSlices(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		form        incremental.Form
		from, until any
		step        string
		want        []string
	}{
		{incremental.Form{Type: incremental.Date}, "2024-01-01", "2024-01-03T10:00:00Z", "1d", []string{"2024-01-01..2024-01-02", "2024-01-02..2024-01-03", "2024-01-03..2024-01-04"}},
		{incremental.Form{Type: incremental.Date}, "2024-01-01", "2024-01-03", "1d", []string{"2024-01-01..2024-01-02", "2024-01-02..2024-01-03"}},
		{incremental.Form{Type: incremental.Date}, "2024-01-31", "2024-04-01", "1mo", []string{"2024-01-31..2024-02-29", "2024-02-29..2024-03-29", "2024-03-29..2024-04-01"}},
		{incremental.Form{Type: incremental.Time}, "2024-01-01T01:00:00+01:00", "2024-01-01T10:00:00Z", "6h", []string{"2024-01-01T01:00:00+01:00..2024-01-01T07:00:00+01:00", "2024-01-01T07:00:00+01:00..2024-01-01T10:00:00Z"}},
		{incremental.Form{Type: incremental.Time, Format: "%s"}, 1704067200, "2024-01-01T00:00:10.5Z", "7s", []string{"1704067200..1704067207", "1704067207..1704067211"}},
		{incremental.Form{Type: incremental.Time, Format: "02/01/2006"}, "30/12/2023", "2024-01-01T00:00:00Z", "30d", []string{"30/12/2023..01/01/2024"}},
		{incremental.Form{Type: incremental.Date}, "2024-01-05", "2024-01-03", "1d", []string{"2024-01-05..2024-01-03 empty"}},
	} {
		from, err := row.form.Parse(row.from)
		require.NoError(t, err)
		require.NoError(t, row.form.CheckStep(row.step))
		slice, err := row.form.FirstSlice(from, row.step, row.until)
		require.NoError(t, err)
		var got []string
		for ; slice != nil; slice = row.form.NextSlice(slice, row.step, 0) {
			text := fmt.Sprintf("%s..%s", slice.From.Text(), slice.To.Text())
			if slice.Empty() {
				text += " empty"
			}
			got = append(got, text)
		}
		require.Equal(t, row.want, got)
	}
}

// TestStepsThatAreNone passes MostSlices.
func TestStepsThatAreNone(t *testing.T) {
	t.Parallel()
	day, moment := incremental.Form{Type: incremental.Date}, incremental.Form{Type: incremental.Time}
	require.ErrorContains(t, day.CheckStep("1h"), "at least 1d")
	require.ErrorContains(t, day.CheckStep("-1d"), "is not a length of time")
	require.ErrorContains(t, moment.CheckStep("monthly"), "is not an amount of time")
	from, err := moment.Parse("1980-01-01")
	require.NoError(t, err)
	_, err = moment.FirstSlice(from, "1m", "2024-01-01")
	require.ErrorContains(t, err, "more than 10000 slices")
	_, err = moment.FirstSlice(from, "1d", "soon")
	require.ErrorContains(t, err, `incremental.until: "soon" is no time`)
}
