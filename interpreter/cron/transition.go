package cron

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter/expression"
)

// Transition is a moment at which the clocks of a zone move.
type Transition struct {
	At            time.Time
	before, after time.Duration // how far the clocks are ahead of UTC
}

// Transitions are the transitions of a zone from one moment to another, exclusive.
func Transitions(zone *time.Location, from, to time.Time) []Transition {
	var all []Transition
	for at := from; at.Before(to); {
		_, end := at.In(zone).ZoneBounds()
		switch {
		case end.IsZero() || !end.Before(to):
			return all
		case !end.After(at): // time.ZoneBounds ends some zones' years so
			at = at.Add(time.Hour)
			continue
		}
		m := Transition{At: end.UTC(), before: expression.ZoneOffset(end.Add(-time.Second), zone), after: expression.ZoneOffset(end, zone)}
		if m.before != m.after { // else a name has changed, or a year
			all = append(all, m)
		}
		at = end
	}
	return all
}

// From and To are what the clocks show at the move, the earlier first: they leave out the times
// between, or show them twice.
func (m Transition) From() time.Time { return m.At.Add(min(m.before, m.after)) }

// To is the end of what From begins.
func (m Transition) To() time.Time { return m.At.Add(max(m.before, m.after)) }

// Forward reports whether the clocks leave times out.
func (m Transition) Forward() bool { return m.after > m.before }

// momentsShowing returns the moments at which the clocks show a time: none in a gap, two in a repeated
// hour.
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

// around is how far from a move times are worked out: no zone moves its clocks twice in that time.
const around = 48 * time.Hour

// MomentsNear returns the moments at which a line runs around a transition. Fixed hours are times of day:
// each runs once, right after a gap if it falls into one, and at the first occurrence if it is repeated.
// Stepped hours keep their pace: every shown time counts, and no pause exceeds the step.
func (l Line) MomentsNear(m Transition) []time.Time {
	var all []time.Time
	shown := l.clockReadings(m.From().Add(-around), m.To().Add(around))
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

// addPaced adds what keeps the pace of a line that counts hours.
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

// shownAt is what the clocks show at a moment.
func (m Transition) shownAt(at time.Time) time.Time {
	if at.Before(m.At) {
		return at.Add(m.before)
	}
	return at.Add(m.after)
}

// pauseAfter is how long a time is before the next one, as clocks show them that do not move; 0 for the last.
func (l Line) pauseAfter(shown time.Time, all []time.Time) time.Duration {
	i, found := slices.BinarySearchFunc(all, shown, time.Time.Compare)
	if !found || i == len(all)-1 {
		return 0
	}
	return all[i+1].Sub(shown)
}

// At describes what a transition does to the times of a line, "" if none is left out or repeated.
func (l Line) At(m Transition) string {
	if l.step != 0 {
		return ""
	}
	shown := l.clockReadings(m.From(), m.To())
	if len(shown) == 0 {
		return ""
	}
	first := shown[0].Format("15:04")
	if m.Forward() {
		return fmt.Sprintf("skip %s; the run starts at %s, right after the gap", first, m.To().Format("15:04"))
	}
	return fmt.Sprintf("show %s twice; the run starts at the first", first)
}
