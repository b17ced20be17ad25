package expression

import (
	"errors"
	"fmt"
)

// nilOperand is the error of arithmetic with nil. The operators do not know
// how the author wrote the operand; whoever holds the tree names it.
type nilOperand struct {
	op   string // as written: + - * / % ** ..
	left bool   // which side is nil; the only side of a sign is the right one
}

func (e *nilOperand) Error() string {
	side := "right"
	if e.left {
		side = "left"
	}
	return fmt.Sprintf("the %s side of %s is missing (nil); give it a value with default(…)", side, e.op)
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

// argumentError says what a function can work with and what it got.
func argumentError(name, wants string, got any) error {
	return fmt.Errorf("%s needs %s, not %s", name, wants, describe(got))
}

// describe names a value in a message: its type, and a short text itself.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case string:
		return fmt.Sprintf("the string %q", shortText(v))
	default:
		return "a " + TypeName(v)
	}
}
