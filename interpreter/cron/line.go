// Package cron computes when a line of cron runs in a time zone, including nights in which its clocks change. It is
// pure: times are arguments, and the rules of time zones are part of the build.
package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Line is a parsed line of cron: a set for each field, with a bit for each number.
type Line struct {
	minutes, hours, days, months, weekdays uint64
	// step is the largest step between hours if the line has hours in steps; 0 if it names hours, which are then
	// local times of day.
	step time.Duration
}

// field describes the allowed content of a field.
type field struct {
	name        string
	least, most int
	names       []string // names of the numbers from least
}

var (
	minuteField  = field{"minute", 0, 59, nil}
	hourField    = field{"hour", 0, 23, nil}
	dayField     = field{"day of the month", 1, 31, nil}
	monthField   = field{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}}
	weekdayField = field{"day of the week", 0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}}
)

// fields are the fields of a line, in order.
var fields = []field{minuteField, hourField, dayField, monthField, weekdayField}

// shorthands are words for whole lines.
var shorthands = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// Parse parses a line of five fields, or a shorthand.
func Parse(text string) (Line, error) {
	if meant, ok := shorthands[text]; ok {
		text = meant
	}
	parts := strings.Fields(text)
	if len(parts) != 5 {
		return Line{}, fmt.Errorf("expected five fields, got %d", len(parts))
	}
	var l Line
	for i, into := range []*uint64{&l.minutes, &l.hours, &l.days, &l.months, &l.weekdays} {
		set, step, err := fields[i].readSet(parts[i])
		if err != nil {
			return Line{}, err
		}
		*into = set
		if into == &l.hours && bits.OnesCount64(set) > 1 {
			l.step = time.Duration(step) * time.Hour
		}
	}
	return l, nil
}

// readSet returns the set of a field and its largest step; 0 if it names all of its numbers.
func (f field) readSet(text string) (set uint64, step int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, by, err := f.readEntry(part)
		if err != nil {
			return 0, 0, err
		}
		for n := from; n <= to; n += max(by, 1) {
			set |= 1 << n
		}
		step = max(step, by)
	}
	return set, step, nil
}

// readEntry parses an entry of a field. by is 0 for a single number.
func (f field) readEntry(text string) (from, to, by int, err error) {
	head, steps, stepped := strings.Cut(text, "/")
	first, last, ranged := strings.Cut(head, "-")
	from, to = f.least, f.most
	if head != "*" {
		if from, err = f.readNumber(first); err != nil {
			return 0, 0, 0, err
		}
		switch {
		case ranged:
			if to, err = f.readNumber(last); err != nil {
				return 0, 0, 0, err
			}
		case !stepped:
			return from, from, 0, nil
		}
	}
	by = 1
	if stepped {
		if by, err = strconv.Atoi(steps); err != nil || by < 1 {
			return 0, 0, 0, fmt.Errorf("%s: %q is not a valid step", f.name, steps)
		}
	}
	if to < from {
		return 0, 0, 0, fmt.Errorf("%s: %q ends before it begins", f.name, text)
	}
	return from, to, by, nil
}

func (f field) readNumber(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.least + i, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.least || n > f.most {
		return 0, fmt.Errorf("%s: %q is out of range, expected %d to %d", f.name, text, f.least, f.most)
	}
	return n, nil
}

// isAll reports whether a set contains every number of a field.
func (f field) isAll(set uint64) bool { return bits.OnesCount64(set) == f.most-f.least+1 }

func hasNumber(set uint64, n int) bool { return set&(1<<n) != 0 }

// onDay reports whether a line has times on a date.
func (l Line) onDay(date time.Time) bool {
	return hasNumber(l.months, int(date.Month())) && hasNumber(l.days, date.Day()) && hasNumber(l.weekdays, int(date.Weekday()))
}

// clockReadings returns the local times of a line from one time to another, exclusive, as times in UTC.
func (l Line) clockReadings(from, to time.Time) []time.Time {
	var all []time.Time
	for date := midnightOf(from); date.Before(to); date = date.AddDate(0, 0, 1) {
		if !l.onDay(date) {
			continue
		}
		for hour := range 24 {
			for minute := range 60 {
				if !hasNumber(l.hours, hour) || !hasNumber(l.minutes, minute) {
					continue
				}
				at := date.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
				if !at.Before(from) && at.Before(to) {
					all = append(all, at)
				}
			}
		}
	}
	return all
}

func midnightOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}
