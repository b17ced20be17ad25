package expression

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// Operators take and return canonical values. Their errors say what is wrong but not where. The evaluation adds the
// position and, for nilOperand, the operand as it was written.

// opPath follows a chain of members. It returns nil if any of them is missing.
func opPath(b *Budget, base any, keys []any) (any, error) {
	v := base
	for _, key := range keys {
		if v == nil {
			return nil, nil
		}
		var err error
		if v, err = opIndex(b, v, key); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// opIndex returns base[key]: an entry of a map, an element of a list, or a character of a text. Negative indexes
// count from the end. In all other cases the result is nil.
func opIndex(b *Budget, base, key any) (any, error) {
	switch v := base.(type) {
	case map[string]any:
		if name, ok := key.(string); ok {
			return v[name], b.chargeRead(len(name))
		}
	case []any:
		i, ok := key.(int)
		if i < 0 {
			i += len(v)
		}
		if ok && i >= 0 && i < len(v) {
			return v[i], nil
		}
	case string:
		if i, ok := key.(int); ok {
			return characterAt(b, v, i)
		}
	}
	return nil, nil
}

func characterAt(b *Budget, s string, i int) (any, error) {
	if err := b.chargeWork(len(s)/indexPerStep, 0); err != nil {
		return nil, err
	}
	if i < 0 {
		i += utf8.RuneCountInString(s)
	}
	from, to := runeOffset(s, i), runeOffset(s, i+1)
	if i < 0 || from == to {
		return nil, nil
	}
	return s[from:to], nil
}

// runeOffset returns the byte offset of the n-th character of s, or the length of s if it has fewer.
func runeOffset(s string, n int) int {
	for i := range s {
		if n <= 0 {
			return i
		}
		n--
	}
	return len(s)
}

// opSlice returns base[from:to] of a list or, in characters, of a text. A nil bound is open, and a bound beyond an
// end is that end.
func opSlice(b *Budget, base, from, to any) (any, error) {
	for _, bound := range []any{from, to} {
		if _, ok := bound.(int); !ok && bound != nil {
			return nil, fmt.Errorf("the bounds of a slice must be whole numbers, not %s", describeValue(bound))
		}
	}
	switch v := base.(type) {
	case nil:
		return nil, nil
	case []any:
		low, high := sliceBounds(from, to, len(v))
		return v[low:high:high], nil
	case string:
		if err := b.chargeWork(len(v)/indexPerStep, 0); err != nil {
			return nil, err
		}
		low, high := sliceBounds(from, to, utf8.RuneCountInString(v))
		start := runeOffset(v, low)
		return v[start : start+runeOffset(v[start:], high-low)], nil
	default:
		return nil, fmt.Errorf("only a list or a string has slices, not %s", describeValue(base))
	}
}

func sliceBounds(from, to any, n int) (low, high int) {
	clamp := func(bound any, open int) int {
		i, ok := bound.(int)
		if !ok {
			return open
		}
		if i < 0 {
			i += n
		}
		return min(max(i, 0), n)
	}
	low, high = clamp(from, 0), clamp(to, n)
	return low, max(low, high)
}

// opGet returns get(base, key, fallback): the member, or fallback if the member is nil.
func opGet(b *Budget, base, key, fallback any) (any, error) {
	v, err := opIndex(b, base, key)
	if err != nil || v != nil {
		return v, err
	}
	return fallback, nil
}

// opText joins the rendered values, for the operator ~ and for mixed templates.
func opText(b *Budget, args []any) (any, error) {
	return joinValues(b, args, "")
}

// textOf renders a value as text and charges for text that has to be created.
func textOf(b *Budget, v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case []any, map[string]any:
		if err := chargeWeight(b, v); err != nil {
			return "", err
		}
	}
	return Text(v), nil
}

// ChargedText renders a value as Text does, and charges the budget for it.
func ChargedText(b *Budget, v any) (string, error) { return joinValues(b, []any{v}, "") }

func joinValues(b *Budget, values []any, separator string) (string, error) {
	parts := make([]string, len(values))
	size := len(separator) * max(0, len(values)-1)
	if err := b.chargeWork(len(values)/numsPerStep, 0); err != nil {
		return "", err
	}
	for i, v := range values {
		part, err := textOf(b, v)
		if err != nil {
			return "", err
		}
		parts[i] = part
		size += len(part)
	}
	if err := b.chargeText(size); err != nil {
		return "", err
	}
	return strings.Join(parts, separator), nil
}

// pattern is the compiled right operand of matches.
type pattern struct {
	re     *regexp.Regexp
	weight int // instructions; a match takes at most this many steps per byte
}

// maxPattern is the most instructions of a compiled pattern. (a{1000}){1000} is short but compiles to a million
// instructions, and the time of a match is proportional to their number.
const maxPattern = 500

func compilePattern(text string) (*pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not a valid RE2 pattern: %w", shortText(text), err)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%q is not a valid RE2 pattern: %w", shortText(text), err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, fmt.Errorf("%q is not a valid RE2 pattern: %w", shortText(text), err)
	}
	if n := len(program.Inst); n > maxPattern {
		return nil, fmt.Errorf("the pattern %q is too large: it has %d instructions, %d are allowed", shortText(text), n, maxPattern)
	}
	return &pattern{re: re, weight: len(program.Inst)}, nil
}

// opMatches reports whether the text contains a match of the pattern. It is false for nil.
func opMatches(b *Budget, text any, p *pattern) (any, error) {
	switch s := text.(type) {
	case nil:
		return false, nil
	case string:
		if err := b.chargeWork(len(s)*p.weight/regexPerStep+1, 0); err != nil {
			return nil, err
		}
		return p.re.MatchString(s), nil
	default:
		return nil, fmt.Errorf("matches needs a string on its left, not %s; string(x) makes one", describeValue(text))
	}
}
