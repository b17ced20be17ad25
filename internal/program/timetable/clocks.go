package timetable

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"reprise/interpreter/cron"
	"reprise/interpreter/lists"
)

// clocksComment is the comment of a cron line's calendars after the first one.
const clocksComment = "days on which clocks move"

// A schedule covers the clock changes of the last two years, for backfills, and of the next ten; fewer years if a
// line has so many times that there would be too many entries.
const (
	yearsBack = 2
	// mostEntries bounds a spec's calendars for clock changes. The server reads all of them at each time of a
	// schedule.
	mostEntries = 600
)

var yearsAhead = []int{10, 5, 2}

// onceAfter is the least interval of an entry that stands for a single time: the server has only intervals, counted
// from 1970, so the entry's next time is as long after it as it is after 1970.
const onceAfter = 20 * 365 * 24 * time.Hour

// addCron adds the entries for a cron line to a spec.
func addCron(spec *client.ScheduleSpec, text string, zone *time.Location, now time.Time) {
	line, err := cron.Parse(text)
	if err != nil { // others have made it, with what starter would not write
		spec.CronExpressions = append(spec.CronExpressions, text)
		return
	}
	var entries cron.Entries
	for _, years := range yearsAhead {
		if entries = line.ScheduleEntries(zone, now.Year()-yearsBack, now.Year()+years+1); entries.Len() <= mostEntries {
			break
		}
	}
	if len(entries.Once)+len(entries.Steps) == 0 && len(entries.Calendars) == 1 {
		spec.CronExpressions = append(spec.CronExpressions, text+" # "+text)
		return
	}
	comment := text
	for _, one := range entries.Calendars {
		spec.Calendars = append(spec.Calendars, calendarSpec(one, comment))
		comment = clocksComment
	}
	if len(entries.Calendars) == 0 {
		spec.Calendars = append(spec.Calendars, pastCalendar(text))
	}
	for _, at := range entries.Once {
		spec.Intervals = append(spec.Intervals, client.ScheduleIntervalSpec{Every: time.Duration(at.Unix()) * time.Second})
	}
	for _, step := range entries.Steps {
		spec.Intervals = append(spec.Intervals, client.ScheduleIntervalSpec{Every: step.Every, Offset: step.Offset})
	}
}

// pastCalendar returns a calendar without future times. It stores the text of a cron line whose times are an
// interval.
func pastCalendar(text string) client.ScheduleCalendarSpec {
	one := []client.ScheduleRange{{Start: 1}}
	return client.ScheduleCalendarSpec{Year: []client.ScheduleRange{{Start: cron.FirstYear}}, Month: one, DayOfMonth: one, Comment: text}
}

// isOfLine reports whether an interval belongs to a cron line.
func isOfLine(spec *client.ScheduleSpec, interval client.ScheduleIntervalSpec) bool {
	return interval.Every > onceAfter || slices.ContainsFunc(spec.Calendars, func(c client.ScheduleCalendarSpec) bool {
		return len(c.Year) == 1 && c.Year[0].Start == cron.FirstYear && max(c.Year[0].End, cron.FirstYear) == cron.FirstYear
	})
}

func calendarSpec(c cron.Calendar, comment string) client.ScheduleCalendarSpec {
	return client.ScheduleCalendarSpec{
		Minute: toRanges(cron.SetMembers(c.Minutes)), Hour: toRanges(cron.SetMembers(c.Hours)), DayOfMonth: toRanges(cron.SetMembers(c.Days)),
		Month: toRanges(cron.SetMembers(c.Months)), DayOfWeek: toRanges(cron.SetMembers(c.Weekdays)), Year: toRanges(c.Years), Comment: comment,
	}
}

// toRanges converts sorted numbers to ranges, merging consecutive numbers.
func toRanges(numbers []int) []client.ScheduleRange {
	var all []client.ScheduleRange
	for _, n := range numbers {
		if last := len(all) - 1; last >= 0 && all[last].End == n-1 {
			all[last].End = n
			continue
		}
		all = append(all, client.ScheduleRange{Start: n, End: n, Step: 1})
	}
	return all
}

// RenewedSpec returns the spec of a schedule with the currently known clock changes; nil if it has them already, or
// was not created by starter.
func RenewedSpec(schedule client.Schedule, now time.Time) *client.ScheduleSpec {
	spec := schedule.Spec
	if spec == nil || len(spec.Calendars) == 0 || slices.ContainsFunc(spec.Calendars, func(c client.ScheduleCalendarSpec) bool { return c.Comment == "" }) {
		return nil
	}
	next := ScheduleSpec(Read(schedule), now)
	if slices.Equal(clockMoves(*spec), clockMoves(next)) {
		return nil
	}
	return &next
}

// clockMoves returns the entries of a spec for clock changes, sorted.
func clockMoves(spec client.ScheduleSpec) []string {
	all := map[string]bool{}
	for _, interval := range spec.Intervals {
		all[fmt.Sprint("interval ", interval.Every, " ", interval.Offset)] = true
	}
	for _, c := range spec.Calendars {
		if c.Comment == clocksComment {
			all[cronOf(c)+" "+cronRanges(c.Year, cron.FirstYear, cron.LastYear)] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// cronOf converts a calendar that starter did not create to a cron line, without seconds and years.
func cronOf(c client.ScheduleCalendarSpec) string {
	fields := []string{
		cronRanges(c.Minute, 0, 59), cronRanges(c.Hour, 0, 23), cronRanges(c.DayOfMonth, 1, 31), cronRanges(c.Month, 1, 12),
		cronRanges(c.DayOfWeek, 0, 6),
	}
	return strings.Join(fields, " ")
}

func cronRanges(of []client.ScheduleRange, least, most int) string {
	parts := lists.Map(of, func(r client.ScheduleRange) string {
		end, step := max(r.End, r.Start), max(r.Step, 1)
		part := fmt.Sprintf("%d-%d", r.Start, end)
		switch {
		case r.Start == least && end == most:
			part = "*"
		case r.Start == end:
			part = fmt.Sprint(r.Start)
		}
		if step > 1 {
			part += fmt.Sprintf("/%d", step)
		}
		return part
	})
	return cmp.Or(strings.Join(parts, ","), "*")
}

// RenewSchedule updates a schedule with the currently known clock changes, and reports whether that was necessary.
func RenewSchedule(ctx context.Context, c client.Client, id string, now time.Time) (renewed bool, err error) {
	handle := c.ScheduleClient().GetHandle(ctx, id)
	described, err := handle.Describe(ctx)
	if err != nil || RenewedSpec(described.Schedule, now) == nil {
		return false, err
	}
	return true, handle.Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			next := in.Description.Schedule
			if spec := RenewedSpec(next, now); spec != nil {
				next.Spec = spec
			}
			return &client.ScheduleUpdate{Schedule: &next}, nil
		},
	})
}
