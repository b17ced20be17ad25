package expression

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

func isConstant(name string) bool {
	return slices.Contains([]string{"true", "True", "false", "False", "nil", "null", "none", "None"}, name)
}

// parsePrimary parses an operand without its members and indexes. For a name from the scope it also returns the
// index of its reference.
func (p *parser) parsePrimary() (ast.Node, int) {
	t := p.nextToken()
	switch t.kind {
	case tokenName:
		return p.parseName(t)
	case tokenNumber:
		return p.parseNumber(t), noRef
	case tokenString:
		return p.placeNode(&ast.StringNode{Value: t.text}, t, t.from), noRef
	}
	switch {
	case t.isOperator("("):
		return p.parseParentheses(t), noRef
	case t.isOperator("["):
		return p.parseList(t), noRef
	case t.isOperator("{"):
		return p.parseMap(t), noRef
	case t.isOperator("#"):
		return p.parsePointer(t), noRef
	case t.isOperator(".") && len(p.closures) > 0:
		p.at-- // the member .name of the element
		return p.placeNode(&ast.PointerNode{}, t, t.from), noRef
	case t.isOperator("."):
		failParse(t.from, t.to, codeSyntax, "a name is missing before \".\"; .name alone is allowed only inside a predicate")
	}
	p.failNoOperand(t)
	return nil, noRef
}

func (p *parser) failNoOperand(t token) {
	before := p.tokens[max(p.at-2, 0)]
	if t.kind == tokenEnd {
		before = p.tokens[max(p.at-1, 0)]
		failParse(before.from, before.to, codeSyntax, fmt.Sprintf("a value is missing after %s", before.describeToken()))
	}
	if t.isOperator("|") || binaryLevels[t.text] > 0 || t.isWord("is") {
		failParse(t.from, t.to, codeSyntax, fmt.Sprintf("a value is missing before %q", t.text))
	}
	p.failUnexpected(t, "a value was expected here")
}

// parseName parses a constant, a call, or a name from the scope.
func (p *parser) parseName(t token) (ast.Node, int) {
	if open := p.peekToken(); open.isOperator("(") && !slices.Contains([]string{"and", "or", "in", "is", "if", "not"}, t.text) {
		p.nextToken()
		return p.parseCall(t, &open, nil, t.from), noRef
	}
	switch t.text {
	case "true", "True":
		return p.placeNode(&ast.BoolNode{Value: true}, t, t.from), noRef
	case "false", "False":
		return p.placeNode(&ast.BoolNode{Value: false}, t, t.from), noRef
	case "nil", "null", "none", "None":
		return p.placeNode(&ast.NilNode{}, t, t.from), noRef
	case "and", "or", "in", "is", "if", "else", "not":
		p.failNoOperand(t)
	}
	ref := p.addRef(t)
	return p.placeNode(&ast.IdentifierNode{Value: t.text}, t, t.from), ref
}

// parseParentheses parses (e), and Python's (a, b) as a list.
func (p *parser) parseParentheses(open token) ast.Node {
	if p.peekToken().isOperator(")") {
		failParse(open.from, p.peekToken().to, codeSyntax, `"()" holds no value; an empty list is written []`)
	}
	first := p.parseExpression()
	if !p.peekToken().isOperator(",") {
		p.expectClosing(open, ")")
		return first
	}
	p.nextToken()
	nodes := append([]ast.Node{first}, p.parseElements(open, ")")...)
	p.builds = true
	return p.placeNode(&ast.ArrayNode{Nodes: nodes}, open, open.from)
}

func (p *parser) parseList(open token) ast.Node {
	nodes := p.parseElements(open, "]")
	p.builds = true
	return p.placeNode(&ast.ArrayNode{Nodes: nodes}, open, open.from)
}

// parseElements parses values up to the closing bracket. A comma after the last one is allowed.
func (p *parser) parseElements(open token, bracket string) []ast.Node {
	var nodes []ast.Node
	for !p.acceptOperator(bracket) {
		nodes = append(nodes, p.parseExpression())
		if !p.acceptOperator(",") {
			p.expectClosing(open, bracket)
			break
		}
	}
	return nodes
}

