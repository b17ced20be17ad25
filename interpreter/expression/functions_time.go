package expression

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// timeFunctions work on text: a time is RFC 3339 in UTC, and a duration is a number of seconds. Nothing depends on
// the machine's time zone or zone files.
var timeFunctions = []function{
	{
		name: "now", min: 0, max: 0, signature: "now()",
		doc: "The time of the attempt or decision, as history has it: RFC 3339 text in UTC.", call: callNow,
	},
	{
		name: "date", min: 1, max: 3, signature: "date(time[, layout[, zone]])",
		doc: "The time as RFC 3339 text in UTC, to the microsecond. It accepts ISO 8601, RFC 1123 and similar text, a date, and " +
			"seconds since 1970; with a layout of Go's package time, text in that layout (nil for the usual forms). Text without an " +
			"offset is local time in the zone, UTC by default.",
		call:    callDate,
		written: map[int]func(string) error{2: zoneProblem},
	},
	{
		name: "unix", min: 1, max: 1, signature: "unix(time)",
		doc: "The seconds from 1970 to a time that date can read.", call: callUnix,
	},
	{
		name: "latest", min: 1, max: -1, signature: "latest(time, …)",
		doc: "The latest of times that date can read, or of lists of them, in the form it has. Times are compared as instants, " +
			"whatever their form; of equal ones it is the first.",
		call: extremeTime("latest", 1),
	},
	{
		name: "earliest", min: 1, max: -1, signature: "earliest(time, …)",
		doc: "The earliest of times, as latest compares them.", call: extremeTime("earliest", -1),
	},
	{
		name: "duration", min: 1, max: 1, signature: "duration(text)",
		doc: "The seconds of a duration such as 90s or 1h30m. A number is taken as seconds. To add days or months to a time, use add_time.", call: callDuration,
		written: map[int]func(string) error{0: durationProblem},
	},
}

// timeLayouts are tried in this order if isoLayout finds no layout. None contains a zone name, because the meaning
// of a name depends on the machine; GMT is literal text.
var timeLayouts = []string{
	"Mon, 02 Jan 2006 15:04:05 GMT",
	time.RFC1123Z,
	"Monday, 02-Jan-06 15:04:05 GMT",
	"02 Jan 06 15:04 GMT",
	time.RFC822Z,
	time.ANSIC,
}

// mostTimeText is the most bytes that the text of a time, duration or layout may have. Go's time parser takes time
// proportional to the product of layout and text.
const mostTimeText = 100

