package expression

import (
	"fmt"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// Type is the type of a value as far as it is known without data.
type Type uint8

// The types that are confused in comparisons.
const (
	AnyType Type = iota
	NumberType
	TextType
)

// MixedComparison is a comparison of a text with a number, which is never true for any data.
type MixedComparison struct {
	Offset   int // of the literal side, in runes
	Operator string
	Written  string // the literal side as written
	Other    string // the side that it is compared with
	Type     Type   // of Other
}

// MixedComparisons returns the comparisons of a text with a number in which one side is a literal and the type of
// the other is known, either from the function or, for a name with a constant path, from typeOf.
func (p *Program) MixedComparisons(typeOf func(root string, path []any) Type) []MixedComparison {
	finder := mixedFinder{source: []rune(p.source), typeOf: typeOf}
	tree := p.tree
	ast.Walk(&tree, &finder)
	return finder.found
}

type mixedFinder struct {
	source []rune
	typeOf func(root string, path []any) Type
	found  []MixedComparison
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">="}

// Visit implements ast.Visitor.
func (f *mixedFinder) Visit(node *ast.Node) {
	n, ok := (*node).(*ast.BinaryNode)
	switch {
	case !ok:
	case slices.Contains(comparisons, n.Operator):
		if !f.noteComparison(n.Operator, n.Left, n.Right) {
			f.noteComparison(n.Operator, n.Right, n.Left)
		}
	case n.Operator == "in":
		list, ok := n.Right.(*ast.ArrayNode)
		if !ok {
			return
		}
		for _, item := range list.Nodes { // one element that fits is enough
			if kind := writtenType(item); kind == AnyType || kind == f.typeOfNode(n.Left) {
				return
			}
		}
		for _, item := range list.Nodes {
			f.noteComparison(n.Operator, n.Left, item)
		}
	}
}

// noteComparison adds a comparison of side with a literal of another type, and reports whether it did.
func (f *mixedFinder) noteComparison(operator string, side, written ast.Node) bool {
	kind, other := f.typeOfNode(side), writtenType(written)
	if kind == AnyType || other == AnyType || kind == other || writtenType(side) != AnyType {
		return false
	}
	f.found = append(f.found, MixedComparison{
		Offset: written.Location().From, Operator: operator, Written: f.sideText(written), Other: f.sideText(side), Type: kind,
	})
	return true
}

// sideText returns the text of a side: a name with its members, or else the source text.
func (f *mixedFinder) sideText(node ast.Node) string {
	root, path, ok := constantPath(node)
	if !ok {
		return sourceText(f.source, node.Location())
	}
	for _, key := range path {
		if name, isName := key.(string); isName {
			root += "." + name
		} else {
			root += fmt.Sprintf("[%v]", key)
		}
	}
	return root
}

func writtenType(node ast.Node) Type {
	switch node.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.ConstantNode: // the parser makes constants of numbers alone
		return NumberType
	case *ast.StringNode:
		return TextType
	}
	return AnyType
}

// resultTypes are the types of functions whose result has the same type for any arguments.
var resultTypes = map[string]Type{
	"len": NumberType, "count": NumberType, "sum": NumberType, "int": NumberType, "float": NumberType, "abs": NumberType,
	"round": NumberType, "floor": NumberType, "ceil": NumberType,
	"upper": TextType, "lower": TextType, "trim": TextType, "string": TextType, "join": TextType, "toJSON": TextType,
}

func (f *mixedFinder) typeOfNode(node ast.Node) Type {
	switch n := node.(type) {
	case *ast.BuiltinNode:
		return resultTypes[n.Name]
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok {
			return resultTypes[callee.Value]
		}
	}
	if root, path, ok := constantPath(node); ok {
		return f.typeOf(root, path)
	}
	return AnyType
}

// constantPath returns a name and the constant keys after it.
func constantPath(node ast.Node) (root string, path []any, ok bool) {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		return n.Value, nil, true
	case *ast.ChainNode:
		return constantPath(n.Node)
	case *ast.MemberNode:
		key, constant := constantKey(n.Property)
		if !constant {
			return "", nil, false
		}
		root, path, ok = constantPath(n.Node)
		return root, append(path, key), ok
	}
	return "", nil, false
}
