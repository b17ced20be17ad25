package expression

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"time"
	"unicode/utf8"
)

// Limits bounds the work of one decision. The numbers are part of the replay contract: they must never change for a
// language version that has runs.
type Limits struct {
	Steps int // rounds of predicates, visited elements and similar work; about 0.2 µs each
	Bytes int // bytes of created text, plus 16 bytes per element of created lists
}

// DecisionLimits bounds a decision inside a workflow. Even the most expensive expression ends well within the
// second that Temporal allows for a workflow task.
var DecisionLimits = Limits{Steps: 200_000, Bytes: 4 << 20}

// What each kind of work costs. The charges are part of the replay contract, as the limits are.
const (
	textPerStep  = 64 // bytes of text that are read, compared or created per step
	indexPerStep = 16 // bytes of text that are scanned per step to find a character
	numsPerStep  = 8  // numbers of a list that are added or compared per step
	bytesPerItem = 16 // size of one element of a list
	bytesPerPair = 48 // size of one entry of a map
	regexPerStep = 16 // instructions times bytes of a pattern match per step
	powerSteps   = 4  // steps of one **
	sortPerStep  = 8  // comparisons of a sort per step
)

// Budget counts the work of one decision. Create one where a workflow starts to render or decide, and pass it to
// every evaluation of that decision. It is not safe for concurrent use.
type Budget struct {
	limits Limits
	steps  int
	bytes  int
	now    time.Time
	notes  []note
	// machine is shared by all evaluations with this budget. It is nil if each evaluation takes its own.
	machine *machine
	// row is the index of the element that a RowMap is evaluating.
	row int
}

// NewBudget returns an unused budget. now is the recorded time that now() returns; if it is zero, now() is an
// error.
func NewBudget(limits Limits, now time.Time) *Budget {
	return &Budget{limits: limits, now: now}
}

// DecisionBudget returns an unused budget with DecisionLimits.
func DecisionBudget(now time.Time) *Budget { return NewBudget(DecisionLimits, now) }

// Unused returns an unused budget with the same limits and time.
func (b *Budget) Unused() *Budget { return NewBudget(b.limits, b.now) }

// Renew resets the used steps and bytes, so that the next piece of work has the whole budget. The notes stay.
func (b *Budget) Renew() { b.steps, b.bytes = 0, 0 }

// ShareMachine makes all evaluations with the budget reuse the same memory, for expressions that are evaluated
// often. The evaluations must have the same scope, and a name that has a value in one evaluation must have one in
// all of them.
func (b *Budget) ShareMachine() { b.machine = newMachine() }

// chargeWork deducts steps and bytes, and is called before the work is done. After it has failed once it fails for
// every later charge, so that a smaller piece of work cannot succeed with an exhausted budget.
func (b *Budget) chargeWork(steps, bytes int) error {
	if steps < 0 || steps > b.limits.Steps-b.steps {
		b.steps = b.limits.Steps + 1
		return &budgetError{steps: true, limit: b.limits.Steps}
	}
	b.steps += steps
	if bytes < 0 || bytes > b.limits.Bytes-b.bytes {
		b.bytes = b.limits.Bytes + 1
		return &budgetError{limit: b.limits.Bytes}
	}
	b.bytes += bytes
	return nil
}

// chargeRead charges for text that is scanned or compared.
func (b *Budget) chargeRead(n int) error {
	return b.chargeWork(n/textPerStep, 0)
}

// chargeNumbers charges for reading the digits of long numbers. Short numbers are covered by the charge for the
// operation.
func (b *Budget) chargeNumbers(x, y any) error {
	return b.chargeRead(longNumberLength(x) + longNumberLength(y))
}

// chargeKeys charges for sorting the long keys of a map. Short keys are covered by the charge for their entries.
func (b *Budget) chargeKeys(m map[string]any) error {
	text := 0
	for key := range m { // any order: only the sum is kept
		text += longLength(key)
	}
	return b.chargeWork(text/textPerStep*bits.Len(uint(len(m))), 0)
}

// longLength returns the length of a text that is long enough to be charged, and 0 for a short one.
func longLength[T ~string](s T) int {
	if len(s) < textPerStep {
		return 0
	}
	return len(s)
}

// longNumberLength returns longLength of a number with many digits, and 0 for any other value.
func longNumberLength(v any) int {
	n, _ := v.(json.Number)
	return longLength(n)
}

