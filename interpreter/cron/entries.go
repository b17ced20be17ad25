package cron

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Entries are the specifications of a schedule's times for Temporal's server. Calendars alone are wrong when clocks
// change: the server runs times in a repeated hour twice or never, and skips times in a gap.
type Entries struct {
	Calendars []Calendar  // in the zone, without the hours around each transition
	Once      []time.Time // times around transitions
	Steps     []Step      // instead of all others, if the local time of day does not matter
}

// Calendar specifies times of local days. Sets have a bit for each number.
type Calendar struct {
	Years                                  []int // sorted; nil for all
	Minutes, Hours, Days, Months, Weekdays uint64
}

// Step specifies times at equal intervals, counted from the beginning of 1970, UTC.
type Step struct{ Every, Offset time.Duration }

// FirstYear and LastYear bound the years that a server knows.
const (
	FirstYear = 2000
	LastYear  = 2100
)

// Len returns the number of entries.
func (e Entries) Len() int { return len(e.Calendars) + len(e.Once) + len(e.Steps) }

// ScheduleEntries returns the entries for this line, which are correct at all transitions from the year from up to
// the year to. Outside of these years, times are those of the server's calendars.
func (l Line) ScheduleEntries(zone *time.Location, from, to int) Entries {
	moves := Transitions(zone, time.Date(from, time.January, 1, 0, 0, 0, 0, zone), time.Date(to, time.January, 1, 0, 0, 0, 0, zone))
	if len(moves) == 0 {
		return Entries{Calendars: []Calendar{l.plainCalendar()}}
	}
	if steps := l.stepEntries(moves); steps != nil {
		return Entries{Steps: steps}
	}
	var entries Entries
	left := days{}
	for _, m := range moves {
		near := m.doubtfulHours()
		if !l.meetsTransition(m, near) {
			near = nil
		}
		for date, hours := range near { //workflowcheck:ignore a set for each date
			left[date] |= hours
		}
		entries.Once = append(entries.Once, l.otherMoments(m, near)...)
	}
	entries.Calendars = l.calendarsWithout(left, from, to)
	return entries
}

func (l Line) plainCalendar() Calendar {
	return Calendar{Minutes: l.minutes, Hours: l.hours, Days: l.days, Months: l.months, Weekdays: l.weekdays}
}

// days maps dates, as midnights in UTC, to sets of their hours.
type days map[time.Time]uint64

// doubtfulHours returns the hours around a transition for which calendars cannot be trusted: skipped or repeated
// hours, and one more on each side.
func (m Transition) doubtfulHours() days {
	near := days{}
	first := m.LocalStart().Truncate(time.Hour).Add(-time.Hour)
	for hour := first; hour.Before(m.LocalEnd().Add(time.Hour)); hour = hour.Add(time.Hour) {
		near[midnightOf(hour)] |= 1 << hour.Hour()
	}
	return near
}

// meetsTransition reports whether a line has times in the hours near a transition. If midnight is in a gap,
// calendars use the weekday of the day before, so no weekday can be trusted.
func (l Line) meetsTransition(m Transition, near days) bool {
	for date, hours := range near { //workflowcheck:ignore whether there is any
		if l.onDay(date) && l.hours&hours != 0 {
			return true
		}
		inGap := m.SkipsTimes() && !date.Before(m.LocalStart()) && date.Before(m.LocalEnd())
		if inGap && !weekdayField.isAll(l.weekdays) && hasNumber(l.months, int(date.Month())) && hasNumber(l.days, date.Day()) {
			return true
		}
	}
	return false
}

// otherMoments returns the times around a transition that must be listed individually, because calendars omit the
// hours left.
func (l Line) otherMoments(m Transition, left days) []time.Time {
	given := map[time.Time]bool{}
	for _, shown := range l.clockReadings(m.LocalStart().Add(-around), m.LocalEnd().Add(around)) {
		if left[midnightOf(shown)]&(1<<shown.Hour()) == 0 {
			for _, at := range m.momentsShowing(shown) {
				given[at] = true
			}
		}
	}
	return slices.DeleteFunc(l.MomentsNear(m), func(at time.Time) bool { return given[at] })
}

