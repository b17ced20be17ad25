package cron_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/cron"
	"reprise/interpreter/expression"
)

// everyZone has the oracle walk through all zones, which takes some minutes: make clocks.
var everyZone = flag.Bool("cron.all", false, "every zone of the tz database")

// kinds are zones of each kind: hemispheres, half an hour, midnight in the gap, the hour before midnight in
// the gap, a month without, two hours, one move, and rules of their own.
var kinds = []string{
	"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Beirut", "America/Nuuk", "America/Havana",
	"America/Santiago", "Africa/Casablanca", "Antarctica/Troll", "Antarctica/Casey", "Pacific/Chatham", "Asia/Almaty",
}

// oracleLines are lines of each form.
var oracleLines = []string{
	"30 2 * * *", "30 1 * * *", "0 0 * * *", "30 0 * * *", "30 23 * * *", "0 3 * * *", "0 9 * * 1-5", "0 9 * * 0", "15 0 * * 5", "0 4 * * 4",
	"0 12 1 * *", "30 1,2,3 * * 0", "0 * * * *", "5 * * * *", "*/15 * * * *", "*/7 * * * *", "*/45 * * * *", "0 */2 * * *", "30 1-23/2 * * *",
	"0 */6 * * *", "*/20 0-5 * * *", "0 8-18 * * *", "*/30 2 * * *", "59 * * * 0", "10 * * 3,10 *", "45 23 31 * *", "0 */5 * * *",
	"0,30 0,1,2,3,22,23 * * *", "* 2 * * *", "0 2 29 2 *",
}

// reading is what clocks show in a minute.
type reading struct{ at, shown time.Time }

// walk reads the clocks of a zone minute by minute.
func walk(zone *time.Location, from, to time.Time) []reading {
	var all []reading
	for at := from; at.Before(to); at = at.Add(time.Minute) {
		shown := at.In(zone)
		all = append(all, reading{at, time.Date(shown.Year(), shown.Month(), shown.Day(), shown.Hour(), shown.Minute(), 0, 0, time.UTC)})
	}
	return all
}

// plainLine is a line of cron as the oracle reads it.
type plainLine struct {
	fields [5][60]bool
	step   time.Duration // longest between hours that are counted, 0 where they are named
}