// parseMap parses {key: value}. As in expr, a plain name is the text of the key.
func (p *parser) parseMap(open token) ast.Node {
	var pairs []ast.Node
	for !p.acceptOperator("}") {
		pairs = append(pairs, p.parsePair(open))
		if !p.acceptOperator(",") {
			p.expectClosing(open, "}")
			break
		}
	}
	p.builds = true
	return p.placeNode(&ast.MapNode{Pairs: pairs}, open, open.from)
}

func (p *parser) parsePair(open token) ast.Node {
	t := p.peekToken()
	var key ast.Node
	switch {
	case t.kind == tokenName, t.kind == tokenString, t.kind == tokenNumber:
		p.nextToken()
		key = p.placeNode(&ast.StringNode{Value: t.text}, t, t.from)
	case t.isOperator("("):
		p.nextToken()
		key = p.parseExpression()
		p.expectClosing(t, ")")
	case t.kind == tokenEnd:
		failParse(open.from, open.to, codeSyntax, `"{" is never closed; "}" is missing`)
	default:
		p.failUnexpected(t, "a key was expected: a name, a text, a number, or (an expression) in parentheses")
	}
	if !p.acceptOperator(":") {
		p.failUnexpected(p.peekToken(), `":" was expected after a key, as in {name: value}`)
	}
	value := p.parseExpression()
	return p.placeNode(&ast.PairNode{Key: key, Value: value}, t, t.from)
}

// parsePointer parses #, #index and #acc.
func (p *parser) parsePointer(t token) ast.Node {
	if len(p.closures) == 0 {
		failParse(t.from, t.to, codeSyntax, `"#" is the element of a list and is allowed only inside a predicate, as in filter(xs, # > 1)`)
	}
	name := p.peekToken()
	if name.kind != tokenName || name.from != t.to {
		return p.placeNode(&ast.PointerNode{}, t, t.from)
	}
	p.nextToken()
	around := p.closures[len(p.closures)-1]
	switch {
	case name.text == "index" && around != "map" && around != "reduce":
		p.reportProblem(name, codeUnsupported, fmt.Sprintf("#index is available only in map and reduce, not in %s", around))
	case name.text == "acc" && around != "reduce":
		p.reportProblem(name, codeUnsupported, fmt.Sprintf("#acc is available only in reduce, not in %s", around))
	case name.text != "index" && name.text != "acc":
		p.reportProblem(name, codeSyntax, fmt.Sprintf("unknown #%s; a member of the element is written .%s or #.%s",
			name.text, name.text, name.text))
	}
	return p.placeNode(&ast.PointerNode{Name: name.text}, t, t.from)
}

// parseNumber builds the node of a number. The number keeps its digits as written.
func (p *parser) parseNumber(t token) ast.Node {
	text := strings.ReplaceAll(t.text, "_", "")
	if err := CheckDigits(text); err != nil {
		failParse(t.from, t.to, codeSyntax, err.Error())
	}
	if len(text) > 1 && strings.ContainsAny(text[1:2], "xXoObB") {
		n, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			failParse(t.from, t.to, codeSyntax, fmt.Sprintf("%q does not fit into 64 bits", t.text))
		}
		return p.placeNode(&ast.IntegerNode{Value: int(n)}, t, t.from)
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil && strings.ContainsAny(text, ".eE") {
		failParse(t.from, t.to, codeSyntax, fmt.Sprintf("%q is too large for a number", t.text))
	}
	switch n, _ := ParseNumber(text); v := n.(type) {
	case int:
		return p.placeNode(&ast.IntegerNode{Value: v}, t, t.from)
	case float64:
		return p.placeNode(&ast.FloatNode{Value: v}, t, t.from)
	default:
		return p.placeNode(&ast.ConstantNode{Value: v}, t, t.from)
	}
}

// smallestInteger parses -9223372036854775808, whose digits without the sign are beyond 64 bits.
func (p *parser) smallestInteger(sign token) (ast.Node, bool) {
	const digits = "9223372036854775808"
	if t := p.peekToken(); !sign.isOperator("-") || t.kind != tokenNumber || t.text != digits {
		return nil, false
	}
	if after := p.peekAt(1); after.isOperator("**") || after.isOperator("^") || after.isOperator(".") || after.isOperator("[") || after.isOperator("??") {
		return nil, false
	}
	p.nextToken()
	return p.placeNode(&ast.IntegerNode{Value: math.MinInt}, sign, sign.from), true
}
