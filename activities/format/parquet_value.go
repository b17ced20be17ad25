package format

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	logical "github.com/parquet-go/parquet-go/format"

	"reprise/interpreter/expression"
)

// leafValue makes values of a column values of the language.
type leafValue func(parquet.Value) (any, error)

var (
	errNotUTF8 = errors.New("a text is not UTF-8")
	errDecimal = fmt.Errorf("a decimal has more than %d bytes", longestDecimal)
)

const (
	// longestDecimal bounds the bytes of a decimal: 1,000 digits need 416. Digits of a longer one would take their square.
	longestDecimal = 416
	// mostScale bounds the digits after the point of a decimal, as the language does.
	mostScale = 1000
)

// valueOfLeaf says how the values of a column are read. element is what the footer says of it.
func valueOfLeaf(column *parquet.Column, element logical.SchemaElement) (leafValue, error) {
	if element.ConvertedType.Valid && element.ConvertedType.V == deprecated.Interval {
		return intervalValue, nil
	}
	var of any
	if lt := column.Type().LogicalType(); lt != nil {
		of = lt.Value
	}
	switch of := of.(type) {
	case *logical.DecimalType:
		if of.Scale < 0 || of.Scale > mostScale {
			return nil, fmt.Errorf("column %q has a scale of %d", column.Name(), of.Scale)
		}
		return func(v parquet.Value) (any, error) { return decimalValue(v, int(of.Scale)) }, nil
	case *logical.DateType:
		return func(v parquet.Value) (any, error) {
			return time.Unix(int64(v.Int32())*24*60*60, 0).UTC().Format(time.DateOnly), nil
		}, nil
	case *logical.TimestampType:
		return timestampValue(of), nil
	case *logical.TimeType:
		return func(v parquet.Value) (any, error) {
			return time.Unix(0, 0).UTC().Add(time.Duration(wholeOf(v)) * unitOf(of.Unit)).Format("15:04:05.999999999"), nil
		}, nil
	case *logical.IntType:
		if !of.IsSigned {
			return unsignedValue, nil
		}
	case *logical.StringType, *logical.EnumType:
		return textValue, nil
	case *logical.JsonType:
		return func(v parquet.Value) (any, error) { return expression.DecodeExact(v.ByteArray()) }, nil
	case *logical.UUIDType:
		return func(v parquet.Value) (any, error) {
			digits := hex.EncodeToString(v.ByteArray())
			if len(digits) != 32 {
				return nil, errors.New("a UUID has not 16 bytes")
			}
			return strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-"), nil
		}, nil
	}
	return plainValue, nil
}

// unitOf is the unit of a time.
func unitOf(unit logical.TimeUnit) time.Duration {
	switch unit.Value.(type) {
	case *logical.MilliSeconds:
		return time.Millisecond
	case *logical.MicroSeconds:
		return time.Microsecond
	}
	return time.Nanosecond
}

