package expression

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// Printed returns an equivalent expression without the forms of Jinja.
func (p *Program) Printed() string {
	if p.raw {
		return printNode(p.tree) + " | " + rawFilter
	}
	return printNode(p.tree)
}

// printNode writes a tree as an expression that this package and expr read the
// same way; only ~ has no operator in expr. expr's own
// printer leaves out parentheses that not, let and conditionals need here.
func printNode(node ast.Node) string {
	switch n := node.(type) {
	case *ast.StringNode:
		return strconv.Quote(n.Value)
	case *ast.UnaryNode:
		return printUnary(n)
	case *ast.BinaryNode:
		return printBinary(n)
	case *ast.ChainNode:
		return printNode(n.Node)
	case *ast.MemberNode:
		return printMember(n)
	case *ast.SliceNode:
		return fmt.Sprintf("%s[%s:%s]", printOperand(n.Node), printOptional(n.From), printOptional(n.To))
	case *ast.CallNode:
		if isConcat(n) {
			return printConcat(n)
		}
		return printNode(n.Callee) + "(" + printList(n.Arguments) + ")"
	case *ast.BuiltinNode:
		return n.Name + "(" + printList(n.Arguments) + ")"
	case *ast.PredicateNode:
		return printPredicate(n)
	case *ast.ConditionalNode:
		return fmt.Sprintf("%s ? %s : %s", printLoose(n.Cond), printLoose(n.Exp1), printLoose(n.Exp2))
	case *ast.VariableDeclaratorNode:
		return fmt.Sprintf("let %s = %s; %s", n.Name, printLoose(n.Value), printNode(n.Expr))
	case *ast.ArrayNode:
		return "[" + printList(n.Nodes) + "]"
	case *ast.MapNode:
		return printMap(n)
	default:
		return node.String() // names, pointers and constants
	}
}

// printLoose prints a node where anything but let and a conditional stands
// without parentheses.
func printLoose(node ast.Node) string {
	switch node.(type) {
	case *ast.ConditionalNode, *ast.VariableDeclaratorNode:
		return "(" + printNode(node) + ")"
	default:
		return printNode(node)
	}
}

// printOperand prints a node where only what binds tightest stands without
// parentheses.
func printOperand(node ast.Node) string {
	if isConcat(node) {
		return "(" + printNode(node) + ")"
	}
	switch node.(type) {
	case *ast.ConditionalNode, *ast.VariableDeclaratorNode, *ast.BinaryNode, *ast.UnaryNode,
		*ast.IntegerNode, *ast.FloatNode, *ast.ConstantNode:
		return "(" + printNode(node) + ")"
	default:
		return printNode(node)
	}
}

// isConcat reports whether a node is a ~ b, which the tree holds as a call.
func isConcat(node ast.Node) bool {
	call, ok := node.(*ast.CallNode)
	if !ok {
		return false
	}
	callee, ok := call.Callee.(*ast.IdentifierNode)
	return ok && callee.Value == textFunction
}

func printConcat(n *ast.CallNode) string {
	parts := make([]string, len(n.Arguments))
	for i, part := range n.Arguments {
		parts[i] = printSide(part, levelConcat, false)
	}
	return strings.Join(parts, " ~ ")
}

func printOptional(node ast.Node) string {
	if node == nil {
		return ""
	}
	return printLoose(node)
}

func printList(nodes []ast.Node) string {
	parts := make([]string, len(nodes))
	for i, node := range nodes {
		parts[i] = printLoose(node)
	}
	return strings.Join(parts, ", ")
}

func printUnary(n *ast.UnaryNode) string {
	if _, ok := n.Node.(*ast.IntegerNode); ok && n.Operator != "not" {
		return n.Operator + printNode(n.Node)
	}
	if n.Operator == "not" {
		return "not (" + printNode(n.Node) + ")"
	}
	return n.Operator + printOperand(n.Node)
}

func printBinary(n *ast.BinaryNode) string {
	level, known := binaryLevels[n.Operator]
	if !known { // ?? and powers
		return printOperand(n.Left) + " " + n.Operator + " " + printTight(n.Right)
	}
	return printSide(n.Left, level, level != levelCompare && level != levelRange) + " " + n.Operator + " " +
		printSide(n.Right, level, false)
}

// printTight prints the right side of ?? and of powers, where a number needs
// no parentheses.
func printTight(node ast.Node) string {
	switch node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return printNode(node)
	default:
		return printOperand(node)
	}
}

// printSide prints an operand of an operator of the given level; sameLevel
// says that operators of that level are read from left to right there.
func printSide(node ast.Node, level int, sameLevel bool) string {
	switch n := node.(type) {
	case *ast.BinaryNode:
		inner, known := binaryLevels[n.Operator]
		if known && (inner > level || inner == level && sameLevel) {
			return printNode(n)
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.ConstantNode:
		return printNode(n)
	case *ast.CallNode:
		if isConcat(n) && level < levelConcat {
			return printNode(n)
		}
	}
	return printOperand(node)
}

func printMember(n *ast.MemberNode) string {
	base, key := printOperand(n.Node), ""
	if name, ok := n.Property.(*ast.StringNode); ok && isPlainName(name.Value) {
		if _, ok := n.Node.(*ast.PointerNode); ok && !n.Optional && base == "#" {
			return "." + name.Value
		}
		key = "." + name.Value
		if n.Optional {
			key = "?" + key
		}
		return base + key
	}
	if n.Optional {
		base += "?."
	}
	return base + "[" + printLoose(n.Property) + "]"
}

func isPlainName(name string) bool {
	for i, r := range name {
		if i == 0 && !isNameStart(r) || !isNamePart(r) {
			return false
		}
	}
	return name != ""
}

// printPredicate prints a body so that expr sees neither a block in a map nor
// a let without braces.
func printPredicate(n *ast.PredicateNode) string {
	switch n.Node.(type) {
	case *ast.VariableDeclaratorNode:
		return "{ " + printNode(n.Node) + " }"
	case *ast.MapNode:
		return "(" + printNode(n.Node) + ")"
	default:
		return printLoose(n.Node)
	}
}

func printMap(n *ast.MapNode) string {
	parts := make([]string, len(n.Pairs))
	for i, node := range n.Pairs {
		pair := node.(*ast.PairNode) // a map holds pairs
		key := "(" + printNode(pair.Key) + ")"
		if text, ok := pair.Key.(*ast.StringNode); ok {
			key = strconv.Quote(text.Value)
			if isPlainName(text.Value) {
				key = text.Value
			}
		}
		parts[i] = key + ": " + printLoose(pair.Value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
