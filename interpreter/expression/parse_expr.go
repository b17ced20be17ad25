package expression

import (
	"fmt"
	"slices"

	"github.com/expr-lang/expr/ast"
)

// expression parses the loosest level: let, if, and the conditionals.
func (p *parser) expression() ast.Node {
	p.enter()
	defer p.leave()
	first := p.peek()
	if first.word("let") && p.peekAt(1).kind == tokenName && !slices.Contains(operatorWords, p.peekAt(1).text) {
		return p.let()
	}
	if first.word("if") {
		return p.ifBlock()
	}
	node := p.binary(levelOr)
	for {
		switch t := p.peek(); {
		case t.word("if"):
			node = p.inlineIf(node, first.from)
		case t.is("?"), t.is("?:"):
			node = p.ternary(node, first.from)
		default:
			return node
		}
	}
}

// let parses let name = value; body. A name is bound once, as in expr.
func (p *parser) let() ast.Node {
	from := p.next().from
	name := p.next()
	switch {
	case slices.Contains(p.lets, name.text):
		p.report(name, codeSyntax, fmt.Sprintf("%q is already bound by an outer let; choose another name", name.text))
	case isConstant(name.text):
		p.report(name, codeSyntax, fmt.Sprintf("%q is reserved; choose another name", name.text))
	}
	if !p.accept("=") {
		p.unexpected(p.peek(), fmt.Sprintf("let is written let %s = …; …", name.text))
	}
	value := p.expression()
	if t := p.peek(); !p.accept(";") {
		p.unexpected(t, fmt.Sprintf("let needs a body: let %s = …; …", name.text))
	}
	if t := p.peek(); t.kind == tokenEnd {
		fail(t.from, t.to, codeSyntax, fmt.Sprintf("let needs a body: let %s = …; …", name.text))
	}
	p.lets = append(p.lets, name.text)
	body := p.expression()
	p.lets = p.lets[:len(p.lets)-1]
	return p.add(&ast.VariableDeclaratorNode{Name: name.text, Value: value, Expr: body}, name, from)
}

// ifBlock parses expr's if c { a } else { b }.
func (p *parser) ifBlock() ast.Node {
	p.enter()
	defer p.leave()
	word := p.next()
	cond := p.binary(levelOr)
	yes := p.block(word)
	if t := p.next(); !t.word("else") {
		p.unexpected(t, "if needs an else: if c { a } else { b }")
	}
	var no ast.Node
	if p.peek().word("if") {
		no = p.ifBlock()
	} else {
		no = p.block(word)
	}
	return p.add(&ast.ConditionalNode{Cond: cond, Exp1: yes, Exp2: no}, word, word.from)
}

func (p *parser) block(word token) ast.Node {
	open := p.peek()
	if !p.accept("{") {
		p.unexpected(open, "if is written if c { a } else { b }, or a if c else b")
	}
	if p.peek().is("}") {
		fail(open.from, p.peek().to, codeSyntax, fmt.Sprintf("the block of %q is empty", word.text))
	}
	node := p.expression()
	p.closing(open, "}")
	return node
}

// inlineIf parses the rest of Jinja's a if c else b.
func (p *parser) inlineIf(yes ast.Node, from int) ast.Node {
	word := p.next()
	cond := p.binary(levelOr)
	if t := p.peek(); !t.word("else") {
		if t.kind != tokenEnd && !t.is(")") && !t.is("]") && !t.is("}") && !t.is(",") {
			p.unexpected(t, `"else" or an operator was expected here`)
		}
		fail(word.from, word.to, codeSyntax, `"a if c" needs an else; write a if c else nil, or a if c else ""`)
	}
	p.next()
	no := p.expression()
	return p.add(&ast.ConditionalNode{Ternary: true, Cond: cond, Exp1: yes, Exp2: no}, word, from)
}

// ternary parses the rest of c ? a : b, and of c ?: b, which gives c if it is
// true. Its condition then is in the tree twice.
func (p *parser) ternary(cond ast.Node, from int) ast.Node {
	mark := p.next()
	yes := cond
	if mark.is("?:") || p.accept(":") {
		p.count(countNodes(cond), mark)
	} else {
		yes = p.expression()
		if t := p.peek(); !p.accept(":") {
			if t.kind == tokenEnd {
				fail(mark.from, mark.to, codeSyntax, `"?" needs ":"; write c ? a : b`)
			}
			p.unexpected(t, `":" or an operator was expected here, as in c ? a : b`)
		}
	}
	no := p.expression()
	return p.add(&ast.ConditionalNode{Ternary: true, Cond: cond, Exp1: yes, Exp2: no}, mark, from)
}

// nodeCounter counts nodes; the visitor of ast.Walk.
type nodeCounter int

func (c *nodeCounter) Visit(*ast.Node) { *c++ }

func countNodes(node ast.Node) int {
	var c nodeCounter
	ast.Walk(&node, &c)
	return int(c)
}
