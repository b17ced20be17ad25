package sqltool

import (
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"reprise/interpreter/expression"
)

// precision is what a column keeps of a value of its type, where PostgreSQL rounds or cuts off the rest without an error.
type precision struct {
	unit precisionUnit
	// most is how many of the unit the column keeps: a value may need more.
	most int
}

// precisionUnit is what a precision counts.
type precisionUnit int

const (
	unitAll       precisionUnit = iota // or the database refuses the value
	unitDecimals                       // decimal places: numeric(p, s) and money; negative where zeros before the point are kept
	unitDouble                         // the digits of a float64
	unitReal                           // the digits of a float32
	unitFraction                       // decimal places of a second: timestamp(p), interval(p)
	unitDay                            // a date without its time of day
	unitClock                          // a time of day without its date, with so many decimal places of a second
	unitBlanks                         // characters, of which only blanks are cut off: varchar(n)
	unitBytes                          // bytes of a text: name
	ignoresBlanks                      // all but blanks at the end: char(n), which pads texts with them and finds no difference
)

// precisionOfType returns the precision of a type of PostgreSQL, whose kind is known
// (postgresql.org/docs/current/datatype.html).
func precisionOfType(typed string, kind ColumnKind) precision {
	const (
		cents, microseconds = 2, 6
		nameBytes           = 63
	)
	fraction := microseconds
	if strings.Contains(typed, "(") {
		fraction = limitOf(typed)
	}
	switch kind {
	case kindNumeric:
		if decimals, scaled := decimalsOf(typed); scaled {
			return precision{unitDecimals, decimals}
		}
	case kindDouble:
		return precision{unit: unitDouble}
	case kindReal:
		return precision{unit: unitReal}
	case kindInstant, kindTimestamp:
		return precision{unitFraction, fraction}
	case kindDate:
		return precision{unit: unitDay}
	case kindClock:
		return precision{unitClock, fraction}
	case kindVarchar:
		if limit := limitOf(typed); limit > 0 {
			return precision{unitBlanks, limit}
		}
	case kindOther:
		if strings.HasPrefix(typed, "interval") {
			return precision{unitFraction, fraction}
		}
		switch limits.ReplaceAllString(typed, "") {
		case money:
			return precision{unitDecimals, cents}
		case "time with time zone", "timetz":
			return precision{unitClock, fraction}
		case "character", "char", "bpchar":
			return precision{unit: ignoresBlanks}
		case "name":
			return precision{unitBytes, nameBytes}
		case `"char"`:
			return precision{unitBytes, 1}
		}
	case kindSmallint, kindInteger, kindBigint, kindBoolean, kindText, kindJSON:
	}
	return precision{}
}

// scaledNumeric matches a numeric type with a scale: its figure is the number of decimal places, which may be
// negative.
var scaledNumeric = regexp.MustCompile(`(?i)^(?:numeric|decimal) ?\( ?\d+ ?(?:, ?(-?\d+) ?)?\)$`)

// decimalsOf returns the number of decimal places of a numeric type that has a scale.
func decimalsOf(typed string) (decimals int, scaled bool) {
	parts := scaledNumeric.FindStringSubmatch(typed)
	if parts == nil {
		return 0, false
	}
	decimals, _ = strconv.Atoi(parts[1]) // without a scale it is 0
	return decimals, true
}

// countCut counts the values that the column rounds or cuts: one value, or each value of a list.
func (p precision) countCut(value any) (count int) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			count += p.countCut(element)
		}
	case string:
		if p.cutsText(value) {
			count = 1
		}
	case int, float64, json.Number:
		if p.cutsNumber(value) {
			count = 1
		}
	}
	return count
}

// cutsNumber reports whether the column would keep another number.
func (p precision) cutsNumber(number any) bool {
	switch p.unit {
	case unitDecimals:
		return decimalsIn(expression.Text(number)) > p.most
	case unitDouble:
		return expression.IsRounded(number)
	case unitReal:
		float, _ := expression.NearestFloat(number)
		return expression.IsRounded(number) || !math.IsNaN(float) && strconv.FormatFloat(float, 'g', -1, 64) != strconv.FormatFloat(float, 'g', -1, 32)
	case unitAll, unitFraction, unitDay, unitClock, unitBlanks, unitBytes, ignoresBlanks:
	}
	return false
}

// cutsText reports whether the column would keep less of a text that it accepts.
func (p precision) cutsText(text string) bool {
	switch p.unit {
	case unitDouble:
		return !isShort(text) && isPlainNumber(text) && p.cutsNumber(json.Number(text))
	case unitDecimals, unitReal:
		return isPlainNumber(text) && p.cutsNumber(json.Number(text))
	case unitFraction:
		return fractionDigits(text) > p.most
	case unitDay:
		return hasTimeOfDay(text)
	case unitClock:
		return fractionDigits(text) > p.most || isoTime.MatchString(strings.TrimSpace(text))
	case unitBlanks:
		characters := []rune(text)
		return len(characters) > p.most && strings.Trim(string(characters[p.most:]), " ") == ""
	case unitBytes:
		return len(text) > p.most
	case ignoresBlanks:
		return strings.HasSuffix(text, " ")
	case unitAll:
	}
	return false
}

// decimalsIn is how many decimal places a number needs; negative if it ends in zeros before the point.
func decimalsIn(number string) int {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	power, _ := strconv.Atoi(exponent)
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		return len(fraction) - power
	}
	digits := strings.TrimLeft(whole, "-+0")
	if digits == "" {
		return math.MinInt
	}
	return len(strings.TrimRight(digits, "0")) - len(digits) - power
}

// secondsFraction matches the decimal places of the last part of a time of day.
var secondsFraction = regexp.MustCompile(`:\d+[.,](\d+)`)

// fractionDigits is how many decimal places of a second a time needs.
func fractionDigits(text string) int {
	if !strings.ContainsAny(text, ".,") { // most have none
		return 0
	}
	parts := secondsFraction.FindStringSubmatch(text)
	if parts == nil {
		return 0
	}
	return len(strings.TrimRight(parts[1], "0"))
}

// hasTimeOfDay reports whether a text is a time that is not the beginning of a day in UTC, whose date alone a column would keep.
func hasTimeOfDay(text string) bool {
	if len(text) <= len(time.DateOnly) {
		return false
	}
	at, isTime, _ := readOffset(readsDay, strings.TrimSpace(text))
	return isTime && !at.UTC().Equal(at.UTC().Truncate(24*time.Hour))
}