// chargeText charges for creating n bytes of text and for scanning them.
func (b *Budget) chargeText(n int) error {
	return b.chargeWork(n/textPerStep+1, n)
}

// chargeList charges for creating a list of n elements.
func (b *Budget) chargeList(n int) error {
	if n > b.limits.Bytes {
		return b.chargeWork(0, b.limits.Bytes+1) // n*16 could overflow
	}
	return b.chargeWork(n/numsPerStep+1, n*bytesPerItem)
}

// chargePairs charges for creating a map of n entries.
func (b *Budget) chargePairs(n int) error {
	return b.chargeWork(2*n, n*bytesPerPair)
}

// weigher adds up the size that a value has as JSON, without creating the JSON. It stops at its bounds, so that a
// value that contains itself many times cannot keep it busy. The sums do not depend on the order of maps.
type weigher struct {
	steps, maxSteps int // 1 per element, 2 per entry of a map
	size, maxSize   int // bytes of JSON; an upper bound for floats
}

// walkValue adds up a value and reports whether the sums are still within the bounds.
func (w *weigher) walkValue(v any, depth int) bool {
	switch v := v.(type) {
	case []any:
		w.steps += len(v)
		w.size += max(2, len(v)+1) // brackets and commas
		if depth >= maxDepth || !w.isWithin() {
			return false
		}
		for _, element := range v {
			if !w.walkValue(element, depth+1) {
				return false
			}
		}
	case map[string]any:
		w.steps += 2 * len(v)
		w.size += max(2, 2*len(v)+1)
		if depth >= maxDepth || !w.isWithin() {
			return false
		}
		for key, element := range v { // any order: only sums are kept
			w.size += quotedSize(key)
			if !w.walkValue(element, depth+1) {
				return false
			}
		}
	default:
		w.size += scalarSize(v)
	}
	return w.isWithin()
}

func (w *weigher) isWithin() bool { return w.steps <= w.maxSteps && w.size <= w.maxSize }

func scalarSize(v any) int {
	switch v := v.(type) {
	case string:
		return quotedSize(v)
	case json.Number:
		return len(v)
	case int:
		return len(strconv.AppendInt(make([]byte, 0, 20), int64(v), 10))
	case float64:
		return 24
	default:
		return 5 // null, true, false
	}
}

// quotedSize returns the length of a text in JSON with its quotes and escapes.
func quotedSize(s string) int {
	size := len(s) + 2
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\f':
			size++
		case c < ' ':
			size += 5
		case c == 0xE2 && i+2 < len(s) && s[i+1] == 0x80 && s[i+2]&^1 == 0xA8:
			size += 3 // U+2028 and U+2029 are escaped
		}
	}
	if !utf8.ValidString(s) {
		size *= 3
	}
	return size
}

// sizeOf returns the length of a value as JSON. ok is false if the value is longer than limit or nested more deeply
// than Decode accepts.
func sizeOf(v any, limit int) (size int, ok bool) {
	w := weigher{maxSteps: limit, maxSize: limit}
	ok = w.walkValue(v, 0)
	return w.size, ok
}

// chargeWeight charges for writing a value as JSON, before it is written.
func chargeWeight(b *Budget, v any) error {
	w := weigher{maxSteps: b.limits.Steps - b.steps, maxSize: b.limits.Bytes - b.bytes}
	if !w.walkValue(v, 0) {
		// Which bound is reached first depends on the order of maps, so both are marked as used up: the error and
		// the budget are then always the same.
		b.steps = b.limits.Steps + 1
		return errTooLarge
	}
	if err := b.chargeWork(w.steps, 0); err != nil {
		return err
	}
	return b.chargeText(w.size)
}

// budgetError is the error of an evaluation that needs more work than its budget allows.
type budgetError struct {
	steps bool // the steps are used up; otherwise the bytes
	limit int
}

func (e *budgetError) Error() string {
	if e.steps {
		return fmt.Sprintf("the expressions of one decision may take %d steps, and this takes more; "+
			"narrow the list first, or do the work in a tool", e.limit)
	}
	return fmt.Sprintf("the expressions of one decision may make %d bytes of text and lists, and this makes more; "+
		"take the part that is needed, or do the work in a tool", e.limit)
}

// errTooLarge is the error of a value that cannot be rendered as JSON with the rest of the budget.
var errTooLarge = errors.New("the value is too large or too deeply nested to be written as JSON here; " +
	"take the part that is needed, or do the work in a tool")
