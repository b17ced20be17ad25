package format

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"reprise/interpreter/expression"
)

// The types of columns of Parquet that is written. They are named as in tables.
const (
	typeBigint      = "bigint"
	typeInteger     = "integer"
	typeSmallint    = "smallint"
	typeDouble      = "double precision"
	typeNumeric     = "numeric"
	typeBoolean     = "boolean"
	typeText        = "text"
	typeVarchar     = "varchar"
	typeJSON        = "json"
	typeTimestamptz = "timestamptz"
	typeTimestamp   = "timestamp"
	typeDate        = "date"
	typeBytea       = "bytea"
)

// ColumnTypes are the types that a column of Parquet may have. numeric has a precision and a scale, varchar a length.
var ColumnTypes = []string{
	typeBigint, typeInteger, typeSmallint, typeDouble, typeNumeric, typeBoolean, typeText, typeVarchar, typeJSON, typeTimestamptz, typeTimestamp, typeDate, typeBytea,
}

// ParquetColumn is a column of Parquet that is written.
type ParquetColumn struct {
	Name     string
	typed    string // one of ColumnTypes
	limit    int    // of varchar, in characters
	digits   int    // of numeric, before and after the point
	scale    int    // of numeric, after the point
	required bool
}

var writtenType = regexp.MustCompile(`^([a-z ]+?) ?(?:\( ?([0-9]{1,9}) ?(?:, ?([0-9]{1,9}) ?)?\))?( not null)?$`)

// mostDigits bounds the digits of a numeric column: a number of 128 bits, which all readers know.
const mostDigits = 38

// NewParquetColumn makes a column of a type as an author or a manifest has it, such as numeric(12, 2) or text not null.
func NewParquetColumn(name, typed string) (ParquetColumn, error) {
	parts := writtenType.FindStringSubmatch(strings.ToLower(strings.Join(strings.Fields(typed), " ")))
	if parts == nil {
		return ParquetColumn{}, fmt.Errorf("%q is not a type; write one such as bigint, numeric(12, 2) or timestamptz", typed)
	}
	c := ParquetColumn{Name: name, typed: parts[1], required: parts[4] != ""}
	first, _ := strconv.Atoi(parts[2])
	second, _ := strconv.Atoi(parts[3])
	switch c.typed {
	case typeNumeric:
		if c.digits, c.scale = first, second; first < 1 || first > mostDigits || second > first {
			return c, fmt.Errorf("%q needs a precision from 1 to %d and a scale, such as numeric(12, 2)", typed, mostDigits)
		}
		return c, nil
	case typeVarchar:
		if c.limit = first; first < 1 || parts[3] != "" {
			return c, fmt.Errorf("%q needs a length, such as varchar(10)", typed)
		}
		return c, nil
	}
	for _, known := range ColumnTypes {
		if known == c.typed && parts[2] == "" {
			return c, nil
		}
	}
	near := ""
	if like := expression.Suggest(c.typed, ColumnTypes); like != "" {
		near = fmt.Sprintf("; did you mean %s?", like)
	}
	return c, fmt.Errorf("%q is not a type of Parquet columns, which are %s%s", typed, strings.Join(ColumnTypes, ", "), near)
}

// Type returns the type as manifests have it.
func (c ParquetColumn) Type() string {
	typed := c.typed
	switch typed {
	case typeNumeric:
		typed = fmt.Sprintf("%s(%d, %d)", typed, c.digits, c.scale)
	case typeVarchar:
		typed = fmt.Sprintf("%s(%d)", typed, c.limit)
	}
	if c.required {
		typed += " not null"
	}
	return typed
}

// The most digits of decimals of 32 and 64 bits.
const (
	digits32 = 9
	digits64 = 18
)

// parquetNode returns the column in a schema.
func (c ParquetColumn) parquetNode() parquet.Node {
	var node parquet.Node
	switch c.typed {
	case typeBigint:
		node = parquet.Int(64)
	case typeInteger:
		node = parquet.Int(32)
	case typeSmallint:
		node = parquet.Int(16)
	case typeDouble:
		node = parquet.Leaf(parquet.DoubleType)
	case typeBoolean:
		node = parquet.Leaf(parquet.BooleanType)
	case typeTimestamptz:
		node = parquet.Timestamp(parquet.Microsecond)
	case typeTimestamp:
		node = parquet.TimestampAdjusted(parquet.Microsecond, false)
	case typeDate:
		node = parquet.Date()
	case typeBytea:
		node = parquet.Encoded(parquet.Leaf(parquet.ByteArrayType), &parquet.Plain)
	case typeNumeric:
		switch {
		case c.digits <= digits32:
			node = parquet.Decimal(c.scale, c.digits, parquet.Int32Type)
		case c.digits <= digits64:
			node = parquet.Decimal(c.scale, c.digits, parquet.Int64Type)
		default:
			node = parquet.Decimal(c.scale, c.digits, parquet.FixedLenByteArrayType(decimalBytes))
		}
	default: // text, and JSON as text, which every reader takes
		node = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
	}
	if c.required {
		return parquet.Required(node)
	}
	return parquet.Optional(node)
}

