package expression

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
)

// opAdd adds two numbers, and joins two texts or two lists.
func opAdd(b *Budget, x, y any) (any, error) {
	switch v := x.(type) {
	case string:
		if w, ok := y.(string); ok {
			if err := b.chargeText(len(v) + len(w)); err != nil {
				return nil, err
			}
			return v + w, nil
		}
	case []any:
		if w, ok := y.([]any); ok {
			return concatLists(b, v, w)
		}
	}
	return applyArithmetic(b, "+", "add", x, y, addInts, func(f, g float64) (float64, error) { return f + g, nil })
}

func concatLists(b *Budget, lists ...[]any) (any, error) {
	n := 0
	for _, list := range lists {
		n += len(list)
	}
	if err := b.chargeList(n); err != nil {
		return nil, err
	}
	out := make([]any, 0, n)
	for _, list := range lists {
		out = append(out, list...)
	}
	return out, nil
}

func opSub(b *Budget, x, y any) (any, error) {
	return applyArithmetic(b, "-", "subtract", x, y, subInts, func(f, g float64) (float64, error) { return f - g, nil })
}

func opMul(b *Budget, x, y any) (any, error) {
	return applyArithmetic(b, "*", "multiply", x, y, mulInts, func(f, g float64) (float64, error) { return f * g, nil })
}

// opDiv divides two numbers. A whole result is an exact whole number of any size.
func opDiv(b *Budget, x, y any) (any, error) {
	return applyArithmetic(b, "/", "divide", x, y, divInts, func(f, g float64) (float64, error) {
		if g == 0 {
			return 0, errZero
		}
		return f / g, nil
	})
}

// opMod returns the remainder of two whole numbers, with the sign of x.
func opMod(b *Budget, x, y any) (any, error) {
	return applyArithmetic(b, "%", "divide", x, y, modInts, func(float64, float64) (float64, error) {
		return 0, errors.New("% needs whole numbers")
	})
}

// applyArithmetic applies an operator to two numbers. Two whole numbers are calculated with exactly, in 64 bits, and
// are an error beyond. With a fraction on either side, floats calculates.
func applyArithmetic(b *Budget, op, verb string, x, y any, ints func(a, c int) (any, error),
	floats func(f, g float64) (float64, error),
) (any, error) {
	if err := operandError(op, verb, x, y); err != nil {
		return nil, err
	}
	a, isInt := x.(int)
	c, bothInts := y.(int)
	if isInt && bothInts {
		return ints(a, c)
	}
	if err := b.chargeNumbers(x, y); err != nil {
		return nil, err
	}
	if isWhole(x) && isWhole(y) {
		return nil, beyondBits(x, y)
	}
	f, err := asFloat(x)
	if err != nil {
		return nil, err
	}
	g, err := asFloat(y)
	if err != nil {
		return nil, err
	}
	result, err := floats(f, g)
	if err != nil {
		return nil, err
	}
	return canonicalFloat(result)
}

// isWhole reports whether a canonical number is written without a fraction: an int, or one with more digits.
func isWhole(v any) bool {
	if n, ok := v.(json.Number); ok {
		return !strings.ContainsAny(string(n), ".eE")
	}
	_, ok := v.(int)
	return ok
}

// beyondBits is the error of whole numbers of which at least one has more than 64 bits. As a float it would lose its
// last digits in silence.
func beyondBits(numbers ...any) error {
	for _, v := range numbers {
		if n, ok := v.(json.Number); ok {
			return fmt.Errorf("%s does not fit in 64 bits, so arithmetic would change its digits; compare it or pass it on as it is, "+
				"or calculate with it in SQL or Python", shortText(string(n)))
		}
	}
	return errOverflow
}

func operandError(op, verb string, x, y any) error {
	switch {
	case x == nil:
		return &nilOperand{op: op, left: true}
	case y == nil:
		return &nilOperand{op: op}
	}
	left, right := TypeName(x), TypeName(y)
	if left == "number" && right == "number" {
		return nil
	}
	hint := "both sides must be numbers"
	if left == "string" || right == "string" {
		hint = "int(x) or float(x) makes a number of a string"
		if op == "+" {
			hint = "~ joins text, as in a ~ b; " + hint
		}
	}
	return fmt.Errorf("cannot %s %s and %s (%s): %s", verb, left, right, op, hint)
}

func addInts(a, c int) (any, error) {
	sum := a + c
	if (sum > a) != (c > 0) {
		return nil, errOverflow
	}
	return sum, nil
}

func subInts(a, c int) (any, error) {
	difference := a - c
	if (difference < a) != (c > 0) {
		return nil, errOverflow
	}
	return difference, nil
}

func mulInts(a, c int) (any, error) {
	product, ok := mulExact(a, c)
	if !ok {
		return nil, errOverflow
	}
	return product, nil
}

