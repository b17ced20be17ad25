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

// primary parses an operand without what follows it. For a name from the scope
// it also returns its reference.
func (p *parser) primary() (ast.Node, int) {
	t := p.next()
	switch t.kind {
	case tokenName:
		return p.name(t)
	case tokenNumber:
		return p.number(t), noRef
	case tokenString:
		return p.add(&ast.StringNode{Value: t.text}, t, t.from), noRef
	}
	switch {
	case t.is("("):
		return p.parentheses(t), noRef
	case t.is("["):
		return p.list(t), noRef
	case t.is("{"):
		return p.mapping(t), noRef
	case t.is("#"):
		return p.pointer(t), noRef
	case t.is(".") && len(p.closures) > 0:
		p.at-- // .name is the member of the element
		return p.add(&ast.PointerNode{}, t, t.from), noRef
	case t.is("."):
		fail(t.from, t.to, codeSyntax, "a name is missing before \".\"; .name alone is allowed only inside a predicate")
	}
	p.noOperand(t)
	return nil, noRef
}

func (p *parser) noOperand(t token) {
	before := p.tokens[max(p.at-2, 0)]
	if t.kind == tokenEnd {
		before = p.tokens[max(p.at-1, 0)]
		fail(before.from, before.to, codeSyntax, fmt.Sprintf("a value is missing after %s", before.describe()))
	}
	if t.is("|") || binaryLevels[t.text] > 0 || t.word("is") {
		fail(t.from, t.to, codeSyntax, fmt.Sprintf("a value is missing before %q", t.text))
	}
	p.unexpected(t, "a value was expected here")
}

// name parses a constant, a call, or a name from the scope.
func (p *parser) name(t token) (ast.Node, int) {
	if open := p.peek(); open.is("(") && !slices.Contains([]string{"and", "or", "in", "is", "if", "not"}, t.text) {
		p.next()
		return p.call(t, &open, nil, t.from), noRef
	}
	switch t.text {
	case "true", "True":
		return p.add(&ast.BoolNode{Value: true}, t, t.from), noRef
	case "false", "False":
		return p.add(&ast.BoolNode{Value: false}, t, t.from), noRef
	case "nil", "null", "none", "None":
		return p.add(&ast.NilNode{}, t, t.from), noRef
	case "and", "or", "in", "is", "if", "else", "not":
		p.noOperand(t)
	}
	ref := p.addRef(t)
	return p.add(&ast.IdentifierNode{Value: t.text}, t, t.from), ref
}

// parentheses parses (e), and the list (a, b) of Python.
func (p *parser) parentheses(open token) ast.Node {
	if p.peek().is(")") {
		fail(open.from, p.peek().to, codeSyntax, `"()" holds no value; an empty list is written []`)
	}
	first := p.expression()
	if !p.peek().is(",") {
		p.closing(open, ")")
		return first
	}
	p.next()
	nodes := append([]ast.Node{first}, p.elements(open, ")")...)
	p.builds = true
	return p.add(&ast.ArrayNode{Nodes: nodes}, open, open.from)
}

func (p *parser) list(open token) ast.Node {
	nodes := p.elements(open, "]")
	p.builds = true
	return p.add(&ast.ArrayNode{Nodes: nodes}, open, open.from)
}

// elements parses values up to the closing bracket; a last comma is allowed.
func (p *parser) elements(open token, bracket string) []ast.Node {
	var nodes []ast.Node
	for !p.accept(bracket) {
		nodes = append(nodes, p.expression())
		if !p.accept(",") {
			p.closing(open, bracket)
			break
		}
	}
	return nodes
}

// mapping parses {key: value}. As in expr a plain name is the key's text.
func (p *parser) mapping(open token) ast.Node {
	var pairs []ast.Node
	for !p.accept("}") {
		pairs = append(pairs, p.pair(open))
		if !p.accept(",") {
			p.closing(open, "}")
			break
		}
	}
	p.builds = true
	return p.add(&ast.MapNode{Pairs: pairs}, open, open.from)
}

