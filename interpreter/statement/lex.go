package statement

import (
	"fmt"
	"strings"
	"unicode"

	"reprise/interpreter/expression"
)

type tokenKind uint8

const (
	wordToken tokenKind = iota
	quotedToken
	numberToken
	literalToken
	operatorToken
	punctToken // one of ( ) [ ] , ; .
	placeholderToken
	paramToken
)

// token is one token of the statement; comments and white space produce none.
type token struct {
	extent
	kind  tokenKind
	text  string // lower case for words
	param *param
}

// spanWindow bounds the search for the end of a template that cannot be parsed: longer expressions are refused
// anyway, and the bound keeps lexing linear.
const spanWindow = 5000

// maxProblems bounds the problems of one statement, after which the rest is not read: each malformed template has
// one.
const maxProblems = 100

type lexer struct {
	source   []rune
	dialect  Dialect
	at       int
	tokens   []token
	drops    []extent
	problems []Problem
	// templates counts the templates read so far.
	templates int
}

func (l *lexer) addProblem(at extent, code, message string) {
	if len(l.problems) >= maxProblems {
		return
	}
	l.problems = append(l.problems, Problem{Problem: expression.Problem{
		Offset: at.start, End: at.end, Code: code, Message: message,
	}})
}

// peekRune returns the rune n places ahead, 0 beyond the end.
func (l *lexer) peekRune(n int) rune {
	if l.at+n >= len(l.source) {
		return 0
	}
	return l.source[l.at+n]
}

func (l *lexer) startsAt(at int, text string) bool {
	for _, r := range text {
		if at >= len(l.source) || l.source[at] != r {
			return false
		}
		at++
	}
	return true
}

func (l *lexer) addToken(kind tokenKind, start int) {
	text := string(l.source[start:l.at])
	if kind == wordToken {
		text = strings.ToLower(text)
	}
	l.tokens = append(l.tokens, token{extent: extent{start, l.at}, kind: kind, text: text})
}

func (l *lexer) lexTokens() {
	for l.at < len(l.source) && len(l.problems) < maxProblems {
		l.lexNext()
	}
}

func (l *lexer) lexNext() {
	start, r := l.at, l.source[l.at]
	switch {
	case l.isBlank(r):
		l.at++
	case r == 0:
		l.at++
		l.addProblem(extent{start, l.at}, CodeSyntax, "the statement contains a NUL character, where a database would stop reading: remove it")
	case l.startsAt(start, "--"):
		l.lineComment()
	case l.startsAt(start, "/*"):
		l.blockComment()
	case l.startsAt(start, "{{"):
		l.lexTemplate()
	case r == '{' || r == '}':
		l.reportBrace(start)
	case r == '\'':
		l.lexLiteral(start, "")
	case l.opensName(r):
		l.quotedName(start)
	case r == '$':
		l.lexDollar()
	case isDigit(r), r == '.' && isDigit(l.peekRune(1)):
		l.lexNumber()
	case isNameStart(r):
		l.lexWord()
	case strings.ContainsRune("()[],;.", r):
		l.at++
		l.addToken(punctToken, start)
	default:
		l.lexOperator()
	}
}

// isBlank reports whether r is white space; for SQLite that includes a byte order mark.
func (l *lexer) isBlank(r rune) bool { return isSpace(r) || r == '\ufeff' && l.dialect == SQLite }

// opensName reports whether r opens a quoted name; SQLite also accepts the quotes of MySQL and of SQL Server.
func (l *lexer) opensName(r rune) bool {
	return r == '"' || (r == '`' || r == '[') && l.dialect == SQLite
}

// reportBrace reports a brace that does not begin a template. For a template statement ({%) it uses the message of
// package expression, which says what to write instead.
func (l *lexer) reportBrace(start int) {
	if l.startsAt(start, "{%") {
		before := len(l.problems)
		_, problems := expression.ParseTemplate(string(l.source[start:min(len(l.source), start+spanWindow)]))
		l.templateProblems(problems, func(offset int) int { return start + offset })
		if len(l.problems) > before {
			l.at = len(l.source)
			return
		}
	}
	l.at++
	l.addProblem(extent{start, l.at}, CodeSyntax, "unexpected "+quoteText(string(l.source[start]))+
		`: write a template as "{{ e }}"; SQL has no braces outside literals`)
}