func mulExact(a, c int) (int, bool) {
	if a == 0 || c == 0 {
		return 0, true
	}
	product := a * c
	if product/c != a || a == -1 && c == math.MinInt || c == -1 && a == math.MinInt {
		return 0, false
	}
	return product, true
}

func divInts(a, c int) (any, error) {
	switch {
	case c == 0:
		return nil, errZero
	case a == math.MinInt && c == -1:
		return nil, errOverflow
	case a%c == 0:
		return a / c, nil
	}
	quotient, _ := new(big.Rat).SetFrac64(int64(a), int64(c)).Float64() // a and c may be beyond 2^53
	return canonicalFloat(quotient)
}

func modInts(a, c int) (any, error) {
	if c == 0 {
		return nil, errZero
	}
	if c == -1 {
		return 0, nil
	}
	return a % c, nil
}

func opNeg(b *Budget, x any) (any, error) {
	if err := b.chargeNumbers(x, nil); err != nil {
		return nil, err
	}
	return negateNumber(x)
}

func negateNumber(x any) (any, error) {
	switch v := x.(type) {
	case nil:
		return nil, &nilOperand{op: "-"}
	case int:
		if v == math.MinInt {
			return numberFromText("9223372036854775808"), nil
		}
		return -v, nil
	case float64:
		return -v, nil
	case json.Number:
		return negateLong(v), nil
	default:
		return nil, fmt.Errorf("- needs a number, not %s", describeValue(x))
	}
}

func opPos(_ *Budget, x any) (any, error) {
	switch {
	case x == nil:
		return nil, &nilOperand{op: "+"}
	case TypeName(x) != "number":
		return nil, fmt.Errorf("+ needs a number, not %s; int(x) or float(x) makes one", describeValue(x))
	default:
		return x, nil
	}
}

// opRange returns the list from..to, including both ends. It is empty if to is less than from.
func opRange(b *Budget, from, to any) (any, error) {
	if err := operandError("..", "count between", from, to); err != nil {
		return nil, err
	}
	low, ok := from.(int)
	high, both := to.(int)
	if !ok || !both {
		return nil, errors.New("the ends of .. must be whole numbers of 64 bits")
	}
	if high < low {
		return []any{}, nil
	}
	n := high - low + 1
	if n <= 0 { // overflowed
		n = math.MaxInt
	}
	if err := b.chargeList(n); err != nil {
		return nil, err
	}
	out := make([]any, n)
	for i := range out {
		out[i] = low + i
	}
	return out, nil
}

// opPow raises a number to a whole power. Powers of whole numbers are exact in 64 bits, and an error beyond. Other exponents are refused, because the last digits of the result would depend on the processor.
func opPow(b *Budget, x, y any) (any, error) {
	if err := b.chargeWork(powerSteps, 0); err != nil {
		return nil, err
	}
	if err := operandError("**", "raise", x, y); err != nil {
		return nil, err
	}
	n, ok := y.(int)
	if !ok {
		return nil, errors.New("the exponent of ** must be a whole number of 64 bits")
	}
	if base, ok := x.(int); ok && n >= 0 {
		power, ok := powInts(base, n)
		if !ok {
			return nil, errOverflow
		}
		return power, nil
	}
	if err := b.chargeNumbers(x, nil); err != nil {
		return nil, err
	}
	if isWhole(x) && n >= 0 {
		return nil, beyondBits(x)
	}
	base, err := asFloat(x)
	if err != nil {
		return nil, err
	}
	if base == 0 && n < 0 {
		return nil, errZero
	}
	return canonicalFloat(powFloat(base, n))
}

func powInts(base, n int) (int, bool) {
	result := 1
	for n > 0 {
		var ok bool
		if n&1 == 1 {
			if result, ok = mulExact(result, base); !ok {
				return 0, false
			}
		}
		if n >>= 1; n == 0 {
			break
		}
		if base, ok = mulExact(base, base); !ok {
			return 0, false
		}
	}
	return result, true
}

func powFloat(base float64, n int) float64 {
	result := 1.0
	for m := uint64(max(n, -n)); m > 0; m >>= 1 { // -MinInt is itself, and right as uint64
		if m&1 == 1 {
			result *= base
		}
		base *= base
	}
	if n < 0 {
		return 1 / result
	}
	return result
}

// nilOperand is the error of arithmetic with nil. Operators do not know how the author wrote the operand;
// nameOperand finds that in the tree.
type nilOperand struct {
	op   string // as written: + - * / % ** ..
	left bool   // which side is nil; a sign has only a right side
}

func (e *nilOperand) Error() string {
	side := "right"
	if e.left {
		side = "left"
	}
	return fmt.Sprintf("the %s side of %s is missing (nil); give it a value with default(…)", side, e.op)
}
