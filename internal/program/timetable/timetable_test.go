package timetable_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"reprise/internal/program/timetable"
	"reprise/internal/test/testenv"
	"reprise/interpreter/cron"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// everyMove has the server asked about each move from 2024 to 2036.
var everyMove = flag.Bool("timetable.all", false, "every move of the clocks, and more zones")

// now is when the schedules of these tests are made.
var now = time.Date(2026, time.June, 15, 12, 0, 0, 0, time.UTC)

// TestOnServer: around moves of clocks the server's times are those of cron.Near, whose oracle is in
// that package.
func TestOnServer(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "America/Nuuk"}
	if *everyMove {
		zones = append(zones, "Asia/Beirut", "America/Havana", "America/Santiago", "Africa/Casablanca", "Antarctica/Troll", "Pacific/Chatham", "Asia/Gaza")
	}
	for _, name := range zones {
		zone, err := expression.LoadZone(name)
		require.NoError(t, err)
		from, to := 2026, 2028
		if *everyMove {
			from, to = 2024, 2037
		}
		moves := cron.Transitions(zone, time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(to, 1, 1, 0, 0, 0, 0, time.UTC))
		for i, text := range []string{"30 2 * * *", "30 1 * * *", "0 0 * * *", "30 23 * * *", "15 0 * * 5", "0 4 * * 4", "0 * * * *", "*/15 * * * *", "*/7 * * * 0,5,6", "30 1-23/2 * * *", "0 */6 * * *"} {
			id := fmt.Sprintf("%s-%d-%s", name, i, env.NewTaskQueue())
			times := timetable.SettledTimes(&playbook.Schedule{Cron: []string{text}, Zone: name})
			create(t, env.Client(), id, timetable.ScheduleSpec(times, now))
			line, err := cron.Parse(text)
			require.NoError(t, err)
			for _, m := range moves {
				first, last := m.At.Add(-30*time.Hour), m.At.Add(30*time.Hour)
				want := slices.DeleteFunc(line.MomentsNear(m), func(at time.Time) bool { return at.Before(first) || at.After(last) })
				require.Equal(t, texts(want), texts(matching(t, env, id, first, last)), "%s %q at %s", name, text, m.At)
			}
		}
	}
}

func create(t *testing.T, c client.Client, id string, spec client.ScheduleSpec) client.ScheduleHandle {
	t.Helper()
	handle, err := c.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: id, Spec: spec, Paused: true, Action: &client.ScheduleWorkflowAction{ID: id, Workflow: "None", TaskQueue: "none", Args: []any{1}},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, handle.Delete(context.Background())) })
	return handle
}

// matching are the times of a schedule.
func matching(t *testing.T, env *testenv.Env, id string, from, to time.Time) []time.Time {
	t.Helper()
	answer, err := env.Client().WorkflowService().ListScheduleMatchingTimes(t.Context(), &workflowservice.ListScheduleMatchingTimesRequest{
		Namespace: env.Namespace, ScheduleId: id, StartTime: timestamppb.New(from.Add(-time.Second)), EndTime: timestamppb.New(to),
	})
	require.NoError(t, err)
	var all []time.Time
	for _, at := range answer.GetStartTime() {
		all = append(all, at.AsTime())
	}
	return all
}

func texts(all []time.Time) []string {
	var texts []string
	for _, at := range all {
		texts = append(texts, at.UTC().Format(time.RFC3339))
	}
	return texts
}

// TestRenew: what a schedule says stays, and it knows the moves of the years that were to come.
func TestRenew(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	id := env.NewTaskQueue()
	lines := []string{"30 2 * * *", "*/15 * * * *", "0 9 1 1 *", "0 * * * 1-5"}
	times := timetable.SettledTimes(&playbook.Schedule{Cron: lines, Zone: "America/New_York", Jitter: time.Minute})
	handle := create(t, env.Client(), id, timetable.ScheduleSpec(times, now))
	described, err := handle.Describe(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines, timetable.Read(described.Schedule).Cron)
	require.Zero(t, timetable.Read(described.Schedule).Every)
	require.Nil(t, timetable.RenewedSpec(described.Schedule, now.AddDate(0, 1, 0)), "in the same year there is nothing new")

	later := now.AddDate(8, 0, 0)
	renewed, err := timetable.RenewSchedule(t.Context(), env.Client(), id, later)
	require.NoError(t, err)
	require.True(t, renewed)
	zone, err := expression.LoadZone("America/New_York")
	require.NoError(t, err)
	spring := cron.Transitions(zone, later.AddDate(7, 0, 0), later.AddDate(8, 0, 0))
	require.NotEmpty(t, spring)
	described, err = handle.Describe(t.Context())
	require.NoError(t, err)
	require.Equal(t, lines, timetable.Read(described.Schedule).Cron)
	require.Equal(t, time.Minute, described.Schedule.Spec.Jitter)
	require.True(t, described.Schedule.State.Paused)
	renewed, err = timetable.RenewSchedule(t.Context(), env.Client(), id, later)
	require.NoError(t, err)
	require.False(t, renewed)
	for _, m := range spring {
		near := m.At.Add(30 * time.Hour)
		require.NotEmpty(t, matching(t, env, id, m.At.Add(-time.Hour), near))
	}
}

// TestForeign: what others have made is read as far as it can be, and not renewed.
func TestForeign(t *testing.T) {
	t.Parallel()
	spec := &client.ScheduleSpec{
		Calendars: []client.ScheduleCalendarSpec{{Hour: []client.ScheduleRange{{Start: 2}}}}, Intervals: []client.ScheduleIntervalSpec{{Every: time.Hour}},
		TimeZoneName: "Europe/Berlin",
	}
	read := timetable.Read(client.Schedule{Spec: spec})
	require.Equal(t, time.Hour, read.Every)
	require.Len(t, read.Cron, 1)
	require.Nil(t, timetable.RenewedSpec(client.Schedule{Spec: spec}, now))
}
