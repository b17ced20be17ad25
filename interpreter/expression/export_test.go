package expression

import (
	"math"
	"time"
)

// MaxDigits is what numbers may have.
const MaxDigits = maxDigits

// Equal is == of the language without a budget: numbers by value, lists and
// maps by their elements, different types unequal.
func Equal(a, b any) bool {
	equal, err := equalValues(NewBudget(Limits{Steps: math.MaxInt / 2, Bytes: math.MaxInt / 2}, time.Time{}), a, b)
	return equal && err == nil
}

// Source returns the template as written.
func (t *Template) Source() string { return t.source }

// Used returns the steps and bytes charged so far. After an exhausted budget
// the exhausted one is the limit plus one.
func (b *Budget) Used() (steps, bytes int) { return b.steps, b.bytes }

// FindSpans returns the {{ }} of a text.
func FindSpans(source string) []Placeholder {
	found := findSpans([]rune(source))
	spans := make([]Placeholder, len(found))

	for i, s := range found {
		spans[i] = s.Placeholder
	}
	return spans
}

// SizeOf is what the budget is charged for writing a value as JSON.
func SizeOf(v any, limit int) (size int, ok bool) { return sizeOf(v, limit) }
