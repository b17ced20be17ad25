package expression

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// decimal is a number in decimal digits: 0.digits times ten to the power of point. Comparing digits is exact, and
// takes linear time at any size.
type decimal struct {
	negative bool
	digits   string // without zeros at either end; empty for 0
	point    int
}

// decimalOf converts a float64 through its shortest decimal form.
func decimalOf(f float64) decimal { return parseDecimal(strconv.FormatFloat(f, 'e', -1, 64)) }

func decimalOfNumber(v any) decimal {
	if f, ok := v.(float64); ok {
		return decimalOf(f)
	}
	return parseDecimal(Text(v))
}

// mostExponent bounds an exponent so that adding the number of digits to it cannot overflow. For exponents that
// large only the sign matters.
const mostExponent = math.MaxInt / 2

func parseDecimal(s string) decimal {
	d := writtenDecimal(s)
	trimmed := strings.TrimLeft(d.digits, "0")
	d.point -= len(d.digits) - len(trimmed)
	if d.digits = strings.TrimRight(trimmed, "0"); d.digits == "" {
		return decimal{}
	}
	return d
}

// writtenDecimal returns the number with the zeros that are written after the decimal point.
func writtenDecimal(s string) decimal {
	var d decimal
	s, d.negative = strings.CutPrefix(s, "-")
	exponent := 0
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		exponent, _ = strconv.Atoi(s[at+1:]) // beyond 64 bits Atoi returns the nearest int
		exponent = min(max(exponent, -mostExponent), mostExponent)
		s = s[:at]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	d.digits, d.point = whole+fraction, len(whole)+exponent
	for d.point > 0 && strings.HasPrefix(d.digits, "0") {
		d.digits, d.point = d.digits[1:], d.point-1
	}
	if d.digits == "" {
		return decimal{}
	}
	return d
}

func (d decimal) isWhole() bool { return d.point >= len(d.digits) }

// plainText returns the number in digits without an exponent.
func (d decimal) plainText() string {
	switch {
	case d.digits == "":
		return "0"
	case d.point <= 0:
		return signText(d.negative) + "0." + strings.Repeat("0", -d.point) + d.digits
	case d.isWhole():
		return signText(d.negative) + d.digits + strings.Repeat("0", d.point-len(d.digits))
	}
	return signText(d.negative) + d.digits[:d.point] + "." + d.digits[d.point:]
}

// PlainText returns Text, but writes numbers without an exponent, as columns of numbers require. A number that
// would then have more than 1000 digits keeps its exponent.
func PlainText(v any) string {
	text := Text(v)
	switch v.(type) {
	case float64, json.Number:
	default:
		return text
	}
	if !strings.ContainsAny(text, "eE") {
		return text
	}
	d := writtenDecimal(text)
	if max(d.point, len(d.digits))-min(d.point, 0) > maxDigits {
		return text
	}
	return d.plainText()
}

// wholeNumber returns a number that has a fraction as a whole number: without the fraction, or, if away is true,
// the next whole number farther from zero.
func (d decimal) wholeNumber(away bool) any {
	digits := []byte("0" + d.digits[:max(d.point, 0)]) // the zero takes a carry
	if away {
		incrementDigits(digits)
	}
	return numberFromText(parseDecimal(signText(d.negative) + string(digits)).plainText())
}

func (d decimal) compareTo(e decimal) int {
	if s := cmp.Compare(d.signOf(), e.signOf()); s != 0 || d.signOf() == 0 {
		return s
	}
	order := cmp.Compare(d.point, e.point)
	if order == 0 {
		order = strings.Compare(d.digits, e.digits)
	}
	return order * d.signOf()
}

func (d decimal) signOf() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	default:
		return 1
	}
}

// roundDecimal rounds a number in plain digits to the given number of digits after the decimal point. Halves are
// rounded away from zero, as in SQL: 2.345 to two digits is 2.35, although the nearest float is slightly smaller. A
// negative number of digits rounds before the decimal point.
func roundDecimal(s string, digits int) string {
	s, negative := strings.CutPrefix(s, "-")
	whole, fraction, _ := strings.Cut(s, ".")
	if digits >= len(fraction) {
		return signText(negative) + s
	}
	all := whole + fraction
	length := len(whole) + digits
	if length < 0 {
		return "0"
	}
	rounded := []byte("0" + all[:length]) // the leading zero takes a carry
	if all[length] >= '5' {
		incrementDigits(rounded)
	}
	if digits < 0 {
		return signText(negative) + strings.TrimLeft(string(rounded), "0") + strings.Repeat("0", -digits)
	}
	point := len(rounded) - digits
	if digits == 0 {
		return signText(negative) + string(rounded)
	}
	return signText(negative) + string(rounded[:point]) + "." + string(rounded[point:])
}

func incrementDigits(digits []byte) {
	for i := len(digits) - 1; ; i-- {
		if digits[i] != '9' {
			digits[i]++
			return
		}
		digits[i] = '0'
	}
}

func signText(negative bool) string {
	if negative {
		return "-"
	}
	return ""
}
