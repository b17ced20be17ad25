// Package jinja reads the templates of Jinja that low-code manifests of Airbyte have, as trees. It evaluates nothing.
package jinja

import "fmt"

// Operand is a part of an expression: one of the types below.
type Operand any

// Literal is a constant: string, int, float64, bool or nil.
type Literal struct{ Value any }

// Name is the name of a variable.
type Name struct{ ID string }

// Index is a member, by a key that is text, or an element. Dotted says that it was written behind a dot.
type Index struct {
	Of, Key Operand
	Dotted  bool
}

// Portion is a part of a list or text; From and To are nil where they were left out.
type Portion struct{ Of, From, To Operand }

// Invocation is a call of a function. If Function is an Index, it is a call of a method of that
// value.
type Invocation struct {
	Function Operand
	Args     []Operand
	Named    map[string]Operand
}

// Filter is a filter with what it is applied to.
type Filter struct {
	Name  string
	Of    Operand
	Args  []Operand
	Named map[string]Operand
}

// Unary is `not`, `-` or `+` with its operand.
type Unary struct {
	Operator string
	Of       Operand
}

// Binary is an operator with two operands; `not in` is one operator.
type Binary struct {
	Operator    string
	Left, Right Operand
}

// Predicate is `x is name`, with its argument or nil.
type Predicate struct {
	Of   Operand
	Name string
	Not  bool
	Arg  Operand
}

// Ternary is `Then if If else Else`; Else is nil where it was left out.
type Ternary struct{ If, Then, Else Operand }

// Tuple is a list or a tuple.
type Tuple struct{ Items []Operand }

// Dict is a map with its entries in their order.
type Dict struct{ Keys, Values []Operand }

// Concat is what a template is made of: texts, as Literal, and expressions.
type Concat struct{ Parts []Operand }

// Let is `{% set Name = Value %}` with what follows it.
type Let struct {
	Name      string
	Value, In Operand
}

// Error says what of a template cannot be read.
type Error struct{ Message string }

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func errorf(format string, args ...any) error { return &Error{Message: fmt.Sprintf(format, args...)} }
