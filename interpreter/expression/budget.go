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

// Limits bounds the work of one decision. Its numbers are part of the replay
// contract and must never change for a language version that has runs.
type Limits struct {
	Steps int // rounds of predicates, elements walked, and the like; about 0.2 µs each
	Bytes int // text made, and 16 bytes per element of lists made
}

// DecisionLimits bounds a decision inside a workflow. The worst expression
// ends far inside the second that Temporal gives a workflow task.
var DecisionLimits = Limits{Steps: 200_000, Bytes: 4 << 20}

// Charges. They are here together because they belong to the replay
// contract as much as the limits do.
const (
	textPerStep  = 64 // bytes of text that are read, compared or made for one step
	indexPerStep = 16 // bytes of text that are walked for one step to find a character
	numsPerStep  = 8  // numbers of a list that are added or compared for one step
	bytesPerItem = 16 // size of one element of a list
	bytesPerPair = 48 // size of one entry of a map
	regexPerStep = 16 // instructions times bytes of a pattern match for one step
	powerSteps   = 4  // one **
	sortPerStep  = 8  // comparisons of a sort for one step
)

// Budget counts the work of one decision. Make one where a workflow starts to
// render or decide and pass it to every evaluation of that decision; it is not
// safe for concurrent use.
type Budget struct {
	limits Limits
	steps  int
	bytes  int
	now    time.Time
	notes  []note
	// machine is the machine of all evaluations, nil for one of each.
	machine *machine
	// row is the element that a RowMap is at.
	row int
}

// NewBudget returns an unused budget. now is the recorded time that now()
// gives; with a zero time now() is an error.
func NewBudget(limits Limits, now time.Time) *Budget {
	return &Budget{limits: limits, now: now}
}

// DecisionBudget is the unused budget of one decision.
func DecisionBudget(now time.Time) *Budget { return NewBudget(DecisionLimits, now) }

// Renew makes the budget unused again, for the next piece of work that has all of it. What was noted stays.
func (b *Budget) Renew() { b.steps, b.bytes = 0, 0 }

// ShareMachine makes all evaluations with the budget share their memory, for work that is repeated often. They must
// have the same scope, in which a name has a value always or never.
func (b *Budget) ShareMachine() { b.machine = newMachine() }

// chargeWork takes steps and bytes before the work they stand for. Once it has
// failed it fails for every later charge too, so that an exhausted budget
// cannot be used up again by a smaller piece of work.
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

// chargeRead charges for text that is walked or compared.
func (b *Budget) chargeRead(n int) error {
	return b.chargeWork(n/textPerStep, 0)
}

// chargeNumbers charges for the digits of long numbers that are read; short ones cost
// what the operation costs.
func (b *Budget) chargeNumbers(x, y any) error {
	return b.chargeRead(longNumber(x) + longNumber(y))
}

// chargeKeys charges for the long keys of a map that are sorted; short ones cost what
// their entries cost.
func (b *Budget) chargeKeys(m map[string]any) error {
	text := 0
	for key := range m { // any order: only the sum is kept
		text += longLength(key)
	}
	return b.chargeWork(text/textPerStep*bits.Len(uint(len(m))), 0)
}

// longLength is the length of a text that is charged although most are not, because
// they are short.
func longLength[T ~string](s T) int {
	if len(s) < textPerStep {
		return 0
	}
	return len(s)
}

// longNumber is long for values that may be no long number.
func longNumber(v any) int {
	n, _ := v.(json.Number)
	return longLength(n)
}

// chargeText charges for text that is made: its bytes, and the walk over them.
func (b *Budget) chargeText(n int) error {
	return b.chargeWork(n/textPerStep+1, n)
}

// chargeList charges for a list of n elements that is made.
func (b *Budget) chargeList(n int) error {
	if n > b.limits.Bytes {
		return b.chargeWork(0, b.limits.Bytes+1) // n*16 could overflow
	}
	return b.chargeWork(n/numsPerStep+1, n*bytesPerItem)
}

// chargePairs charges for a map of n entries that is made.
func (b *Budget) chargePairs(n int) error {
	return b.chargeWork(2*n, n*bytesPerPair)
}

// weigher adds up what a value is as JSON without making it. It stops beyond
// its bounds, so that a value that holds itself many times over cannot keep it
// busy. The sums do not depend on the order of maps.
type weigher struct {
	steps, maxSteps int // 1 per element, 2 per entry of a map
	size, maxSize   int // bytes of JSON; an upper bound for floats
}

// walkValue reports whether the value is within the bounds.
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

// quotedSize is the length of a text in JSON with its quotes and escapes.
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

// sizeOf gives the length of a value as JSON. ok is false if it is more than
// limit or nested deeper than JSON may be read back.
func sizeOf(v any, limit int) (size int, ok bool) {
	w := weigher{maxSteps: limit, maxSize: limit}
	ok = w.walkValue(v, 0)
	return w.size, ok
}

// chargeWeight charges for writing a value as JSON before it is done.
func chargeWeight(b *Budget, v any) error {
	w := weigher{maxSteps: b.limits.Steps - b.steps, maxSize: b.limits.Bytes - b.bytes}
	if !w.walkValue(v, 0) {
		// Which of the bounds ends the walk depends on the order of maps;
		// the error and the budget do not.
		b.steps = b.limits.Steps + 1
		return errTooLarge
	}
	if err := b.chargeWork(w.steps, 0); err != nil {
		return err
	}
	return b.chargeText(w.size)
}

// budgetError says that an evaluation did more work than its budget allows.
type budgetError struct {
	steps bool // steps are used up; otherwise bytes
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

// errTooLarge is the error of a value that cannot be rendered as JSON with
// what is left of the budget.
var errTooLarge = errors.New("the value is too large or too deeply nested to be written as JSON here; " +
	"take the part that is needed, or do the work in a tool")
