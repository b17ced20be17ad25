package statement

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/expression"
)

// piece is the content of a literal, which becomes a template.
type piece struct {
	text    []rune
	offsets []int
	spans   []extent // templates, as offsets in text
}

func (p *piece) addText(source []rune, from, to int) {
	for i := from; i < to; i++ {
		p.text = append(p.text, source[i])
		p.offsets = append(p.offsets, i)
	}
}

func (p *piece) addSpan(source []rune, from, to int) {
	start := len(p.text)
	p.addText(source, from, to)
	p.spans = append(p.spans, extent{start, len(p.text)})
}

// lexTemplate reads a template outside of literals.
func (l *lexer) lexTemplate() {
	start := l.at
	l.at = l.templateEnd(start)
	var inside piece
	inside.addSpan(l.source, start, l.at)
	l.addParam(start, inside, true)
}

// lexLiteral reads '…'. Templates are recognized before quotes, so quotes inside an expression do not end the
// literal; outside of expressions, a doubled quote is a quote.
func (l *lexer) lexLiteral(start int, prefix string) {
	l.at++
	var inside piece
	for l.at < len(l.source) {
		switch r := l.source[l.at]; {
		case l.startsAt(l.at, "{{"):
			from := l.at
			l.at = l.templateEnd(from)
			inside.addSpan(l.source, from, l.at)
		case r == '\\' && prefix == "e":
			inside.addText(l.source, l.at, min(l.at+2, len(l.source)))
			l.at = min(l.at+2, len(l.source))
		case l.startsAt(l.at, "''"):
			inside.addText(l.source, l.at, l.at+1)
			l.at += 2
		case r == '\'':
			l.at++
			l.addLiteral(start, inside, prefix)
			return
		default:
			inside.addText(l.source, l.at, l.at+1)
			l.at++
		}
	}
	l.reportUnterminated(start, inside, "'")
}

// addLiteral adds a literal, as a parameter if it contains a template.
func (l *lexer) addLiteral(start int, inside piece, prefix string) {
	switch {
	case len(inside.spans) == 0:
		l.addToken(literalToken, start)
	case prefix != "":
		l.addProblem(extent{start, l.at}, CodeNotAValue, fmt.Sprintf(
			"a template is not allowed in %s'…', which has its own escaping rules: write '…' without the %s",
			strings.ToUpper(prefix), strings.ToUpper(prefix)))
		l.addToken(literalToken, start)
	default:
		l.addParam(start, inside, false)
	}
}

// lexDollar reads $$…$$, $tag$…$tag$ or $1.
func (l *lexer) lexDollar() {
	start := l.at
	end := start + 1
	for end < len(l.source) && isNamePart(l.source[end]) && l.source[end] != '$' {
		end++
	}
	tagged := l.dialect == Postgres && l.startsAt(end, "$") && !isDigit(l.peekRune(1))
	if !tagged {
		l.at = end
		kind := placeholderToken
		if end == start+1 {
			kind = operatorToken
		}
		l.addToken(kind, start)
		return
	}
	tag := string(l.source[start : end+1])
	l.at = end + 1
	var inside piece
	for l.at < len(l.source) {
		switch {
		case l.startsAt(l.at, "{{"):
			from := l.at
			l.at = l.templateEnd(from)
			inside.addSpan(l.source, from, l.at)
		case l.startsAt(l.at, tag):
			l.at += len([]rune(tag))
			l.addLiteral(start, inside, "")
			return
		default:
			inside.addText(l.source, l.at, l.at+1)
			l.at++
		}
	}
	l.reportUnterminated(start, inside, tag)
}

// reportUnterminated reports a literal without an end, or the template that swallowed its end. It reports nothing
// if reading stopped because of too many templates.
func (l *lexer) reportUnterminated(start int, inside piece, mark string) {
	if l.templates > maxParams {
		return
	}
	before := len(l.problems)
	if len(inside.spans) > 0 {
		last := inside.spans[len(inside.spans)-1]
		at := inside.offsets[last.start]
		_, problems := expression.ParseTemplate(string(inside.text[last.start:last.end]))
		l.templateProblems(problems, func(offset int) int { return at + offset })
	}
	if len(l.problems) == before {
		l.addProblem(extent{start, min(start+1, len(l.source))}, CodeSyntax, fmt.Sprintf("a literal that starts with %s is not closed with %s", mark, mark))
	}
}

