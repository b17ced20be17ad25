package expression

import (
	"strconv"

	"reprise/interpreter/lists"

	"github.com/expr-lang/expr/ast"
)

// Names of the variables that the compiler adds. No author can write them.
const (
	budgetName = "$"    // the *Budget of the evaluation
	nilName    = "$nil" // never set, so nil; a literal nil would confuse expr's checker
)

// nodesPerTick is how many nodes of a predicate one step stands for. Together
// with Limits it keeps the worst predicate far below a second.
const nodesPerTick = 8

// lowering turns a parsed tree into one that expr can compile and that has the
// meaning of the language: operators and functions become calls of helpers
// that know nil, canonical numbers and the budget.
//
// A tree is lowered in two ways: value keeps what a node gives, cond makes a
// boolean of it.
type lowering struct {
	temps    int
	closures int
	rows     bool     // the outermost loop is that of a RowMap
	bound    []string // names that let has bound around the node
}

func (l *lowering) call(at ast.Node, helper string, args ...ast.Node) ast.Node {
	callee := place(&ast.IdentifierNode{Value: helper}, at)
	all := make([]ast.Node, 0, len(args)+1)
	all = append(all, place(&ast.IdentifierNode{Value: budgetName}, at))
	return place(&ast.CallNode{Callee: callee, Arguments: append(all, args...)}, at)
}

func place(n, at ast.Node) ast.Node {
	n.SetLocation(at.Location())
	return n
}

func missing(at ast.Node) ast.Node {
	return place(&ast.IdentifierNode{Value: nilName}, at)
}

// value lowers a node that is used for what it gives.
func (l *lowering) value(node ast.Node) ast.Node {
	switch n := node.(type) {
	case *ast.NilNode:
		return missing(n)
	case *ast.FloatNode:
		return constant(n, n.Value)
	case *ast.UnaryNode:
		return l.unary(n)
	case *ast.BinaryNode:
		return l.binary(n)
	case *ast.ChainNode:
		return l.value(n.Node)
	case *ast.MemberNode:
		return l.member(n)
	case *ast.SliceNode:
		return l.call(n, "$slice", l.value(n.Node), l.optional(n.From, n), l.optional(n.To, n))
	case *ast.CallNode:
		return l.function(n)
	case *ast.BuiltinNode:
		return l.predicate(n)
	case *ast.ConditionalNode:
		return place(&ast.ConditionalNode{Cond: l.cond(n.Cond), Exp1: l.value(n.Exp1), Exp2: l.value(n.Exp2)}, n)
	case *ast.VariableDeclaratorNode:
		return l.let(n, l.value)
	case *ast.ArrayNode:
		return l.array(n)
	case *ast.MapNode:
		return l.mapping(n)
	default:
		return node // names, pointers, and constants that are canonical
	}
}

// cond lowers a node that decides something.
func (l *lowering) cond(node ast.Node) ast.Node {
	switch n := node.(type) {
	case *ast.BinaryNode:
		switch n.Operator {
		case "and", "&&", "or", "||":
			return place(&ast.BinaryNode{Operator: n.Operator, Left: l.cond(n.Left), Right: l.cond(n.Right)}, n)
		}
	case *ast.ConditionalNode:
		return place(&ast.ConditionalNode{Cond: l.cond(n.Cond), Exp1: l.cond(n.Exp1), Exp2: l.cond(n.Exp2)}, n)
	case *ast.VariableDeclaratorNode:
		return l.let(n, l.cond)
	}
	if isBool(node) {
		return l.value(node)
	}
	return l.truthy(l.value(node))
}

func (l *lowering) let(n *ast.VariableDeclaratorNode, body func(ast.Node) ast.Node) ast.Node {
	value := l.value(n.Value)
	l.bound = append(l.bound, n.Name)
	expr := body(n.Expr)
	l.bound = l.bound[:len(l.bound)-1]
	return place(&ast.VariableDeclaratorNode{Name: n.Name, Value: value, Expr: expr}, n)
}

func (l *lowering) truthy(value ast.Node) ast.Node {
	callee := place(&ast.IdentifierNode{Value: "$truthy"}, value)
	return place(&ast.CallNode{Callee: callee, Arguments: []ast.Node{value}}, value)
}

// isBool reports whether a node gives true or false whatever the data.
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

// constant returns the node of a number in its canonical form.
func constant(at ast.Node, number any) ast.Node {
	canonical, err := Canonical(number)
	if err != nil {
		canonical = number // cannot be: the parser accepts finite numbers only
	}
	switch v := canonical.(type) {
	case int:
		return place(&ast.IntegerNode{Value: v}, at)
	case float64:
		return place(&ast.FloatNode{Value: v}, at)
	default:
		return place(&ast.ConstantNode{Value: v}, at)
	}
}

func (l *lowering) optional(node, at ast.Node) ast.Node {
	if node == nil {
		return missing(at)
	}
	return l.value(node)
}

// member lowers a chain of members: the constant end of it in one call.
func (l *lowering) member(n *ast.MemberNode) ast.Node {
	if _, ok := constantKey(n.Property); !ok {
		return l.call(n, "$index", l.value(n.Node), l.value(n.Property))
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
	return l.call(n, "$path", l.value(base), place(&ast.ConstantNode{Value: path}, n))
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

func (l *lowering) function(n *ast.CallNode) ast.Node {
	name := n.Callee.(*ast.IdentifierNode).Value // the parser builds no other callee
	args := lists.Map(n.Arguments, l.value)
	if name != textFunction {
		name = functionPrefix + name
	}
	return l.call(n, name, args...)
}

// array lowers a list as written. Inside a predicate its size is charged, as it is made
// anew in every round.
func (l *lowering) array(n *ast.ArrayNode) ast.Node {
	nodes := lists.Map(n.Nodes, l.value)
	list := place(&ast.ArrayNode{Nodes: nodes}, n)
	if values, ok := constants(nodes); ok {
		list = place(&ast.ConstantNode{Value: values}, n)
	}
	return l.charged("$madeList", len(nodes), list)
}

// constants are the values of nodes that have them, so that a list such as
// [429, 503] is made once. Nobody changes a value, and a list without room to
// spare is copied by whoever appends to it.
func constants(nodes []ast.Node) (values []any, ok bool) {
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

func (l *lowering) mapping(n *ast.MapNode) ast.Node {
	pairs := make([]ast.Node, len(n.Pairs))
	for i, node := range n.Pairs {
		pair := node.(*ast.PairNode) // a map holds pairs
		key := pair.Key
		if _, ok := key.(*ast.StringNode); !ok {
			key = l.call(key, "$key", l.value(key))
		}
		pairs[i] = place(&ast.PairNode{Key: key, Value: l.value(pair.Value)}, pair)
	}
	return l.charged("$madeMap", len(pairs), place(&ast.MapNode{Pairs: pairs}, n))
}

func (l *lowering) charged(helper string, size int, node ast.Node) ast.Node {
	if l.closures == 0 || size == 0 {
		return node
	}
	charge := l.call(node, helper, place(&ast.IntegerNode{Value: size}, node))
	return place(&ast.SequenceNode{Nodes: []ast.Node{charge, node}}, node)
}

func (l *lowering) temp() string {
	l.temps++
	return "$" + strconv.Itoa(l.temps)
}
