package sqltool

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"reprise/interpreter/expression"
)

// Reading is how a column reads a text that is not of its type, if databases would change its value.
type Reading int

// The readings of columns.
const (
	readsAll      Reading = iota // the database keeps the text, or refuses it
	readsNumber                  // numbers, and texts that are the plain form of one
	readsLike                    // any text that does not look like a number, which would become one
	readsText                    // texts, where the database would make numbers of booleans
	readsBoolean                 // booleans as databases write them
	readsInstant                 // times, with their offsets
	readsUTC                     // times without an offset
	readsDay                     // dates
	readsClock                   // times of day without an offset
	readsInterval                // spans of time, with their units
)

// Reader is how a column reads its values.
type Reader struct {
	of   Reading
	list bool // its values are lists of them
	// affine says that the database would store texts in a column of numbers or booleans unchanged,
	// so they are converted before.
	affine bool
	// precision is what the database keeps of a value that it accepts.
	precision precision
}

// ReaderOfType is how a column of a type of PostgreSQL reads.
func ReaderOfType(typed string) Reader {
	element, isList := strings.CutSuffix(typed, "[]")
	for strings.HasSuffix(element, "[]") {
		element = strings.TrimSuffix(element, "[]")
	}
	of, kind := readsAll, KindOfType(element)
	switch kind {
	case kindSmallint, kindInteger, kindBigint, kindNumeric, kindReal, kindDouble:
		of = readsNumber
	case kindBoolean:
		of = readsBoolean
	case kindInstant:
		of = readsInstant
	case kindTimestamp:
		of = readsUTC
	case kindDate:
		of = readsDay
	case kindClock:
		of = readsClock
	case kindOther:
		switch name := limits.ReplaceAllString(element, ""); {
		case name == money:
			of = readsNumber
		case name == "time with time zone", name == "timetz":
			of = readsInstant
		case strings.HasPrefix(name, "interval"): // of hours, for one
			of = readsInterval
		}
	case kindVarchar, kindText, kindJSON:
	}
	return Reader{of: of, list: isList, precision: precisionOfType(element, kind)}
}

// money is a type of PostgreSQL that reads the signs of amounts by the settings of the server: "1,5" may be 15.
const money = "money"

// ReaderOfDeclared returns the reader of a column with this type in SQLite: unless it has text affinity, a text that looks
// like a number becomes one (sqlite.org/datatype3.html#type_affinity).
func ReaderOfDeclared(declared string) Reader {
	switch kind := KindOfDeclared(declared); {
	case kind == kindBoolean:
		return Reader{of: readsBoolean, affine: true}
	case kind.isNumber():
		return Reader{of: readsNumber, affine: true}
	case kind == kindText:
		return Reader{of: readsText}
	case declared == "", strings.Contains(strings.ToUpper(declared), "BLOB"):
		return Reader{}
	}
	return Reader{of: readsLike, affine: true}
}

// numberLike is a text that SQLite makes a number of.
var numberLike = regexp.MustCompile(`^[ \t\n\v\f\r]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t\n\v\f\r]*$`)

// isPlainNumber reports whether a text is the plain form of a number: as in JSON, without an exponent. It is asked for each cell of a CSV.
func isPlainNumber(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	whole, fraction, hasPoint := strings.Cut(digits, ".")
	if !isDigits(whole) || hasPoint && !isDigits(fraction) || len(whole) > 1 && whole[0] == '0' {
		return false
	}
	return digits == text || strings.Trim(digits, "0.") != ""
}

// isDigits reports whether a text has digits, and nothing else.
func isDigits(text string) bool {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return text != ""
}

// booleans are the forms in which databases write booleans.
var booleans = map[string]bool{"true": true, "false": false, "t": true, "f": false, "1": true, "0": false}

// Problems of values that would become others.
const (
	noPlainNumber = "is not a plain number"
	becomesNumber = "is text that SQLite would turn into a number"
	noBoolean     = "is not one of the booleans true, false, t, f, 1 and 0"
	movingTime    = "is a word for a time, and which time depends on the clock of the database"
	unknownZone   = "has an unknown zone; write its offset, such as +02:00"
	ambiguousDate = "may start with the day or with the month; date(TEXT, \"02/01/2006\") reads the day first"
	noTime        = "is not a time"
	noUnit        = "has no unit, and the database would read it as seconds; write a unit, as in \"90 minutes\""
	numberAsTime  = "is a number, and the database would read its digits as a time; date(NUMBER) converts seconds since 1970"
)

