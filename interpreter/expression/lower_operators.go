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

func (l *lowering) unary(n *ast.UnaryNode) ast.Node {
	switch n.Operator {
	case "not", "!":
		return place(&ast.UnaryNode{Operator: "!", Node: l.cond(n.Node)}, n)
	case "+":
		return l.call(n, "$pos", l.value(n.Node))
	}
	switch operand := n.Node.(type) {
	case *ast.IntegerNode:
		return place(&ast.IntegerNode{Value: -operand.Value}, n)
	case *ast.FloatNode:
		return constant(n, -operand.Value)
	default:
		return l.call(n, "$neg", l.value(n.Node))
	}
}

func (l *lowering) binary(n *ast.BinaryNode) ast.Node {
	switch n.Operator {
	case "and", "&&":
		return l.and(n)
	case "or", "||":
		return l.or(n)
	case "==", "!=":
		return l.equal(n)
	case "??":
		return place(&ast.BinaryNode{Operator: "??", Left: l.value(n.Left), Right: l.value(n.Right)}, n)
	case "matches":
		return l.matches(n)
	case "in", "contains":
		return l.call(n, binaryHelpers[n.Operator], l.value(n.Left), l.value(n.Right), offsetOf(n))
	default:
		return l.call(n, binaryHelpers[n.Operator], l.value(n.Left), l.value(n.Right))
	}
}

// and gives the operand that decides: the left one if it is false.
func (l *lowering) and(n *ast.BinaryNode) ast.Node {
	if isBool(n) {
		return l.cond(n)
	}
	if isBool(n.Left) {
		no := place(&ast.BoolNode{Value: false}, n)
		return place(&ast.ConditionalNode{Cond: l.cond(n.Left), Exp1: l.value(n.Right), Exp2: no}, n)
	}
	return l.once(n, func(left ast.Node) ast.Node {
		return &ast.ConditionalNode{Cond: l.truthy(left), Exp1: l.value(n.Right), Exp2: left}
	})
}

// or gives the operand that decides: the left one if it is true.
func (l *lowering) or(n *ast.BinaryNode) ast.Node {
	if isBool(n) {
		return l.cond(n)
	}
	if isBool(n.Left) {
		yes := place(&ast.BoolNode{Value: true}, n)
		return place(&ast.ConditionalNode{Cond: l.cond(n.Left), Exp1: yes, Exp2: l.value(n.Right)}, n)
	}
	return l.once(n, func(left ast.Node) ast.Node {
		return &ast.ConditionalNode{Cond: l.truthy(left), Exp1: left, Exp2: l.value(n.Right)}
	})
}

// once binds the left operand to a variable, so that it is evaluated once, and
// builds the rest with it.
func (l *lowering) once(n *ast.BinaryNode, rest func(left ast.Node) ast.Node) ast.Node {
	name := l.temp()
	value := l.value(n.Left)
	left := place(&ast.IdentifierNode{Value: name}, n)
	return place(&ast.VariableDeclaratorNode{Name: name, Value: value, Expr: place(rest(left), n)}, n)
}

// equal uses expr's own == where that means the same and costs little: for a
// plain literal and an operand whose type expr cannot know.
func (l *lowering) equal(n *ast.BinaryNode) ast.Node {
	left, right := n.Left, n.Right
	if isPlainLiteral(left) {
		left, right = right, left
	}
	if isPlainLiteral(right) && l.isOpaque(left) {
		literal := right
		if _, ok := right.(*ast.NilNode); ok {
			literal = place(&ast.NilNode{}, right)
		}
		return place(&ast.BinaryNode{Operator: n.Operator, Left: l.value(left), Right: literal}, n)
	}
	helper := "$equal"
	if n.Operator == "!=" {
		helper = "$notEqual"
	}
	return l.call(n, helper, l.value(n.Left), l.value(n.Right), offsetOf(n))
}

// offsetOf is where a node is in the source, for what is noted of it.
func offsetOf(n ast.Node) ast.Node {
	return place(&ast.ConstantNode{Value: n.Location().From}, n)
}

// isPlainLiteral reports whether a node is nil or a text that nobody takes for a number or a boolean: nothing
// is to note of a comparison with it.
func isPlainLiteral(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.StringNode:
		return misread(n.Value, true) == "" && misread(n.Value, 0) == ""
	case *ast.NilNode:
		return true
	default:
		return false
	}
}

// isOpaque reports whether a node is lowered to something without a static
// type. A name that let has bound may have the type of a literal.
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

func (l *lowering) matches(n *ast.BinaryNode) ast.Node {
	literal := n.Right.(*ast.StringNode) // checked by the parser
	compiled, err := compilePattern(literal.Value)
	if err != nil {
		panic(err) // cannot be: the parser has compiled it
	}
	return l.call(n, "$matches", l.value(n.Left), place(&ast.ConstantNode{Value: compiled}, n))
}
