// Package incremental implements the state that a step keeps between runs: cursors and their order, claims and
// moves, and which rows are read again. It only computes values; docs/concepts/state.md#what-a-run-reads describes
// the guarantees.
package incremental

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"reprise/interpreter/expression"
)

// CursorType is the type of a cursor.
type CursorType string

// The types of cursors. A token has no order and is not compared.
const (
	Time    CursorType = "time"
	Date    CursorType = "date"
	Integer CursorType = "integer"
	Text    CursorType = "text"
	Token   CursorType = "token"
)

// Types are the types that an author can choose.
var Types = []string{string(Time), string(Date), string(Integer), string(Text)}

// Cursor is a point in the order of a source; kept in workflow history.
type Cursor struct {
	// Value is the cursor exactly as in the row, or a token.
	Value expression.Value `json:"value,omitzero"`
	// Position orders the cursors of one type: byte order is their order here, in PostgreSQL (bytea) and in SQLite
	// (BLOB). It is nil for a token.
	Position []byte `json:"position,omitempty"`
}

// IsZero reports whether there is no cursor.
func (c Cursor) IsZero() bool { return c.Value.Data == nil }

// mostText bounds a cursor of type text, in bytes: it is stored with each row within the lag.
const mostText = 1000

// Parse parses a cursor of a type. The error says what the value is instead.
func Parse(as CursorType, value any) (Cursor, error) { return Form{Type: as}.Parse(value) }

// ParseInto is Parse, but appends the position to positions, so that the cursors of many rows need one slice.
func (f Form) ParseInto(positions *[]byte, value any) (Cursor, error) {
	cursor, as := Cursor{Value: expression.Of(value)}, f.Type
	if as == Token {
		return cursor, nil
	}
	position, ok := f.appendPosition(positions, value)
	if !ok {
		if f.Format != "" {
			return Cursor{}, fmt.Errorf("%s does not fit the format, such as %v", shownValue(value), f.formatTime(formatSampleDay, nil))
		}
		if text, isText := value.(string); isText && as == Text {
			return Cursor{}, fmt.Errorf("a string of %d bytes is too long for a cursor, which has at most %d", len(text), mostText)
		}
		if as == Integer && isWhole(value) {
			return Cursor{}, fmt.Errorf("%s has more than 64 bits, the most of type integer", shownValue(value))
		}
		return Cursor{}, fmt.Errorf("%s is no %s%s", shownValue(value), as, examples[as])
	}
	cursor.Position = position
	return cursor, nil
}

// examples are valid cursors of types whose format matters, for messages.
var examples = map[CursorType]string{Time: " such as 2024-01-31T10:00:00Z or 2024-01-31 10:00+02", Date: " such as 2024-01-31"}

// shownValue returns a value for messages.
func shownValue(value any) string {
	const most = 60
	text := expression.Text(value)
	switch value := value.(type) {
	case nil:
		return "nil"
	case string:
		text = fmt.Sprintf("%q", value)
	}
	if len(text) > most {
		return "a " + expression.TypeName(value)
	}
	return text
}

// appendPosition appends the position of a cursor to positions; ok is false if the value does not have
// this form.
func (f Form) appendPosition(positions *[]byte, value any) (position []byte, ok bool) {
	before := len(*positions)
	longer, ok := f.withPosition(*positions, value)
	if !ok {
		return nil, false
	}
	*positions = longer
	return slices.Clip(longer[before:]), true
}

func (f Form) withPosition(to []byte, value any) (longer []byte, ok bool) {
	if f.Format != "" {
		return f.withFormatted(to, value)
	}
	text, isText := value.(string)
	switch f.Type {
	case Time:
		at, ok := expression.ParseTime(strings.TrimSpace(text))
		return appendTime(to, at), isText && ok
	case Date:
		day, err := time.Parse(time.DateOnly, text)
		return appendInteger(to, day.Unix()/secondsPerDay), isText && err == nil
	case Integer:
		n, ok := wholeNumber(value)
		return appendInteger(to, n), ok
	case Text:
		return append(to, text...), isText && len(text) <= mostText
	case Token:
	}
	return to, false
}

const secondsPerDay = 24 * 60 * 60

// isWhole reports whether a value is a whole number, of any length.
func isWhole(value any) bool {
	text := expression.Text(value)
	n, ok := new(big.Int).SetString(text, 10)
	return ok && n.String() == text
}

// wholeNumber parses a whole number, or a text with one in its shortest form.
func wholeNumber(value any) (int64, bool) {
	if n, isInt := value.(int); isInt {
		return int64(n), true
	}
	text := expression.Text(value)
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || !n.IsInt64() || n.String() != text {
		return 0, false
	}
	return n.Int64(), true
}

// integerPosition returns the position of a number. Its sign bit is flipped, so that negative numbers sort before
// positive ones.
func integerPosition(n int64) []byte {
	return appendInteger(nil, n)
}

func appendInteger(position []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(position, uint64(n)^1<<63)
}

func timePosition(at time.Time) []byte { return appendTime(make([]byte, 0, timeBytes), at) }

