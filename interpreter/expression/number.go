package expression

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"reprise/interpreter/source"
)

var (
	errNotFinite = errors.New("the result is not a finite number")
	errOverflow  = errors.New("the result does not fit in 64 bits")
	errZero      = errors.New("division by zero")
)

// maxDigits is how many digits a number may have as it is written, those of its
// exponent included. What is done with a number takes time by its digits.
const maxDigits = 1000

// ErrLongNumber is the error of numbers of more than 1000 digits.
var ErrLongNumber = fmt.Errorf("a number may have at most %d digits; send a longer one as text", maxDigits)

// CheckDigits refuses the text of a number that is too long; the error wraps
// ErrLongNumber.
func CheckDigits(number string) error {
	if len(number) <= maxDigits {
		return nil
	}
	digits := 0
	for i := range len(number) {
		if '0' <= number[i] && number[i] <= '9' {
			digits++
		}
	}
	if digits <= maxDigits {
		return nil
	}
	return fmt.Errorf("the number %s has %d digits: %w", shortText(number), digits, ErrLongNumber)
}

// digitsEnd is where encoding/json changes from digits to an exponent. Whole
// floats below it come back from JSON as digits, so they are kept as digits.
const digitsEnd = 1e21

// fromFloat makes a float canonical.
func fromFloat(f float64) (any, error) {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil, errNotFinite
	case f != math.Trunc(f) || math.Abs(f) >= digitsEnd:
		return f, nil
	case f >= math.MinInt64 && f < -math.MinInt64:
		return int(f), nil
	default:
		return json.Number(strconv.FormatFloat(f, 'f', -1, 64)), nil
	}
}

// numberFromText makes a number of JSON's grammar canonical.
func numberFromText(s string) any {
	if !strings.ContainsAny(s, ".eE") {
		if n, err := strconv.Atoi(s); err == nil {
			return n
		}
		return json.Number(s)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return json.Number(s) // beyond float64
	}
	v, err := fromFloat(f)
	if err != nil {
		return json.Number(s)
	}
	return v
}

// isNumber reports whether s is a number of JSON's grammar.
func isNumber(s string) bool {
	if s == "" || s[len(s)-1] < '0' || s[len(s)-1] > '9' { // no space behind
		return false
	}
	return (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}

// canonicalNumber converts the number types of Go.
func canonicalNumber(v any) (any, error) {
	if n, ok := asInt(v); ok {
		return n, nil
	}
	switch v := v.(type) {
	case uint:
		return canonicalNumber(uint64(v))
	case uint64:
		return numberFromText(strconv.FormatUint(v, 10)), nil
	case float32:
		return canonicalNumber(float64(v))
	case float64:
		n, err := fromFloat(v)
		if err != nil {
			return nil, fmt.Errorf("%v is not a number that JSON can hold", v)
		}
		return n, nil
	case json.Number:
		if err := CheckDigits(string(v)); err != nil {
			return nil, err
		}
		if !isNumber(string(v)) {
			return nil, fmt.Errorf("%q is not a number", string(v))
		}
		return numberFromText(string(v)), nil
	default:
		return nil, fmt.Errorf("values of type %T are not known to the language", v)
	}
}

// asInt converts the types of Go whose numbers all fit.
func asInt(v any) (n int, ok bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case int8:
		return int(v), true
	case int16:
		return int(v), true
	case int32:
		return int(v), true
	case int64:
		return int(v), true
	case uint8:
		return int(v), true
	case uint16:
		return int(v), true
	case uint32:
		return int(v), true
	default:
		return 0, false
	}
}

// asFloat gives the nearest float. It is an error beyond the range of float64.
func asFloat(v any) (float64, error) {
	switch v := v.(type) {
	case int:
		return float64(v), nil
	case float64:
		return v, nil
	case json.Number:
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return 0, fmt.Errorf("%s is too large to calculate with", shortText(string(v)))
		}
		return f, nil
	default:
		return 0, fmt.Errorf("%s is not a number", TypeName(v))
	}
}

// compareNumbers compares by value, exactly.
func compareNumbers(x, y any) int {
	switch a := x.(type) {
	case int:
		switch b := y.(type) {
		case int:
			return cmp.Compare(a, b)
		case float64: // has a fraction or is beyond int: rounding a keeps the side
			return cmp.Compare(float64(a), b)
		case json.Number:
			return -signOf(b)
		}
	case float64:
		switch b := y.(type) {
		case int:
			return cmp.Compare(a, float64(b))
		case float64:
			return cmp.Compare(a, b)
		case json.Number:
			return -compareFloat(b, a)
		}
	case json.Number:
		switch b := y.(type) {
		case int:
			return signOf(a)
		case float64:
			return compareFloat(a, b)
		case json.Number:
			return compareLong(string(a), string(b))
		}
	}
	return 0 // cannot be: both are numbers
}

