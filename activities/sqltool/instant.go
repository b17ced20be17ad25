package sqltool

import (
	"time"

	"reprise/interpreter/expression"
)

// Instant is a text that is compared by code points as the time is that another text says. A time without an offset is
// one of a zone that is so many seconds east of UTC.
func Instant(text string, offset int) (instant string, ok bool) {
	const fixed = "2006-01-02T15:04:05.000000000Z"
	at, ok := expression.ParseTimeIn(text, time.FixedZone("", offset))
	return at.UTC().Format(fixed), ok
}

// instantBound is a bound that is a time, and the offset of its zone.
func instantBound(value any) (instant string, offset int, ok bool) {
	text, isText := value.(string)
	at, isTime := expression.ParseTime(text)
	if !isText || !isTime {
		return "", 0, false
	}
	_, offset = at.Zone()
	instant, ok = Instant(text, offset)
	return instant, offset, ok
}

// holdsInstant reports whether a value is a time within those bounds that are times. What is no time is not.
func (b *bounds) holdsInstant(value any) bool {
	for _, one := range b.limits() {
		bound, offset, isTime := instantBound(one.value)
		if !isTime {
			continue
		}
		text, isText := value.(string)
		given, ok := Instant(text, offset)
		if !isText || !ok || !one.holds(given, bound) {
			return false
		}
	}
	return true
}
