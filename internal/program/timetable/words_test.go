package timetable_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/timetable"
	"reprise/interpreter/playbook"
)

// TestWords: starter and the page describe times in the same words, and lines that have none as they are.
func TestWords(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"0 3 * * *": "daily at 03:00", "@daily": "daily at 00:00", "@weekly": "sun at 00:00", "30 6 * * 1": "mon at 06:30", "0 8 * * MON-FRI": "mon-fri at 08:00",
		"30 18 * * 1-5": "mon-fri at 18:30", "0 6 * * SAT,sun": "sat,sun at 06:00", "0 4 1 * *": "monthly on day 1 at 04:00",
		"15 * * * *": "hourly at :15", "5 * * * *": "hourly at :05", "*/5 * * * *": "every 5 minutes", "* * * * *": "every minute", "*/1 * * * *": "every minute",
		"0 */6 * * *": "every 6 hours at :00", "0 */1 * * *": "hourly at :00", "0 */5 * * *": "cron 0 */5 * * *", "*/7 * * * *": "cron */7 * * * *",
		"0 3 * 1-6 *": "cron 0 3 * 1-6 *", "0,30 3 * * *": "cron 0,30 3 * * *", "0 3 1 * 5": "cron 0 3 1 * 5", "* 3 * * *": "cron * 3 * * *",
		"0 0 1 1 *": "cron 0 0 1 1 *", "0 8-18 * * *": "cron 0 8-18 * * *", "odd": "odd",
	} {
		times := &playbook.Schedule{Cron: []string{line}, Zone: "Europe/Berlin"}
		require.Equal(t, want, timetable.TimesInWords(times), line)
		require.Equal(t, want+", Europe/Berlin", timetable.DescribeSchedule(times), line)
	}
	require.Equal(t, "every 15m", timetable.DescribeSchedule(&playbook.Schedule{Every: 15 * time.Minute, Zone: "UTC"}))
	require.Equal(t, "every 1h at +15m", timetable.TimesInWords(&playbook.Schedule{Every: time.Hour, Offset: 15 * time.Minute}))
	require.Equal(t, "daily at 03:00; daily at 15:00, UTC", timetable.DescribeSchedule(&playbook.Schedule{Cron: []string{"0 3 * * *", "0 15 * * *"}, Zone: "UTC"}))
	require.Equal(t, "never", timetable.DescribeSchedule(&playbook.Schedule{}))
}
