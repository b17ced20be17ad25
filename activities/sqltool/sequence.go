package sqltool

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
)

// sequenceOrder is how the values of sequence_by are ordered.
type sequenceOrder struct {
	// Whether the column of the database orders them, if it is of numbers, times and the like. Else they are ordered
	// like cursors of their type; "" are times as instants, and texts.
	byColumn bool
	kind     ColumnKind
	as       incremental.CursorType
	notOlder func(given, there string, as incremental.CursorType) string // that of the dialect
}

// orderBySequence decides how the values of sequence_by are ordered: in text columns like the step's cursors, if they
// are these, else numbers as numbers, times as instants, and other texts by code points.
func (w *TableWrite) orderBySequence(d *Dialect, columns []Column) {
	w.notes = nil
	if w.sequence == "" {
		return
	}
	column := w.columnOf(d, columns, w.sequence)
	o := sequenceOrder{kind: d.KindOf(cmp.Or(column.Base, column.Type)), notOlder: d.NotOlder}
	switch {
	case !d.ordersAsCursors(o.kind, column):
		o.byColumn = true
	case w.cursor != nil && w.cursor.Path == w.sequence && w.cursor.Type != incremental.Token:
		o.as = w.cursor.Type
	case w.onlyNumbers(w.sequence):
		o.as = incremental.Integer
	}
	w.order = o
	if !o.byColumn && (o.as == "" || o.as == incremental.Text) {
		w.notes = misorderedNotes(w.sequence, w.Rows)
	}
}

// MayReplaceNewer reports whether a settled write may replace rows with older ones, by the cursor of the step: its page has older rows than
// an earlier one, and no column orders them.
func MayReplaceNewer(w *TableWrite) bool {
	of := w.cursor
	return w.upsert && w.sequence == "" && !w.IsStaged() && of != nil && of.Behind && of.Format == "" && slices.Contains(w.Columns, of.Path) && w.TypeOf(of.Path) != ""
}

// countOlder counts the rows of a settled write that are older than those of the table with their keys.
func countOlder(ctx context.Context, tx TableTx, w *TableWrite) error {
	if !MayReplaceNewer(w) {
		return nil
	}
	by, rows := *w, lists.Filter(w.Rows, func(row map[string]any) bool { return row[w.cursor.Path] != nil })
	by.sequence = w.cursor.Path
	by.orderBySequence(tx.Dialect(), w.tableColumns)
	stored, err := tx.StoredKeys(ctx, &by, rows, false)
	if err != nil {
		return err
	}
	older, err := tx.StoredKeys(ctx, &by, rows, true)
	for i, key := range stored {
		if err == nil && key != nil && older[i] == nil {
			w.leftOut.OlderRows++
		}
	}
	return err
}

// misorderedNotes returns a note if the texts of a column look like numbers that are ordered otherwise than by their characters, or
// that are so short that the next ones will be.
func misorderedNotes(column string, rows []map[string]any) []string {
	const surelyCounted = 3 // digits that no form of a time has
	var (
		least, greatest [counterDigits + 1]string // by the number of digits
		note            = func(first, then string) []string {
			return []string{fmt.Sprintf("sequence_by compares column %q as text, so %q comes after %q; "+
				"convert it to numbers, with fields: {%s: \"{{ int(row.%s) }}\"}", column, first, then, column, column)}
		}
	)
	for _, row := range rows {
		text, _ := row[column].(string)
		n := len(text)
		if n == 0 || n > counterDigits || text[0] == '0' || strings.Trim(text, "0123456789") != "" {
			continue
		}
		least[n], greatest[n] = min(cmp.Or(least[n], text), text), max(greatest[n], text)
	}
	for n := 1; n <= counterDigits; n++ {
		for more := n + 1; more <= counterDigits && greatest[n] != ""; more++ {
			if least[more] != "" && greatest[n] > least[more] {
				return note(greatest[n], least[more])
			}
		}
	}
	for n := 1; n <= surelyCounted; n++ {
		if greatest[n] != "" {
			return note(strings.Repeat("9", n), "1"+strings.Repeat("0", n))
		}
	}
	return nil
}

// counterDigits are the digits of the largest counters that misorderedNotes looks at: those of 64 bits.
const counterDigits = 19

// ordersAsCursors reports whether the database compares values of a column otherwise than section cursors of the same are compared.
func (d *Dialect) ordersAsCursors(kind ColumnKind, column Column) bool {
	return kind == kindText || kind == kindVarchar || !kind.isNumber() && d.IsTextual(cmp.Or(column.Base, column.Type))
}

// onlyNumbers reports whether all rows that have a value for the column have a number.
func (s *rowSet) onlyNumbers(column string) bool {
	found := false
	for _, row := range s.Rows {
		switch row[column].(type) {
		case nil:
		case int, float64, json.Number:
			found = true
		default:
			return false
		}
	}
	return found
}

// NotOlder returns the condition that the given row is not older than the existing one, both by
// their names in SQL. A row without a value is older than any row with one.
func (r *mergeKey) NotOlder(given, there string) string {
	if r.sequence == "" {
		return "true"
	}
	given, there = given+"."+quoteName(r.sequence), there+"."+quoteName(r.sequence)
	condition := given + " >= " + there
	if !r.order.byColumn {
		condition = r.order.notOlder(given, there, r.order.as)
	}
	return "(" + there + " IS NULL OR " + condition + ")"
}

