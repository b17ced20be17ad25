// Package timetable converts the times in a playbook or on a command line to the spec of a schedule on a Temporal
// server, and back.
package timetable

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// overlapPolicies are Temporal's policies, in the order of playbook.Overlaps.
var overlapPolicies = []enums.ScheduleOverlapPolicy{
	enums.SCHEDULE_OVERLAP_POLICY_SKIP, enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE, enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL,
	enums.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER, enums.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER, enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
}

// OverlapPolicy returns the policy for a known word; for "" the policy of the schedule.
func OverlapPolicy(word string) enums.ScheduleOverlapPolicy {
	if at := slices.Index(playbook.Overlaps, word); at >= 0 {
		return overlapPolicies[at]
	}
	return enums.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED
}

func overlapWord(policy enums.ScheduleOverlapPolicy) string {
	if at := slices.Index(overlapPolicies, policy); at >= 0 {
		return playbook.Overlaps[at]
	}
	return playbook.Overlaps[0] // the server's default
}

// serverCatchUp is the server's default for the catch-up window.
const serverCatchUp = 365 * 24 * time.Hour

// SettledTimes returns times in the form in which the server returns them: with the defaults, and times in UTC. The
// times must be valid.
func SettledTimes(times *playbook.Schedule) *playbook.Schedule {
	all := *times
	all.Words, all.Places = nil, nil
	all.Zone, all.Overlap = cmp.Or(all.Zone, "UTC"), cmp.Or(all.Overlap, playbook.Overlaps[0])
	all.CatchUp = cmp.Or(all.CatchUp, serverCatchUp)
	zone := zoneOf(all.Zone)
	for _, moment := range []*string{&all.Start, &all.End} {
		if at, err := playbook.ParseMoment(*moment, zone); err == nil && !at.IsZero() {
			*moment = at.UTC().Format(time.RFC3339)
		}
	}
	return &all
}

// zoneOf returns a time zone from the data of the build, else of the machine, else UTC.
func zoneOf(name string) *time.Location {
	if zone, err := expression.LoadZone(name); err == nil {
		return zone
	}
	if zone, err := time.LoadLocation(name); err == nil {
		return zone
	}
	return time.UTC
}

// ScheduleSpec returns the server's spec for settled times, with the clock changes known now. The comment of a cron
// line's first calendar holds its text: the server stores what a line means, not how it was written.
func ScheduleSpec(times *playbook.Schedule, now time.Time) client.ScheduleSpec {
	spec := client.ScheduleSpec{Jitter: times.Jitter, TimeZoneName: times.Zone}
	for _, line := range times.Cron {
		addCron(&spec, line, zoneOf(times.Zone), now)
	}
	if times.Every > 0 {
		spec.Intervals = append(spec.Intervals, client.ScheduleIntervalSpec{Every: times.Every, Offset: times.Offset})
	}
	spec.StartAt, _ = playbook.ParseMoment(times.Start, time.UTC) // settled
	spec.EndAt, _ = playbook.ParseMoment(times.End, time.UTC)
	return spec
}

// Read returns the settled times of a schedule on the server.
func Read(schedule client.Schedule) *playbook.Schedule {
	times := &playbook.Schedule{}
	if spec := schedule.Spec; spec != nil {
		times.Zone, times.Jitter = spec.TimeZoneName, spec.Jitter
		for _, calendar := range spec.Calendars {
			if calendar.Comment != clocksComment {
				times.Cron = append(times.Cron, cmp.Or(calendar.Comment, cronOf(calendar)))
			}
		}
		times.Cron = append(times.Cron, spec.CronExpressions...)
		for _, interval := range spec.Intervals {
			if !isOfLine(spec, interval) {
				times.Every, times.Offset = interval.Every, interval.Offset
			}
		}
		times.Start, times.End = momentText(spec.StartAt), momentText(spec.EndAt)
	}
	if policy := schedule.Policy; policy != nil {
		times.Overlap, times.CatchUp = overlapWord(policy.Overlap), policy.CatchupWindow
	}
	return SettledTimes(times)
}

func momentText(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}
