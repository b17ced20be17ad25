package expression

import (
	"math"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// Implies reports whether other is true whenever the expression is. It is cautious: false means that this could not
// be shown.
func (p *Program) Implies(other *Program) bool { return nodeImplies(p.tree, other.tree) }

func nodeImplies(a, b ast.Node) bool {
	if a.String() == b.String() {
		return true
	}
	if left, right, ok := sidesOf(b, "and", "&&"); ok {
		return nodeImplies(a, left) && nodeImplies(a, right)
	}
	if left, right, ok := sidesOf(a, "or", "||"); ok {
		return nodeImplies(left, b) && nodeImplies(right, b)
	}
	if left, right, ok := sidesOf(a, "and", "&&"); ok && (nodeImplies(left, b) || nodeImplies(right, b)) {
		return true
	}
	if left, right, ok := sidesOf(b, "or", "||"); ok {
		return nodeImplies(a, left) || nodeImplies(a, right)
	}
	return numbersOf(a).isWithin(numbersOf(b))
}

func sidesOf(node ast.Node, operators ...string) (left, right ast.Node, ok bool) {
	n, ok := node.(*ast.BinaryNode)
	if !ok || !slices.Contains(operators, n.Operator) {
		return nil, nil, false
	}
	return n.Left, n.Right, true
}

// numbers is the set of numbers for which a comparison of one name is true: those in listed, or all between from
// and to. All are doubled, so that the bound just above or below a number is whole as well.
type numbers struct {
	name     string // "" if the expression is no such comparison
	listed   []int
	from, to int
}

func (a numbers) isWithin(b numbers) bool {
	switch {
	case a.name == "" || a.name != b.name:
		return false
	case a.listed != nil:
		return !slices.ContainsFunc(a.listed, func(number int) bool { return !b.hasNumber(number) })
	}
	return b.listed == nil && a.from >= b.from && a.to <= b.to
}

func (a numbers) hasNumber(number int) bool {
	if a.listed != nil {
		return slices.Contains(a.listed, number)
	}
	return number >= a.from && number <= a.to
}

// numbersOf returns the numbers for a comparison such as error.status >= 500 or error.status in [429, 503].
func numbersOf(node ast.Node) numbers {
	n, ok := node.(*ast.BinaryNode)
	if !ok {
		return numbers{}
	}
	if _, _, isName := constantPath(n.Left); !isName {
		return numbers{}
	}
	read := numbers{name: n.Left.String(), from: math.MinInt, to: math.MaxInt}
	if list, ok := n.Right.(*ast.ArrayNode); ok && n.Operator == "in" {
		read.listed = []int{}
		for _, item := range list.Nodes {
			number, ok := item.(*ast.IntegerNode)
			if !ok {
				return numbers{}
			}
			read.listed = append(read.listed, 2*number.Value)
		}
		return read
	}
	bound, ok := n.Right.(*ast.IntegerNode)
	if !ok {
		return numbers{}
	}
	switch number := 2 * bound.Value; n.Operator {
	case "==":
		read.listed = []int{number}
	case ">=":
		read.from = number
	case ">":
		read.from = number + 1
	case "<=":
		read.to = number
	case "<":
		read.to = number - 1
	default:
		return numbers{}
	}
	return read
}