func (p *parser) pair(open token) ast.Node {
	t := p.peek()
	var key ast.Node
	switch {
	case t.kind == tokenName, t.kind == tokenString, t.kind == tokenNumber:
		p.next()
		key = p.add(&ast.StringNode{Value: t.text}, t, t.from)
	case t.is("("):
		p.next()
		key = p.expression()
		p.closing(t, ")")
	case t.kind == tokenEnd:
		fail(open.from, open.to, codeSyntax, `"{" is never closed; "}" is missing`)
	default:
		p.unexpected(t, "a key was expected: a name, a text, a number, or (an expression) in parentheses")
	}
	if !p.accept(":") {
		p.unexpected(p.peek(), `":" was expected after a key, as in {name: value}`)
	}
	value := p.expression()
	return p.add(&ast.PairNode{Key: key, Value: value}, t, t.from)
}

// pointer parses #, #index and #acc.
func (p *parser) pointer(t token) ast.Node {
	if len(p.closures) == 0 {
		fail(t.from, t.to, codeSyntax, `"#" is the element of a list and is allowed only inside a predicate, as in filter(xs, # > 1)`)
	}
	name := p.peek()
	if name.kind != tokenName || name.from != t.to {
		return p.add(&ast.PointerNode{}, t, t.from)
	}
	p.next()
	around := p.closures[len(p.closures)-1]
	switch {
	case name.text == "index" && around != "map" && around != "reduce":
		p.report(name, codeUnsupported, fmt.Sprintf("#index is available only in map and reduce, not in %s", around))
	case name.text == "acc" && around != "reduce":
		p.report(name, codeUnsupported, fmt.Sprintf("#acc is available only in reduce, not in %s", around))
	case name.text != "index" && name.text != "acc":
		p.report(name, codeSyntax, fmt.Sprintf("unknown #%s; a member of the element is written .%s or #.%s",
			name.text, name.text, name.text))
	}
	return p.add(&ast.PointerNode{Name: name.text}, t, t.from)
}

// number builds the node of a number as written. It keeps its digits.
func (p *parser) number(t token) ast.Node {
	text := strings.ReplaceAll(t.text, "_", "")
	if err := CheckDigits(text); err != nil {
		fail(t.from, t.to, codeSyntax, err.Error())
	}
	if len(text) > 1 && strings.ContainsAny(text[1:2], "xXoObB") {
		n, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			fail(t.from, t.to, codeSyntax, fmt.Sprintf("%q does not fit into 64 bits", t.text))
		}
		return p.add(&ast.IntegerNode{Value: int(n)}, t, t.from)
	}
	if _, err := strconv.ParseFloat(text, 64); err != nil && strings.ContainsAny(text, ".eE") {
		fail(t.from, t.to, codeSyntax, fmt.Sprintf("%q is too large for a number", t.text))
	}
	switch n, _ := ParseNumber(text); v := n.(type) {
	case int:
		return p.add(&ast.IntegerNode{Value: v}, t, t.from)
	case float64:
		return p.add(&ast.FloatNode{Value: v}, t, t.from)
	default:
		return p.add(&ast.ConstantNode{Value: v}, t, t.from)
	}
}

// smallestInteger parses -9223372036854775808, whose digits alone are beyond
// 64 bits.
func (p *parser) smallestInteger(sign token) (ast.Node, bool) {
	const digits = "9223372036854775808"
	if t := p.peek(); !sign.is("-") || t.kind != tokenNumber || t.text != digits {
		return nil, false
	}
	if after := p.peekAt(1); after.is("**") || after.is("^") || after.is(".") || after.is("[") || after.is("??") {
		return nil, false
	}
	p.next()
	return p.add(&ast.IntegerNode{Value: math.MinInt}, sign, sign.from), true
}