// quotedName reads "…" and, for SQLite, `…` and […].
func (l *lexer) quotedName(start int) {
	end := l.source[l.at]
	if end == '[' {
		end = ']'
	}
	templates := false
	for l.at++; l.at < len(l.source); l.at++ {
		if l.startsAt(l.at, "{{") {
			templates = true
			l.at = l.templateEnd(l.at) - 1
			continue
		}
		if l.source[l.at] != end {
			continue
		}
		if end == ']' || l.peekRune(1) != end {
			l.at++
			l.addToken(quotedToken, start)
			if templates {
				l.addProblem(extent{start, l.at}, CodeNotAValue, notAValue("a name in double quotes", "write the name, or put a value in single quotes"))
			}
			return
		}
		l.at++
	}
	if l.templates > maxParams {
		return // reading stopped before its end
	}
	l.addProblem(extent{start, start + 1}, CodeSyntax, fmt.Sprintf("a name that starts with %c is not closed", l.source[start]))
}

// addParam compiles the template of a parameter and adds its token.
func (l *lexer) addParam(start int, inside piece, bare bool) {
	if l.templates > maxParams {
		return
	}
	whole := extent{start, l.at}
	inside.offsets = append(inside.offsets, inside.offsets[len(inside.offsets)-1]+1)
	l.dropReplace(&inside)
	text := string(inside.text)
	template, problems := expression.ParseTemplate(text)
	p := &param{extent: whole, bare: bare, template: template, offsets: inside.offsets, key: "literal " + text}
	l.templateProblems(problems, p.sourceOffset)
	if bare {
		p.key = "bare " + strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(text, "{{"), "}}"))
	}
	if template != nil {
		_, p.single = template.SingleProgram()
	}
	if p.single && len(inside.spans) == 1 {
		p.lead = string(inside.text[:inside.spans[0].start])
		p.trail = string(inside.text[inside.spans[0].end:])
	}
	l.tokens = append(l.tokens, token{extent: whole, kind: paramToken, text: text, param: p})
}

func (l *lexer) templateProblems(problems []expression.Problem, at func(int) int) {
	for _, problem := range problems {
		problem.Offset, problem.End = at(problem.Offset), at(problem.End)
		l.problems = append(l.problems, Problem{Problem: problem})
	}
}

// doubling matches the filter that doubles quotes, in every way in which its own quotes can be written. It was
// needed in SQL made of text, and a parameter must not have it.
var doubling = regexp.MustCompile(`\|\s*replace\(\s*(?:"\\?'"|'\\'')\s*,\s*(?:"\\?'\\?'"|'\\'\\'')\s*\)\s*$`)

// dropReplace overwrites a final replace that doubles quotes with spaces, so that offsets do not change, if the rest of the
// expression compiles: then its | is an operator.
func (l *lexer) dropReplace(inside *piece) {
	for _, span := range inside.spans {
		if span.end-span.start < 4 {
			continue
		}
		from, to := span.start+2, span.end-2
		expr := string(inside.text[from:to])
		found := doubling.FindStringIndex(expr)
		if found == nil {
			continue
		}
		if _, problems := expression.Compile(expr); len(problems) > 0 {
			continue
		}
		begin := from + len([]rune(expr[:found[0]]))
		inside.text = slices.Clone(inside.text)
		for i := begin; i < to; i++ {
			inside.text[i] = ' '
		}
		l.problems = append(l.problems, Problem{Warning: true, Problem: expression.Problem{
			Offset: inside.offsets[begin], End: inside.offsets[to], Code: CodeReplaceDropped,
			Message: `the final replace("'", "''") is dropped: the value becomes a bind parameter, so doubled quotes would end up in the data; remove it`,
		}})
	}
}
