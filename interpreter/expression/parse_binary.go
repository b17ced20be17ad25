package expression

import (
	"fmt"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// The precedence levels of operators, lowest first. The pipe and ?? have a higher precedence than all of them, see
// parseFilters.
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

// operatorAhead returns the binary operator that comes next, whether it is negated by not, and its level.
func (p *parser) operatorAhead() (op token, negated bool, level int) {
	op = p.peekToken()
	if op.isWord("not") && p.peekAt(1).kind == tokenName && slices.Contains(negatable, p.peekAt(1).text) {
		return p.peekAt(1), true, levelCompare
	}
	if op.kind != tokenOperator && op.kind != tokenName {
		return op, false, noLevel
	}
	return op, false, binaryLevels[op.text]
}

// parseBinary parses operators whose level is at least least.
func (p *parser) parseBinary(least int) ast.Node {
	from := p.peekToken().from
	var left ast.Node
	if least <= levelNot && p.peekToken().isWord("not") {
		left = p.parseNot()
	} else {
		left = p.parseUnary(true)
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
			left = p.parseComparison(left, op, negated, from)
		case levelConcat:
			left = p.parseConcat(left, op, from)
		default:
			left = p.placeNode(&ast.BinaryNode{Operator: op.text, Left: left, Right: p.parseBinary(level + 1)}, op, from)
		}
		if level == levelRange && p.peekToken().isOperator("..") {
			p.failUnexpected(p.peekToken(), "a range has two ends, as in 1..3")
		}
	}
}

// parseNot parses not as Python and Jinja do, with a low precedence: not a == b is not (a == b).
func (p *parser) parseNot() ast.Node {
	p.enterNesting()
	defer p.leaveNesting()
	word := p.nextToken()
	operand := p.parseBinary(levelNot)
	return p.placeNode(&ast.UnaryNode{Operator: "not", Node: operand}, word, word.from)
}

// parseComparison parses the right operand of a comparison. a < b < c means the same in Jinja and in expr. Other
// chains do not, so they are refused.
func (p *parser) parseComparison(left ast.Node, op token, negated bool, from int) ast.Node {
	start := p.at
	right := p.parseBinary(levelRange)
	p.checkComparison(op, right, p.tokens[start])
	node := p.placeNode(&ast.BinaryNode{Operator: op.text, Left: left, Right: right}, op, from)
	if negated {
		node = p.placeNode(&ast.UnaryNode{Operator: "not", Node: node}, op, from)
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
		p.countNodes(countNodes(right), next) // the middle operand is compared twice
		middle := right
		right = p.parseBinary(levelRange)
		pair := p.placeNode(&ast.BinaryNode{Operator: next.text, Left: middle, Right: right}, next, from)
		node = p.placeNode(&ast.BinaryNode{Operator: "&&", Left: node, Right: pair}, next, from)
		last = next
	}
}

func (p *parser) refuseChain(last, next token) {
	failParse(next.from, next.to, codeAmbiguous, fmt.Sprintf(
		"a %s b %s c means one thing in Jinja and another in expr; add parentheses, "+
			"(a %s b) %s c, or write a %s b and b %s c",
		last.text, next.text, last.text, next.text, last.text, next.text))
}

// checkComparison refuses patterns of matches that are not literal or do not compile.
func (p *parser) checkComparison(op token, right ast.Node, at token) {
	if !op.isWord("matches") {
		return
	}
	literal, ok := right.(*ast.StringNode)
	if !ok {
		p.reportProblem(at, codePattern,
			`the pattern of matches must be a constant, as in name matches "^a+$"; for plain text use contains`)
		return
	}
	if _, err := compilePattern(literal.Value); err != nil {
		p.reportProblem(at, codePattern, err.Error())
	}
}

// parseConcat parses a ~ b ~ c into a single call, so that no text is created twice.
func (p *parser) parseConcat(left ast.Node, op token, from int) ast.Node {
	parts := []ast.Node{left, p.parseBinary(levelConcat + 1)}
	for p.acceptOperator("~") {
		parts = append(parts, p.parseBinary(levelConcat+1))
	}
	callee := p.placeNode(&ast.IdentifierNode{Value: textFunction}, op, op.from)
	return p.placeNode(&ast.CallNode{Callee: callee, Arguments: parts}, op, from)
}

// parseUnary parses signs and !, which have a high precedence, and powers. Filters after an operand with a sign
// apply to the signed value: -a | abs is abs(-a).
func (p *parser) parseUnary(filters bool) ast.Node {
	sign := p.peekToken()
	if !sign.isOperator("-") && !sign.isOperator("+") && !sign.isOperator("!") {
		return p.parsePower(filters)
	}
	p.enterNesting()
	defer p.leaveNesting()
	p.nextToken()
	if least, ok := p.smallestInteger(sign); ok {
		return p.parseFilters(least, sign.from, filters)
	}
	operand := p.parseUnary(false)
	node := p.placeNode(&ast.UnaryNode{Operator: sign.text, Node: operand}, sign, sign.from)
	return p.parseFilters(node, sign.from, filters)
}

// parsePower parses a ** b, which has a higher precedence than a sign on its left.
func (p *parser) parsePower(filters bool) ast.Node {
	from := p.peekToken().from
	base := p.parseFilters(p.parsePostfix(), from, filters)
	op := p.peekToken()
	if !op.isOperator("**") && !op.isOperator("^") {
		return base
	}
	p.enterNesting()
	defer p.leaveNesting()
	p.nextToken()
	exponent := p.parseUnary(filters)
	return p.placeNode(&ast.BinaryNode{Operator: op.text, Left: base, Right: exponent}, op, from)
}