// isLong reports whether values of the column may be of any length.
func (c ParquetColumn) isLong() bool {
	return c.typed == typeText || c.typed == typeVarchar || c.typed == typeJSON || c.typed == typeBytea
}

// decimalBytes are those of a decimal of more than 64 bits.
const decimalBytes = 16

// readValue returns a value as the column has it. problem says why it has no place for it, "" where it has: no value is rounded, cut or turned
// into another one.
func (c ParquetColumn) readValue(value any) (cell parquet.Value, problem string) {
	switch c.typed {
	case typeBigint, typeInteger, typeSmallint:
		return c.readWhole(value)
	case typeDouble:
		return readDouble(value)
	case typeNumeric:
		return c.readNumeric(value)
	case typeBoolean:
		return readBoolean(value)
	case typeTimestamptz, typeTimestamp, typeDate:
		return c.readTime(value)
	case typeBytea:
		text, isText := value.(string)
		content, err := base64.StdEncoding.DecodeString(text)
		if !isText || err != nil {
			return cell, "is not base64, as which bytes are written"
		}
		return parquet.ByteArrayValue(content), ""
	case typeJSON:
		encoded, err := expression.Encode(value)
		if err != nil {
			return cell, "cannot be written as JSON"
		}
		return parquet.ByteArrayValue(encoded), ""
	}
	switch value.(type) {
	case []any, map[string]any:
		return cell, "is a " + expression.TypeName(value) + ", which a column of type json takes"
	}
	text := expression.PlainText(value)
	switch {
	case !utf8.ValidString(text):
		return cell, "is not UTF-8"
	case c.limit > 0 && utf8.RuneCountInString(text) > c.limit:
		return cell, fmt.Sprintf("has %d characters", utf8.RuneCountInString(text))
	}
	return parquet.ByteArrayValue([]byte(text)), ""
}

