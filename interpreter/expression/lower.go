package expression

import (
	"strconv"

	"reprise/interpreter/lists"

	"github.com/expr-lang/expr/ast"
)

// Names of the variables that the compiler adds. An author cannot write them.
const (
	budgetName = "$"    // the *Budget of the evaluation
	nilName    = "$nil" // never set, so its value is nil; expr's checker would reject some uses of a literal nil
)

// nodesPerTick is the number of nodes of a predicate that one step covers. Together with Limits it keeps the most
// expensive predicate far below a second.
const nodesPerTick = 8

// lowering converts a parsed tree into one that expr can compile and that has the meaning of the language:
// operators and functions become calls of helpers that handle nil, canonical numbers and the budget.
// There are two ways to lower a node: lowerValue keeps its value, lowerCond makes it a boolean.
type lowering struct {
	temps    int
	closures int
	rows     bool     // the outermost loop is the loop of a RowMap
	bound    []string // names that let has bound around the node
}

func (l *lowering) callHelper(at ast.Node, helper string, args ...ast.Node) ast.Node {
	callee := placeNode(&ast.IdentifierNode{Value: helper}, at)
	all := make([]ast.Node, 0, len(args)+1)
	all = append(all, placeNode(&ast.IdentifierNode{Value: budgetName}, at))
	return placeNode(&ast.CallNode{Callee: callee, Arguments: append(all, args...)}, at)
}

func placeNode(n, at ast.Node) ast.Node {
	n.SetLocation(at.Location())
	return n
}

func missingNode(at ast.Node) ast.Node {
	return placeNode(&ast.IdentifierNode{Value: nilName}, at)
}

// lowerValue lowers a node whose value is used.
func (l *lowering) lowerValue(node ast.Node) ast.Node {
	switch n := node.(type) {
	case *ast.NilNode:
		return missingNode(n)
	case *ast.FloatNode:
		return constantNode(n, n.Value)
	case *ast.UnaryNode:
		return l.lowerUnary(n)
	case *ast.BinaryNode:
		return l.lowerBinary(n)
	case *ast.ChainNode:
		return l.lowerValue(n.Node)
	case *ast.MemberNode:
		return l.lowerMember(n)
	case *ast.SliceNode:
		return l.callHelper(n, "$slice", l.lowerValue(n.Node), l.lowerOptional(n.From, n), l.lowerOptional(n.To, n))
	case *ast.CallNode:
		return l.lowerFunction(n)
	case *ast.BuiltinNode:
		return l.lowerPredicate(n)
	case *ast.ConditionalNode:
		return placeNode(&ast.ConditionalNode{Cond: l.lowerCond(n.Cond), Exp1: l.lowerValue(n.Exp1), Exp2: l.lowerValue(n.Exp2)}, n)
	case *ast.VariableDeclaratorNode:
		return l.bindVariable(n, l.lowerValue)
	case *ast.ArrayNode:
		return l.lowerArray(n)
	case *ast.MapNode:
		return l.lowerMap(n)
	default:
		return node // names, pointers, and constants that are canonical
	}
}

// lowerCond lowers a node that is used as a condition.
func (l *lowering) lowerCond(node ast.Node) ast.Node {
	switch n := node.(type) {
	case *ast.BinaryNode:
		switch n.Operator {
		case "and", "&&", "or", "||":
			return placeNode(&ast.BinaryNode{Operator: n.Operator, Left: l.lowerCond(n.Left), Right: l.lowerCond(n.Right)}, n)
		}
	case *ast.ConditionalNode:
		return placeNode(&ast.ConditionalNode{Cond: l.lowerCond(n.Cond), Exp1: l.lowerCond(n.Exp1), Exp2: l.lowerCond(n.Exp2)}, n)
	case *ast.VariableDeclaratorNode:
		return l.bindVariable(n, l.lowerCond)
	}
	if isBool(node) {
		return l.lowerValue(node)
	}
	return l.callHelper(node, "$decide", l.lowerValue(node), offsetOf(node))
}

func (l *lowering) bindVariable(n *ast.VariableDeclaratorNode, body func(ast.Node) ast.Node) ast.Node {
	value := l.lowerValue(n.Value)
	l.bound = append(l.bound, n.Name)
	expr := body(n.Expr)
	l.bound = l.bound[:len(l.bound)-1]
	return placeNode(&ast.VariableDeclaratorNode{Name: n.Name, Value: value, Expr: expr}, n)
}

func (l *lowering) truthyNode(value ast.Node) ast.Node {
	callee := placeNode(&ast.IdentifierNode{Value: "$truthy"}, value)
	return placeNode(&ast.CallNode{Callee: callee, Arguments: []ast.Node{value}}, value)
}