// keyOf returns equal texts only for rows whose keys are equal to the database, which may consider others
// equal too.
func (r *mergeKey) keyOf(row map[string]any) string {
	if len(r.Key) == 1 {
		return r.forms[0](row[r.Key[0]])
	}
	const enough = 64
	parts := make([]byte, 0, enough)
	for at, column := range r.Key {
		text := r.forms[at](row[column])
		parts = append(append(strconv.AppendInt(parts, int64(len(text)), 10), ' '), text...)
	}
	return string(parts)
}

// formsOfKey returns how to compare the key's columns, by their types.
func (w *TableWrite) formsOfKey(d *Dialect, columns []Column) []func(any) string {
	forms := make([]func(any) string, len(w.Key))
	for at, column := range w.Key {
		typed, collation := w.typeOf(d, column), ""
		if i := slices.IndexFunc(columns, func(c Column) bool { return c.Name == column }); i >= 0 {
			typed, collation = columns[i].Type, columns[i].Collation
		}
		kind := d.KindOf(typed)
		switch isPostgres := !d.IsTextual(typed); { // SQLite keeps times as texts
		case kind >= kindSmallint && kind <= kindDouble:
			forms[at] = numberForm
		case isPostgres && (typed == "timestamp with time zone" || typed == "timestamptz"):
			forms[at] = instantForm
		case isPostgres && typed == "uuid":
			forms[at] = func(value any) string { return strings.ToLower(expression.Text(value)) }
		case kind != kindText && kind != kindVarchar:
			forms[at] = typedForm
		case collation == NoCase:
			forms[at] = func(value any) string { return lowerASCII(expression.Text(value)) }
		case collation == RTrim:
			forms[at] = func(value any) string { return strings.TrimRight(expression.Text(value), " ") }
		default:
			forms[at] = expression.Text
		}
	}
	return forms
}

// Collations of SQLite by which different texts are equal.
const (
	NoCase = "NOCASE"
	RTrim  = "RTRIM"
)

// typedForm returns a value as text that no value of another type has.
func typedForm(value any) string {
	if text, is := value.(string); is {
		return `"` + text
	}
	return expression.Text(value)
}

// numberForm returns the text of a number, the same whatever its zeros and its exponent.
func numberForm(value any) string {
	const longest, largest = 400, 1 << 10 // characters that are read with an exponent, and bits that are written out
	if number, is := value.(int); is {
		return strconv.Itoa(number)
	}
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

// instantForm returns the text of a time, the same in every zone.
func instantForm(value any) string {
	text := expression.Text(value)
	if at, ok := expression.ParseTime(text); ok {
		return at.UTC().Format(time.RFC3339Nano)
	}
	return text
}

// withDeletes separates rows to be deleted from rows to be written.
func (w *TableWrite) withDeletes() *TableWrite {
	if w.hardDelete == "" {
		return w
	}
	deleted := make([]bool, len(w.Rows))
	var (
		deletes []map[string]any
		numbers []int
	)
	for i, row := range w.Rows {
		if deleted[i] = w.deletesRow(row) && !w.isUnfit(i); deleted[i] {
			deletes, numbers = append(deletes, row), append(numbers, w.OriginalNumber(i))
		}
	}
	rest := w.withoutRows(deleted)
	rest.Deletes, rest.deletesFrom = deletes, numbers
	return rest
}

// isFalseMark reports whether a value is a text that means false to its author and is truthy, as the
// cells of CSV are.
func isFalseMark(mark any) bool {
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

// DeleteColumns returns the columns by which rows are deleted.
func (r *mergeKey) DeleteColumns() []string {
	columns := r.Key
	if r.sequence != "" {
		columns = appendNew(columns, r.sequence)
	}
	return columns
}

// compareValues compares two values as NotOlder does. nil is less than any other.
func (o sequenceOrder) compareValues(a, b any) int {
	if a == nil || b == nil {
		return cmp.Compare(boolNumber(a != nil), boolNumber(b != nil))
	}
	if !o.byColumn {
		return CompareCursors(o.as, a, b)
	}
	switch {
	case o.kind.isNumber(), o.kind == kindOther && !isText(a) && !isText(b):
		return CompareCursors(incremental.Integer, a, b)
	case o.kind.isTime():
		return CompareCursors(incremental.Time, a, b)
	}
	return CompareCursors(incremental.Text, a, b)
}

// CompareCursors compares two values, not nil, as cursors of a type: numbers as numbers, times as instants in
// whatever form. Without a type, the values decide. Values of another type are compared by code points.
func CompareCursors(as incremental.CursorType, a, b any) int {
	if as == incremental.Integer || as == "" && !isText(a) && !isText(b) {
		x, isNumber := numberOf(a)
		y, areNumbers := numberOf(b)
		if isNumber && areNumbers {
			return x.Cmp(y)
		}
	}
	if as != incremental.Text && as != incremental.Integer {
		x, isTime := expression.ParseTime(strings.TrimSpace(expression.Text(a)))
		y, areTimes := expression.ParseTime(strings.TrimSpace(expression.Text(b)))
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

// numberBits is enough for every number of the language, in bits.
const numberBits = 4096

// numberOf returns a value as the number that a column of numbers makes of it.
func numberOf(v any) (*big.Float, bool) {
	switch v := v.(type) {
	case int:
		return new(big.Float).SetPrec(numberBits).SetInt64(int64(v)), true
	case bool:
		return new(big.Float).SetInt64(int64(boolNumber(v))), true
	case nil, []any, map[string]any:
		return nil, false
	}
	number, _, err := big.ParseFloat(strings.TrimSpace(expression.Text(v)), 10, numberBits, big.ToNearestEven)
	return number, err == nil && !number.IsInf()
}
