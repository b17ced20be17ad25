package sqltool

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
)

// Types are the column types of a database by the values that they hold.
type Types map[ColumnKind]string

// PostgresTypes are the types of PostgreSQL.
var PostgresTypes = Types{
	kindInteger: "integer", kindBigint: "bigint", kindNumeric: "numeric", kindDouble: "double precision", kindBoolean: "boolean",
	kindText: "text", kindJSON: "jsonb", kindInstant: "timestamptz", kindDate: "date",
}

// SQLiteTypes are the types of SQLite, where a column that is not declared as text makes numbers of texts.
var SQLiteTypes = Types{kindBigint: "bigint", kindNumeric: "numeric", kindBoolean: "boolean", kindText: "text", kindJSON: "text"}

// LongText is the kind of a column that keeps the digits of any number.
const LongText = kindText

// PostgresName says why PostgreSQL has no place for a name: it would cut it.
func PostgresName(name string, _ []string) string {
	const longest = 63
	if len(name) > longest {
		return fmt.Sprintf("its name has %d bytes, and PostgreSQL keeps %d; use a shorter one", len(name), longest)
	}
	return unusableName(name)
}

// SQLiteName says why SQLite has no place for a name: it does not distinguish a to z from A to Z.
func SQLiteName(name string, others []string) string {
	for _, other := range others {
		if lowerASCII(name) == lowerASCII(other) {
			return fmt.Sprintf("SQLite cannot distinguish it from %q; rename one of them in args", other)
		}
	}
	return unusableName(name)
}

// lowerASCII returns a text as SQLite compares it where it does not distinguish case.
func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

func unusableName(name string) string {
	if name == "" || strings.ContainsRune(name, 0) {
		return "it is not a name"
	}
	return ""
}