// readValue returns the value to send to a column, and what is wrong with it, "" for nothing. Most values are
// sent unchanged.
func (r Reader) readValue(given any) (sent any, problem string) {
	switch value := given.(type) {
	case string:
		if !r.list {
			if sent, problem = r.readText(value); sent != nil {
				return sent, problem
			}
			return given, problem
		}
	case bool:
		if r.of == readsText {
			return expression.Text(value), ""
		}
	case []any:
		switch {
		case r.list:
			return r.readElements(value)
		case r.isTime():
			return value, noTime // PostgreSQL skips brackets and quotes when it reads a time
		}
	case map[string]any:
		if r.isTime() && !r.list {
			return value, noTime
		}
	case int, float64, json.Number:
		switch {
		case r.list:
		case r.of == readsInterval:
			return value, noUnit
		case r.isTime():
			return value, numberAsTime
		}
	}
	return given, ""
}

// mayChange reports whether values of this type may become others in the column. It is called for each value of a
// write.
func (r Reader) mayChange(value any) bool {
	switch value.(type) {
	case nil:
		return false
	case string, []any, bool:
		return true
	}
	return r.precision.unit != unitAll || r.isTime()
}

// isTime reports whether the column keeps times, dates, times of day, or spans of time.
func (r Reader) isTime() bool {
	return r.of == readsInstant || r.of == readsUTC || r.of == readsDay || r.of == readsClock || r.of == readsInterval
}

// readElements reads a list, and lists in it.
func (r Reader) readElements(list []any) (sent any, problem string) {
	read := list
	for i, value := range list {
		var one any
		switch value := value.(type) {
		case string:
			one, problem = r.readText(value)
		case []any:
			one, problem = r.readElements(value)
		default:
			continue
		}
		if problem != "" {
			return value, problem
		}
		if text, isText := one.(string); one == nil || isText && text == value {
			continue
		}
		if &read[0] == &list[0] {
			read = append([]any(nil), list...)
		}
		read[i] = one
	}
	return read, ""
}

// readText reads a text. sent is nil where the text is sent as it is, so that no memory is needed for most texts.
func (r Reader) readText(text string) (sent any, problem string) {
	switch r.of {
	case readsNumber, readsLike:
		return r.readNumber(text)
	case readsBoolean:
		truth, is := booleans[text]
		switch {
		case !is:
			return nil, noBoolean
		case r.affine:
			return truth, ""
		}
	case readsInstant:
		switch {
		case isMovingTime(text):
			return nil, movingTime
		case isAmbiguousDate(text):
			return nil, ambiguousDate
		}
	case readsInterval:
		if numberLike.MatchString(text) {
			return nil, noUnit
		}
	case readsUTC, readsDay, readsClock:
		inUTC, problem := utcText(r.of, text)
		if inUTC == text {
			return nil, problem
		}
		return inUTC, problem
	case readsAll, readsText:
	}
	return nil, ""
}

// readNumber is readText for a column of numbers. SQLite would round one with many digits.
func (r Reader) readNumber(text string) (sent any, problem string) {
	switch {
	case r.of == readsLike:
		if numberLike.MatchString(text) {
			return nil, becomesNumber
		}
	case isPlainNumber(text):
		if r.affine && !isExact(text) {
			return json.Number(text), ""
		}
	default:
		return nil, noPlainNumber
	}
	return nil, ""
}

// isShort reports whether a float has all digits of a number that is written in this text, without an exponent.
func isShort(text string) bool {
	const always = 15 // digits of a float
	return len(text) <= always
}

// isExact reports whether SQLite keeps all digits of a number.
func isExact(text string) bool {
	if isShort(text) {
		return true
	}
	if !strings.Contains(text, ".") {
		_, err := strconv.ParseInt(text, 10, 64)
		return err == nil
	}
	float, err := strconv.ParseFloat(text, 64)
	return err == nil && strconv.FormatFloat(float, 'f', -1, 64) == strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// isMovingTime reports whether PostgreSQL reads a text as a time that depends on when it does.
func isMovingTime(text string) bool {
	text = strings.TrimLeft(text, " \t\n\r\v\f")
	if text == "" || text[0] >= '0' && text[0] <= '9' {
		return false
	}
	word := strings.ToLower(text)
	for _, moving := range []string{"now", "today", "tomorrow", "yesterday"} {
		if strings.HasPrefix(word, moving) {
			return true
		}
	}
	return false
}
