package expression

import (
	_ "embed" // for the rules of time zones
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// calendarFunctions calculate with the days, weeks, months and years of a time zone. As in timeFunctions, times are
// texts in RFC 3339 and UTC.
var calendarFunctions = []function{
	{
		name: "add_time", min: 2, max: 3, signature: "add_time(time, amount[, zone])",
		doc: "The time plus an amount such as -24h, 7d, 1mo, 1y or 1d12h. Days, weeks, months and years are counted in the zone, UTC by default. " +
			"A day that the month does not have becomes the last day of the month.",
		call:    callAddTime,
		written: map[int]func(string) error{1: amountProblem, 2: zoneProblem},
	},
	{
		name: "start_of", min: 2, max: 3, signature: "start_of(time, unit[, zone])",
		doc:     "The start of the minute, hour, day, week (Monday), month, quarter or year that contains the time, in the zone; UTC by default.",
		call:    callStartOf,
		written: map[int]func(string) error{1: unitProblem, 2: zoneProblem},
	},
	{
		name: "format_time", min: 2, max: 3, signature: "format_time(time, layout[, zone])",
		doc:     "The local time in the zone, UTC by default, in a layout of Go's package time: 2006 is the year; 01, 02, 15, 04 and 05 are month, day, hour, minute and second.",
		call:    callFormatTime,
		written: map[int]func(string) error{1: layoutProblem, 2: zoneProblem},
	},
	{
		name: "time_range", min: 3, max: 4, signature: "time_range(from, to, step[, zone])",
		doc:     "The times from the first up to, but not including, the second, with a step as in add_time.",
		call:    callTimeRange,
		written: map[int]func(string) error{2: amountProblem, 3: zoneProblem},
	},
}

// amount is the distance by which a time is moved.
type amount struct {
	months, days int
	clock        time.Duration
}

var (
	amountPart  = regexp.MustCompile(`(\d+(?:\.\d+)?)(mo|ms|[ywdhms])`)
	wholeAmount = regexp.MustCompile(`^[+-]?(?:\d+(?:\.\d+)?(?:mo|ms|[ywdhms]))+$`)
)

// mostCalendar is more months or days than lie between the years 0 and 9999. Larger sums are refused before they
// can overflow.
const mostCalendar = 4_000_000

func readAmount(text string) (amount, error) {
	text = strings.TrimSpace(text)
	if len(text) > mostTimeText || !wholeAmount.MatchString(text) {
		return amount{}, fmt.Errorf("%q is not an amount of time; amounts are 90s, 30m, 24h, 7d, 2w, 1mo, 1y and combinations such as 1d12h, with - in front to go back", shortText(text))
	}
	var a amount
	for _, part := range amountPart.FindAllStringSubmatch(text, -1) {
		if err := a.addUnit(part[1], part[2]); err != nil {
			return amount{}, err
		}
	}
	if strings.HasPrefix(text, "-") {
		a = amount{months: -a.months, days: -a.days, clock: -a.clock}
	}
	return a, nil
}

// addUnit adds a number of one unit.
func (a *amount) addUnit(number, unit string) error {
	per, into := 1, &a.days
	switch unit {
	case "y":
		per, into = 12, &a.months
	case "mo":
		into = &a.months
	case "w":
		per = 7
	case "d":
	default:
		length, err := time.ParseDuration(number + unit)
		if err != nil || a.clock+length < a.clock {
			return fmt.Errorf("%s%s is too long to be added to a time", number, unit)
		}
		a.clock += length
		return nil
	}
	n, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("%s%s is not a whole number of days, weeks, months or years", number, unit)
	}
	if n > mostCalendar || *into+n*per > mostCalendar {
		return fmt.Errorf("%s%s is too long to be added to a time", number, unit)
	}
	*into += n * per
	return nil
}

// multiplyBy returns the amount multiplied by n.
func (a amount) multiplyBy(n int) amount {
	return amount{months: a.months * n, days: a.days * n, clock: a.clock * time.Duration(n)}
}

// moveTime moves a time by the amount, in the calendar of a zone.
func (a amount) moveTime(t time.Time, zone *time.Location) time.Time {
	if a.months != 0 || a.days != 0 {
		shown := t.In(zone)
		year, month, day := shown.Date()
		first := time.Date(year, month+time.Month(a.months), 1, shown.Hour(), shown.Minute(), shown.Second(), shown.Nanosecond(), time.UTC)
		last := first.AddDate(0, 1, -1).Day()
		t = WallTime(first.AddDate(0, 0, min(day, last)-1+a.days), zone)
	}
	return t.Add(a.clock)
}

// AddAmount adds an amount such as 30d or 1mo to a time, in UTC, as add_time does.
func AddAmount(t time.Time, text string) (time.Time, error) {
	a, err := readAmount(text)
	return a.moveTime(t, time.UTC), err
}

func amountProblem(text string) error {
	_, err := readAmount(text)
	return err
}

func zoneProblem(name string) error {
	_, err := LoadZone(name)
	return err
}