// lineComment reads a comment that begins with --. For PostgreSQL a carriage return also ends it.
func (l *lexer) lineComment() {
	start := l.at
	for l.at < len(l.source) && l.source[l.at] != '\n' && (l.source[l.at] != '\r' || l.dialect == SQLite) {
		l.at++
	}
	l.noteComment(start)
}

func (l *lexer) blockComment() {
	start, depth := l.at, 0
	for l.at < len(l.source) {
		switch {
		case l.startsAt(l.at, "/*") && (depth == 0 || l.dialect == Postgres):
			depth++
			l.at += 2
		case l.startsAt(l.at, "*/"):
			depth--
			l.at += 2
		default:
			l.at++
		}
		if depth == 0 {
			l.noteComment(start)
			return
		}
	}
	l.addProblem(extent{start, start + 2}, CodeSyntax, `a comment that starts with "/*" has no "*/"`)
}

// noteComment records a comment that contains a template: it is not evaluated, and the server does not get the
// comment.
func (l *lexer) noteComment(start int) {
	if strings.Contains(string(l.source[start:l.at]), "{{") {
		l.drops = append(l.drops, extent{start, l.at})
	}
}

// templateEnd returns the end of the template that begins at i. After maxParams templates, the rest of the
// statement is not read.
func (l *lexer) templateEnd(i int) int {
	l.templates++
	if l.templates > maxParams {
		if l.templates == maxParams+1 {
			l.addProblem(extent{i, i + 2}, CodeTooLarge, fmt.Sprintf("a statement has at most %d templates", maxParams))
		}
		return len(l.source)
	}
	return expression.FindSpan(l.source[:min(len(l.source), i+spanWindow)], i).End
}

func (l *lexer) lexWord() {
	start := l.at
	for l.at < len(l.source) && isNamePart(l.source[l.at]) {
		l.at++
	}
	word := strings.ToLower(string(l.source[start:l.at]))
	switch {
	case l.peekRune(0) == '\'' && isPrefix(word, l.dialect):
		l.lexLiteral(start, word)
	case word == "u" && l.dialect == Postgres && (l.startsAt(l.at, "&'") || l.startsAt(l.at, `&"`)):
		l.at++
		if l.peekRune(0) == '"' {
			l.quotedName(start)
			return
		}
		l.lexLiteral(start, "u&")
	default:
		l.addToken(wordToken, start)
	}
}

// isPrefix reports whether a word directly before a quote is part of the literal.
func isPrefix(word string, d Dialect) bool {
	if d == SQLite {
		return word == "x"
	}
	return word == "e" || word == "b" || word == "x" || word == "n"
}

func (l *lexer) lexNumber() {
	start := l.at
	for l.at < len(l.source) {
		r := l.source[l.at]
		sign := (r == '+' || r == '-') && l.at > start && (l.source[l.at-1] == 'e' || l.source[l.at-1] == 'E')
		if !sign && r != '.' && !isNamePart(r) {
			break
		}
		l.at++
	}
	l.addToken(numberToken, start)
}

func (l *lexer) lexOperator() {
	start := l.at
	r := l.source[start]
	if l.dialect == SQLite && (r == '?' || (r == ':' || r == '@') && isNameStart(l.peekRune(1))) {
		l.at++
		for l.at < len(l.source) && isNamePart(l.source[l.at]) {
			l.at++
		}
		l.addToken(placeholderToken, start)
		return
	}
	l.at++
	if !isOperator(r) {
		l.addToken(operatorToken, start)
		return
	}
	for l.at < len(l.source) && isOperator(l.source[l.at]) && !l.startsAt(l.at, "--") && !l.startsAt(l.at, "/*") {
		l.at++
	}
	l.addToken(operatorToken, start)
}

func isOperator(r rune) bool { return strings.ContainsRune("+-*/<>=~!@#%^&|?:", r) }

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func isNameStart(r rune) bool { return r == '_' || unicode.IsLetter(r) || r >= 0x80 }

func isNamePart(r rune) bool { return isNameStart(r) || isDigit(r) || r == '$' }
