package playbook

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
)

// EvalError is the error of a failed expression: a text for the author and the position in the playbook. The call
// that needed the value ends with an error of kind expression.
type EvalError struct {
	Pos     source.Position
	Message string
	// TooMuch says that the data exceeds the budget of the expression, or the size of its result.
	TooMuch bool
}

func (e *EvalError) Error() string { return e.Message }

// Render evaluates every template in the node and returns its value. The error is always an *EvalError. A nil node
// renders to nil. The value may share structure with the playbook and with the scope, so it must not be changed in
// place.
func (n *Node) Render(scope expression.Scope, b *expression.Budget) (any, error) {
	switch {
	case n == nil:
		return nil, nil
	case n.constant:
		return n.Value, nil
	case n.Template != nil:
		noted := b.NoteCount()
		v, err := n.Template.Render(scope, b)
		if b.NoteCount() > noted {
			b.PlaceNotes(noted, n.placeText)
		}
		if err != nil {
			return nil, n.evalError(err)
		}
		return v, nil
	case n.Items != nil:
		return n.renderList(scope, b)
	case n.Entries != nil:
		return n.renderMap(scope, b)
	}
	return n.Value, nil
}

// RenderPlaced is Render for a node that is shown as text, and also returns the ranges of the text that come from
// data. The error is always an *EvalError.
func (n *Node) RenderPlaced(scope expression.Scope, b *expression.Budget) (value any, data []expression.Range, err error) {
	switch {
	case n == nil || n.constant:
		value, err = n.Render(scope, b)
		return value, nil, err
	case n.Template == nil:
		value, err = n.Render(scope, b)
		return value, []expression.Range{{To: len(expression.Text(value))}}, err
	}
	value, data, err = n.Template.RenderPlaced(scope, b)
	if err != nil {
		return nil, nil, n.evalError(err)
	}
	return value, data, nil
}

func (n *Node) renderList(scope expression.Scope, b *expression.Budget) (any, error) {
	list := make([]any, len(n.Items))
	for i, item := range n.Items {
		v, err := item.Render(scope, b)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

func (n *Node) renderMap(scope expression.Scope, b *expression.Budget) (any, error) {
	object := make(map[string]any, len(n.Entries))
	for _, entry := range n.Entries {
		v, err := entry.Value.Render(scope, b)
		if err != nil {
			return nil, err
		}
		object[entry.Key] = v
	}
	return object, nil
}

// EvalCondition evaluates a condition. The error is always an *EvalError.
func (n *Node) EvalCondition(scope expression.Scope, b *expression.Budget) (bool, error) {
	v, err := n.Render(scope, b)
	if err != nil {
		return false, err
	}
	notes := b.NoteCount()
	decided := b.DecideTruth(v, 0)
	b.PlaceNotes(notes, n.placeText)
	return decided, nil
}

// placeText describes an offset in the node's scalar, for the end of a message.
func (n *Node) placeText(offset int) string {
	at := n.Position(offset)
	return fmt.Sprintf(" (line %d, column %d)", at.Line, at.Column)
}

func (n *Node) evalError(err error) *EvalError {
	if failure, ok := errors.AsType[*expression.Error](err); ok {
		return &EvalError{Pos: n.Position(failure.Offset), Message: failure.Message, TooMuch: failure.TooMuch}
	}
	return &EvalError{Pos: n.Pos, Message: err.Error()}
}

// Refs returns the references in every template of the node, in file order. Their offsets are relative to the
// scalar with the template.
func (n *Node) Refs() []expression.Ref {
	var refs []expression.Ref
	for _, ref := range n.ScalarRefs() {
		refs = append(refs, ref)
	}
	return refs
}

// ScalarRefs iterates over the references that Refs returns, with the scalar that contains them.
func (n *Node) ScalarRefs() iter.Seq2[*Node, expression.Ref] {
	return func(yield func(*Node, expression.Ref) bool) {
		for scalar := range n.Templates() {
			for _, ref := range scalar.Template.Refs() {
				if !yield(scalar, ref) {
					return
				}
			}
		}
		for scalar := range n.AllNodes() {
			if scalar.Statement() == nil {
				continue
			}
			for _, ref := range scalar.statement.Refs() {
				if !yield(scalar, ref) {
					return
				}
			}
		}
	}
}

// UsesAny reports whether a template in the node refers to one of the roots. It is cheaper than Refs.
func (n *Node) UsesAny(roots ...string) bool {
	isRoot := func(ref expression.Ref) bool { return slices.Contains(roots, ref.Root) }
	for one := range n.AllNodes() {
		if one.Template != nil && one.Template.UsesNames(roots...) || one.statement != nil && slices.ContainsFunc(one.statement.Refs(), isRoot) {
			return true
		}
	}
	return false
}

// IsConstant reports whether the node contains no template, so that it renders to the same value in every scope.
func (n *Node) IsConstant() bool {
	for range n.Templates() {
		return false
	}
	return true
}

// Position returns the position in the file of a rune of Raw; the offset of its end is allowed. Lists and maps have
// a single position.
func (n *Node) Position(offset int) source.Position {
	if n.file == nil {
		return n.Pos
	}
	places := n.Positions()
	return places[min(max(offset, 0), len(places)-1)]
}

// File returns the file that contains the node, nil for none.
func (n *Node) File() *source.File { return n.file }

// Positions returns the positions in the file of the runes of Raw, and of its end. For a converted condition of an
// older form of retry, these are in the original.
func (n *Node) Positions() []source.Position {
	if n.origin == nil {
		return n.file.ScalarPositions(n.Pos, n.style, n.Raw)
	}
	written := n.file.ScalarPositions(n.Pos, n.style, n.origin.raw)
	return lists.Map(n.origin.offsets, func(offset int) source.Position { return written[min(offset, len(written)-1)] })
}

// Get returns the value of a key of a map; nil if there is none.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for _, entry := range n.Entries {
		if entry.Key == key {
			return entry.Value
		}
	}
	return nil
}

// ConditionProgram returns a condition's expression; false if there is none.
func (n *Node) ConditionProgram() (*expression.Program, bool) {
	if n == nil || n.Template == nil {
		return nil, false
	}
	return n.Template.SingleProgram()
}