func wholeOf(v parquet.Value) int64 {
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

// timestampValue reads instants as RFC 3339 in UTC, and times without a zone without one.
func timestampValue(of *logical.TimestampType) leafValue {
	layout := "2006-01-02T15:04:05.999999999"
	if of.IsAdjustedToUTC {
		layout = time.RFC3339Nano
	}
	perSecond := int64(time.Second / unitOf(of.Unit))
	return func(v parquet.Value) (any, error) {
		n := wholeOf(v)
		seconds, rest := n/perSecond, n%perSecond
		return yearText(time.Unix(seconds, rest*int64(unitOf(of.Unit))).UTC(), layout)
	}
}

// yearText is a time as text, if its year has four digits, as the language reads times.
func yearText(at time.Time, layout string) (any, error) {
	if at.Year() < 0 || at.Year() > 9999 {
		return nil, fmt.Errorf("a time is of the year %d", at.Year())
	}
	return at.Format(layout), nil
}

func unsignedValue(v parquet.Value) (any, error) {
	if v.Kind() == parquet.Int32 {
		return int(v.Uint32()), nil
	}
	return expression.DecodeExact(strconv.AppendUint(nil, v.Uint64(), 10))
}

func textValue(v parquet.Value) (any, error) {
	if !utf8.Valid(v.ByteArray()) {
		return nil, errNotUTF8
	}
	return string(v.ByteArray()), nil
}

// decimalValue is a decimal with all of its digits.
func decimalValue(v parquet.Value, scale int) (any, error) {
	unscaled := new(big.Int)
	switch v.Kind() {
	case parquet.Int32, parquet.Int64:
		unscaled.SetInt64(wholeOf(v))
	default:
		var err error
		if unscaled, err = valueOfDecimal(v.ByteArray()); err != nil {
			return nil, err
		}
	}
	digits := new(big.Int).Abs(unscaled).String()
	if len(digits) <= scale {
		digits = strings.Repeat("0", scale-len(digits)+1) + digits
	}
	text := digits[:len(digits)-scale]
	if scale > 0 {
		text += "." + digits[len(digits)-scale:]
	}
	if unscaled.Sign() < 0 {
		text = "-" + text
	}
	return expression.DecodeExact([]byte(text))
}

// valueOfDecimal is a whole number in two's complement.
func valueOfDecimal(content []byte) (*big.Int, error) {
	if len(content) > longestDecimal {
		return nil, errDecimal
	}
	unscaled := new(big.Int).SetBytes(content)
	if len(content) > 0 && content[0] >= 0x80 {
		unscaled.Sub(unscaled, new(big.Int).Lsh(big.NewInt(1), uint(len(content))*8))
	}
	return unscaled, nil
}

// intervalValue is an interval as in ISO 8601, such as P14M3DT1.5S. Months, days and milliseconds are apart, because none has a fixed number of another.
func intervalValue(v parquet.Value) (any, error) {
	const size = 12
	content := v.ByteArray()
	if len(content) != size {
		return nil, errors.New("an interval has not 12 bytes")
	}
	text := "P"
	for i, unit := range []string{"M", "D"} {
		if count := binary.LittleEndian.Uint32(content[4*i:]); count > 0 {
			text += fmt.Sprint(count) + unit
		}
	}
	if millis := binary.LittleEndian.Uint32(content[8:]); millis > 0 || text == "P" {
		text += "T" + strconv.FormatFloat(float64(millis)/1000, 'f', -1, 64) + "S"
	}
	return text, nil
}

// plainValue is a value of a column that has only a physical type. Bytes are base64, as everywhere.
func plainValue(v parquet.Value) (any, error) {
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean(), nil
	case parquet.Int32, parquet.Int64:
		return int(wholeOf(v)), nil
	case parquet.Float:
		return floatValue(float64(v.Float()), 32)
	case parquet.Double:
		return floatValue(v.Double(), 64)
	case parquet.Int96: // a Julian day, and nanoseconds
		const julianEpoch, seconds = 2_440_588, 24 * 60 * 60
		n := v.Int96()
		return yearText(time.Unix((int64(n[2])-julianEpoch)*seconds, int64(n[1])<<32|int64(n[0])).UTC(), time.RFC3339Nano)
	case parquet.ByteArray, parquet.FixedLenByteArray:
		return base64.StdEncoding.EncodeToString(v.ByteArray()), nil
	}
	return nil, fmt.Errorf("a value of type %s is not known", v.Kind())
}

// floatValue is a float with its shortest digits. What is no number is text, as from a database.
func floatValue(f float64, bits int) (any, error) {
	switch {
	case math.IsNaN(f):
		return "NaN", nil
	case math.IsInf(f, 1):
		return "Infinity", nil
	case math.IsInf(f, -1):
		return "-Infinity", nil
	case bits == 64 && f != math.Trunc(f):
		return f, nil
	}
	return expression.DecodeExact(bytes.ToLower(strconv.AppendFloat(nil, f, 'g', -1, bits)))
}