// signOf is the side of every int on which a number beyond them lies.
func signOf(n json.Number) int {
	if strings.HasPrefix(string(n), "-") {
		return -1
	}
	return 1
}

// compareFloat goes by the float that is nearest to n while that is another one:
// rounding keeps the side.
func compareFloat(n json.Number, f float64) int {
	nearest, _ := strconv.ParseFloat(string(n), 64) // infinite beyond the range
	if order := cmp.Compare(nearest, f); order != 0 {
		return order
	}
	return parseDecimal(string(n)).compare(decimalOf(f))
}

// compareLong compares whole numbers digit by digit, and others as decimals.
func compareLong(a, b string) int {
	const notWhole = ".eE"
	if strings.ContainsAny(a, notWhole) || strings.ContainsAny(b, notWhole) {
		return parseDecimal(a).compare(parseDecimal(b))
	}
	a, negative := strings.CutPrefix(a, "-")
	b, bothNegative := strings.CutPrefix(b, "-")
	if negative != bothNegative {
		return truth(bothNegative) - truth(negative)
	}
	order := cmp.Compare(len(a), len(b))
	if order == 0 {
		order = strings.Compare(a, b)
	}
	if negative {
		return -order
	}
	return order
}

// decimal is a number as digits: 0.digits times ten to the power of point.
// Comparing digits is exact and takes linear time at any size.
type decimal struct {
	negative bool
	digits   string // without zeros on either side; empty for 0
	point    int
}

func decimalOf(f float64) decimal {
	if math.Abs(f) >= digitsEnd {
		return parseDecimal(strconv.FormatFloat(f, 'f', 0, 64)) // every digit, not the shortest text
	}
	return parseDecimal(strconv.FormatFloat(f, 'f', -1, 64))
}

// mostExponent leaves room to add the digits of a number to its exponent. Of so
// large a power only the sign matters.
const mostExponent = math.MaxInt / 2

func parseDecimal(s string) decimal {
	var d decimal
	s, d.negative = strings.CutPrefix(s, "-")
	exponent := 0
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		exponent, _ = strconv.Atoi(s[at+1:]) // the nearest int beyond 64 bits
		exponent = min(max(exponent, -mostExponent), mostExponent)
		s = s[:at]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	all := whole + fraction
	trimmed := strings.TrimLeft(all, "0")
	d.digits = strings.TrimRight(trimmed, "0")
	d.point = len(whole) - (len(all) - len(trimmed)) + exponent
	return d
}

func (d decimal) compare(e decimal) int {
	if s := cmp.Compare(d.sign(), e.sign()); s != 0 || d.sign() == 0 {
		return s
	}
	order := cmp.Compare(d.point, e.point)
	if order == 0 {
		order = strings.Compare(d.digits, e.digits)
	}
	return order * d.sign()
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	default:
		return 1
	}
}

// roundDecimal rounds a number written in plain digits to a number of digits
// behind the point, halves away from zero, as SQL does: 2.345 to two digits is
// 2.35 although the nearest float is a little less. Negative digits round in
// front of the point.
func roundDecimal(s string, digits int) string {
	s, negative := strings.CutPrefix(s, "-")
	whole, fraction, _ := strings.Cut(s, ".")
	if digits >= len(fraction) {
		return sign(negative) + s
	}
	all := whole + fraction
	keep := len(whole) + digits
	if keep < 0 {
		return "0"
	}
	kept := []byte("0" + all[:keep]) // the zero takes a carry
	if all[keep] >= '5' {
		increment(kept)
	}
	if digits < 0 {
		return sign(negative) + strings.TrimLeft(string(kept), "0") + strings.Repeat("0", -digits)
	}
	point := len(kept) - digits
	if digits == 0 {
		return sign(negative) + string(kept)
	}
	return sign(negative) + string(kept[:point]) + "." + string(kept[point:])
}

func increment(digits []byte) {
	for i := len(digits) - 1; ; i-- {
		if digits[i] != '9' {
			digits[i]++
			return
		}
		digits[i] = '0'
	}
}

func sign(negative bool) string {
	if negative {
		return "-"
	}
	return ""
}

// negated flips the sign of a number beyond 64 bits.
func negated(n json.Number) any {
	if s, ok := strings.CutPrefix(string(n), "-"); ok {
		return numberFromText(s)
	}
	return numberFromText("-" + string(n))
}

// shortText cuts text for a message.
func shortText(s string) string {
	const most = 40
	return source.Cut(s, most)
}
