package sqltool

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/interpreter/expression"
)

// isoTime is a date with a time of day, as ISO 8601 and databases write it, with an offset or without.
var isoTime = regexp.MustCompile(`^(\d{4}-\d\d-\d\d)(?:[Tt]| +)(\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)( *(?:[Zz]|UTC|GMT|[+-]\d\d(?::?\d\d(?::?\d\d)?)?))?$`)

// clockTime is a time of day in such a form.
var clockTime = regexp.MustCompile(`^(\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)( *(?:[Zz]|UTC|GMT|[+-]\d\d(?::?\d\d(?::?\d\d)?)?))?$`)

// layouts of what is sent to columns without an offset.
const (
	utcLayout   = "2006-01-02 15:04:05.999999999"
	clockLayout = "15:04:05.999999999"
)

// UTCValue returns a parameter for a time without an offset: a time with an offset is converted to UTC, also in lists.
// problem reports an unknown zone.
func UTCValue(value any) (sent any, problem string) {
	_, isList := value.([]any)
	return Reader{of: readsUTC, list: isList}.readValue(value)
}

// utcText returns a text for a column of times without an offset. PostgreSQL drops the offset of a time in such a column, so
// it is converted to UTC before. Other texts are unchanged.
func utcText(of Reading, text string) (sent, problem string) {
	if hasNoOffset(text) {
		return text, ""
	}
	trimmed := strings.TrimSpace(text)
	switch {
	case isMovingTime(trimmed):
		return text, movingTime
	case of != readsClock && isAmbiguousDate(trimmed):
		return text, ambiguousDate
	}
	at, isTime, hasOffset := readOffset(of, trimmed)
	switch {
	case isTime && !hasOffset:
		return text, ""
	case !isTime && !hasOffset && mayHaveZone(trimmed):
		return text, unknownZone
	case !isTime:
		return text, "" // the database says what is wrong with it
	}
	switch at = at.UTC(); of {
	case readsDay:
		return at.Format(time.DateOnly), ""
	case readsClock:
		return at.Format(clockLayout), ""
	default:
		return at.Format(utcLayout), ""
	}
}

// hasNoOffset reports whether a text is surely a date, or one with a time of day and no offset. Most are.
func hasNoOffset(text string) bool {
	if len(text) == len(time.DateOnly) {
		return text[4] == '-' && text[7] == '-' // no room for an offset
	}
	const shortest, longest = len("2006-01-02 15:04"), len("2006-01-02 15:04:05.123456789")
	if len(text) < shortest || len(text) > longest || text[4] != '-' || text[10] != 'T' && text[10] != ' ' {
		return false
	}
	for _, c := range []byte(text[11:]) {
		if (c < '0' || c > '9') && c != ':' && c != '.' {
			return false
		}
	}
	return true
}

// dateInFigures is a date that does not begin with a year of four digits, or one of six digits without a sign between them.
var dateInFigures = regexp.MustCompile(`^\W*(?:(\d{1,2})[-/.](\d{1,2})[-/.](\d+)|\d{6})(?:\D|$)`)

// isAmbiguousDate reports whether the settings of PostgreSQL decide which figure of a date is its day, its month and its year
// (postgresql.org/docs/current/datatype-datetime.html#DATATYPE-DATETIME-INPUT).
func isAmbiguousDate(text string) bool {
	const year = len("2006")
	if len(text) > year && text[year] == '-' && isDigits(text[:year]) { // as most dates begin
		return false
	}
	parts := dateInFigures.FindStringSubmatch(text)
	if parts == nil {
		return false
	}
	const months, yearDigits = 12, 4
	first, _ := strconv.Atoi(parts[1])
	second, _ := strconv.Atoi(parts[2])
	return len(parts[3]) < yearDigits || first <= months && second <= months && first != second
}

// readOffset reads a time, in UTC where it has no offset, and says whether it has one.
func readOffset(of Reading, text string) (at time.Time, isTime, hasOffset bool) {
	const day = "2000-01-01"
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, true, true
	}
	parts := isoTime.FindStringSubmatch(text)
	if clock := clockTime.FindStringSubmatch(text); parts == nil && of == readsClock && clock != nil {
		parts = []string{text, day, clock[1], clock[2]}
	}
	if parts == nil {
		return readOtherForm(text)
	}
	date, err := time.Parse(time.DateOnly, parts[1])
	clock, ok := readClock(parts[2])
	if parts[3] == "" {
		return date.Add(clock), true, false
	}
	zone, known := readZone(parts[3])
	return date.Add(clock - zone), err == nil && ok && known, true
}

// readClock returns a time of day as what has passed of the day: 24:00:00 is the next one, and a leap second the next minute.
func readClock(text string) (passed time.Duration, ok bool) {
	clock, fraction, _ := strings.Cut(strings.ReplaceAll(text, ",", "."), ".")
	const most = 24*time.Hour + time.Second
	passed, ok = parseSexagesimal(clock, 24, 59, 60)
	if part, err := time.ParseDuration("0." + fraction + "0s"); err == nil {
		passed += part
	}
	return passed, ok && passed < most
}

// readZone reads an offset in one of the forms of isoTime. PostgreSQL accepts offsets below 16
// hours.
func readZone(text string) (offset time.Duration, ok bool) {
	text = strings.TrimSpace(text)
	digits := strings.TrimLeft(text, "+-")
	if digits == text { // Z, or its name
		return 0, true
	}
	const most = 15
	if offset, ok = parseSexagesimal(digits, most, 59, 59); text[0] == '-' {
		offset = -offset
	}
	return offset, ok
}

// parseSexagesimal reads hours, minutes and seconds of two digits each, of at most so many.
func parseSexagesimal(text string, most ...int) (sum time.Duration, ok bool) {
	const digits = 2
	unit := time.Hour
	for i, part := range slices.Collect(slices.Chunk([]byte(strings.ReplaceAll(text, ":", "")), digits)) {
		n, err := strconv.Atoi(string(part))
		if i == len(most) || err != nil || n > most[i] {
			return 0, false
		}
		sum += time.Duration(n) * unit
		unit /= 60
	}
	return sum, true
}

// readOtherForm reads a time in a form of HTTP, or the basic form of ISO 8601: it has an offset if it is the same
// time in every zone.
func readOtherForm(text string) (at time.Time, isTime, hasOffset bool) {
	const elsewhere = 3600
	at, isTime = expression.ParseTime(text)
	other, _ := expression.ParseTimeIn(text, time.FixedZone("", elsewhere))
	return at, isTime, isTime && at.Equal(other)
}

// wordsOfTimes matches the words in times besides digits and zones.
var wordsOfTimes = regexp.MustCompile(`(?i)\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march|april|june|july|august|september|october|november|december|` +
	`mon|tue|tues|wed|weds|thu|thur|thurs|fri|sat|sun|monday|tuesday|wednesday|thursday|friday|saturday|sunday|am|pm|ad|bc|infinity)\b|\dT\d`)

// zoneOfTime matches a zone in a time from which other words were removed: a word, or an offset
// after a time of day.
var zoneOfTime = regexp.MustCompile(`\d.*[A-Za-z]|:\d\d\S* *[+-]\d`)

// mayHaveZone reports whether a text that cannot be read may be a time with a zone, which PostgreSQL would drop.
func mayHaveZone(text string) bool {
	return zoneOfTime.MatchString(wordsOfTimes.ReplaceAllString(text, "00"))
}
