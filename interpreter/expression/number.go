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

// maxDigits is the most digits of a number as written, including those of its exponent. Operations on longer
// numbers would take longer than is charged for them.
const maxDigits = 1000

// ErrLongNumber is the error of numbers with more than 1000 digits.
var ErrLongNumber = fmt.Errorf("a number may have at most %d digits; send a longer one as text", maxDigits)

// CheckDigits returns an error that wraps ErrLongNumber if the text of a number has too many digits.
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

// digitsEnd is where encoding/json switches from digits to an exponent. Whole floats below it come back from JSON
// as digits, so they are kept as digits, at most plainDigits of them.
const (
	digitsEnd   = 1e21
	plainDigits = 21
)

// canonicalFloat returns the canonical value of a float.
func canonicalFloat(f float64) (any, error) {
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

// numberFromText returns the canonical value of a number in JSON's grammar. Writing the value as JSON loses
// no digits:
//
//	7, 7.0, 70e-1, -0.0          int; a number without a fraction is plain digits
//	18446744073709551616, 1e20   json.Number of plain digits, beyond int
//	19.9, 1E-7, 1e21             float64, whose shortest form has the same digits
//	19.90, 0.12345678901234567890, 1e400, 1e-400   json.Number, as it is written
func numberFromText(s string) any {
	if !strings.ContainsAny(s, ".eE") {
		if n, err := strconv.Atoi(s); err == nil {
			return n
		}
		return json.Number(s)
	}
	if isShort(s) {
		f, _ := strconv.ParseFloat(s, 64) // cannot fail
		return f
	}
	return decimalFromText(s)
}

// isShort reports whether a number has a fraction and so few digits that a float64 keeps all of them.
func isShort(s string) bool {
	const exactLength = len(".") + 15
	last := s[len(s)-1]
	return len(strings.TrimPrefix(s, "-")) <= exactLength && '1' <= last && last <= '9' && !strings.ContainsAny(s, "eE")
}

// decimalFromText is numberFromText for a number with a decimal point or an exponent.
func decimalFromText(s string) any {
	d := parseDecimal(s)
	mantissa, exponent := s, false
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		mantissa, exponent = s[:at], true
	}
	switch {
	case d.isWhole() && d.point <= plainDigits:
		return numberFromText(d.plainText())
	case d.isWhole() && !exponent:
		whole, _, _ := strings.Cut(s, ".")
		return json.Number(whole)
	case !d.isWhole() && strings.HasSuffix(mantissa, "0"):
		return json.Number(s) // a float64 has no zeros at its end
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && decimalOf(f) == d {
		return f
	}
	return json.Number(s)
}

// isNumber reports whether s is a number in JSON's grammar.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	rest := withoutDigits(s)
	if len(rest) == len(s) || s[0] == '0' && len(rest) < len(s)-1 {
		return false
	}
	if fraction, has := strings.CutPrefix(rest, "."); has {
		if rest = withoutDigits(fraction); len(rest) == len(fraction) {
			return false
		}
	}
	if rest == "" {
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	if rest = rest[1:]; rest != "" && (rest[0] == '+' || rest[0] == '-') {
		rest = rest[1:]
	}
	return rest != "" && withoutDigits(rest) == ""
}

func withoutDigits(s string) string {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return s[i:]
		}
	}
	return ""
}

// canonicalNumber converts Go's number types to the canonical one.
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
		n, err := canonicalFloat(v)
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
		return nil, fmt.Errorf("values of type %T are not supported", v)
	}
}

// asInt converts values of the Go types whose numbers all fit into an int.
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

// asFloat returns the nearest float. A number beyond the range of float64 is an error.
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

// NearestFloat returns the float nearest to a number. isNumber is false for other values, and for numbers beyond the range
// of float64.
func NearestFloat(v any) (f float64, isNumber bool) {
	f, err := asFloat(v)
	return f, err == nil
}

// IsRounded reports whether converting a number to float64 changes its value.
func IsRounded(v any) bool {
	f, isNumber := NearestFloat(v)
	if long, isLong := v.(json.Number); isLong && isNumber && isShortest(string(long), f) {
		return false
	}
	return !isNumber || CompareNumbers(v, f) != 0
}

// isShortest reports whether a text is the shortest decimal form of a number, without an exponent. For most numbers of a file it
// says that they are not rounded, with no memory of its own.
func isShortest(text string, f float64) bool {
	var digits [32]byte
	return string(strconv.AppendFloat(digits[:0], f, 'f', -1, 64)) == text
}

// CompareNumbers compares two numbers exactly. The value of a float64 is its shortest decimal form.
func CompareNumbers(x, y any) int {
	switch a := x.(type) {
	case int:
		switch b := y.(type) {
		case int:
			return cmp.Compare(a, b)
		case float64:
			const exact = 1 << 53 // up to which float64 has all whole numbers
			// Where b has a fraction, or a is not rounded, the conversion of a does not change the result.
			if b != math.Trunc(b) || -exact <= a && a <= exact {
				return cmp.Compare(float64(a), b)
			}
		}
	case float64:
		switch b := y.(type) {
		case int:
			return cmp.Compare(a, float64(b))
		case float64:
			return cmp.Compare(a, b)
		}
	case json.Number:
		if b, both := y.(json.Number); both && a == b {
			return 0
		}
	}
	return decimalOfNumber(x).compareTo(decimalOfNumber(y))
}

// negateLong flips the sign of a json.Number.
func negateLong(n json.Number) any {
	if s, ok := strings.CutPrefix(string(n), "-"); ok {
		return numberFromText(s)
	}
	return numberFromText("-" + string(n))
}

// shortestNumber returns a number without zeros at its end, so that equal numbers have the same text. Other values
// are returned unchanged.
func shortestNumber(v any) any {
	n, isLong := v.(json.Number)
	if !isLong || n[len(n)-1] != '0' || !strings.Contains(string(n), ".") || IsRounded(v) {
		return v
	}
	f, _ := NearestFloat(v)
	return f
}

// shortText shortens text for a message.
func shortText(s string) string {
	const shown = 40
	return source.CutText(s, shown)
}
