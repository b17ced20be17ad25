package incremental_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/incremental"
)

// TestFormatIsRead: what an author may write as format, and what a cursor in it stands for.
func TestFormatIsRead(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		format string
		type_  incremental.CursorType
		value  any
		means  string // "" where it is no cursor
	}{
		{"%d/%m/%Y", incremental.Date, "31/01/2024", "2024-01-31T00:00:00Z"},
		{"%d/%m/%Y", incremental.Date, "2024-01-31", ""},
		{"%d/%m/%Y", incremental.Date, "31/13/2024", ""},
		{"%d/%m/%Y", incremental.Date, nil, ""},
		{"02/01/2006", incremental.Date, "31/01/2024", "2024-01-31T00:00:00Z"},
		{"%Y%m%d", incremental.Date, 20240131, "2024-01-31T00:00:00Z"},
		{"%Y-%jT", incremental.Date, "2024-031T", "2024-01-31T00:00:00Z"},
		{"%Y-%m-%dT%H:%M:%SZ", incremental.Time, "2024-01-31T10:11:12Z", "2024-01-31T10:11:12Z"},
		{"%Y-%m-%dT%H:%M:%S.%f%z", incremental.Time, "2024-01-31T10:11:12.123456+0200", "2024-01-31T08:11:12.123456Z"},
		{"%m/%d/%y %I:%M %p", incremental.Time, "01/31/24 10:11 PM", "2024-01-31T22:11:00Z"},
		{"%s", incremental.Time, 1706695872, "2024-01-31T10:11:12Z"},
		{"%s", incremental.Time, "1706695872.25", "2024-01-31T10:11:12.25Z"},
		{"%s", incremental.Time, 1706695872.5, "2024-01-31T10:11:12.5Z"},
		{"%s", incremental.Time, -1, "1969-12-31T23:59:59Z"},
		{"%ms", incremental.Time, 1706695872001, "2024-01-31T10:11:12.001Z"},
		{"%us", incremental.Time, 1706695872000001, "2024-01-31T10:11:12.000001Z"},
		{"%s", incremental.Time, 1706695872001, ""}, // milliseconds are no seconds of this era
		{"%s", incremental.Time, "2024-01-31", ""},
		{"%s", incremental.Time, true, ""},
	} {
		layout, as, err := incremental.ReadFormat(row.format)
		require.NoError(t, err, row.format)
		require.Equal(t, row.type_, as, row.format)
		cursor, err := incremental.Form{Type: incremental.Time, Format: layout}.Parse(row.value)
		if row.means == "" {
			require.Error(t, err, "%s %v", row.format, row.value)
			continue
		}
		require.NoError(t, err, row.format)
		require.Equal(t, row.value, cursor.Value.Data, "it is kept digit for digit")
		at, _ := incremental.TimeOf(incremental.Time, cursor)
		require.Equal(t, row.means, at.Format(time.RFC3339Nano), row.format)
	}
}

func TestFormatsThatAreNone(t *testing.T) {
	t.Parallel()
	for format, says := range map[string]string{
		"":                   "is empty",
		"yyyy-MM-dd":         "write for example",
		"%d.%m":              "does not name a day",
		"%H:%M":              "does not name a day",
		"%Y-%m-%d %I:%M":     "does not name a day",
		"%Y-%m-%d %S":        "does not name a day",
		"%Y-%m-%d %Q":        "write for example",
		"2006-01-02 MST":     "offset",
		"%Y-%m-%d %M:%H %-":  "write for example",
		"%s ago":             "write for example",
		"2006-01-02 January": "",
	} {
		_, _, err := incremental.ReadFormat(format)
		if says == "" {
			require.NoError(t, err, format)
			continue
		}
		require.ErrorContains(t, err, says, format)
	}
}

// TestFormatIsWritten: a cursor is written as the source writes it, never later than it is.
func TestFormatIsWritten(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		format, at string
		lag        time.Duration
		want       any
	}{
		{"%d/%m/%Y", "31/01/2024", 0, "31/01/2024"},
		{"%d/%m/%Y", "31/01/2024", 10 * time.Minute, "30/01/2024"},
		{"%Y-%m-%dT%H:%M:%SZ", "2024-01-31T00:00:00Z", time.Second, "2024-01-30T23:59:59Z"},
		{"%Y-%m-%dT%H:%M:%S%z", "2024-01-31T00:00:00+0200", time.Second, "2024-01-30T21:59:59+0000"},
		{"%s", "1706695872", 10 * time.Second, "1706695862"},
		{"%ms", "1706695872001", time.Second, "1706695871001"},
	} {
		layout, _, err := incremental.ReadFormat(row.format)
		require.NoError(t, err)
		form := incremental.Form{Type: incremental.Time, Format: layout}
		cursor, err := form.Parse(row.at)
		require.NoError(t, err)
		got := form.BeforeLag(cursor, incremental.Lag(row.lag))
		require.Equal(t, row.want, got.Value.Data, row.format)
		again, err := form.Parse(got.Value.Data)
		require.NoError(t, err)
		require.Equal(t, again.Position, got.Position, "it stands for what it says: %s", row.format)
	}
}

// TestCursorOfAnotherForm: a state that was kept in another form is written in that of the step.
func TestCursorOfAnotherForm(t *testing.T) {
	t.Parallel()
	iso, days, epoch := incremental.Form{Type: incremental.Time}, incremental.Form{Type: incremental.Time, Format: "02/01/2006"}, incremental.Form{Type: incremental.Time, Format: "%s"}
	was, err := iso.Parse("2024-01-31T10:11:12Z")
	require.NoError(t, err)
	require.Equal(t, "31/01/2024", days.BeforeLag(was, 0).Value.Data)
	require.Equal(t, 1706695872, epoch.BeforeLag(was, 0).Value.Data)
	require.Equal(t, "2024-01-31T00:00:00Z", iso.BeforeLag(days.BeforeLag(was, 0), 0).Value.Data)
	initial, err := epoch.ParseAny("2024-01-31T10:11:12Z")
	require.NoError(t, err)
	require.Equal(t, 1706695872, initial.Value.Data, "an initial value may be written as people write it")
	initial, err = days.ParseAny("31/01/2024")
	require.NoError(t, err)
	require.Equal(t, "31/01/2024", initial.Value.Data)
	_, err = days.ParseAny("soon")
	require.ErrorContains(t, err, `"soon" does not fit the format, such as 31/01/2024`)
}
