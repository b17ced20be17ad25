package timetable

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/interpreter/cron"
	"reprise/interpreter/expression"
)

// TestEntriesOfALineAreBounded passes mostEntries: of a line with more, a schedule provides for fewer years.
func TestEntriesOfALineAreBounded(t *testing.T) {
	t.Parallel()
	zone, err := expression.LoadZone("Europe/Berlin")
	require.NoError(t, err)
	now := time.Date(2026, time.June, 15, 12, 0, 0, 0, time.UTC)
	const text = "*/7 * * * 0,5,6"
	line, err := cron.Parse(text)
	require.NoError(t, err)
	require.Greater(t, line.ScheduleEntries(zone, now.Year()-yearsBack, now.Year()+yearsAhead[0]+1).Len(), mostEntries)
	var spec client.ScheduleSpec
	addCron(&spec, text, zone, now)
	require.Equal(t, line.ScheduleEntries(zone, now.Year()-yearsBack, now.Year()+yearsAhead[1]+1).Len(), len(spec.Calendars)+len(spec.Intervals))
	require.LessOrEqual(t, len(spec.Calendars)+len(spec.Intervals), mostEntries)
}