func appendTime(to []byte, at time.Time) []byte {
	return binary.BigEndian.AppendUint32(appendInteger(to, at.Unix()), uint32(at.Nanosecond()))
}

// Sizes of the positions of days and times, in bytes.
const (
	dateBytes = 8
	timeBytes = 12
)

// timeAt returns the time of a position.
func timeAt(position []byte) time.Time {
	return time.Unix(integerAt(position[:8]), int64(binary.BigEndian.Uint32(position[8:]))).UTC()
}

func integerAt(position []byte) int64 { return int64(binary.BigEndian.Uint64(position) ^ 1<<63) }

// Lag is how far before its watermark a source is read again: for type time a duration, for date a number of days,
// for integer a number. Kept in workflow history.
type Lag int64

// BeforeLag returns the cursor that is lag before c. Without a lag it returns c, with its value as in the row if it
// has this form.
func (f Form) BeforeLag(c Cursor, lag Lag) Cursor {
	switch {
	case c.IsZero() || c.Position == nil:
		return c
	case lag == 0:
		return f.convertCursor(c)
	}
	switch f.Type {
	case Time:
		return f.atPosition(c, timePosition(timeAt(c.Position).Add(-time.Duration(lag))))
	case Date:
		return f.atPosition(c, integerPosition(integerAt(c.Position)-int64(lag)))
	case Integer:
		n := integerAt(c.Position)
		return f.atPosition(c, integerPosition(max(n, math.MinInt64+int64(lag))-int64(lag)))
	case Text, Token:
	}
	return c
}

// NotBelow returns c, or the cursor at position if that is larger.
func (f Form) NotBelow(c Cursor, position []byte) Cursor {
	if c.Position == nil || bytes.Compare(position, c.Position) <= 0 {
		return c
	}
	return f.atPosition(c, position)
}

// atPosition returns the cursor at a position; c is one of the same source.
func (f Form) atPosition(c Cursor, position []byte) Cursor {
	if f.Format != "" {
		at, _ := TimeOf(f.Type, Cursor{Value: expression.Of(true), Position: position})
		value := f.formatTime(at, c.Value.Data)
		if exact, err := f.Parse(value); err == nil {
			return exact
		}
		return c
	}
	var value any
	switch f.Type {
	case Time:
		value = timeLike(c, timeAt(position))
	case Date:
		value = time.Unix(integerAt(position)*secondsPerDay, 0).UTC().Format(time.DateOnly)
	case Integer:
		n := integerAt(position)
		if value = int(n); isString(c.Value.Data) {
			value = fmt.Sprint(n)
		}
	case Text:
		value = string(position)
	case Token:
		return c
	}
	return Cursor{Value: expression.Of(value), Position: position}
}

// TimeLike writes a time as the value of a time cursor is written: many sources compare texts, so "2024-05-01T09:00:00Z" would be
// behind all of "2024-05-01 10:00:00".
func (f Form) TimeLike(c Cursor, at time.Time) string {
	if f.Type == Time && f.Format == "" {
		return timeLike(c, at)
	}
	return at.UTC().Format(time.RFC3339Nano)
}

func timeLike(c Cursor, at time.Time) string {
	if sample, isText := c.Value.Data.(string); isText {
		if text, ok := expression.FormatTimeLike(at, sample); ok {
			return text
		}
	}
	return at.UTC().Format(time.RFC3339Nano)
}

func isString(value any) bool {
	_, is := value.(string)
	return is
}

// CursorAt returns the cursor of a time; false for types without one.
func CursorAt(as CursorType, now time.Time) (c Cursor, ok bool) {
	switch as {
	case Time:
		return Cursor{Value: expression.Of(now.UTC().Format(time.RFC3339Nano)), Position: timePosition(now)}, true
	case Date:
		day := now.UTC().Truncate(secondsPerDay * time.Second)
		return Cursor{Value: expression.Of(day.Format(time.DateOnly)), Position: integerPosition(day.Unix() / secondsPerDay)}, true
	case Integer, Text, Token:
	}
	return Cursor{}, false
}

// TimeOf returns the time of a cursor, for type date the beginning of the day in UTC; false for other types.
func TimeOf(as CursorType, c Cursor) (at time.Time, ok bool) {
	switch {
	case c.IsZero():
	case as == Time && len(c.Position) == timeBytes:
		return timeAt(c.Position), true
	case as == Date && len(c.Position) == dateBytes:
		return time.Unix(integerAt(c.Position)*secondsPerDay, 0).UTC(), true
	}
	return time.Time{}, false
}

// BehindNow returns how long before now a watermark is, for type date in whole days; 0 for a watermark in the
// future.
func BehindNow(as CursorType, watermark Cursor, now time.Time) (behind time.Duration, ok bool) {
	at, ok := TimeOf(as, watermark)
	if !ok {
		return 0, false
	}
	if as == Date {
		now = now.UTC().Truncate(secondsPerDay * time.Second)
	}
	return max(now.Sub(at), 0), true
}

// Equal reports whether two cursors have the same position and the same text.
func (c Cursor) Equal(other Cursor) bool {
	return bytes.Equal(c.Position, other.Position) && c.Text() == other.Text()
}
