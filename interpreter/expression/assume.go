package expression

import (
	"slices"

	"github.com/expr-lang/expr/ast"
)

// Fact is an assumption about a name; see Program.Assume.
type Fact struct {
	kind     factKind
	from, to int
}

type factKind uint8

const (
	anything factKind = iota
	factNil
	factTrue
	factFalse
	factDefined // a map or a list that is not empty
	factNumber  // a whole number between from and to, both included
	factText    // a text that is not empty
)

// The facts that can be assumed about a name.
var (
	FactNil     = Fact{kind: factNil}
	FactTrue    = Fact{kind: factTrue}
	FactFalse   = Fact{kind: factFalse}
	FactDefined = Fact{kind: factDefined}
)

// FactBetween is the fact that a name has a whole number between from and to, both included.
func FactBetween(from, to int) Fact { return Fact{kind: factNumber, from: from, to: to} }

// Truth is the result of a condition as far as it is known without the data.
type Truth uint8

// The possible results.
const (
	Undecided Truth = iota
	AlwaysFalse
	AlwaysTrue
)

// Assume decides whether the expression is always true, or always false, if the given facts hold for some of its
// names. It is cautious: Undecided means that either result is possible or could not be ruled out.
func (p *Program) Assume(facts map[string]Fact) Truth {
	return assume(facts).factOf(p.tree).truthOf()
}

func (f Fact) truthOf() Truth {
	switch f.kind {
	case factNil, factFalse:
		return AlwaysFalse
	case factTrue, factDefined, factText:
		return AlwaysTrue
	case factNumber:
		if f.from == 0 && f.to == 0 {
			return AlwaysFalse
		}
		if f.from > 0 || f.to < 0 {
			return AlwaysTrue
		}
	case anything:
	}
	return Undecided
}

func factOf(v Truth) Fact {
	switch v {
	case AlwaysFalse:
		return FactFalse
	case AlwaysTrue:
		return FactTrue
	case Undecided:
	}
	return Fact{}
}

type assume map[string]Fact

func (a assume) factOf(node ast.Node) Fact {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		return a[n.Value]
	case *ast.ChainNode:
		return a.factOf(n.Node)
	case *ast.MemberNode:
		if a.factOf(n.Node).kind == factNil {
			return FactNil // a missing member is nil
		}
	case *ast.UnaryNode:
		if n.Operator == "not" || n.Operator == "!" {
			return factOf(oppositeTruth(a.factOf(n.Node).truthOf()))
		}
	case *ast.ConditionalNode:
		return a.conditionalFact(n)
	case *ast.BinaryNode:
		return a.binaryFact(n)
	}
	return literalFact(node)
}

// literalFact returns the fact about a literal in the expression.
func literalFact(node ast.Node) Fact {
	switch n := node.(type) {
	case *ast.NilNode:
		return FactNil
	case *ast.BoolNode:
		if n.Value {
			return FactTrue
		}
		return FactFalse
	case *ast.IntegerNode:
		return FactBetween(n.Value, n.Value)
	case *ast.StringNode:
		if n.Value != "" {
			return Fact{kind: factText}
		}
	}
	return Fact{}
}

func oppositeTruth(v Truth) Truth {
	switch v {
	case AlwaysFalse:
		return AlwaysTrue
	case AlwaysTrue:
		return AlwaysFalse
	case Undecided:
	}
	return Undecided
}

func (a assume) conditionalFact(n *ast.ConditionalNode) Fact {
	first, second := a.factOf(n.Exp1), a.factOf(n.Exp2)
	switch a.factOf(n.Cond).truthOf() {
	case AlwaysTrue:
		return first
	case AlwaysFalse:
		return second
	case Undecided:
	}
	if first.truthOf() == second.truthOf() {
		return factOf(first.truthOf())
	}
	return Fact{}
}

func (a assume) binaryFact(n *ast.BinaryNode) Fact {
	left, right := a.factOf(n.Left), a.factOf(n.Right)
	switch n.Operator {
	case "and", "&&":
		return factOf(bothHold(left.truthOf(), right.truthOf()))
	case "or", "||":
		return factOf(oppositeTruth(bothHold(oppositeTruth(left.truthOf()), oppositeTruth(right.truthOf()))))
	case "??":
		if left.kind == factNil {
			return right
		}
	case "==":
		return factOf(equalFacts(left, right))
	case "!=":
		return factOf(oppositeTruth(equalFacts(left, right)))
	case "<", "<=", ">", ">=":
		return factOf(orderedFacts(n.Operator, left, right))
	case "in":
		return factOf(a.withinFact(left, n.Right))
	case "contains", "startsWith", "endsWith", "matches":
		if left.kind == factNil || right.kind == factNil {
			return FactFalse
		}
	}
	return Fact{}
}

func bothHold(a, b Truth) Truth {
	switch {
	case a == AlwaysFalse || b == AlwaysFalse:
		return AlwaysFalse
	case a == AlwaysTrue && b == AlwaysTrue:
		return AlwaysTrue
	}
	return Undecided
}

// equalFacts decides whether values with these facts are equal. Values of different types are unequal.
func equalFacts(a, b Fact) Truth {
	switch {
	case a.kind == anything || b.kind == anything:
		return Undecided
	case a.kind != b.kind:
		return AlwaysFalse
	case a.kind == factNil, a.kind == factTrue, a.kind == factFalse:
		return AlwaysTrue
	case a.kind != factNumber:
		return Undecided
	case a.to < b.from || b.to < a.from:
		return AlwaysFalse
	case a.from == a.to && a == b:
		return AlwaysTrue
	}
	return Undecided
}

// orderedFacts decides a comparison by size. Every such comparison with nil is false.
func orderedFacts(operator string, a, b Fact) Truth {
	switch operator {
	case ">":
		return orderedFacts("<", b, a)
	case ">=":
		return orderedFacts("<=", b, a)
	}
	switch {
	case a.kind == factNil || b.kind == factNil:
		return AlwaysFalse
	case a.kind != factNumber || b.kind != factNumber:
		return Undecided
	case a.to < b.from, operator == "<=" && a.to == b.from:
		return AlwaysTrue
	case a.from > b.to, operator == "<" && a.from == b.to:
		return AlwaysFalse
	}
	return Undecided
}

// withinFact decides "x in list" for a literal list from the possible values of x. The result is always false if x
// can equal none of the elements.
func (a assume) withinFact(left Fact, list ast.Node) Truth {
	if left.kind == factNil {
		return AlwaysFalse
	}
	array, ok := list.(*ast.ArrayNode)
	if !ok {
		return Undecided
	}
	if slices.ContainsFunc(array.Nodes, func(item ast.Node) bool { return equalFacts(left, a.factOf(item)) != AlwaysFalse }) {
		return Undecided
	}
	return AlwaysFalse
}
