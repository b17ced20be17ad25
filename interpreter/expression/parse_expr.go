package expression

import (
	"fmt"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// parseExpression parses the lowest level of precedence: let, if, and conditional expressions.
func (p *parser) parseExpression() ast.Node {
	p.enterNesting()
	defer p.leaveNesting()
	first := p.peekToken()
	if first.isWord("let") && p.peekAt(1).kind == tokenName && !slices.Contains(operatorWords, p.peekAt(1).text) {
		return p.parseLet()
	}
	if first.isWord("if") {
		return p.ifBlock()
	}
	node := p.parseBinary(levelOr)
	for {
		switch t := p.peekToken(); {
		case t.isWord("if"):
			node = p.inlineIf(node, first.from)
		case t.isOperator("?"), t.isOperator("?:"):
			node = p.parseTernary(node, first.from)
		default:
			return node
		}
	}
}

// parseLet parses let name = value; body. As in expr, a name cannot be bound twice.
func (p *parser) parseLet() ast.Node {
	from := p.nextToken().from
	name := p.nextToken()
	switch {
	case slices.Contains(p.lets, name.text):
		p.reportProblem(name, codeSyntax, fmt.Sprintf("%q is already bound by an outer let; choose another name", name.text))
	case isConstant(name.text):
		p.reportProblem(name, codeSyntax, fmt.Sprintf("%q is reserved; choose another name", name.text))
	}
	if !p.acceptOperator("=") {
		p.failUnexpected(p.peekToken(), fmt.Sprintf("let is written let %s = …; …", name.text))
	}
	value := p.parseExpression()
	if t := p.peekToken(); !p.acceptOperator(";") {
		p.failUnexpected(t, fmt.Sprintf("let needs a body: let %s = …; …", name.text))
	}
	if t := p.peekToken(); t.kind == tokenEnd {
		failParse(t.from, t.to, codeSyntax, fmt.Sprintf("let needs a body: let %s = …; …", name.text))
	}
	p.lets = append(p.lets, name.text)
	body := p.parseExpression()
	p.lets = p.lets[:len(p.lets)-1]
	return p.placeNode(&ast.VariableDeclaratorNode{Name: name.text, Value: value, Expr: body}, name, from)
}

// ifBlock parses expr's if c { a } else { b }.
func (p *parser) ifBlock() ast.Node {
	p.enterNesting()
	defer p.leaveNesting()
	word := p.nextToken()
	cond := p.parseBinary(levelOr)
	yes := p.parseBlock(word)
	if t := p.nextToken(); !t.isWord("else") {
		p.failUnexpected(t, "if needs an else: if c { a } else { b }")
	}
	var no ast.Node
	if p.peekToken().isWord("if") {
		no = p.ifBlock()
	} else {
		no = p.parseBlock(word)
	}
	return p.placeNode(&ast.ConditionalNode{Cond: cond, Exp1: yes, Exp2: no}, word, word.from)
}

func (p *parser) parseBlock(word token) ast.Node {
	open := p.peekToken()
	if !p.acceptOperator("{") {
		p.failUnexpected(open, "if is written if c { a } else { b }, or a if c else b")
	}
	if p.peekToken().isOperator("}") {
		failParse(open.from, p.peekToken().to, codeSyntax, fmt.Sprintf("the block of %q is empty", word.text))
	}
	node := p.parseExpression()
	p.expectClosing(open, "}")
	return node
}

// inlineIf parses the rest of Jinja's a if c else b, from the if on.
func (p *parser) inlineIf(yes ast.Node, from int) ast.Node {
	word := p.nextToken()
	cond := p.parseBinary(levelOr)
	if t := p.peekToken(); !t.isWord("else") {
		if t.kind != tokenEnd && !t.isOperator(")") && !t.isOperator("]") && !t.isOperator("}") && !t.isOperator(",") {
			p.failUnexpected(t, `"else" or an operator was expected here`)
		}
		failParse(word.from, word.to, codeSyntax, `"a if c" needs an else; write a if c else nil, or a if c else ""`)
	}
	p.nextToken()
	no := p.parseExpression()
	return p.placeNode(&ast.ConditionalNode{Ternary: true, Cond: cond, Exp1: yes, Exp2: no}, word, from)
}

// parseTernary parses the rest of c ? a : b, or of c ?: b, whose value is c if c is true. In the second form the
// condition is in the tree twice.
func (p *parser) parseTernary(cond ast.Node, from int) ast.Node {
	mark := p.nextToken()
	yes := cond
	if mark.isOperator("?:") || p.acceptOperator(":") {
		p.countNodes(countNodes(cond), mark)
	} else {
		yes = p.parseExpression()
		if t := p.peekToken(); !p.acceptOperator(":") {
			if t.kind == tokenEnd {
				failParse(mark.from, mark.to, codeSyntax, `"?" needs ":"; write c ? a : b`)
			}
			p.failUnexpected(t, `":" or an operator was expected here, as in c ? a : b`)
		}
	}
	no := p.parseExpression()
	return p.placeNode(&ast.ConditionalNode{Ternary: true, Cond: cond, Exp1: yes, Exp2: no}, mark, from)
}

// nodeCounter counts nodes as the visitor of ast.Walk.
type nodeCounter int

func (c *nodeCounter) Visit(*ast.Node) { *c++ }

func countNodes(node ast.Node) int {
	var c nodeCounter
	ast.Walk(&node, &c)
	return int(c)
}
