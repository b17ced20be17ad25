package expression

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

var numberFunctions = []function{
	{
		name: "int", min: 1, max: 1, signature: "int(x)",
		doc:  "A number, text or boolean as a whole number, rounded towards zero; nil and text that is not a number are errors.",
		call: func(b *Budget, args []any) (any, error) { return toInt(b, args[0]) },
	},
	{
		name: "float", min: 1, max: 1, signature: "float(x)",
		doc:  "A number, text or boolean as a number; nil and text that is not a number are errors.",
		call: func(b *Budget, args []any) (any, error) { return toNumber(b, "float", args[0]) },
	},
	{
		name: "abs", min: 1, max: 1, signature: "abs(x)",
		doc: "The number without its sign.", call: callOnNumber("abs", callAbs),
	},
	{
		name: "ceil", min: 1, max: 1, signature: "ceil(x)",
		doc: "The number rounded up to a whole number.", call: callOnNumber("ceil", roundToWhole(math.Ceil, false)),
	},
	{
		name: "floor", min: 1, max: 1, signature: "floor(x)",
		doc: "The number rounded down to a whole number.", call: callOnNumber("floor", roundToWhole(math.Floor, true)),
	},
	{
		name: "round", min: 1, max: 2, signature: "round(x[, digits])",
		doc:  "The number rounded to this many decimal places, 0 by default; halves are rounded away from zero.",
		call: callOnNumber("round", callRound),
	},
	{
		name: "min", min: 1, max: -1, signature: "min(x, …)",
		doc: "The smallest of numbers or strings, given one by one or in lists; nil if there are none.", call: extremeOf("min", -1),
	},
	{
		name: "max", min: 1, max: -1, signature: "max(x, …)",
		doc: "The largest of numbers or strings, given one by one or in lists; nil if there are none.", call: extremeOf("max", 1),
	},
	{
		name: "mean", min: 1, max: -1, signature: "mean(x, …)",
		doc: "The average of numbers, given one by one or in lists; nil if there are none.", call: callMean,
	},
	{
		name: "median", min: 1, max: -1, signature: "median(x, …)",
		doc: "The median of numbers, given one by one or in lists; nil if there are none.", call: callMedian,
	},
	{
		name: "bitand", min: 2, max: 2, signature: "bitand(a, b)",
		doc: "The bits that are set in both numbers.", call: callOnBits("bitand", func(a, c int) int { return a & c }),
	},
	{
		name: "bitor", min: 2, max: 2, signature: "bitor(a, b)",
		doc: "The bits that are set in at least one of the numbers.", call: callOnBits("bitor", func(a, c int) int { return a | c }),
	},
	{
		name: "bitxor", min: 2, max: 2, signature: "bitxor(a, b)",
		doc: "The bits that are set in exactly one of the numbers.", call: callOnBits("bitxor", func(a, c int) int { return a ^ c }),
	},
}

// toNumber converts a value to a number: a text that is a decimal number, with white space around it ignored, or a
// boolean as 1 or 0.
func toNumber(b *Budget, name string, v any) (any, error) {
	switch v := v.(type) {
	case int, float64, json.Number:
		return v, nil
	case bool:
		return truthNumber(v), nil
	case string:
		if err := b.chargeRead(len(v)); err != nil {
			return nil, err
		}
		text := strings.TrimSpace(v)
		if strings.Trim(text, decimalCharacters) == "" {
			if err := CheckDigits(text); err != nil {
				return nil, err
			}
		}
		if n, ok := ParseNumber(text); ok {
			return shortestNumber(n), nil
		}
		return nil, fmt.Errorf("%s cannot make a number of %s; if it may be empty, write x | default(0, true) | %s",
			name, describeValue(v), name)
	case nil:
		return nil, fmt.Errorf("%s cannot make a number of nil; if it may be missing, x is defined ? %s(x) : nil keeps it missing, and x | default(0) | %s makes 0 of it", name, name, name)
	default:
		return nil, fmt.Errorf("%s cannot make a number of a %s; if that means no value, write x | default(0, true) | %s",
			name, TypeName(v), name)
	}
}

// decimalCharacters are all characters that a decimal number may have.
const decimalCharacters = "0123456789+-.eE"