// isBool reports whether a node is true or false for any data.
func isBool(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.BoolNode:
		return true
	case *ast.UnaryNode:
		return n.Operator == "not" || n.Operator == "!"
	case *ast.BinaryNode:
		switch n.Operator {
		case "and", "&&", "or", "||":
			return isBool(n.Left) && isBool(n.Right)
		default:
			return binaryLevels[n.Operator] == levelCompare
		}
	case *ast.BuiltinNode:
		return n.Name == "all" || n.Name == "any" || n.Name == "none" || n.Name == "one"
	default:
		return false
	}
}

// constantNode returns the node for a number in its canonical form.
func constantNode(at ast.Node, number any) ast.Node {
	canonical, err := Canonical(number)
	if err != nil {
		canonical = number // cannot be: the parser accepts finite numbers only
	}
	switch v := canonical.(type) {
	case int:
		return placeNode(&ast.IntegerNode{Value: v}, at)
	case float64:
		return placeNode(&ast.FloatNode{Value: v}, at)
	default:
		return placeNode(&ast.ConstantNode{Value: v}, at)
	}
}

func (l *lowering) lowerOptional(node, at ast.Node) ast.Node {
	if node == nil {
		return missingNode(at)
	}
	return l.lowerValue(node)
}

// lowerMember lowers a chain of members. The constant keys at its end become one call.
func (l *lowering) lowerMember(n *ast.MemberNode) ast.Node {
	if _, ok := constantKey(n.Property); !ok {
		return l.callHelper(n, "$index", l.lowerValue(n.Node), l.lowerValue(n.Property))
	}
	var (
		base ast.Node = n
		keys []any
	)
	for {
		member, ok := withoutChain(base).(*ast.MemberNode)
		if !ok {
			break
		}
		key, ok := constantKey(member.Property)
		if !ok {
			break
		}
		base, keys = member.Node, append(keys, key)
	}
	path := make([]any, 0, len(keys))
	for i := len(keys) - 1; i >= 0; i-- {
		path = append(path, keys[i])
	}
	return l.callHelper(n, "$path", l.lowerValue(base), placeNode(&ast.ConstantNode{Value: path}, n))
}

func withoutChain(node ast.Node) ast.Node {
	for {
		chain, ok := node.(*ast.ChainNode)
		if !ok {
			return node
		}
		node = chain.Node
	}
}

func (l *lowering) lowerFunction(n *ast.CallNode) ast.Node {
	name := n.Callee.(*ast.IdentifierNode).Value // the parser builds no other callee
	args := lists.Map(n.Arguments, l.lowerValue)
	if name != textFunction {
		name = functionPrefix + name
	}
	return l.callHelper(n, name, args...)
}

// lowerArray lowers a list literal. Inside a predicate its size is charged, because every round creates the list
// again.
func (l *lowering) lowerArray(n *ast.ArrayNode) ast.Node {
	nodes := lists.Map(n.Nodes, l.lowerValue)
	list := placeNode(&ast.ArrayNode{Nodes: nodes}, n)
	if values, ok := constantValues(nodes); ok {
		list = placeNode(&ast.ConstantNode{Value: values}, n)
	}
	return l.chargeNode("$madeList", len(nodes), list)
}

// constantValues returns the values of the nodes if all of them are constants, so that a list such as [429, 503] is
// created only once. This is safe because nobody changes a value, and append copies a list without spare capacity.
func constantValues(nodes []ast.Node) (values []any, ok bool) {
	values = make([]any, len(nodes))
	for i, node := range nodes {
		switch n := node.(type) {
		case *ast.IntegerNode:
			values[i] = n.Value
		case *ast.FloatNode:
			values[i] = n.Value
		case *ast.StringNode:
			values[i] = n.Value
		case *ast.BoolNode:
			values[i] = n.Value
		default:
			return nil, false
		}
	}
	return values, true
}

func (l *lowering) lowerMap(n *ast.MapNode) ast.Node {
	pairs := make([]ast.Node, len(n.Pairs))
	for i, node := range n.Pairs {
		pair := node.(*ast.PairNode) // a map holds pairs
		key := pair.Key
		if _, ok := key.(*ast.StringNode); !ok {
			key = l.callHelper(key, "$key", l.lowerValue(key))
		}
		pairs[i] = placeNode(&ast.PairNode{Key: key, Value: l.lowerValue(pair.Value)}, pair)
	}
	return l.chargeNode("$madeMap", len(pairs), placeNode(&ast.MapNode{Pairs: pairs}, n))
}

func (l *lowering) chargeNode(helper string, size int, node ast.Node) ast.Node {
	if l.closures == 0 || size == 0 {
		return node
	}
	charge := l.callHelper(node, helper, placeNode(&ast.IntegerNode{Value: size}, node))
	return placeNode(&ast.SequenceNode{Nodes: []ast.Node{charge, node}}, node)
}

func (l *lowering) tempName() string {
	l.temps++
	return "$" + strconv.Itoa(l.temps)
}
