package expression

import (
	"fmt"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// The levels of operators, loosest first. The pipe and ?? bind tighter than
// all of them, see operand.
const (
	noLevel = iota
	levelOr
	levelAnd
	levelNot
	levelCompare
	levelRange
	levelSum
	levelConcat
	levelProduct
)

var binaryLevels = map[string]int{
	"or": levelOr, "||": levelOr,
	"and": levelAnd, "&&": levelAnd,
	"==": levelCompare, "!=": levelCompare,
	"<": levelCompare, "<=": levelCompare, ">": levelCompare, ">=": levelCompare,
	"in": levelCompare, "matches": levelCompare, "contains": levelCompare,
	"startsWith": levelCompare, "endsWith": levelCompare,
	"..": levelRange,
	"+":  levelSum, "-": levelSum,
	"~": levelConcat,
	"*": levelProduct, "/": levelProduct, "%": levelProduct,
}

var (
	orderings = []string{"<", "<=", ">", ">="}
	negatable = []string{"in", "matches", "contains", "startsWith", "endsWith"}
)

// operatorAhead returns the binary operator that comes next, whether not
// is before it, and its level.
func (p *parser) operatorAhead() (op token, negated bool, level int) {
	op = p.peek()
	if op.word("not") && p.peekAt(1).kind == tokenName && slices.Contains(negatable, p.peekAt(1).text) {
		return p.peekAt(1), true, levelCompare
	}
	if op.kind != tokenOperator && op.kind != tokenName {
		return op, false, noLevel
	}
	return op, false, binaryLevels[op.text]
}

// binary parses operators of at least the given level.
func (p *parser) binary(least int) ast.Node {
	from := p.peek().from
	var left ast.Node
	if least <= levelNot && p.peek().word("not") {
		left = p.not()
	} else {
		left = p.unary(true)
	}
	for {
		op, negated, level := p.operatorAhead()
		if level == noLevel || level < least {
			return left
		}
		p.at++
		if negated {
			p.at++
		}
		switch level {
		case levelCompare:
			left = p.compare(left, op, negated, from)
		case levelConcat:
			left = p.concat(left, op, from)
		default:
			left = p.add(&ast.BinaryNode{Operator: op.text, Left: left, Right: p.binary(level + 1)}, op, from)
		}
		if level == levelRange && p.peek().is("..") {
			p.unexpected(p.peek(), "a range has two ends, as in 1..3")
		}
	}
}

// not parses the loose not of Python and Jinja: not a == b is not (a == b).
func (p *parser) not() ast.Node {
	p.enter()
	defer p.leave()
	word := p.next()
	operand := p.binary(levelNot)
	return p.add(&ast.UnaryNode{Operator: "not", Node: operand}, word, word.from)
}

// compare parses the right side of a comparison. a < b < c means the same in
// Jinja and in expr; any other chain does not, so it is refused.
func (p *parser) compare(left ast.Node, op token, negated bool, from int) ast.Node {
	start := p.at
	right := p.binary(levelRange)
	p.checkComparison(op, right, p.tokens[start])
	node := p.add(&ast.BinaryNode{Operator: op.text, Left: left, Right: right}, op, from)
	if negated {
		node = p.add(&ast.UnaryNode{Operator: "not", Node: node}, op, from)
	}
	for last := op; ; {
		next, nextNegated, level := p.operatorAhead()
		if level != levelCompare {
			return node
		}
		if negated || nextNegated || !slices.Contains(orderings, last.text) || !slices.Contains(orderings, next.text) {
			p.refuseChain(last, next)
		}
		p.at++
		p.count(countNodes(right), next) // the middle is compared twice
		middle := right
		right = p.binary(levelRange)
		pair := p.add(&ast.BinaryNode{Operator: next.text, Left: middle, Right: right}, next, from)
		node = p.add(&ast.BinaryNode{Operator: "&&", Left: node, Right: pair}, next, from)
		last = next
	}
}

func (p *parser) refuseChain(last, next token) {
	fail(next.from, next.to, codeAmbiguous, fmt.Sprintf(
		"a %s b %s c means one thing in Jinja and another in expr; add parentheses, "+
			"(a %s b) %s c, or write a %s b and b %s c",
		last.text, next.text, last.text, next.text, last.text, next.text))
}

// checkComparison refuses patterns that cannot be compiled ahead.
func (p *parser) checkComparison(op token, right ast.Node, at token) {
	if !op.word("matches") {
		return
	}
	literal, ok := right.(*ast.StringNode)
	if !ok {
		p.report(at, codePattern,
			`the pattern of matches must be a constant, as in name matches "^a+$"; for plain text use contains`)
		return
	}
	if _, err := compilePattern(literal.Value); err != nil {
		p.report(at, codePattern, err.Error())
	}
}

// concat parses a ~ b ~ c into one call, so that no text is made twice.
func (p *parser) concat(left ast.Node, op token, from int) ast.Node {
	parts := []ast.Node{left, p.binary(levelConcat + 1)}
	for p.accept("~") {
		parts = append(parts, p.binary(levelConcat+1))
	}
	callee := p.add(&ast.IdentifierNode{Value: textFunction}, op, op.from)
	return p.add(&ast.CallNode{Callee: callee, Arguments: parts}, op, from)
}

// unary parses signs and !, which are tight, and powers. Filters behind a sign
// apply to all of it: -a | abs is abs(-a).
func (p *parser) unary(filters bool) ast.Node {
	sign := p.peek()
	if !sign.is("-") && !sign.is("+") && !sign.is("!") {
		return p.power(filters)
	}
	p.enter()
	defer p.leave()
	p.next()
	if least, ok := p.smallestInteger(sign); ok {
		return p.filters(least, sign.from, filters)
	}
	operand := p.unary(false)
	node := p.add(&ast.UnaryNode{Operator: sign.text, Node: operand}, sign, sign.from)
	return p.filters(node, sign.from, filters)
}

// power parses a ** b, which binds tighter than a sign on its left.
func (p *parser) power(filters bool) ast.Node {
	from := p.peek().from
	base := p.filters(p.postfix(), from, filters)
	op := p.peek()
	if !op.is("**") && !op.is("^") {
		return base
	}
	p.enter()
	defer p.leave()
	p.next()
	exponent := p.unary(filters)
	return p.add(&ast.BinaryNode{Operator: op.text, Left: base, Right: exponent}, op, from)
}
