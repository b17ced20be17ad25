package schedule

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/terminal"
	"reprise/internal/program/timetable"
	"reprise/internal/test/samples"
)

// TestGoldenSchedules: what people see of schedules, in 80 columns.
func TestGoldenSchedules(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 28, 2, 0, 0, 0, time.UTC)
	local := time.Date(2026, 3, 28, 3, 0, 0, 0, time.Local)
	doc := &ScheduleDocument{
		Name: "nightly", Playbook: "nightly_sync", When: "mon-fri at 03:00", Cron: []string{"0 3 * * 1-5"}, Zone: "Europe/Berlin",
		Jitter: "30s", Overlap: "skip", CatchUp: "8760h", Next: []time.Time{local}, Started: 2, Skipped: 1, Queue: "reprise",
		Recent: []ScheduledRun{
			{WorkflowID: "nightly-2026-03-27T02:00:00Z", StartedAt: local.Add(-24 * time.Hour), EndedAt: local.Add(-23 * time.Hour), Status: "failed", Error: "HTTP 503 of \x1b[31mapi"},
			{WorkflowID: "nightly-2026-03-26T02:00:00Z"},
		},
	}
	paused := &ScheduleDocument{
		Name: "poll", Playbook: "poll", When: "every 15m", Every: "15m", Zone: "UTC", Paused: true, Note: "the source is being rebuilt, ask Ada before resuming",
		Overlap: "allow", CatchUp: "1h", Next: []time.Time{at}, Recent: []ScheduledRun{}, Queue: "reprise",
	}
	over := &ScheduleDocument{Name: "once", Playbook: "once", When: "cron 0 0 1 1 *", Zone: "UTC", Recent: []ScheduledRun{}}
	var out bytes.Buffer
	to := &terminal.Screen{To: &out}
	for _, width := range []int{200, 80, 60, 30} {
		_, err := fmt.Fprintln(to, schedulesTable([]*ScheduleDocument{doc, over, paused}, terminal.Paper{Width: width}))
		require.NoError(t, err)
	}
	doc.Next, paused.Next = []time.Time{at, at.Add(23 * time.Hour)}, []time.Time{at}
	_, err := fmt.Fprint(to, doc.documentText(80), "\n", paused.documentText(80), "\n", over.documentText(80))
	require.NoError(t, err)
	samples.Golden(t, "schedule/show", out.String())
}

// TestListShowsSecondsWhereTheyMatter: two runs within a minute are told apart.
func TestListShowsSecondsWhereTheyMatter(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 28, 2, 0, 10, 0, time.UTC)
	for every, want := range map[string]string{"10s": "03-28 02:00:10Z", "90s": "03-28 02:00:10Z", "15m": "03-28 02:00Z", "": "03-28 02:00:10Z"} {
		doc := &ScheduleDocument{Name: "poll", Every: every, Next: []time.Time{at}, Recent: []ScheduledRun{{StartedAt: at, Status: "completed"}}}
		if every == "15m" {
			doc.Jitter = "30s"
		}
		require.Equal(t, want, doc.listCells("", terminal.Paper{})["due"], every)
		require.Equal(t, want+" completed", doc.listCells("", terminal.Paper{})["last run"], every)
	}
}

// TestForeignCalendar: a calendar that was not written by starter is told as cron.
func TestForeignCalendar(t *testing.T) {
	t.Parallel()
	all := func(least, most int) []client.ScheduleRange { return []client.ScheduleRange{{Start: least, End: most}} }
	calendar := client.ScheduleCalendarSpec{
		Minute: []client.ScheduleRange{{Start: 0, End: 59, Step: 15}}, Hour: []client.ScheduleRange{{Start: 8, End: 18}, {Start: 22}},
		DayOfMonth: all(1, 31), Month: all(1, 12), DayOfWeek: all(0, 6),
	}
	times := timetable.Read(client.Schedule{
		Spec:   &client.ScheduleSpec{Calendars: []client.ScheduleCalendarSpec{calendar}},
		Policy: &client.SchedulePolicies{Overlap: enums.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED},
	})
	require.Equal(t, []string{"*/15 8-18,22 * * *"}, times.Cron)
	require.Equal(t, "skip", times.Overlap)
	require.Equal(t, "UTC", times.Zone)
}
