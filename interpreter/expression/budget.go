package expression

import (
	"encoding/json"
	"math/bits"
	"time"
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

// Charges. They stand here together because they belong to the replay
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
}

// NewBudget returns an unused budget. now is the recorded time that now()
// gives; with a zero time now() is an error.
func NewBudget(limits Limits, now time.Time) *Budget {
	return &Budget{limits: limits, now: now}
}

// DecisionBudget is the unused budget of one decision.
func DecisionBudget(now time.Time) *Budget { return NewBudget(DecisionLimits, now) }

// charge takes steps and bytes before the work they stand for. Once it has
// failed it fails for every later charge too, so that an exhausted budget
// cannot be used up again by a smaller piece of work.
func (b *Budget) charge(steps, bytes int) error {
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

// read charges for text that is walked or compared.
func (b *Budget) read(n int) error {
	return b.charge(n/textPerStep, 0)
}

// numbers charges for the digits of long numbers that are read; short ones cost
// what the operation costs.
func (b *Budget) numbers(x, y any) error {
	return b.read(longNumber(x) + longNumber(y))
}

// keys charges for the long keys of a map that are sorted; short ones cost what
// their entries cost.
func (b *Budget) keys(m map[string]any) error {
	text := 0
	for key := range m { // any order: only the sum is kept
		text += long(key)
	}
	return b.charge(text/textPerStep*bits.Len(uint(len(m))), 0)
}

// long is the length of a text that is charged although most are not, because
// they are short.
func long[T ~string](s T) int {
	if len(s) < textPerStep {
		return 0
	}
	return len(s)
}

// longNumber is long for values that may be no long number.
func longNumber(v any) int {
	n, _ := v.(json.Number)
	return long(n)
}

// text charges for text that is made: its bytes, and the walk over them.
func (b *Budget) text(n int) error {
	return b.charge(n/textPerStep+1, n)
}

// list charges for a list of n elements that is made.
func (b *Budget) list(n int) error {
	if n > b.limits.Bytes {
		return b.charge(0, b.limits.Bytes+1) // n*16 could overflow
	}
	return b.charge(n/numsPerStep+1, n*bytesPerItem)
}

// pairs charges for a map of n entries that is made.
func (b *Budget) pairs(n int) error {
	return b.charge(2*n, n*bytesPerPair)
}