// timeUnits are the units to whose start start_of can round a time down.
var timeUnits = []string{"minute", "hour", "day", "week", "month", "quarter", "year"}

func unitProblem(unit string) error {
	if !slices.Contains(timeUnits, unit) {
		return fmt.Errorf("%q is not a unit; the units are %s", shortText(unit), strings.Join(timeUnits, ", "))
	}
	return nil
}

// layoutProblem refuses layouts that name no part of a time because they are in another notation, such as
// YYYY-MM-DD or %Y-%m-%d.
func layoutProblem(layout string) error {
	one := time.Date(2001, time.February, 3, 4, 5, 6, 7e6, time.UTC)
	other := time.Date(2012, time.November, 14, 23, 34, 45, 567e6, time.UTC)
	switch {
	case len(layout) > mostTimeText:
		return fmt.Errorf("a layout has at most %d characters", mostTimeText)
	case strings.Contains(layout, "%"):
		if known, ok := LayoutOfStrftime(layout); ok {
			return fmt.Errorf("the layout %q is one of strftime; write %q", shortText(layout), known)
		}
		fallthrough
	case one.Format(layout) == other.Format(layout), strings.Contains(layout, "YYYY"):
		return fmt.Errorf(`the layout %q shows no time; write it with the parts of 2006-01-02T15:04:05, such as "2006-01-02" or "02.01.2006 15:04"`, shortText(layout))
	}
	return nil
}

// timeAndZone reads the time in the first argument, and the zone in argument zoneAt if there is one.
func timeAndZone(b *Budget, name string, args []any, zoneAt int) (time.Time, *time.Location, error) {
	t, err := readTime(b, name, args[:1])
	if err != nil {
		return t, nil, err
	}
	zone, err := zoneArgument(name, args, zoneAt)
	if err != nil {
		return t, nil, err
	}
	if err := offsetProblem(name, args[0], zone); err != nil {
		return t, nil, err
	}
	return t, zone, b.chargeWork(1, 0)
}

// offsetProblem returns an error if a time has no offset from UTC and the zone is another: it may be UTC or local time, which can be
// another day.
func offsetProblem(name string, written any, zone *time.Location) error {
	if zone == time.UTC || !lacksOffset([]any{written}) {
		return nil
	}
	return fmt.Errorf("%s: %s has no offset from UTC, so its day in %s is uncertain; write date(…) around it if it is UTC, "+
		"or date(…, nil, %q) if it is local time there", name, describeValue(written), zone, zone)
}

