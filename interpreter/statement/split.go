package statement

import (
	"fmt"
	"slices"
	"strconv"
)

type parser struct {
	lexer
	verb string
}

func quoteText(text string) string { return strconv.Quote(text) }

// isAny reports whether token i is one of the given words or punctuation marks.
func (p *parser) isAny(i int, texts ...string) bool {
	if i < 0 || i >= len(p.tokens) {
		return false
	}
	t := p.tokens[i]
	return (t.kind == wordToken || t.kind == punctToken) && slices.Contains(texts, t.text)
}

// splitStatements keeps the first statement and reports a second one. A semicolon inside the body of a trigger or
// an SQL function does not end a statement.
func (p *parser) splitStatements() {
	end := p.statementEnd()
	rest := end
	for p.isAny(rest, ";") {
		rest++
	}
	if rest < len(p.tokens) {
		p.addProblem(p.tokens[rest].extent, CodeNotOne,
			"a second statement starts here: a statement field holds one SQL statement, so move this one to its own step")
	}
	p.tokens = p.tokens[:end]
	first := 0
	for p.isAny(first, "(") {
		first++
	}
	if first >= len(p.tokens) {
		if len(p.problems) == 0 {
			p.addProblem(extent{0, len(p.source)}, CodeNotOne, "the statement is empty: write one SQL statement")
		}
		return
	}
	if p.tokens[first].kind == wordToken {
		p.verb = p.tokens[first].text
	}
	p.checkVerb(first)
}

func (p *parser) statementEnd() int {
	body := p.hasBody()
	depth := 0
	for i := range p.tokens {
		switch {
		case body && p.isAny(i, "begin", "case"):
			depth++
		case body && p.isAny(i, "end") && depth > 0:
			depth--
		case depth == 0 && p.isAny(i, ";"):
			return i
		}
	}
	return len(p.tokens)
}

// hasBody reports whether the statement may contain statements: CREATE TRIGGER of SQLite, CREATE FUNCTION … BEGIN
// ATOMIC of PostgreSQL.
func (p *parser) hasBody() bool {
	if !p.isAny(0, "create") {
		return false
	}
	for i := 1; i < len(p.tokens) && !p.isAny(i, ";"); i++ {
		if p.isAny(i, "trigger", "function", "procedure") {
			return true
		}
	}
	return false
}

// checkVerb reports statements that cannot work alone.
func (p *parser) checkVerb(first int) {
	switch p.verb {
	case "begin", "start", "commit", "rollback", "savepoint", "release", "end", "abort":
		p.addProblem(p.tokens[first].extent, CodeNotOne, fmt.Sprintf(
			"%q needs a second statement on the same connection, but each statement runs alone, in its own transaction; WITH can make several changes in one statement", p.verb))
	case "copy":
		for i := range p.tokens {
			if p.isAny(i, "stdin", "stdout") {
				p.addProblem(p.tokens[first].extent, CodeNotOne, fmt.Sprintf(
					"COPY with %s streams outside the statement: read with SELECT, write with table mode or INSERT", p.tokens[i].text))
				return
			}
		}
	}
}

// checkPlaceholders reports placeholders of the author in a statement with templates.
func (p *parser) checkPlaceholders() {
	templates := slices.ContainsFunc(p.tokens, func(t token) bool { return t.param != nil })
	if !templates {
		return
	}
	for i, t := range p.tokens {
		own := t.kind == placeholderToken || t.kind == operatorToken && t.text == "?" && !p.endsOperand(i-1)
		if own {
			p.addProblem(t.extent, CodeOwnPlaceholder, fmt.Sprintf(
				"%q cannot be combined with templates, which become numbered parameters themselves: write {{ … }} for this value too", t.text))
		}
	}
}

// endsOperand reports whether token i can end an operand, so that a ? after it is a PostgreSQL operator and not a
// placeholder.
func (p *parser) endsOperand(i int) bool {
	if i < 0 {
		return false
	}
	switch t := p.tokens[i]; t.kind {
	case wordToken:
		return !notOperands[t.text]
	case punctToken:
		return t.text == ")" || t.text == "]"
	case operatorToken, placeholderToken:
		return false
	}
	return true
}
