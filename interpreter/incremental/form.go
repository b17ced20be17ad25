package incremental

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"reprise/interpreter/expression"
)

// Form is the format of a source's cursors.
type Form struct {
	Type CursorType
	// Format is a layout of package time, or a key of epochUnits; "" is the default format of the type.
	Format string
}

// epochUnits are the formats of numbers since 1970.
var epochUnits = map[string]time.Duration{"%s": time.Second, "%ms": time.Millisecond, "%us": time.Microsecond}

// ReadFormat parses a format as an author writes it: a layout of strftime or of package time, or a key of
// epochUnits. The returned type is the default type of cursors in this format.
func ReadFormat(written string) (format string, as CursorType, err error) {
	if written == "" {
		return "", "", errors.New(`is empty; write for example "%d/%m/%Y", or remove it`)
	}
	if _, isEpoch := epochUnits[written]; isEpoch {
		return written, Time, nil
	}
	layout := written
	if strings.Contains(written, "%") {
		known, ok := expression.LayoutOfStrftime(written)
		if !ok {
			return "", "", fmt.Errorf("%q has a part that is not known; write for example %s, or %s for a number since 1970", written, formatExample, epochExample)
		}
		layout = known
	}
	switch shown := formatSample.Format(layout); {
	case shown == layout:
		return "", "", fmt.Errorf("%q has no part of a time; write for example %s", written, formatExample)
	case strings.Contains(layout, "MST"):
		return "", "", fmt.Errorf("%q names a zone, and short names of zones are ambiguous; a format has an offset, such as %%z, or is in UTC", written)
	}
	unit := slices.IndexFunc(formatUnits, func(unit time.Duration) bool { return preservesTime(layout, unit) })
	switch {
	case unit < 0:
		return "", "", fmt.Errorf("%q does not name a day and, from the hour down, each part of its time; write for example %s", written, formatExample)
	case unit == 0:
		return layout, Date, nil
	}
	return layout, Time, nil
}

const formatExample, epochExample = `"%d/%m/%Y" or "%Y-%m-%dT%H:%M:%SZ"`, "%s, %ms or %us"

// formatUnits are possible precisions of formats.
var formatUnits = []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second, time.Millisecond, time.Microsecond, time.Nanosecond}

// formatSample is a time whose parts all differ, in the second half of a day.
var formatSample = time.Date(2012, time.November, 24, 23, 34, 45, 567_891_234, time.UTC)

// formatSampleDay is the time that messages show in a format.
var formatSampleDay = time.Date(2024, time.January, 31, 10, 0, 0, 0, time.UTC)

// preservesTime reports whether a layout preserves times up to a unit: parsing a formatted time gives the time
// truncated to it.
func preservesTime(layout string, unit time.Duration) bool {
	for _, sample := range []time.Time{formatSample, time.Date(2001, time.February, 3, 4, 5, 6, 7_008_009, time.UTC)} {
		read, err := time.Parse(layout, sample.Format(layout))
		if err != nil || !read.Equal(sample.Truncate(unit)) {
			return false
		}
	}
	return true
}

// Parse parses a cursor from a row. The error says what the value is instead.
func (f Form) Parse(value any) (Cursor, error) { return f.ParseInto(&[]byte{}, value) }

// ParseAny parses a cursor that a person enters: in this format, or in the default format of the type.
func (f Form) ParseAny(value any) (Cursor, error) {
	cursor, err := f.Parse(value)
	if err == nil || f.Format == "" {
		return cursor, err
	}
	plain, plainErr := Parse(f.Type, value)
	if plainErr != nil {
		return Cursor{}, err
	}
	return f.convertCursor(plain), nil
}

// convertCursor returns a cursor in this form: unchanged if it already is, else converted by its position.
func (f Form) convertCursor(c Cursor) Cursor {
	if f.Type != Time && f.Type != Date || c.Position == nil {
		return c
	}
	if written, err := f.Parse(c.Value.Data); err == nil && bytes.Equal(written.Position, c.Position) {
		return c
	}
	return f.atPosition(c, c.Position)
}

// withFormatted appends the position of a formatted cursor.
func (f Form) withFormatted(to []byte, value any) (longer []byte, ok bool) {
	at, ok := f.timeOf(value)
	if !ok {
		return to, false
	}
	if f.Type == Date {
		return appendInteger(to, at.Truncate(secondsPerDay*time.Second).Unix()/secondsPerDay), true
	}
	return appendTime(to, at), true
}

// timeOf parses a time in the format. Digits may be a number, as in 20240131.
func (f Form) timeOf(value any) (at time.Time, ok bool) {
	switch value.(type) {
	case nil, bool, []any, map[string]any:
		return time.Time{}, false
	}
	text := strings.TrimSpace(expression.Text(value))
	if unit, isEpoch := epochUnits[f.Format]; isEpoch {
		return sinceEpoch(text, unit)
	}
	at, err := time.Parse(f.Format, text)
	return at, err == nil
}

// sinceEpoch returns the time that is a number of units after 1970, for the years 0 to 9999; a number beyond these
// must have another unit.
func sinceEpoch(text string, unit time.Duration) (at time.Time, ok bool) {
	const longest = 40
	if len(text) > longest || strings.ContainsAny(text, "/eEpPxX_") {
		return time.Time{}, false
	}
	number, ok := new(big.Rat).SetString(text)
	if !ok {
		return time.Time{}, false
	}
	number.Mul(number, new(big.Rat).SetInt64(int64(unit)))
	nanoseconds := new(big.Int).Div(number.Num(), number.Denom()) // a divisor above 0 rounds down
	seconds, rest := new(big.Int).DivMod(nanoseconds, big.NewInt(int64(time.Second)), new(big.Int))
	if !seconds.IsInt64() {
		return time.Time{}, false
	}
	at = time.Unix(seconds.Int64(), rest.Int64()).UTC()
	return at, at.Year() >= 0 && at.Year() <= 9999
}

// formatTime formats a time, rounded down to the precision of the format. like is a cursor of the source: if it has
// digits as text, the result is text.
func (f Form) formatTime(at time.Time, like any) any {
	at = at.UTC()
	unit, isEpoch := epochUnits[f.Format]
	if !isEpoch {
		return at.Format(f.Format)
	}
	perSecond := int64(time.Second / unit)
	count := at.Unix()*perSecond + int64(at.Nanosecond())/int64(unit)
	if _, isNumber := f.timeOf(like); isNumber && isString(like) {
		return fmt.Sprint(count)
	}
	return int(count)
}
