package statement

import (
	"fmt"
	"strings"
)

// notAValue returns the message about a template in a place where SQL does not allow a value.
func notAValue(what, hint string) string {
	return fmt.Sprintf("a template becomes a bind parameter, which is a value and cannot be %s: %s", what, hint)
}

// frame describes one level of parentheses.
type frame struct {
	clause string // the last keyword that begins a clause
	fn     string // the word before the parenthesis
	names  bool   // it contains a list of column names
}

// checkPlaces reports every template in a place where SQL does not allow a value, as far as that can be known
// without the server.
func (p *parser) checkPlaces() {
	if !p.hasParams() {
		return
	}
	stack := []frame{{}}
	for i, t := range p.tokens {
		top := &stack[len(stack)-1]
		switch {
		case t.param != nil:
			if what, hint := p.refusalOf(i, *top); what != "" {
				p.addProblem(t.extent, CodeNotAValue, notAValue(what, hint))
			}
		case p.isAny(i, "("):
			opened := frame{names: p.opensNames(i)}
			if i > 0 && p.tokens[i-1].kind == wordToken {
				opened.fn = p.tokens[i-1].text
			}
			stack = append(stack, opened)
		case p.isAny(i, ")") && len(stack) > 1:
			stack = stack[:len(stack)-1]
		case t.kind == wordToken && clauses[t.text] && !p.isAny(i-1, "."):
			top.clause = t.text
		}
	}
}

// hasParams reports templates in statements that take no parameters, and returns false for these. Some of them
// would be accepted by the server's Prepare and fail at Bind.
func (p *parser) hasParams() bool {
	first := -1
	for i, t := range p.tokens {
		if t.param != nil {
			first = i
			break
		}
	}
	if first < 0 {
		return true
	}
	at := p.tokens[first].extent
	switch {
	case first == 0 || p.verb == "":
		p.addProblem(at, CodeNotAValue, notAValue("a whole statement", "write the statement, with templates for its values"))
		return false
	case withParams[p.dialect][p.verb], p.verb == "create" && p.tableAs() > 0 && first > p.tableAs():
		return true
	}
	hint := verbHints[p.verb]
	if hint == "" {
		hint = "only statements that read or write rows accept values"
	}
	p.addProblem(at, CodeNotAValue, notAValue("in a statement that starts with "+strings.ToUpper(p.verb), hint))
	return false
}

// tableAs returns the index of AS in CREATE TABLE … AS SELECT, 0 for other statements.
func (p *parser) tableAs() int {
	table, depth := false, 0
	for i := range p.tokens {
		switch {
		case p.isAny(i, "("):
			depth++
		case p.isAny(i, ")"):
			depth--
		case i <= 3 && p.isAny(i, "table"):
			table = true
		case table && depth == 0 && p.isAny(i, "as") && p.isAny(i+1, "select", "with", "values", "("):
			return i
		}
	}
	return 0
}

// refusalOf returns what SQL requires instead of a value at param i, and a hint; "" if a value is allowed. The
// param is not the first token: see takesParams.
func (p *parser) refusalOf(i int, in frame) (what, hint string) {
	if p.isAny(i-1, ".") || p.isAny(i+1, ".") {
		return "part of a name with dots", "write the name"
	}
	if p.isGlued(i) {
		return "part of a name", "write the name; to build text, use ~ inside the template"
	}
	if p.isAny(i+1, "(") {
		return "the name of a function", "write the name"
	}
	if i+1 < len(p.tokens) && p.tokens[i+1].kind == literalToken {
		return "directly before a literal", "put both into one literal"
	}
	before := p.tokens[i-1]
	switch before.kind {
	case operatorToken:
		if before.text == "::" {
			return "a type", "write the type"
		}
		return "", ""
	case punctToken:
		return p.refusalAfterPunct(i, in)
	case wordToken:
		return p.refusalAfterWord(i, in)
	}
	return "directly after another operand", "an operator or a comma is missing"
}

// isGlued reports whether an unquoted template touches a name, number or quote.
func (p *parser) isGlued(i int) bool {
	t := p.tokens[i]
	touches := func(other token) bool {
		return other.kind == wordToken || other.kind == numberToken || other.kind == quotedToken ||
			other.kind == literalToken || other.kind == placeholderToken || other.param != nil && other.param.bare
	}
	if !t.param.bare {
		return false
	}
	if before := p.tokens[i-1]; before.end == t.start && touches(before) {
		return true
	}
	return i+1 < len(p.tokens) && p.tokens[i+1].start == t.end && touches(p.tokens[i+1])
}

func (p *parser) refusalAfterPunct(i int, in frame) (what, hint string) {
	before := p.tokens[i-1].text
	switch {
	case before == ")" || before == "]":
		return "directly after another operand", "an operator or a comma is missing"
	case in.names:
		return "the name of a column", "write the name"
	case before != ",":
		return "", ""
	case in.clause == "from" && !fromInside[in.fn]:
		return "a table", tableHint
	case in.clause == "set":
		return "a column", "write the column's name"
	case in.clause == "by" && p.isAlone(i):
		return "a column to order or group by", refusedBehind["by"].hint
	}
	return "", ""
}

// isAlone reports whether param i is not part of a calculation.
func (p *parser) isAlone(i int) bool {
	if i+1 >= len(p.tokens) {
		return true
	}
	next := p.tokens[i+1]
	if next.kind == operatorToken {
		return next.text == "::"
	}
	return !p.isAny(i+1, "[", "and", "or", "like", "ilike", "is", "in", "between", "not", "at")
}

func (p *parser) refusalAfterWord(i int, in frame) (what, hint string) {
	word := p.tokens[i-1].text
	switch {
	case p.isAny(i-2, ".") || p.isAny(i-1, "end"):
		return "directly after another operand", "an operator or a comma is missing"
	case beforeValue[word], p.dialect == SQLite && beforeValueSQLite[word]:
		return "", ""
	case word == "from" && p.isAny(i-2, "distinct"), fromInside[in.fn] && insideFrom[word]:
		return "", ""
	case word == "in" && p.dialect == SQLite:
		return refusedBehind["in"].what, sqliteInHint
	}
	if refused, ok := refusedBehind[word]; ok {
		return refused.what, refused.hint
	}
	hint = "an operator or a comma is missing"
	if !p.tokens[i].param.bare {
		hint += ", or write the type after the literal: '…'::type"
	}
	return "directly after " + quoteText(word), hint
}

// opensNames reports whether the parenthesis at i opens a list of column names: INSERT INTO t (…), ON CONFLICT (…),
// JOIN … USING (…), AS t(…), WITH t(…).
func (p *parser) opensNames(i int) bool {
	if p.isAny(i+1, "select", "with", "values", "(") {
		return false
	}
	if p.isAny(i-1, "conflict", "using", "insert") {
		return true
	}
	name := i - 1
	if name < 0 || p.tokens[name].kind != wordToken && p.tokens[name].kind != quotedToken {
		return false
	}
	for p.isAny(name-1, ".") {
		name -= 2
	}
	return p.isAny(name-1, "into", "as", "recursive") && !p.isAny(i-1, "materialized") || p.isAny(name-1, "with") && name == 1
}
