package cron

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter/expression"
)

// Transition is a time at which the clocks of a zone change.
type Transition struct {
	At            time.Time
	before, after time.Duration // offsets from UTC
}

// Transitions returns the transitions of a zone from one time to another, exclusive.
func Transitions(zone *time.Location, from, to time.Time) []Transition {
	var all []Transition
	for at := from; at.Before(to); {
		_, end := at.In(zone).ZoneBounds()
		switch {
		case end.IsZero() || !end.Before(to):
			return all
		case !end.After(at): // for some zones time.ZoneBounds ends years like this
			at = at.Add(time.Hour)
			continue
		}
		m := Transition{At: end.UTC(), before: expression.ZoneOffset(end.Add(-time.Second), zone), after: expression.ZoneOffset(end, zone)}
		if m.before != m.after { // otherwise only a name changes, or a year ends
			all = append(all, m)
		}
		at = end
	}
	return all
}

// LocalStart and LocalEnd return the local times before and after the transition, the earlier one first: times between them are
// skipped or repeated.
func (m Transition) LocalStart() time.Time { return m.At.Add(min(m.before, m.after)) }

// LocalEnd returns the end of the range that begins with LocalStart.
func (m Transition) LocalEnd() time.Time { return m.At.Add(max(m.before, m.after)) }

// SkipsTimes reports whether the clocks skip times.
func (m Transition) SkipsTimes() bool { return m.after > m.before }

// momentsShowing returns the times at which the clocks show a local time: none in a gap, two in a repeated hour.
func (m Transition) momentsShowing(shown time.Time) []time.Time {
	var all []time.Time
	if t := shown.Add(-m.before); t.Before(m.At) {
		all = append(all, t)
	}
	if t := shown.Add(-m.after); !t.Before(m.At) {
		all = append(all, t)
	}
	return all
}

// around is the distance from a transition up to which times are computed: no zone changes its clocks twice within
// it.
const around = 48 * time.Hour

// MomentsNear returns the times at which a line runs around a transition. Fixed hours are times of day: each runs
// once, right after a gap if it falls into one, and at the first occurrence if it is repeated. Stepped hours keep
// their interval: every local time counts, and no pause exceeds the step.
func (l Line) MomentsNear(m Transition) []time.Time {
	var all []time.Time
	shown := l.clockReadings(m.LocalStart().Add(-around), m.LocalEnd().Add(around))
	for i, one := range shown {
		moments := m.momentsShowing(one)
		switch {
		case len(moments) == 0 && (l.step == 0 || i == 0 || one.Sub(shown[i-1]) > l.step):
			all = append(all, m.At)
		case len(moments) > 1 && l.step == 0:
			all = append(all, moments[0])
		default:
			all = append(all, moments...)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	all = slices.CompactFunc(all, time.Time.Equal)
	return l.addPaced(m, all, shown)
}

// addPaced adds times that keep the interval of a line with hours in steps.
func (l Line) addPaced(m Transition, all, shown []time.Time) []time.Time {
	if l.step == 0 {
		return all
	}
	var paced []time.Time
	for i, at := range all {
		paced = append(paced, at)
		if i == len(all)-1 {
			break
		}
		pause := l.pauseAfter(m.shownAt(at), shown)
		if pause == 0 || pause > l.step {
			continue
		}
		for next := at.Add(pause); next.Before(all[i+1]); next = next.Add(pause) {
			paced = append(paced, next)
		}
	}
	return paced
}

// shownAt returns the local time at a moment.
func (m Transition) shownAt(at time.Time) time.Time {
	if at.Before(m.At) {
		return at.Add(m.before)
	}
	return at.Add(m.after)
}

// pauseAfter returns the time until the next local time of a line, without regard to transitions; 0 for the last
// one.
func (l Line) pauseAfter(shown time.Time, all []time.Time) time.Duration {
	i, found := slices.BinarySearchFunc(all, shown, time.Time.Compare)
	if !found || i == len(all)-1 {
		return 0
	}
	return all[i+1].Sub(shown)
}

// DescribeEffect describes the effect of a transition on the times of a line, "" if none is skipped or repeated.
func (l Line) DescribeEffect(m Transition) string {
	if l.step != 0 {
		return ""
	}
	shown := l.clockReadings(m.LocalStart(), m.LocalEnd())
	if len(shown) == 0 {
		return ""
	}
	first := shown[0].Format("15:04")
	if m.SkipsTimes() {
		return fmt.Sprintf("skip %s; the run starts at %s, right after the gap", first, m.LocalEnd().Format("15:04"))
	}
	return fmt.Sprintf("show %s twice; the run starts at the first", first)
}