// zoneArgument returns the zone in argument at, UTC if there is none.
func zoneArgument(name string, args []any, at int) (*time.Location, error) {
	given := argumentAt(args, at)
	if given == nil {
		return time.UTC, nil
	}
	text, ok := given.(string)
	if !ok || len(text) > mostTimeText {
		return nil, argumentError(name, "the name of a zone, such as Europe/Berlin", given)
	}
	zone, err := LoadZone(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return zone, nil
}

// writtenText returns the n-th argument as text after checking it with problem.
func writtenText(name, what string, args []any, n int, problem func(string) error) (string, error) {
	text, ok := args[n].(string)
	if !ok {
		return "", argumentError(name, what, args[n])
	}
	if err := problem(text); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// amountArgument returns the n-th argument as an amount. A number is a number of seconds.
func amountArgument(b *Budget, name string, args []any, n int) (amount, error) {
	switch v := args[n].(type) {
	case int:
		if v < -maxSeconds || v > maxSeconds {
			return amount{}, fmt.Errorf("%s: %d seconds are too long to be added to a time", name, v)
		}
		return amount{clock: time.Duration(v) * time.Second}, nil
	case float64, json.Number:
		if err := b.chargeNumbers(v, nil); err != nil {
			return amount{}, err
		}
		seconds, isFloat := NearestFloat(v)
		if !isFloat || seconds < -maxSeconds || seconds > maxSeconds {
			return amount{}, fmt.Errorf("%s: %s seconds are too long to be added to a time", name, shortText(Text(v)))
		}
		return amount{clock: time.Duration(seconds * float64(time.Second))}, nil
	case string:
		a, err := readAmount(v)
		if err != nil {
			return a, fmt.Errorf("%s: %w", name, err)
		}
		return a, nil
	}
	return amount{}, argumentError(name, "an amount such as -24h, 7d or 1mo", args[n])
}

// maxSeconds is the longest duration that Go can hold, about 292 years. Longer ones would overflow.
const maxSeconds = 9_000_000_000

// momentText returns a time as text. A year that RFC 3339 cannot write is an error.
func momentText(b *Budget, name string, t time.Time) (any, error) {
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return nil, fmt.Errorf("%s: the year %d is not between 0 and 9999", name, year)
	}
	text := timeText(t)
	return text, b.chargeText(len(text))
}

func callAddTime(b *Budget, args []any) (any, error) {
	const name = "add_time"
	t, zone, err := timeAndZone(b, name, args, 2)
	if err != nil {
		return nil, err
	}
	a, err := amountArgument(b, name, args, 1)
	if err != nil {
		return nil, err
	}
	return momentText(b, name, a.moveTime(t, zone))
}

func callStartOf(b *Budget, args []any) (any, error) {
	const name = "start_of"
	t, zone, err := timeAndZone(b, name, args, 2)
	if err != nil {
		return nil, err
	}
	unit, err := writtenText(name, "a unit such as day or month", args, 1, unitProblem)
	if err != nil {
		return nil, err
	}
	return momentText(b, name, startOf(t, unit, zone))
}

func startOf(t time.Time, unit string, zone *time.Location) time.Time {
	shown := t.In(zone)
	within := time.Duration(shown.Second())*time.Second + time.Duration(shown.Nanosecond())
	switch unit {
	case "minute":
		return t.Add(-within)
	case "hour":
		return t.Add(-within - time.Duration(shown.Minute())*time.Minute)
	}
	year, month, day := shown.Date()
	switch unit {
	case "week":
		day -= (int(shown.Weekday()) + 6) % 7
	case "month":
		day = 1
	case "quarter":
		month, day = month-(month-1)%3, 1
	case "year":
		month, day = time.January, 1
	}
	return WallTime(time.Date(year, month, day, 0, 0, 0, 0, time.UTC), zone)
}

func callFormatTime(b *Budget, args []any) (any, error) {
	const name = "format_time"
	t, zone, err := timeAndZone(b, name, args, 2)
	if err != nil {
		return nil, err
	}
	layout, err := writtenText(name, `a layout such as "2006-01-02"`, args, 1, layoutProblem)
	if err != nil {
		return nil, err
	}
	text := t.In(zone).Format(layout)
	return text, b.chargeText(len(text))
}

func callTimeRange(b *Budget, args []any) (any, error) {
	const name = "time_range"
	from, zone, err := timeAndZone(b, name, args, 3)
	if err != nil {
		return nil, err
	}
	to, err := readTime(b, name, args[1:2])
	if err != nil {
		return nil, err
	}
	if err := offsetProblem(name, args[1], zone); err != nil {
		return nil, err
	}
	step, err := amountArgument(b, name, args, 2)
	if err != nil {
		return nil, err
	}
	if !step.moveTime(from, zone).After(from) {
		return nil, errors.New("time_range: the step must be positive, such as 1h, 1d or 1mo")
	}
	times := []any{}
	for t := from; t.Before(to); {
		text, err := momentText(b, name, t)
		if err != nil {
			return nil, err
		}
		if err := b.chargeWork(1, bytesPerItem); err != nil {
			return nil, err
		}
		times = append(times, text)
		next := step.multiplyBy(len(times)).moveTime(from, zone)
		if step.months == 0 && step.days == 0 {
			next = t.Add(step.clock)
		}
		if !next.After(t) { // longer than a duration can be
			return nil, errors.New("time_range: there are too many steps of hours; use days, months or years")
		}
		t = next
	}
	return times, nil
}

// zoneRules are the rules of all time zones, from edition 2025c of the tz database, which is in the public
// domain. They are part of the build, because a replay on another machine has to calculate the same times.
// The file has an index of lines with name, offset and length, then an empty line, then the rules in the
// format of the tz database. TestZones writes the file again with -zones.
//
//go:embed zones.bin
var zoneRules string

// zones caches the zones that were read, by name.
var zones sync.Map

// LoadZone returns a time zone by its name, "" for UTC. It uses the rules in the build: a machine's own rules could
// give a replay different times.
func LoadZone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if known, ok := zones.Load(name); ok {
		zone, _ := known.(*time.Location)
		return zone, nil
	}
	index, rules, _ := strings.Cut(zoneRules, "\n\n")
	_, behind, found := strings.Cut(index, "\n"+name+" ")
	if !found || strings.ContainsAny(name, " \n") {
		return nil, fmt.Errorf("there is no time zone %q; use a name such as Europe/Berlin or UTC", shortText(name))
	}
	line, _, _ := strings.Cut(behind, "\n")
	offset, length, _ := strings.Cut(line, " ")
	from, err := strconv.Atoi(offset)
	if err != nil {
		return nil, err
	}
	size, err := strconv.Atoi(length)
	if err != nil {
		return nil, err
	}
	zone, err := time.LoadLocationFromTZData(name, []byte(rules[from:from+size]))
	if err != nil {
		return nil, err
	}
	zones.Store(name, zone)
	return zone, nil
}

// WallTime returns the moment at which the clocks of a zone show a date and time, which is given as if in UTC. If
// there are two such moments it returns the earlier one. A time that the clocks skip is moved forward by the length
// of the gap.
func WallTime(shown time.Time, zone *time.Location) time.Time {
	const day = 24 * time.Hour // no zone changes twice in two days
	before, after := ZoneOffset(shown.Add(-day), zone), ZoneOffset(shown.Add(day), zone)
	for _, offset := range []time.Duration{before, after} {
		if moment := shown.Add(-offset); ZoneOffset(moment, zone) == offset {
			return moment
		}
	}
	return shown.Add(-before)
}

// ZoneOffset returns how far the clocks of a zone are ahead of UTC at a moment.
func ZoneOffset(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
