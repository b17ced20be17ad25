// Package jinja parses the Jinja templates of Airbyte's low-code manifests into trees. It evaluates nothing.
package jinja

import "fmt"

// Operand is part of an expression: one of the types below.
type Operand any

// Literal is a constant: string, int, float64, bool or nil.
type Literal struct{ Value any }

// Name is the name of a variable.
type Name struct{ ID string }

// Index is a member of a value, by a text key, or an element of a list. Dotted says that it was written after a dot.
type Index struct {
	Of, Key Operand
	Dotted  bool
}

// Portion is a slice of a list or text; From and To are nil if omitted.
type Portion struct{ Of, From, To Operand }

// Invocation is a function call. If Function is an Index, it is a method call.
type Invocation struct {
	Function Operand
	Args     []Operand
	Named    map[string]Operand
}

// Filter is a filter applied to a value.
type Filter struct {
	Name  string
	Of    Operand
	Args  []Operand
	Named map[string]Operand
}

// Unary is the operator `not`, `-` or `+` with its operand.
type Unary struct {
	Operator string
	Of       Operand
}

// Binary is an operator with two operands; `not in` is one operator.
type Binary struct {
	Operator    string
	Left, Right Operand
}

// Predicate is the test `x is name` with its argument, or nil.
type Predicate struct {
	Of   Operand
	Name string
	Not  bool
	Arg  Operand
}

// Ternary is `Then if If else Else`; Else is nil if omitted.
type Ternary struct{ If, Then, Else Operand }

// Tuple is a list or a tuple.
type Tuple struct{ Items []Operand }

// Dict is a map with its entries in order.
type Dict struct{ Keys, Values []Operand }

// Concat is a template: texts, as Literal, and expressions.
type Concat struct{ Parts []Operand }

// Let is `{% set Name = Value %}` with the template that follows it.
type Let struct {
	Name      string
	Value, In Operand
}

// Error says what cannot be parsed.
type Error struct{ Message string }

// Error returns the message.
func (e *Error) Error() string { return e.Message }

func errorf(format string, args ...any) error { return &Error{Message: fmt.Sprintf(format, args...)} }