// plainNumber is a number as in JSON, without an exponent.
var plainNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// exactNumber returns the number that a value is, or the plain form of which a text is.
func exactNumber(value any) (*big.Rat, bool) {
	var text string
	switch value := value.(type) {
	case int:
		return new(big.Rat).SetInt64(int64(value)), true
	case string:
		text = value
	case float64, json.Number:
		text = expression.PlainText(value)
	default:
		return nil, false
	}
	if !plainNumber.MatchString(text) || expression.CheckDigits(text) != nil {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

const notNumber = "is not a plain number"

// wholeBits are the sizes of columns of whole numbers.
var wholeBits = map[string]int{typeSmallint: 16, typeInteger: 32, typeBigint: 64}

func (c ParquetColumn) readWhole(value any) (cell parquet.Value, problem string) {
	whole, isInt := value.(int)
	if !isInt {
		number, isNumber := exactNumber(value)
		switch {
		case !isNumber:
			return cell, notNumber
		case !number.IsInt():
			return cell, "has a fraction"
		case !number.Num().IsInt64():
			return cell, "is out of range"
		}
		whole = int(number.Num().Int64())
	}
	bits := wholeBits[c.typed]
	if whole != whole<<(64-bits)>>(64-bits) {
		return cell, "is out of range"
	}
	if c.typed == typeBigint {
		return parquet.Int64Value(int64(whole)), ""
	}
	return parquet.Int32Value(int32(whole)), ""
}

func readDouble(value any) (cell parquet.Value, problem string) {
	if text, isText := value.(string); isText {
		if !plainNumber.MatchString(text) || expression.CheckDigits(text) != nil {
			return cell, notNumber
		}
		value = json.Number(text)
	}
	number, isNumber := expression.NearestFloat(value)
	switch _, isBool := value.(bool); {
	case !isNumber || isBool:
		return cell, notNumber
	case expression.IsRounded(value) || math.IsInf(number, 0):
		return cell, "has more digits than that keeps"
	}
	return parquet.DoubleValue(number), ""
}

func readBoolean(value any) (cell parquet.Value, problem string) {
	switch value {
	case true, "true", "t", "1":
		return parquet.BooleanValue(true), ""
	case false, "false", "f", "0":
		return parquet.BooleanValue(false), ""
	}
	return cell, "is not one of the booleans true, false, t, f, 1 and 0"
}

func (c ParquetColumn) readNumeric(value any) (cell parquet.Value, problem string) {
	number, isNumber := exactNumber(value)
	if !isNumber {
		return cell, notNumber
	}
	scaled := number.Mul(number, new(big.Rat).SetInt(powerOfTen(c.scale)))
	switch {
	case !scaled.IsInt():
		return cell, fmt.Sprintf("has more than %d digits after the point", c.scale)
	case new(big.Int).Abs(scaled.Num()).Cmp(powerOfTen(c.digits)) >= 0:
		return cell, fmt.Sprintf("has more than %d digits before the point", c.digits-c.scale)
	case c.digits <= digits32:
		return parquet.Int32Value(int32(scaled.Num().Int64())), "" //nolint:gosec // it has at most 9 digits
	case c.digits <= digits64:
		return parquet.Int64Value(scaled.Num().Int64()), ""
	}
	unscaled := new(big.Int).Set(scaled.Num())
	if unscaled.Sign() < 0 { // in two's complement
		unscaled.Add(unscaled, new(big.Int).Lsh(big.NewInt(1), decimalBytes*8))
	}
	return parquet.FixedLenByteArrayValue(unscaled.FillBytes(make([]byte, decimalBytes))), ""
}

func powerOfTen(digits int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
}

// writtenTime is a time in ISO 8601: its date, its time of day, what it has beyond microseconds, and its offset.
var writtenTime = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)(0*)([1-9]\d*)?([Zz]|[+-]\d{2}:?\d{2}|[+-]\d{2})?)?$`)

// readTime reads a time. Its zone has to be there where the column has one, and only there.
func (c ParquetColumn) readTime(value any) (cell parquet.Value, problem string) {
	text, isText := value.(string)
	parts := writtenTime.FindStringSubmatch(text)
	if !isText || parts == nil {
		return cell, "is not a time such as 2026-03-01T12:00:00Z"
	}
	hasClock, hasZone := parts[2] != "", parts[5] != ""
	switch {
	case c.typed == typeDate && hasClock:
		return cell, "has a time of day"
	case c.typed != typeDate && !hasClock:
		return cell, "has no time of day"
	case c.typed == typeTimestamptz && !hasZone:
		return cell, "has no zone, such as Z or +02:00"
	case c.typed == typeTimestamp && hasZone:
		return cell, "has a zone, which a column of type timestamptz takes"
	case parts[4] != "":
		return cell, "has more than microseconds"
	}
	at, isTime := expression.ParseTime(text)
	switch days := at.Unix() / (24 * 60 * 60); {
	case !isTime:
		return cell, "is not a time"
	case c.typed == typeDate:
		return parquet.Int32Value(int32(days)), "" //nolint:gosec // of a year of four digits
	}
	return parquet.Int64Value(at.UnixMicro()), ""
}

// CellKind is what the values of a column have in common: the type that holds all of them, wholeNumber, or "" for none.
type CellKind string

// wholeNumber is the kind of whole numbers that a column of floats would hold too.
const wholeNumber CellKind = "whole"

// kindOfValue returns the kind of a value alone, as tables have it where nothing says their types. Numbers whose digits no float64 keeps are text.
func kindOfValue(value any) CellKind {
	switch value.(type) {
	case nil:
		return ""
	case int:
		if expression.IsRounded(value) {
			return typeBigint
		}
		return wholeNumber
	case float64, json.Number:
		if expression.IsRounded(value) {
			return typeText
		}
		return typeDouble
	case bool:
		return typeBoolean
	case []any, map[string]any:
		return typeJSON
	}
	return typeText
}

// MergeWith returns the kind of values of one kind or the other.
func (k CellKind) MergeWith(other CellKind) CellKind {
	is := func(a, b CellKind) bool { return k == a && other == b || k == b && other == a }
	switch {
	case k == other || other == "":
		return k
	case k == "":
		return other
	case k == typeJSON || other == typeJSON:
		return typeJSON
	case is(wholeNumber, typeBigint):
		return typeBigint
	case is(wholeNumber, typeDouble):
		return typeDouble
	}
	return typeText
}

// ParquetColumn returns a column with the type of the kind; ok is false for "".
func (k CellKind) ParquetColumn(name string) (column ParquetColumn, ok bool) {
	if k == wholeNumber {
		k = typeBigint
	}
	return ParquetColumn{Name: name, typed: string(k)}, k != ""
}

// KindsOf returns the kinds of the columns of rows, which are maps.
func KindsOf(rows []any) map[string]CellKind {
	kinds := map[string]CellKind{}
	for _, row := range rows {
		values, _ := row.(map[string]any)
		for name, value := range values {
			if own := kindOfValue(value); own != "" {
				kinds[name] = kinds[name].MergeWith(own)
			}
		}
	}
	return kinds
}