func plain(text string) (l plainLine) {
	bounds := [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	for i, field := range strings.Fields(text) {
		for part := range strings.SplitSeq(field, ",") {
			head, steps, stepped := strings.Cut(part, "/")
			least, most := bounds[i][0], bounds[i][1]
			first, last, ranged := strings.Cut(head, "-")
			if head != "*" {
				least = number(first)
			}
			if ranged {
				most = number(last)
			} else if head != "*" && !stepped {
				most = least
			}
			by := max(number(steps), 1)
			if counted := head == "*" || ranged || stepped; i == 1 && counted {
				l.step = max(l.step, time.Duration(by)*time.Hour)
			}
			for n := least; n <= most; n += by {
				l.fields[i][n] = true
			}
		}
	}
	return l
}

func (l *plainLine) has(t time.Time) bool {
	return l.fields[3][t.Month()] && l.fields[2][t.Day()] && l.fields[4][t.Weekday()] && l.fields[1][t.Hour()] && l.fields[0][t.Minute()]
}

// next is how long after a time, or with a negative by before it, the line has another, as far as its step.
func (l *plainLine) next(shown time.Time, by time.Duration) (time.Duration, bool) {
	for away := time.Minute; away <= l.step; away += time.Minute {
		if l.has(shown.Add(away * by)) {
			return away, true
		}
	}
	return 0, false
}

// isLost reports whether a time of the line is among those that clocks leave out between two readings, and nothing
// that keeps the pace is in its place.
func (l *plainLine) isLost(before, after reading) bool {
	for shown := before.shown.Add(time.Minute); shown.Before(after.shown); shown = shown.Add(time.Minute) {
		if !l.has(shown) {
			continue
		}
		if _, found := l.next(shown, -1); !found {
			return true
		}
	}
	return false
}

// oracle says when a line runs, as it is written in docs/how-to/schedule.md.
func oracle(text string, clocks []reading) []time.Time {
	l := plain(text)
	var found []reading
	seen := map[time.Time]bool{}
	for i, now := range clocks {
		lost := i > 0 && now.shown.Sub(clocks[i-1].shown) > time.Minute && l.isLost(clocks[i-1], now)
		if lost || l.has(now.shown) && (l.step > 0 || !seen[now.shown]) {
			found = append(found, now)
		}
		seen[now.shown] = seen[now.shown] || l.has(now.shown)
	}
	var all []time.Time
	for i, one := range found {
		all = append(all, one.at)
		pause, paced := l.next(one.shown, 1)
		if !paced || i == len(found)-1 || !l.has(one.shown) {
			continue
		}
		for at := one.at.Add(pause); at.Before(found[i+1].at); at = at.Add(pause) {
			all = append(all, at)
		}
	}
	return all
}

func zoneNames(t *testing.T) []string {
	t.Helper()
	if !*everyZone {
		return kinds
	}
	rules, err := os.ReadFile("../expression/zones.bin")
	require.NoError(t, err)
	index, _, _ := strings.Cut(string(rules), "\n\n")
	var names []string
	for line := range strings.Lines(index) {
		if name, _, found := strings.Cut(line, " "); found {
			names = append(names, name)
		}
	}
	require.Greater(t, len(names), 300)
	return names
}

// TestOracle: around each move of the clocks of a zone from 2024 to 2036 a line runs when somebody would run it who
// looks at the clock each minute, and the entries for a server are these times.
func TestOracle(t *testing.T) {
	t.Parallel()
	const from, to = 2024, 2037
	const window = 30 * time.Hour
	done := map[string]bool{}
	for _, name := range zoneNames(t) {
		zone, err := expression.LoadZone(name)
		require.NoError(t, err, name)
		moves := cron.Transitions(zone, time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(to, 1, 1, 0, 0, 0, 0, time.UTC))
		if rules := fmt.Sprint(moves); done[rules] {
			continue
		} else {
			done[rules] = true
		}
		if !*everyZone {
			moves = moves[:min(len(moves), 6)]
		}
		for _, m := range moves {
			clocks := walk(zone, m.At.Add(-window-26*time.Hour), m.At.Add(window+26*time.Hour))
			for _, text := range oracleLines {
				within := func(all []time.Time) []time.Time {
					return slices.DeleteFunc(all, func(at time.Time) bool { return at.Before(m.At.Add(-window)) || !at.Before(m.At.Add(window)) })
				}
				line, err := cron.Parse(text)
				require.NoError(t, err)
				want := within(oracle(text, clocks))
				require.Equal(t, utc(want), utc(within(line.MomentsNear(m))), "%s %q at %s", name, text, m.At)
			}
		}
	}
}

func utc(all []time.Time) []string {
	var texts []string
	for _, at := range all {
		texts = append(texts, at.UTC().Format(time.RFC3339))
	}
	return texts
}

// TestNear has the rule in examples.
func TestNear(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ zone, line, day, want string }{
		{"Europe/Berlin", "30 2 * * *", "2026-10-25", "02:30+02:00"},
		{"Europe/Berlin", "30 2 * * *", "2026-03-29", "03:00+02:00"},
		{"America/New_York", "30 1 * * *", "2026-11-01", "01:30-04:00"},
		{"Europe/Berlin", "0 0-4 * * *", "2026-10-25", "00:00+02:00 01:00+02:00 02:00+02:00 02:00+01:00 03:00+01:00 04:00+01:00"},
		{"Europe/Berlin", "0 0-4 * * *", "2026-03-29", "00:00+01:00 01:00+01:00 03:00+02:00 04:00+02:00"},
		{"America/New_York", "0 */2 * * 0", "2026-11-01", "00:00-04:00 01:00-05:00 02:00-05:00 04:00-05:00 06:00-05:00 08:00-05:00 10:00-05:00 " +
			"12:00-05:00 14:00-05:00 16:00-05:00 18:00-05:00 20:00-05:00 22:00-05:00"},
		{"Australia/Lord_Howe", "5 0-3 * * *", "2026-10-04", "00:05+10:30 01:05+10:30 02:35+11:00 03:05+11:00"},
		{"Africa/Cairo", "0 0 * * *", "2026-04-24", "01:00+03:00"},
		{"America/Nuuk", "30 23 * * *", "2026-03-29", "00:00-01:00 23:30-01:00"},
	} {
		zone, err := expression.LoadZone(row.zone)
		require.NoError(t, err)
		line, err := cron.Parse(row.line)
		require.NoError(t, err)
		day, err := time.ParseInLocation(time.DateOnly, row.day, zone)
		require.NoError(t, err)
		moves := cron.Transitions(zone, day.Add(-3*time.Hour), day.Add(27*time.Hour))
		require.Len(t, moves, 1, row.zone)
		var shown []string
		for _, at := range line.MomentsNear(moves[0]) {
			if local := at.In(zone); local.Format(time.DateOnly) == row.day {
				shown = append(shown, local.Format("15:04-07:00"))
			}
		}
		require.Equal(t, row.want, strings.Join(shown, " "), "%s %s", row.zone, row.line)
	}
}

// TestParseRefuses what is no line.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * L * *", "* * 15W * *", "* * * * 1#2", "5-1 * * * *", "*/0 * * * *", "@every 1h"} {
		_, err := cron.Parse(text)
		require.Error(t, err, text)
	}
}
