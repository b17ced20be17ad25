package expression

import "github.com/expr-lang/expr/ast"

// lowerPredicate lowers the functions that evaluate an expression per element. It uses expr's own loops, and
// charges every round.
func (l *lowering) lowerPredicate(n *ast.BuiltinNode) ast.Node {
	switch n.Name {
	case "sum":
		return l.callHelper(n, "$sum", l.buildLoop(n, "map", l.lowerValue))
	case "groupBy":
		return l.callHelper(n, "$group", l.buildLoop(n, "map", l.withElement))
	case "sortBy":
		order := missingNode(n)
		if len(n.Arguments) > 2 {
			order = l.lowerValue(n.Arguments[2])
		}
		return l.callHelper(n, "$sortBy", l.buildLoop(n, "map", l.withElement), order)
	case "map":
		return l.buildLoop(n, "map", l.lowerValue)
	case "reduce":
		loop := l.buildLoop(n, "reduce", l.lowerValue)
		if len(n.Arguments) > 2 {
			loop.Arguments = append(loop.Arguments, l.lowerValue(n.Arguments[2]))
		}
		return loop
	case "findLast", "findLastIndex":
		return l.findLast(n)
	default:
		return l.buildLoop(n, n.Name, l.lowerCond)
	}
}

// findLast searches the reversed list, because expr's own loop from the end leaves values on the stack of its
// machine, which breaks the surrounding call.
func (l *lowering) findLast(n *ast.BuiltinNode) ast.Node {
	name := l.tempName()
	list := func() ast.Node { return placeNode(&ast.IdentifierNode{Value: name}, n) }
	reversed := l.callHelper(n, "$reversed", list())
	var search ast.Node
	if n.Name == "findLast" {
		search = l.loopOver(n, reversed, "find", l.lowerCond)
	} else {
		search = l.callHelper(n, "$fromEnd", list(), l.loopOver(n, reversed, "findIndex", l.lowerCond))
	}
	return placeNode(&ast.VariableDeclaratorNode{Name: name, Value: l.lowerList(n), Expr: search}, n)
}

// lowerList lowers the list argument of n. A value other than a list is an error; nil is an empty list.
func (l *lowering) lowerList(n *ast.BuiltinNode) ast.Node {
	list := l.callHelper(n, "$list", l.lowerValue(n.Arguments[0]), placeNode(&ast.StringNode{Value: n.Name}, n))
	predicate := n.Arguments[1].(*ast.PredicateNode) // the parser builds a predicate here
	if l.closures == 0 && l.rows {                   // its list is a part of the rows: AbsentInMap of package interpreter looks at all of them
		return list
	}
	if members := requiredMembers(predicate); len(members) > 0 {
		return l.callHelper(n, "$elements", list, placeNode(&ast.ConstantNode{Value: members}, n))
	}
	return list
}

// buildLoop builds expr's loop over the list argument of n. body lowers the predicate.
func (l *lowering) buildLoop(n *ast.BuiltinNode, name string, body func(ast.Node) ast.Node) *ast.BuiltinNode {
	return l.loopOver(n, l.lowerList(n), name, body)
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
	tick := l.callHelper(predicate, ticks, placeNode(&ast.IntegerNode{Value: weight}, predicate))
	l.closures++
	round := placeNode(&ast.SequenceNode{Nodes: []ast.Node{tick, body(predicate.Node)}}, predicate)
	l.closures--
	loop := &ast.BuiltinNode{
		Name:      name,
		Arguments: []ast.Node{list, placeNode(&ast.PredicateNode{Node: round}, predicate)},
	}
	placeNode(loop, n)
	return loop
}

// withElement pairs the result of the predicate with its element, for functions that sort or group.
func (l *lowering) withElement(body ast.Node) ast.Node {
	return placeNode(&ast.ArrayNode{Nodes: []ast.Node{l.lowerValue(body), placeNode(&ast.PointerNode{}, body)}}, body)
}
