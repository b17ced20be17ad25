package sqltool

import (
	"cmp"
	"math/big"
	"strings"

	"reprise/interpreter/expression"
)

// NotOlder is the condition that the row given is not older than the one that is there, both
// by their names in SQL. A row without a value is older than any that has one.
func (w *Write) NotOlder(given, there string) string {
	if w.sequence == "" {
		return "true"
	}
	compared := func(row string) string { // as in compareValues
		column := row + "." + quoteName(w.sequence)
		switch {
		case w.sequenceKind == kindText:
			return column + w.codePoints
		case w.sequenceKind == kindInstant && w.instantOf != nil:
			return "coalesce(" + w.instantOf(column, 0) + ", " + column + ")"
		}
		return column
	}
	return "(" + there + "." + quoteName(w.sequence) + " IS NULL OR " + compared(given) + " >= " + compared(there) + ")"
}

// newest leaves out rows that another one of the write replaces: the one with the larger
// value of sequence_by stays, and of equal ones the later. One statement cannot touch a row
// of the table twice. Keys are compared as text, as a column would store 7 and "7" alike.
func (w *Write) newest() *Write {
	stays := make(map[string]int, len(w.Rows))
	lost := make([]bool, len(w.Rows))
	for i, row := range w.Rows {
		key := w.keyOf(row)
		before, known := stays[key]
		if known && w.sequence != "" && compareValues(w.sequenceKind, row[w.sequence], w.Rows[before][w.sequence]) < 0 {
			lost[i] = true
			continue
		}
		if known {
			lost[before] = true
		}
		stays[key] = i
	}
	return w.without(lost)
}

// keyOf tells the keys of rows apart.
func (w *Write) keyOf(row map[string]any) string {
	if len(w.Key) == 1 {
		return expression.Text(row[w.Key[0]])
	}
	parts := make([]any, len(w.Key))
	for at, column := range w.Key {
		parts[at] = expression.Text(row[column])
	}
	return expression.Text(parts)
}

// withDeletes parts the rows that are to be deleted from those that are to be written.
func (w *Write) withDeletes() *Write {
	if w.hardDelete == "" {
		return w
	}
	deleted := make([]bool, len(w.Rows))
	var deletes []map[string]any
	for i, row := range w.Rows {
		if deleted[i] = expression.Truthy(row[w.hardDelete]); deleted[i] {
			deletes = append(deletes, row)
		}
	}
	rest := w.without(deleted)
	rest.Deletes = deletes
	return rest
}

// saysNo reports whether a value is a text that means false to its author and is truthy, as the
// cells of CSV are.
func saysNo(mark any) bool {
	text, isText := mark.(string)
	if !isText || text == "" {
		return false
	}
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "", "0", "f", "false", "n", "no", "nil", "none", "null", "off":
		return true
	}
	return false
}

// DeleteColumns are the columns by which rows are deleted.
func (w *Write) DeleteColumns() []string {
	columns := w.Key
	if w.sequence != "" {
		columns = appendNew(columns, w.sequence)
	}
	return columns
}

// compareValues compares two values as a column of a kind does: numbers as numbers, times as
// instants, and all else by code points. nil is less than any other.
func compareValues(kind Kind, a, b any) int {
	if a == nil || b == nil {
		return cmp.Compare(boolNumber(a != nil), boolNumber(b != nil))
	}
	switch {
	case kind.isNumber(), (kind == kindOther || kind == kindInstant) && !isText(a) && !isText(b):
		x, isNumber := numberOf(a)
		y, areNumbers := numberOf(b)
		if isNumber && areNumbers {
			return x.Cmp(y)
		}
	case kind == kindInstant:
		x, isTime := expression.ParseTime(expression.Text(a))
		y, areTimes := expression.ParseTime(expression.Text(b))
		if isTime && areTimes {
			return x.Compare(y)
		}
	}
	return strings.Compare(expression.Text(a), expression.Text(b))
}

func isText(v any) bool {
	_, is := v.(string)
	return is
}

func boolNumber(b bool) int {
	if b {
		return 1
	}
	return 0
}

// digitsKept is enough for every number of the language, in bits.
const digitsKept = 4096

// numberOf is a value as the number that a column of numbers makes of it.
func numberOf(v any) (*big.Float, bool) {
	switch v := v.(type) {
	case int:
		return new(big.Float).SetPrec(digitsKept).SetInt64(int64(v)), true
	case bool:
		return new(big.Float).SetInt64(int64(boolNumber(v))), true
	case nil, []any, map[string]any:
		return nil, false
	}
	number, _, err := big.ParseFloat(strings.TrimSpace(expression.Text(v)), 10, digitsKept, big.ToNearestEven)
	return number, err == nil && !number.IsInf()
}
