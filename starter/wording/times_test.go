package wording

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
)

func TestTimesInWords(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"* * * * *": "every minute", "*/15 * * * *": "every 15 minutes", "5 * * * *": "hourly at :05", "0 3 * * *": "daily at 03:00",
		"30 18 * * 1-5": "mon-fri at 18:30", "0 6 * * SAT,sun": "sat,sun at 06:00", "0 0 1 * *": "monthly on day 1 at 00:00",
		"@daily": "daily", "0 0 1 1 *": "cron 0 0 1 1 *", "0 3 1 * 1": "cron 0 3 1 * 1", "0 8-18 * * *": "cron 0 8-18 * * *", "odd": "odd",
	} {
		require.Equal(t, want, cronInWords(line), line)
	}
	require.Equal(t, "every 1h at +15m", TimesInWords(&playbook.Schedule{Every: time.Hour, Offset: 15 * time.Minute}))
	require.Equal(t, "never", TimesInWords(&playbook.Schedule{}))
}
