package expression

import (
	"fmt"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
)

// The limits of one expression. They are part of the language (docs/concepts/expressions.md).
const (
	// maxSource is the most bytes of an expression. An expression is parsed in each process that reads the
	// playbook, including workflows.
	maxSource = 4096
	// maxNodes is the most parts of an expression. Evaluation visits all of them.
	maxNodes = 500
	// maxNesting is how deeply an expression may be nested. Parser and evaluation are recursive, and Go ends a
	// program whose stack overflows.
	maxNesting = 64
	// maxClosures is how many predicates may be nested in each other. Each of them multiplies the work by the
	// length of a list.
	maxClosures = 2
)

// tree is a parsed expression. Its nodes are those that expr's own parser would build for the equivalent text, with
// positions in the text as written.
type tree struct {
	node   ast.Node
	refs   []Ref
	builds bool // creates lists or maps, or calls functions, so that the result may be large
	raw    bool // ends in | raw

	// spans is the extent of every node in the text. Only errors need it, so it is filled on request.
	spans map[ast.Node]file.Location
}

// parser builds the tree. reportProblem records problems after which parsing can continue; failParse ends the
// parse.
type parser struct {
	tree

	tokens   []token
	at       int
	nodes    int
	depth    int
	closures []string // names of the surrounding predicates, innermost last
	lets     []string // names bound by let at the current position
	problems []Problem
}

// parseExpression parses one expression. The tree is valid only if there are no problems.
func parseExpression(text []rune, withSpans bool) (result tree, problems []Problem) {
	p := &parser{}
	if withSpans {
		p.spans = map[ast.Node]file.Location{}
	}
	defer func() {
		if r := recover(); r != nil {
			failure, ok := r.(parseFailure)
			if !ok {
				panic(r)
			}
			result, problems = tree{}, sortProblems(append(p.problems, failure.problem))
		}
	}()
	p.tokens = lexTokens(text)
	if p.peekToken().kind == tokenEnd {
		failParse(0, len(text), codeSyntax, "the expression is empty")
	}
	p.node = p.parseExpression()
	p.expectEnd()
	markLoneReference(p.node, p.refs)
	return p.tree, sortProblems(p.problems)
}

func (p *parser) peekToken() token { return p.tokens[p.at] }

func (p *parser) peekAt(n int) token {
	return p.tokens[min(p.at+n, len(p.tokens)-1)]
}

func (p *parser) nextToken() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

// acceptOperator consumes the operator if it comes next.
func (p *parser) acceptOperator(operator string) bool {
	if !p.peekToken().isOperator(operator) {
		return false
	}
	p.at++
	return true
}

// expectClosing consumes the bracket that closes open, or ends the parse.
func (p *parser) expectClosing(open token, bracket string) {
	switch t := p.peekToken(); {
	case p.acceptOperator(bracket):
	case t.kind == tokenEnd:
		failParse(open.from, open.to, codeSyntax, fmt.Sprintf("%q is never closed; %q is missing", open.text, bracket))
	default:
		p.failUnexpected(t, fmt.Sprintf("%q or an operator was expected here", bracket))
	}
}

// failUnexpected ends the parse at an unexpected token. For some tokens there is a better explanation than the text
// in expected.
func (p *parser) failUnexpected(t token, expected string) {
	message := fmt.Sprintf("unexpected %s; %s", t.describeToken(), expected)
	switch {
	case t.isOperator("="):
		message = `"=" is no comparison; write ==`
	case t.isOperator(";"):
		message = `";" belongs only behind let, as in let x = a.b; x + 1`
	case t.isOperator(":") && len(p.closures) == 0:
		message = `unexpected ":"; it belongs to c ? a : b, to {key: value} and to a[1:2]`
	case t.isWord("not"):
		message = `put parentheses around not here: (not x)`
	}
	failParse(t.from, max(t.to, t.from+1), codeSyntax, message)
}

func (p *parser) expectEnd() {
	switch t := p.peekToken(); {
	case t.kind == tokenEnd:
	case t.isOperator(","):
		failParse(t.from, t.to, codeSyntax, `"," belongs only inside brackets; a list is written [a, b]`)
	case t.isOperator(")"), t.isOperator("]"), t.isOperator("}"):
		failParse(t.from, t.to, codeSyntax, fmt.Sprintf("%q closes nothing", t.text))
	case t.isWord("else"):
		failParse(t.from, t.to, codeSyntax, `"else" without "if"; write a if c else b`)
	default:
		p.failUnexpected(t, "an operator was expected here")
	}
}

// reportProblem records a problem after which parsing can continue.
func (p *parser) reportProblem(t token, code, message string) {
	p.problems = append(p.problems, Problem{Offset: t.from, End: t.to, Code: code, Message: message})
}

// placeNode sets the position of a node: errors refer to at, and the text of the node starts at from. It ends with
// the token before the current one.
func (p *parser) placeNode(n ast.Node, at token, from int) ast.Node {
	n.SetLocation(file.Location{From: at.from, To: at.to})
	p.countNodes(1, at)
	if p.spans != nil && p.at > 0 {
		p.spans[n] = file.Location{From: from, To: p.tokens[p.at-1].to}
	}
	return n
}

func (p *parser) countNodes(n int, at token) {
	p.nodes += n
	if p.nodes > maxNodes {
		failParse(at.from, at.to, codeTooLarge, fmt.Sprintf(
			"the expression has more than %d parts; compute a part of it in vars first", maxNodes))
	}
}

// enterNesting ends the parse if the expression is nested too deeply. leaveNesting undoes it.
func (p *parser) enterNesting() {
	p.depth++
	if p.depth > maxNesting {
		t := p.peekToken()
		failParse(t.from, t.to, codeTooLarge, fmt.Sprintf(
			"the expression is nested more than %d deep; compute a part of it in vars first", maxNesting))
	}
}

func (p *parser) leaveNesting() { p.depth-- }