// ParseNumber reads a decimal number more liberally than JSON: +1, 007, .5 and 5. are accepted. The number keeps
// its digits; the caller has checked their count with CheckDigits.
func ParseNumber(s string) (number any, ok bool) {
	if isNumber(s) {
		return numberFromText(s), true
	}
	digits, negative := strings.CutPrefix(s, "-")
	if !negative {
		digits = strings.TrimPrefix(s, "+")
	}
	whole, rest := digits, ""
	if at := strings.IndexAny(digits, ".eE"); at >= 0 {
		whole, rest = digits[:at], digits[at:]
	}
	if fraction, has := strings.CutPrefix(rest, "."); has && whole != "" && (fraction == "" || strings.ContainsAny(fraction[:1], "eE")) {
		rest = fraction // 5.
	}
	plain := cmp.Or(strings.TrimLeft(whole, "0"), "0") + rest
	if whole == "" && !strings.HasPrefix(rest, ".") || strings.HasPrefix(plain, "-") || !isNumber(plain) {
		return nil, false
	}
	return numberFromText(signText(negative) + plain), true
}

func toInt(b *Budget, v any) (any, error) {
	n, err := toNumber(b, "int", v)
	if err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case float64:
		if math.Abs(n) >= digitsEnd {
			return nil, fmt.Errorf("int cannot hold %s", Text(n))
		}
		return canonicalFloat(math.Trunc(n))
	case json.Number:
		if err := b.chargeRead(len(n)); err != nil {
			return nil, err
		}
		switch d := parseDecimal(string(n)); {
		case !d.isWhole():
			return d.wholeNumber(false), nil
		case strings.ContainsAny(string(n), "eE"):
			return nil, fmt.Errorf("int cannot hold %s", shortText(string(n)))
		}
	}
	return n, nil
}

// callOnNumber wraps a function so that its first argument must be a number.
func callOnNumber(name string, call func(args []any) (any, error)) func(*Budget, []any) (any, error) {
	return func(b *Budget, args []any) (any, error) {
		switch TypeName(args[0]) {
		case "number":
		case "nil":
			return nil, fmt.Errorf("%s needs a number, not nil; if it may be missing, x is defined ? %s(x) : nil keeps it missing, and x | default(0) | %s takes it for 0", name, name, name)
		default:
			return nil, fmt.Errorf("%s needs a number, not %s; int(x) or float(x) makes one", name, describeValue(args[0]))
		}
		if n, ok := args[0].(json.Number); ok {
			if err := b.chargeRead(len(n)); err != nil {
				return nil, err
			}
		}
		return call(args)
	}
}

func callAbs(args []any) (any, error) {
	if CompareNumbers(args[0], 0) < 0 {
		return negateNumber(args[0])
	}
	return args[0], nil
}

// roundToWhole returns a function that rounds numbers to whole ones, down or up.
func roundToWhole(round func(float64) float64, down bool) func([]any) (any, error) {
	return func(args []any) (any, error) {
		switch v := args[0].(type) {
		case float64:
			return canonicalFloat(round(v))
		case json.Number:
			if d := parseDecimal(string(v)); !d.isWhole() {
				return d.wholeNumber(d.negative == down), nil
			}
		}
		return args[0], nil
	}
}

// mostDigits is more digits than a float has before or after the decimal point. Without this bound, rounding to a
// billion digits would fill the memory with zeros.
const mostDigits = 400

func callRound(args []any) (any, error) {
	digits := 0
	if len(args) > 1 {
		var err error
		if digits, err = wholeArgument("round", "the number of digits", args, 1); err != nil {
			return nil, err
		}
	}
	digits = min(max(digits, -mostDigits), mostDigits)
	switch v := args[0].(type) {
	case float64:
		rounded, err := strconv.ParseFloat(roundDecimal(strconv.FormatFloat(v, 'f', -1, 64), digits), 64)
		if err != nil {
			return nil, errNotFinite
		}
		return canonicalFloat(rounded)
	case json.Number:
		return roundLong(v, digits)
	case int:
		if digits >= 0 {
			return v, nil
		}
	}
	return numberFromText(parseDecimal(roundDecimal(Text(args[0]), digits)).plainText()), nil
}

// roundLong rounds a json.Number digit by digit.
func roundLong(n json.Number, digits int) (any, error) {
	d := parseDecimal(string(n))
	switch {
	case d.isWhole() && (digits >= 0 || d.point > maxDigits): // the latter are beyond what 400 digits reach
		return n, nil
	case d.point < -mostDigits:
		return 0, nil
	}
	rounded := parseDecimal(roundDecimal(d.plainText(), digits)).plainText()
	return numberFromText(rounded), CheckDigits(rounded) // rounding 9…9 up adds a digit
}

func callOnBits(name string, combine func(a, c int) int) func(*Budget, []any) (any, error) {
	return func(_ *Budget, args []any) (any, error) {
		a, err := wholeArgument(name, "its first argument", args, 0)
		if err != nil {
			return nil, err
		}
		c, err := wholeArgument(name, "its second argument", args, 1)
		if err != nil {
			return nil, err
		}
		return combine(a, c), nil
	}
}
