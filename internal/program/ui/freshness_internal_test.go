package ui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/runs"
	"reprise/internal/program/backfill"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// TestFreshness: data is fresh until a run that its schedule had due has not completed; a weekend without times does not make it old, and
// the first missed time after it does.
func TestFreshness(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		read, err := time.Parse("2006-01-02 15:04", text)
		require.NoError(t, err)
		return read
	}
	// Weekdays at 03:00: Friday the 27th, Monday the 30th, Tuesday the 1st.
	info := func(due, next string) client.ScheduleInfo {
		return client.ScheduleInfo{
			RecentActions: []client.ScheduleActionResult{{ScheduleTime: at(due)}}, NextActionTimes: []time.Time{at(next)},
		}
	}
	friday, monday := info("2026-11-27 03:00", "2026-11-30 03:00"), info("2026-11-30 03:00", "2026-12-01 03:00")
	for _, row := range []struct {
		name, now, ended string
		info             client.ScheduleInfo
		expect           time.Duration
		late             bool
		text             string
	}{
		{"sunday", "2026-11-29 15:00", "2026-11-27 03:04", friday, 30 * time.Minute, false, "Fresh: 2d ago, next run in 12h00m"},
		{"monday, still running", "2026-11-30 03:10", "2026-11-27 03:04", monday, 30 * time.Minute, false, "Fresh: 3d ago, next run in 23h50m"},
		{"monday, nothing came", "2026-11-30 04:00", "2026-11-27 03:04", monday, 30 * time.Minute, true, "Not fresh: 3d ago; no run has completed since the one due 1h ago, next run in 23h00m"},
		{"monday, nothing came and nothing is expected", "2026-11-30 04:00", "2026-11-27 03:04", monday, 0, false, "Fresh: 3d ago, next run in 23h00m"},
		{"no time was due yet", "2026-11-30 04:00", "2026-11-27 03:04", client.ScheduleInfo{}, 0, false, "Fresh: 3d ago"},
	} {
		fresh := newFreshness(runs.Found{WorkflowID: "load", EndedAt: at(row.ended)}, newExpectedTimes(row.info, row.expect), at(row.now))
		require.Equal(t, freshness{Text: row.text, Path: "/runs/load", Late: row.late}, *fresh, row.name)
	}
	every := &playbook.Playbook{Schedule: &playbook.Schedule{Every: time.Hour}, Expect: time.Hour}
	ended := runs.Found{WorkflowID: "load", EndedAt: at("2026-11-29 12:00")}
	require.Equal(t, "Fresh: 1h ago, expected within 2h", freshWithin(ended, every, at("2026-11-29 13:00")).Text)
	require.Equal(t, "Not fresh: 3h ago, expected within 2h", freshWithin(ended, every, at("2026-11-29 15:00")).Text)
	require.Equal(t, "Fresh: 3h ago", freshWithin(ended, &playbook.Playbook{}, at("2026-11-29 15:00")).Text)
}

// TestVerdictOfABook: a playbook with warnings is valid.
func TestVerdictOfABook(t *testing.T) {
	t.Parallel()
	require.Equal(t, "valid", Book{}.verdict())
	require.Equal(t, "valid, 2 warnings", Book{Problems: []string{"a", "b"}}.verdict())
	require.Equal(t, "1 problem", Book{Problems: []string{"a", "b"}, Errors: 1, Invalid: true}.verdict())
}

// TestGapsOfABook: the list of playbooks says how many partitions nobody has loaded, and the calendar numbers its squares.
func TestGapsOfABook(t *testing.T) {
	t.Parallel()
	require.Empty(t, gapsText(backfill.Gaps{Unit: "day"}))
	require.Equal(t, "2 days missing", gapsText(backfill.Gaps{Missing: 2, Unit: "day"}))
	require.Equal(t, "1 day missing, 3 failed", gapsText(backfill.Gaps{Missing: 1, Failed: 3, Unit: "day"}))
	require.Equal(t, "1 partition failed", gapsText(backfill.Gaps{Failed: 1, Unit: "partition"}))
	numbers := func(columns int) []int {
		return lists.Map(newRuler(columns), func(mark rulerMark) int { return mark.Number })
	}
	require.Equal(t, []int{1, 8, 15, 22, 29}, numbers(31))
	require.Equal(t, []int{0, 6, 12, 18, 24}, numbers(25))
	require.Empty(t, numbers(10))
	s := &Server{Options: Options{Library: &Library{Has: func(name string) bool { return name == "sales" }}}}
	rows := s.needRows([]runRow{{Run: runs.Found{Playbook: "sales" + backfill.Suffix}}, {Run: runs.Found{Playbook: "sales"}}}, Person{})
	require.Contains(t, rows[0].Next, link{"See which partitions are missing", "/playbooks/sales#partitions"}, "the run of a backfill leads to the calendar")
	require.NotContains(t, rows[1].Next, link{"See which partitions are missing", "/playbooks/sales#partitions"})
}
