package expression

import "github.com/expr-lang/expr/ast"

// predicate lowers the functions that evaluate an expression per element. The
// loops are expr's own; every round is charged.
func (l *lowering) predicate(n *ast.BuiltinNode) ast.Node {
	switch n.Name {
	case "sum":
		return l.call(n, "$sum", l.loop(n, "map", l.value))
	case "groupBy":
		return l.call(n, "$group", l.loop(n, "map", l.withElement))
	case "sortBy":
		order := missing(n)
		if len(n.Arguments) > 2 {
			order = l.value(n.Arguments[2])
		}
		return l.call(n, "$sortBy", l.loop(n, "map", l.withElement), order)
	case "map":
		return l.loop(n, "map", l.value)
	case "reduce":
		loop := l.loop(n, "reduce", l.value)
		if len(n.Arguments) > 2 {
			loop.Arguments = append(loop.Arguments, l.value(n.Arguments[2]))
		}
		return loop
	case "findLast", "findLastIndex":
		return l.findLast(n)
	default:
		return l.loop(n, n.Name, l.cond)
	}
}

// findLast searches the reversed list. expr's own loop from the end leaves
// values on the stack of its machine, which breaks the call around it.
func (l *lowering) findLast(n *ast.BuiltinNode) ast.Node {
	name := l.temp()
	list := func() ast.Node { return place(&ast.IdentifierNode{Value: name}, n) }
	reversed := l.call(n, "$reversed", list())
	var search ast.Node
	if n.Name == "findLast" {
		search = l.loopOver(n, reversed, "find", l.cond)
	} else {
		search = l.call(n, "$fromEnd", list(), l.loopOver(n, reversed, "findIndex", l.cond))
	}
	return place(&ast.VariableDeclaratorNode{Name: name, Value: l.list(n), Expr: search}, n)
}

// list lowers the list of n, which must be one; nil is an empty one.
func (l *lowering) list(n *ast.BuiltinNode) ast.Node {
	return l.call(n, "$list", l.value(n.Arguments[0]), place(&ast.StringNode{Value: n.Name}, n))
}

// loop builds expr's loop over the list of n, with the body lowered by body.
func (l *lowering) loop(n *ast.BuiltinNode, name string, body func(ast.Node) ast.Node) *ast.BuiltinNode {
	return l.loopOver(n, l.list(n), name, body)
}

func (l *lowering) loopOver(
	n *ast.BuiltinNode, list ast.Node, name string, body func(ast.Node) ast.Node,
) *ast.BuiltinNode {
	predicate := n.Arguments[1].(*ast.PredicateNode) // the parser builds a predicate here
	weight := 1 + countNodes(predicate.Node)/nodesPerTick
	ticks := "$tick"
	if l.closures == 0 && l.rows {
		ticks = "$nextRow"
	}
	tick := l.call(predicate, ticks, place(&ast.IntegerNode{Value: weight}, predicate))
	l.closures++
	round := place(&ast.SequenceNode{Nodes: []ast.Node{tick, body(predicate.Node)}}, predicate)
	l.closures--
	loop := &ast.BuiltinNode{
		Name:      name,
		Arguments: []ast.Node{list, place(&ast.PredicateNode{Node: round}, predicate)},
	}
	place(loop, n)
	return loop
}

// withElement pairs what the body gives with the element it came from, for
// functions that sort or group.
func (l *lowering) withElement(body ast.Node) ast.Node {
	return place(&ast.ArrayNode{Nodes: []ast.Node{l.value(body), place(&ast.PointerNode{}, body)}}, body)
}
