package sqltool

import (
	"cmp"
	"time"

	"reprise/interpreter/expression"
)

// SortableInstant converts a text to a form whose order by code points is the order of time. A time without an offset is in a
// zone with that many seconds east of UTC.
func SortableInstant(text string, offset int) (instant string, ok bool) {
	at, ok := expression.ParseTimeIn(text, time.FixedZone("", offset))
	return InstantText(at), ok
}

// InstantText returns a time as SortableInstant gives it.
func InstantText(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000000Z") }

// comparesInstants reports whether times in a text column are compared as instants.
func (d *Dialect) comparesInstants(column Column) bool {
	return d.ordersAsCursors(d.KindOf(cmp.Or(column.Base, column.Type)), column)
}

// instantBound returns a bound that is a time, and the offset of its zone.
func instantBound(value any) (at time.Time, offset int, ok bool) {
	text, isText := value.(string)
	at, isTime := expression.ParseTime(text)
	_, offset = at.Zone()
	return at, offset, isText && isTime
}

// readBound reads a bound as its column does, and returns the cast after its literal. Bounds of date columns are
// dates in the bound's zone.
func (d *Dialect) readBound(column Column, value any) (read any, cast, problem string) {
	reads := column.columnReader(d)
	at, _, isTime := instantBound(value)
	if text, _ := value.(string); reads.of == readsDay && isTime && len(text) > len(time.DateOnly) {
		return at.Format(utcLayout), "::timestamp", ""
	}
	read, problem = reads.readValue(value)
	return read, "", problem
}

// holdsInstant reports whether a value is within the bounds that are times. A value that is not a time is
// not.
func (b *bounds) holdsInstant(value any) bool {
	for _, one := range b.boundLimits() {
		bound, offset, isTime := instantBound(one.value)
		if !isTime {
			continue
		}
		text, isText := value.(string)
		given, ok := SortableInstant(text, offset)
		if !isText || !ok || !one.holds(given, InstantText(bound)) {
			return false
		}
	}
	return true
}