// typeForm matches the names of types that are safe to insert into SQL unquoted.
var typeForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?( [A-Za-z]+)*( ?\( ?\d+( ?, ?\d+)? ?\))?( with(out)? time zone)?(\[\])*$`)

// constraintWords begin what a type cannot have.
var constraintWords = regexp.MustCompile(`(?i)\b(not|null|default|primary|unique|references|check|generated|collate|constraint)\b`)

// isType reports whether a text may be the name of a type.
func isType(name string) bool {
	return typeForm.MatchString(name) && !constraintWords.MatchString(name)
}

// typeOf returns the type for a new column: as declared, or else by the values of the rows; "" if
// all of them are nil.
func (w *TableWrite) typeOf(d *Dialect, column string) string {
	if declared, is := w.types[column]; is {
		return declared
	}
	if typed := d.Types[w.kindOfCursor(column)]; typed != "" {
		return typed
	}
	var found ColumnKind
	for _, row := range w.Rows {
		if value := row[column]; value != nil {
			found = kindOf(found, value)
		}
	}
	if d.LongNumbers != kindOther && w.hasLongNumber(column) {
		found = max(found, d.LongNumbers)
	}
	return d.Types[found]
}

// kindOfCursor returns the kind of the cursor's column if it stores the cursor's times or dates unchanged; kindOther
// for other columns.
func (w *TableWrite) kindOfCursor(column string) ColumnKind {
	if w.cursor == nil || w.cursor.Path != column || w.cursor.Format != "" {
		return kindOther
	}
	kind := map[incremental.CursorType]ColumnKind{incremental.Time: kindInstant, incremental.Date: kindDate}[w.cursor.Type]
	found := false
	for _, row := range w.Rows {
		value := row[column]
		if value == nil {
			continue
		}
		text, isText := value.(string)
		if _, err := incremental.Parse(w.cursor.Type, value); !isText || err != nil || finerThanMicroseconds.MatchString(text) {
			return kindOther
		}
		found = true
	}
	if !found {
		return kindOther
	}
	return kind
}

// finerThanMicroseconds is a time of which PostgreSQL would keep a part.
var finerThanMicroseconds = regexp.MustCompile(`[.,]\d{6}0*[1-9]`)

// hasLongNumber reports whether the column has a number that neither 64 bits nor a float64 hold.
func (s *rowSet) hasLongNumber(column string) bool {
	return slices.ContainsFunc(s.Rows, func(row map[string]any) bool {
		_, isLong := row[column].(json.Number)
		return isLong && expression.IsRounded(row[column])
	})
}

// kindOf returns the kind of a column that holds values of the given kind as well as this value;
// kindOther means none yet.
func kindOf(before ColumnKind, value any) ColumnKind {
	var own ColumnKind
	switch value.(type) {
	case int:
		own = kindBigint
	case float64, json.Number:
		own = kindNumeric
	case bool:
		own = kindBoolean
	case []any, map[string]any:
		own = kindJSON
	default:
		own = kindText
	}
	switch {
	case before == kindOther, before == own:
		return own
	case before == kindJSON || own == kindJSON:
		return kindJSON
	case (before == kindBigint || before == kindNumeric) && (own == kindBigint || own == kindNumeric):
		return kindNumeric
	}
	return kindText
}

// limitOf returns the first number of a type such as varchar(10), 0 for none.
func limitOf(name string) int {
	_, rest, _ := strings.Cut(name, "(")
	digits, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(rest), ")"), ",")
	digits, _, _ = strings.Cut(digits, ")")
	limit, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil {
		return 0
	}
	return limit
}

// wholeRanges are the ranges of integer columns.
var wholeRanges = []struct {
	kind     ColumnKind
	min, max *big.Float
}{
	{kindSmallint, big.NewFloat(math.MinInt16), big.NewFloat(math.MaxInt16)},
	{kindInteger, big.NewFloat(math.MinInt32), big.NewFloat(math.MaxInt32)},
	{kindBigint, new(big.Float).SetInt64(math.MinInt64), new(big.Float).SetInt64(math.MaxInt64)},
}

// toHold returns the narrowest kind that holds the value too and loses nothing; the kind itself
// if there is none. limit is the length limit of a text column.
func (k ColumnKind) toHold(value any, limit int) ColumnKind {
	if value == nil {
		return k
	}
	if k == kindVarchar {
		if _, isText := value.(string); isText && utf8.RuneCountInString(value.(string)) > limit {
			return kindText
		}
		return k
	}
	if _, isBool := value.(bool); isBool || k != kindReal && (k < kindSmallint || k > kindBigint) {
		return k
	}
	number, isNumber := numberOf(value)
	switch {
	case !isNumber:
		return k
	case k == kindReal:
		exact, _ := number.Float64()
		if short, err := strconv.ParseFloat(strconv.FormatFloat(float64(float32(exact)), 'g', -1, 32), 64); err != nil || short != exact {
			return kindDouble
		}
		return k
	case !number.IsInt():
		return kindNumeric
	}
	for _, whole := range wholeRanges {
		if whole.kind >= k && number.Cmp(whole.min) >= 0 && number.Cmp(whole.max) <= 0 {
			return whole.kind
		}
	}
	return kindNumeric
}

// CanHold reports whether a column of the kind holds a value, as far as that is known without the database.
func (k ColumnKind) CanHold(value any) bool {
	text, isText := value.(string)
	if isText && strings.ContainsRune(text, 0) {
		return false
	}
	switch k {
	case kindSmallint, kindInteger, kindBigint:
		_, isWhole := value.(int)
		return isWhole && k.toHold(value, 0) == k
	case kindNumeric:
		_, isBool := value.(bool)
		_, isNumber := numberOf(value)
		return isNumber && !isText && !isBool
	case kindReal, kindDouble:
		_, isFloat := value.(float64)
		return isFloat && k == kindDouble
	case kindBoolean:
		_, isBool := value.(bool)
		return isBool
	case kindText:
		return isText || !isNested(value)
	}
	return false
}

func isNested(value any) bool {
	switch value.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// HoldsDeclared reports whether a value is of the type that a column of SQLite declares.
// SQLite itself would keep any.
func (k ColumnKind) HoldsDeclared(value any) bool {
	number, isNumber := numberOf(value)
	switch k {
	case kindBigint:
		return isNumber && number.IsInt()
	case kindNumeric, kindDouble:
		return isNumber
	case kindBoolean:
		return isNumber && (number.Sign() == 0 || number.Cmp(big.NewFloat(1)) == 0)
	}
	return true
}

// RoundsDeclared reports whether SQLite would round a value that it keeps in a column that is declared so. Columns of
// text and of no type keep all digits (sqlite.org/datatype3.html#determination_of_column_affinity).
func RoundsDeclared(declared string, value any) bool {
	upper := strings.ToUpper(declared)
	has := func(part string) bool { return strings.Contains(upper, part) }
	switch value.(type) {
	case int:
		isReal := has("REAL") || has("FLOA") || has("DOUB") //nolint:misspell // parts of names of types, as SQLite looks for them
		return !has("INT") && !IsDeclaredText(declared) && isReal && expression.IsRounded(value)
	case json.Number:
		exact := IsDeclaredText(declared) || BytesOfDeclared(declared) != noBytes || upper == "" || upper == "ANY"
		return !exact && expression.IsRounded(value)
	}
	return false
}

// IsDeclaredText reports whether SQLite makes text of the values of a column that is declared so.
func IsDeclaredText(declared string) bool {
	upper := strings.ToUpper(declared)
	return !strings.Contains(upper, "INT") &&
		(strings.Contains(upper, "CHAR") || strings.Contains(upper, "CLOB") || strings.Contains(upper, "TEXT"))
}

// BytesOfDeclared says whether a column that is declared so in SQLite has bytes.
func BytesOfDeclared(declared string) BytesColumn {
	upper := strings.ToUpper(declared)
	if strings.Contains(upper, "BLOB") && !strings.Contains(upper, "INT") && !IsDeclaredText(declared) {
		return BytesAndNumbers
	}
	return noBytes
}