func timeText(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func callNow(b *Budget, _ []any) (any, error) {
	if b.now.IsZero() {
		return nil, errors.New("now() is not available here: no attempt or decision has started")
	}
	return timeText(b.now), nil
}

func callDate(b *Budget, args []any) (any, error) {
	const name = "date"
	zone, err := zoneArgument(name, args, 2)
	if err != nil {
		return nil, err
	}
	read := args[:min(len(args), 2)]
	if argumentAt(args, 1) == nil {
		read = args[:1]
	}
	t, err := readTime(b, name, read)
	if err != nil {
		return nil, err
	}
	if zone != time.UTC && lacksOffset(read) {
		if t = WallTime(t, zone); t.UTC().Year() < 0 || t.UTC().Year() > 9999 {
			return nil, fmt.Errorf("%s: the year %d is not between 0 and 9999", name, t.UTC().Year())
		}
	}
	return timeText(t), nil
}

// lacksOffset reports whether the text of a time that can be read, with its layout if there is one, has no offset from UTC.
func lacksOffset(args []any) bool {
	text, isText := args[0].(string)
	if !isText {
		return false
	}
	text = strings.TrimSpace(text)
	elsewhere := time.FixedZone("", 3600)
	if layout, hasLayout := argumentAt(args, 1).(string); hasLayout {
		here, _ := time.ParseInLocation(layout, text, time.UTC)
		there, _ := time.ParseInLocation(layout, text, elsewhere)
		return !here.Equal(there)
	}
	here, _ := ParseTime(text)
	there, _ := ParseTimeIn(text, elsewhere)
	return !here.Equal(there)
}

func callUnix(b *Budget, args []any) (any, error) {
	t, err := readTime(b, "unix", args)
	if err != nil {
		return nil, err
	}
	if t.Nanosecond() == 0 {
		return int(t.Unix()), nil
	}
	fraction := float64(t.Nanosecond()) / 1e9
	return canonicalFloat(float64(t.Unix()) + fraction)
}

func extremeTime(name string, direction int) func(*Budget, []any) (any, error) {
	return func(b *Budget, args []any) (any, error) {
		if missing := slices.Index(args, nil); missing >= 0 {
			return nil, fmt.Errorf("%s cannot use nil, which is its argument %d; if a time may be missing, give it a value with default(…)", name, missing+1)
		}
		list, err := gatherValues(b, name, args)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		var best any
		var at time.Time
		for _, v := range list {
			if err := b.chargeWork(1, 0); err != nil {
				return nil, err
			}
			t, err := readTime(b, name, []any{v})
			if err != nil {
				return nil, err
			}
			if best == nil || direction*t.Compare(at) > 0 {
				best, at = v, t
			}
		}
		return best, nil
	}
}

// readTime reads a time from text, with the layout in the second argument if there is one, or from a number of
// seconds since 1970.
func readTime(b *Budget, name string, args []any) (time.Time, error) {
	if seconds, ok := args[0].(int); ok && len(args) == 1 {
		return timeOfSeconds(name, seconds, 0)
	}
	if err := b.chargeNumbers(args[0], nil); err != nil {
		return time.Time{}, err
	}
	if seconds, isNumber := NearestFloat(args[0]); isNumber && len(args) == 1 {
		whole := math.Floor(min(max(seconds, -mostEpoch), mostEpoch))
		return timeOfSeconds(name, int(whole), time.Duration(math.Round((seconds-whole)*1e6))*time.Microsecond)
	}
	s, ok := args[0].(string)
	if !ok {
		return time.Time{}, argumentError(name, "text such as 2006-01-02T15:04:05Z, or seconds since 1970", args[0])
	}
	if err := b.chargeRead(len(s)); err != nil {
		return time.Time{}, err
	}
	if s = strings.TrimSpace(s); len(s) > mostTimeText {
		return time.Time{}, fmt.Errorf("%s cannot read a time from %s", name, describeValue(s))
	}
	if len(args) > 1 {
		return readLayout(name, s, args[1])
	}
	if t, ok := ParseTime(s); ok {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%s cannot read a time from %s; it reads 2006-01-02T15:04:05Z, 2006-01-02, "+
		"Mon, 02 Jan 2006 15:04:05 GMT and the like; other forms need a layout, and zones an offset", name, describeValue(s))
}

// ParseTime reads a time in one of the forms that the function date accepts. A time without an offset is in UTC.
func ParseTime(s string) (t time.Time, ok bool) { return ParseTimeIn(s, time.UTC) }

// ParseTimeIn is ParseTime, but an ISO 8601 time without an offset is in the given zone.
func ParseTimeIn(s string, zone *time.Location) (t time.Time, ok bool) {
	if len(s) > mostTimeText {
		return time.Time{}, false
	}
	if t, err := time.ParseInLocation(time.RFC3339, s, zone); err == nil {
		return t, true
	}
	if layout := isoLayout(s); layout != "" {
		if strings.HasSuffix(layout, "UTC") {
			zone = time.UTC
		}
		t, err := time.ParseInLocation(layout, s, zone)
		return t, err == nil
	}
	for _, layout := range timeLayouts {
		if t, err := time.ParseInLocation(layout, s, time.UTC); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// isoLayout returns the layout of a date in ISO 8601, alone or with a time of day, in the basic or extended form,
// with or without seconds. It also accepts the variants that databases write: a space before the time or the
// offset, and offsets in hours. It returns "" for other text.
func isoLayout(s string) string {
	const extended, basic = "2006-01-02T", "20060102T"
	var layout, minutes, seconds string
	switch {
	case len(s) == len(time.DateOnly):
		return time.DateOnly
	case len(s) >= len(extended) && s[4] == '-' && (s[10] == 'T' || s[10] == ' '):
		layout, minutes, seconds = "2006-01-02"+s[10:11], "15:04", ":05"
	case len(s) >= len(basic) && s[8] == 'T':
		layout, minutes, seconds = basic, "1504", "05"
	default:
		return ""
	}
	clock, zone := strings.TrimLeft(s[len(layout):], " "), "" // package time accepts several spaces for one
	if at := strings.IndexAny(clock, " Z+-"); at >= 0 {
		clock, zone = clock[:at], clock[at:]
	}
	layout += minutes
	if len(clock) > len(minutes) {
		layout += seconds
	}
	offset := strings.TrimLeft(zone, " ")
	spaced := len(offset) < len(zone)
	if spaced {
		layout += " "
	}
	switch {
	case offset == "UTC" && spaced:
		return layout + "UTC"
	case offset == "Z":
		return layout + "Z07:00"
	}
	return layout + offsetLayouts[len(offset)]
}

// FormatTimeLike writes a time in the form of another one, a time of day in ISO 8601: with its separators, its offset, and at
// least its digits of a second. ok is false if the other one has another form.
func FormatTimeLike(t time.Time, like string) (text string, ok bool) {
	layout := isoLayout(like)
	of, readable := ParseTime(like)
	if layout == "" || layout == time.DateOnly || !readable {
		return "", false
	}
	if exact := t.Truncate(time.Minute).Equal(t); !strings.Contains(layout, "05") && !exact {
		seconds := "05"
		if strings.Contains(layout, "15:04") {
			seconds = ":05"
		}
		layout = strings.Replace(layout, "04", "04"+seconds, 1)
	}
	const nanoseconds = 9
	digits := len(strings.TrimRight(fmt.Sprintf("%0*d", nanoseconds, t.Nanosecond()), "0"))
	if at := strings.IndexAny(like, ".,"); at >= 0 {
		rest := like[at+1:]
		digits = max(digits, len(rest)-len(strings.TrimLeft(rest, "0123456789")))
	}
	if digits > 0 {
		layout = strings.Replace(layout, "05", "05."+strings.Repeat("0", digits), 1)
	}
	return t.In(of.Location()).Format(layout), true
}

// offsetLayouts are the layouts of UTC offsets, by length. Offsets with seconds belong to times before time zones
// were introduced.
var offsetLayouts = map[int]string{len("+02"): "-07", len("+0200"): "-0700", len("+02:00"): "-07:00", len("+00:53:28"): "-07:00:00"}

// mostEpoch is a number of seconds since 1970 beyond the year 9999. Larger numbers would overflow in the conversion
// to a time.
const mostEpoch = 1e12

// timeOfSeconds returns the time of a number of seconds since 1970. A year outside 0 to 9999 is an error.
func timeOfSeconds(name string, seconds int, fraction time.Duration) (time.Time, error) {
	t := time.Unix(int64(seconds), 0).Add(fraction).UTC()
	if year := t.Year(); year < 0 || year > 9999 {
		return t, fmt.Errorf("%s: %d seconds since 1970 are beyond the year 9999; divide milliseconds by 1000", name, seconds)
	}
	return t, nil
}

func readLayout(name, s string, layout any) (time.Time, error) {
	form, ok := layout.(string)
	if !ok || len(form) > mostTimeText {
		return time.Time{}, argumentError(name, `a layout such as "02.01.2006"`, layout)
	}
	if strings.Contains(form, "MST") {
		return time.Time{}, fmt.Errorf("%s: the layout %q has a zone by name, whose meaning depends on the machine; "+
			"use an offset (-0700)", name, form)
	}
	t, err := time.ParseInLocation(form, s, time.UTC)
	if err != nil {
		if known, ok := LayoutOfStrftime(form); ok {
			return time.Time{}, fmt.Errorf("%s: the layout %q is one of strftime; write %q", name, form, known)
		}
		return time.Time{}, fmt.Errorf("%s cannot read %s with the layout %q", name, describeValue(s), form)
	}
	if year := t.UTC().Year(); year < 0 || year > 9999 {
		return time.Time{}, fmt.Errorf("%s: the year %d is not between 0 and 9999", name, year)
	}
	return t, nil
}

func callDuration(_ *Budget, args []any) (any, error) {
	if TypeName(args[0]) == "number" {
		return args[0], nil
	}
	s, ok := args[0].(string)
	if !ok || len(s) > mostTimeText {
		return nil, argumentError("duration", "text such as 90s or 1h30m, or a number of seconds", args[0])
	}
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil {
		return nil, fmt.Errorf("duration %w", durationProblem(s))
	}
	return canonicalFloat(d.Seconds())
}

// isoDuration matches an ISO 8601 duration: the part before T, in which M means months, and the part after T.
var isoDuration = regexp.MustCompile(`^P((?:\d+[YMWD])*)(?:T((?:\d+[HMS])+))?$`)

// durationProblem returns an error that says what is wrong with the text of a duration.
func durationProblem(text string) error {
	text = strings.TrimSpace(text)
	if _, err := time.ParseDuration(text); err == nil {
		return nil
	}
	if iso := isoDuration.FindStringSubmatch(text); len(text) > len("P") && iso != nil {
		amount := strings.ToLower(strings.ReplaceAll(iso[1], "M", "mo") + iso[2])
		return fmt.Errorf("cannot read the string %q, which is ISO 8601; add it to a time with add_time(t, %q), or write a duration such as 90s or 24h", shortText(text), amount)
	}
	if _, err := readAmount(text); err == nil {
		return fmt.Errorf("cannot read the string %q, because days, weeks, months and years differ in length; add it to a time with add_time(t, %q), or write hours: 24h", shortText(text), text)
	}
	return fmt.Errorf("cannot read the string %q; expected a duration such as 500ms, 90s or 1h30m", shortText(text))
}
