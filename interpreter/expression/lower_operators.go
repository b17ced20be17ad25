package expression

import (
	"slices"

	"github.com/expr-lang/expr/ast"
)

// binaryHelpers maps operators to the helpers that compute them.
var binaryHelpers = map[string]string{
	"<": "$less", "<=": "$lessEq", ">": "$greater", ">=": "$greaterEq",
	"+": "$add", "-": "$sub", "*": "$mul", "/": "$div", "%": "$mod", "**": "$pow", "^": "$pow",
	"in": "$in", "contains": "$contains", "startsWith": "$startsWith", "endsWith": "$endsWith",
	"..": "$range",
}

func (l *lowering) lowerUnary(n *ast.UnaryNode) ast.Node {
	switch n.Operator {
	case "not", "!":
		return placeNode(&ast.UnaryNode{Operator: "!", Node: l.lowerCond(n.Node)}, n)
	case "+":
		return l.callHelper(n, "$pos", l.lowerValue(n.Node))
	}
	switch operand := n.Node.(type) {
	case *ast.IntegerNode:
		return placeNode(&ast.IntegerNode{Value: -operand.Value}, n)
	case *ast.FloatNode:
		return constantNode(n, -operand.Value)
	default:
		return l.callHelper(n, "$neg", l.lowerValue(n.Node))
	}
}

func (l *lowering) lowerBinary(n *ast.BinaryNode) ast.Node {
	switch n.Operator {
	case "and", "&&":
		return l.lowerAnd(n)
	case "or", "||":
		return l.lowerOr(n)
	case "==", "!=":
		return l.lowerEqual(n)
	case "??":
		return placeNode(&ast.BinaryNode{Operator: "??", Left: l.lowerValue(n.Left), Right: l.lowerValue(n.Right)}, n)
	case "matches":
		return l.lowerMatches(n)
	case "in", "contains":
		return l.callHelper(n, binaryHelpers[n.Operator], l.lowerValue(n.Left), l.lowerValue(n.Right), offsetOf(n))
	default:
		return l.callHelper(n, binaryHelpers[n.Operator], l.lowerValue(n.Left), l.lowerValue(n.Right))
	}
}

// lowerAnd returns the operand that decides the result: the left one if it is false.
func (l *lowering) lowerAnd(n *ast.BinaryNode) ast.Node {
	if isBool(n) {
		return l.lowerCond(n)
	}
	if isBool(n.Left) {
		no := placeNode(&ast.BoolNode{Value: false}, n)
		return placeNode(&ast.ConditionalNode{Cond: l.lowerCond(n.Left), Exp1: l.lowerValue(n.Right), Exp2: no}, n)
	}
	return l.evaluateOnce(n, func(left ast.Node) ast.Node {
		decides := l.callHelper(left, "$decide", left, offsetOf(n.Left)) // unlike the one of or, which often is a default
		return &ast.ConditionalNode{Cond: decides, Exp1: l.lowerValue(n.Right), Exp2: left}
	})
}

// lowerOr returns the operand that decides the result: the left one if it is true.
func (l *lowering) lowerOr(n *ast.BinaryNode) ast.Node {
	if isBool(n) {
		return l.lowerCond(n)
	}
	if isBool(n.Left) {
		yes := placeNode(&ast.BoolNode{Value: true}, n)
		return placeNode(&ast.ConditionalNode{Cond: l.lowerCond(n.Left), Exp1: yes, Exp2: l.lowerValue(n.Right)}, n)
	}
	return l.evaluateOnce(n, func(left ast.Node) ast.Node {
		return &ast.ConditionalNode{Cond: l.truthyNode(left), Exp1: left, Exp2: l.lowerValue(n.Right)}
	})
}

// evaluateOnce binds the left operand to a variable, so that it is evaluated only once, and builds the rest of the
// expression with the variable.
func (l *lowering) evaluateOnce(n *ast.BinaryNode, rest func(left ast.Node) ast.Node) ast.Node {
	name := l.tempName()
	value := l.lowerValue(n.Left)
	left := placeNode(&ast.IdentifierNode{Value: name}, n)
	return placeNode(&ast.VariableDeclaratorNode{Name: name, Value: value, Expr: placeNode(rest(left), n)}, n)
}

// lowerEqual uses expr's own == where it means the same and is cheaper: to compare a plain literal with an operand
// whose type expr cannot know.
func (l *lowering) lowerEqual(n *ast.BinaryNode) ast.Node {
	left, right := n.Left, n.Right
	if isPlainLiteral(left) {
		left, right = right, left
	}
	if isPlainLiteral(right) && l.isOpaque(left) {
		literal := right
		if _, ok := right.(*ast.NilNode); ok {
			literal = placeNode(&ast.NilNode{}, right)
		}
		return placeNode(&ast.BinaryNode{Operator: n.Operator, Left: l.lowerValue(left), Right: literal}, n)
	}
	helper := "$equal"
	if n.Operator == "!=" {
		helper = "$notEqual"
	}
	return l.callHelper(n, helper, l.lowerValue(n.Left), l.lowerValue(n.Right), offsetOf(n))
}

// offsetOf returns a constant with the position of a node in the source, for notes about the node.
func offsetOf(n ast.Node) ast.Node {
	return placeNode(&ast.ConstantNode{Value: n.Location().From}, n)
}

// isPlainLiteral reports whether a node is nil or a text that cannot be mistaken for a number or a boolean, so that
// a comparison with it never causes a note.
func isPlainLiteral(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.StringNode:
		return misreadText(n.Value, true) == "" && misreadText(n.Value, 0) == ""
	case *ast.NilNode:
		return true
	default:
		return false
	}
}

// isOpaque reports whether a node is lowered to something without a static type. A name bound by let may have the
// type of a literal.
func (l *lowering) isOpaque(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		return !slices.Contains(l.bound, n.Value)
	case *ast.MemberNode, *ast.ChainNode, *ast.CallNode, *ast.SliceNode:
		return true
	case *ast.PointerNode:
		return n.Name == ""
	default:
		return false
	}
}

func (l *lowering) lowerMatches(n *ast.BinaryNode) ast.Node {
	literal := n.Right.(*ast.StringNode) // checked by the parser
	compiled, err := compilePattern(literal.Value)
	if err != nil {
		panic(err) // impossible: the parser has compiled it
	}
	return l.callHelper(n, "$matches", l.lowerValue(n.Left), placeNode(&ast.ConstantNode{Value: compiled}, n))
}
