package expression

import "errors"

// opPow raises to a whole power. Powers of whole numbers are exact while they
// fit in 64 bits and floats beyond. Other exponents are refused, because their
// last digits depend on the processor.
func opPow(b *Budget, x, y any) (any, error) {
	if err := b.charge(powerSteps, 0); err != nil {
		return nil, err
	}
	if err := operands("**", "raise", x, y); err != nil {
		return nil, err
	}
	n, ok := y.(int)
	if !ok {
		return nil, errors.New("the exponent of ** must be a whole number of 64 bits")
	}
	if base, ok := x.(int); ok && n >= 0 {
		if power, ok := powInts(base, n); ok {
			return power, nil
		}
	}
	if err := b.numbers(x, nil); err != nil {
		return nil, err
	}
	base, err := asFloat(x)
	if err != nil {
		return nil, err
	}
	if base == 0 && n < 0 {
		return nil, errZero
	}
	return fromFloat(powFloat(base, n))
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
