package sqltool

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
	"time"

	"reprise/interpreter/expression"
)

// NotOlder is the condition that the row given is not older than the one that is there, both
// by their names in SQL. A row without a value is older than any that has one.
func (w *TableWrite) NotOlder(given, there string) string {
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
// of the table twice. Keys are compared as their columns do: as numbers 7, "7" and "07" are one.
func (w *TableWrite) newest() *TableWrite {
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

// keyOf distinguishes the keys of rows.
func (w *TableWrite) keyOf(row map[string]any) string {
	if len(w.Key) == 1 {
		return w.keyForms[0](row[w.Key[0]])
	}
	parts := make([]any, len(w.Key))
	for at, column := range w.Key {
		parts[at] = w.keyForms[at](row[column])
	}
	return expression.Text(parts)
}

// formsOfKey are those of the key's columns, by their types.
func (w *TableWrite) formsOfKey(d *Dialect, columns []Column) []func(any) string {
	forms := make([]func(any) string, len(w.Key))
	for at, column := range w.Key {
		typed := w.typeOf(d, column)
		if i := slices.IndexFunc(columns, func(c Column) bool { return c.Name == column }); i >= 0 {
			typed = columns[i].Type
		}
		kind := d.KindOf(typed)
		switch isPostgres := d.InstantOf == nil; { // SQLite keeps times as texts
		case kind >= kindSmallint && kind <= kindDouble:
			forms[at] = numberForm
		case isPostgres && (typed == "timestamp with time zone" || typed == "timestamptz"):
			forms[at] = instantForm
		case isPostgres && typed == "uuid":
			forms[at] = func(value any) string { return strings.ToLower(expression.Text(value)) }
		default:
			forms[at] = expression.Text
		}
	}
	return forms
}

// numberForm is a number as text, the same whatever its zeros and its exponent.
func numberForm(value any) string {
	const longest, largest = 400, 1 << 10 // characters that are read with an exponent, and bits that are written out
	text := strings.TrimSpace(expression.Text(value))
	sign, digits := "", strings.TrimPrefix(text, "+")
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		sign, digits = "-", rest
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	if strings.Trim(whole+fraction, "0123456789") == "" && whole+fraction != "" {
		whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
		switch {
		case whole+fraction == "":
			return "0"
		case fraction == "":
			return sign + whole
		}
		return sign + cmp.Or(whole, "0") + "." + fraction
	}
	if number, ok := numberOf(text); ok && len(text) <= longest && max(number.MantExp(nil), -number.MantExp(nil)) <= largest {
		return numberForm(number.Text('f', -1))
	}
	return text
}

// instantForm is a time as text, the same in whatever zone it is written.
func instantForm(value any) string {
	text := expression.Text(value)
	if at, ok := expression.ParseTime(text); ok {
		return at.UTC().Format(time.RFC3339Nano)
	}
	return text
}

// withDeletes parts the rows that are to be deleted from those that are to be written.
func (w *TableWrite) withDeletes() *TableWrite {
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
func (w *TableWrite) DeleteColumns() []string {
	columns := w.Key
	if w.sequence != "" {
		columns = appendNew(columns, w.sequence)
	}
	return columns
}

// compareValues compares two values as a column of a kind does: numbers as numbers, times as
// instants, and all else by code points. nil is less than any other.
func compareValues(kind ColumnKind, a, b any) int {
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