// calendarsWithout returns the calendars of a line without some hours of some dates.
func (l Line) calendarsWithout(left days, from, to int) []Calendar {
	var months uint64
	for date := range left { //workflowcheck:ignore a set
		months |= 1 << date.Month() & l.months
		from, to = min(from, date.Year()), max(to, date.Year()+1)
	}
	var all []Calendar
	add := func(c Calendar) {
		if c.Days != 0 && c.Months != 0 && c.Hours != 0 {
			all = append(all, c)
		}
	}
	base := l.plainCalendar()
	base.Months &^= months
	add(base)
	base.Months, base.Years = months, yearsWithout(from, to)
	add(base)
	for _, month := range SetMembers(months) {
		for _, group := range l.daysOf(left, time.Month(month), from, to) {
			base.Months, base.Days, base.Years = 1<<month, l.days&^group.set, group.years
			add(base)
		}
	}
	return append(all, l.remainingCalendars(left)...)
}

// group is a set of days and the years that have it.
type group struct {
	set   uint64
	years []int
}

// daysOf returns the days of a month to be omitted, grouped by years.
func (l Line) daysOf(left days, month time.Month, from, to int) []group {
	var all []group
	for year := from; year < to; year++ {
		var set uint64
		for day := 1; day <= 31; day++ {
			if _, is := left[time.Date(year, month, day, 0, 0, 0, 0, time.UTC)]; is {
				set |= 1 << day
			}
		}
		i := slices.IndexFunc(all, func(g group) bool { return g.set == set })
		if i < 0 {
			i, all = len(all), append(all, group{set: set})
		}
		all[i].years = append(all[i].years, year)
	}
	return all
}

// remainingCalendars returns calendars for the remaining hours of dates that calendarsWithout omits.
func (l Line) remainingCalendars(left days) []Calendar {
	var all []Calendar
	for _, date := range slices.SortedFunc(maps.Keys(left), time.Time.Compare) {
		hours := l.hours &^ left[date]
		if !l.onDay(date) || hours == 0 {
			continue
		}
		one := Calendar{
			Years: []int{date.Year()}, Minutes: l.minutes, Hours: hours, Days: 1 << date.Day(), Months: 1 << date.Month(), Weekdays: 1<<7 - 1,
		}
		i := slices.IndexFunc(all, func(c Calendar) bool { return c.Days == one.Days && c.Months == one.Months && c.Hours == hours })
		if i < 0 {
			all = append(all, one)
			continue
		}
		all[i].Years = append(all[i].Years, date.Year())
	}
	return all
}

func yearsWithout(from, to int) []int {
	var all []int
	for year := FirstYear; year <= LastYear; year++ {
		if year < from || year >= to {
			all = append(all, year)
		}
	}
	return all
}

// SetMembers returns the numbers in a set, sorted.
func SetMembers(set uint64) []int {
	var all []int
	for n := range 64 {
		if hasNumber(set, n) {
			all = append(all, n)
		}
	}
	return all
}

// stepEntries returns steps for a line whose minutes are equally spaced in every hour of every day, if no
// transition changes their spacing; nil for other lines.
func (l Line) stepEntries(moves []Transition) []Step {
	if !hourField.isAll(l.hours) || !dayField.isAll(l.days) || !monthField.isAll(l.months) || !weekdayField.isAll(l.weekdays) {
		return nil
	}
	minutes := SetMembers(l.minutes)
	if every := l.minutePace(); every > 0 {
		minutes = minutes[:1]
		return stepsOf(moves, every, minutes)
	}
	return stepsOf(moves, time.Hour, minutes)
}

// minutePace returns the interval between the minutes of a line, 0 if it varies.
func (l Line) minutePace() time.Duration {
	minutes := SetMembers(l.minutes)
	every := 60 / len(minutes)
	if len(minutes)*every != 60 {
		return 0
	}
	for i, minute := range minutes {
		if minute != minutes[0]+i*every {
			return 0
		}
	}
	return time.Duration(every) * time.Minute
}

func stepsOf(moves []Transition, every time.Duration, minutes []int) []Step {
	for _, m := range moves {
		if (m.before-m.after)%every != 0 {
			return nil
		}
	}
	var all []Step
	for _, minute := range minutes {
		offset := (time.Duration(minute)*time.Minute - moves[0].before) % every
		all = append(all, Step{Every: every, Offset: (offset + every) % every})
	}
	slices.SortFunc(all, func(a, b Step) int { return cmp.Compare(a.Offset, b.Offset) })
	return all
}
