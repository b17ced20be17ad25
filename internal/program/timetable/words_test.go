package timetable_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/timetable"
	"reprise/interpreter/playbook"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"0 3 * * *": "daily at 03:00", "@daily": "daily at 00:00", "30 6 * * 1": "weekly on Monday at 06:30", "0 8 * * MON-FRI": "Monday to Friday at 08:00",
		"15 * * * *": "hourly at :15", "*/5 * * * *": "every 5 minutes", "0 */6 * * *": "every 6 hours at :00", "0 4 1 * *": "monthly on day 1 at 04:00",
		"0 3 * 1-6 *": "0 3 * 1-6 *", "0,30 3 * * *": "0,30 3 * * *", "0 3 1 * 5": "0 3 1 * 5",
		"* * * * *": "every minute", "*/1 * * * *": "every minute", "*/7 * * * *": "*/7 * * * *", "0 */1 * * *": "every hour at :00",
		"0 */5 * * *": "0 */5 * * *", "* 3 * * *": "* 3 * * *",
	} {
		require.Equal(t, want+", Europe/Berlin", timetable.DescribeSchedule(&playbook.Schedule{Cron: []string{line}, Zone: "Europe/Berlin"}), line)
	}
	require.Equal(t, "every 15m", timetable.DescribeSchedule(&playbook.Schedule{Every: 15 * time.Minute, Zone: "UTC"}))
	require.Equal(t, "daily at 03:00; daily at 15:00, UTC", timetable.DescribeSchedule(&playbook.Schedule{Cron: []string{"0 3 * * *", "0 15 * * *"}, Zone: "UTC"}))
	require.Equal(t, "never", timetable.DescribeSchedule(&playbook.Schedule{}))
}
