package expression

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"reprise/interpreter/source"
)

// tokenKind is the kind of a token of an expression.
type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenNumber
	tokenString
	tokenOperator // including brackets
)

// token is one token of an expression. from and to are offsets in runes. text is the token as written; for a string
// it is the value without quotes, with its escapes replaced.
type token struct {
	kind     tokenKind
	text     string
	from, to int
}

func (t token) isOperator(operator string) bool { return t.kind == tokenOperator && t.text == operator }

func (t token) isWord(name string) bool { return t.kind == tokenName && t.text == name }

// describeToken returns how a message names the token.
func (t token) describeToken() string {
	switch t.kind {
	case tokenEnd:
		return "the end"
	case tokenString:
		return fmt.Sprintf("the text %q", source.CutText(t.text, 20))
	default:
		return fmt.Sprintf("%q", t.text)
	}
}

// operators are ordered so that the longest one matches first.
var operators = []string{
	"==", "!=", "<=", ">=", "&&", "||", "**", "??", "?.", "?:", "..",
	"<", ">", "+", "-", "*", "/", "%", "^", "!", "|", "~", "?", ":", ",", ".", ";", "=", "#",
	"(", ")", "[", "]", "{", "}",
}

// foreign lists texts that start a token in other languages, with a hint for each. They are tried before the
// operators, the longest first.
var foreign = []struct{ text, hint string }{
	{"//", `"//" is floor division in Jinja and a comment in expr; write floor(a / b)`},
	{"/*", `comments are not part of an expression; put them into the YAML as # comment`},
	{"===", `"===" is no operator; write ==`},
	{"!==", `"!==" is no operator; write !=`},
	{"<>", `"<>" is no operator; write !=`},
	{"::", `"::" is no operator; a slice has no step, and a function is called by its name alone`},
	{"{%", `{% … %} blocks are not part of an expression; write a if c else b, or let x = …; …`},
	{"%}", `{% … %} blocks are not part of an expression; write a if c else b, or let x = …; …`},
	{"->", `"->" is no operator; write the member as a.b`},
	{"=>", `"=>" is no operator; a predicate is written with #, as in filter(xs, # > 1)`},
	{"$json", `"$json" is a name of n8n; the response of this step is response, and the result of another step has the step's name`},
	{"$node", `"$node" is a name of n8n; the result of a step has the step's name`},
	{"$env", `"$env" is a name of n8n; credentials stay with the worker: use a connection, with auth`},
	{"$", `names start with a letter or "_"; "$" is not part of a name`},
	{"@", `"@" is no operator`},
	{"&", `"&" is no operator; write and, or bitand(a, b)`}, // but not &&, see lexOperator
}

// lexer splits an expression into tokens. Like the parser, it reports its first problem with the panic of
// failParse.
type lexer struct {
	text   []rune
	at     int
	tokens []token
}

// lexTokens returns the tokens of the text; the last one has the kind tokenEnd.
func lexTokens(text []rune) []token {
	const usual = 3 // runes of a token, with the space around it
	l := &lexer{text: text, tokens: make([]token, 0, len(text)/usual+usual)}
	for l.nextToken() {
	}
	return append(l.tokens, token{kind: tokenEnd, from: len(text), to: len(text)})
}

func (l *lexer) nextToken() bool {
	for l.at < len(l.text) && unicode.IsSpace(l.text[l.at]) {
		l.at++
	}
	if l.at >= len(l.text) {
		return false
	}
	switch r := l.text[l.at]; {
	case isQuote(r):
		l.lexString()
	case isDigit(r), r == '.' && isDigit(l.peekRune(1)):
		l.lexNumber()
	case isNameStart(r):
		l.lexName()
	default:
		l.lexOperator()
	}
	return true
}

func (l *lexer) peekRune(n int) rune {
	if l.at+n < len(l.text) {
		return l.text[l.at+n]
	}
	return 0
}

func (l *lexer) hasText(text string) bool {
	n := 0
	for _, r := range text {
		if l.peekRune(n) != r {
			return false
		}
		n++
	}
	return true
}

func (l *lexer) addToken(kind tokenKind, text string, from int) {
	l.tokens = append(l.tokens, token{kind: kind, text: text, from: from, to: l.at})
}

func (l *lexer) lexName() {
	from := l.at
	for l.at < len(l.text) && isNamePart(l.text[l.at]) {
		l.at++
	}
	text := string(l.text[from:l.at])
	if (text == "b" || text == "B") && (l.peekRune(0) == '"' || l.peekRune(0) == '\'') {
		failParse(from, l.at, codeSyntax, "bytes literals such as b\"x\" are not accepted; write the text without b")
	}
	l.addToken(tokenName, text, from)
}

func (l *lexer) lexOperator() {
	for _, f := range foreign {
		if l.hasText(f.text) && !l.hasText("&&") {
			failParse(l.at, l.at+len(f.text), codeSyntax, f.hint)
		}
	}
	for _, op := range operators {
		if l.hasText(op) {
			l.at += len(op)
			l.addToken(tokenOperator, op, l.at-len(op))
			return
		}
	}
	failParse(l.at, l.at+1, codeSyntax, fmt.Sprintf("%q is not part of an expression", string(l.text[l.at])))
}

// lexNumber reads a number. After an operand a dot accesses a member even if a digit follows (rows.0.id), so only
// digits are read there.
func (l *lexer) lexNumber() {
	from := l.at
	if l.text[l.at] == '.' && l.behindOperand() {
		l.at++
		l.addToken(tokenOperator, ".", from)
		from = l.at
		l.lexDigits(isDigit)
		l.addToken(tokenNumber, string(l.text[from:l.at]), from)
		return
	}
	switch l.peekRune(1) {
	case 'x', 'X', 'o', 'O', 'b', 'B':
		if l.peekRune(0) == '0' {
			l.at += 2
			l.lexDigits(isNamePart)
			l.addToken(tokenNumber, string(l.text[from:l.at]), from)
			return
		}
	}
	l.lexDecimal()
	if isNamePart(l.peekRune(0)) {
		l.lexDigits(isNamePart)
		word := string(l.text[from:l.at])
		failParse(from, l.at, codeSyntax, fmt.Sprintf("%q is neither a number nor a name; "+
			"a name cannot start with a digit, reach it as steps[%q]", word, word))
	}
	l.addToken(tokenNumber, string(l.text[from:l.at]), from)
}

func (l *lexer) lexDecimal() {
	l.lexDigits(isDigitOrMark)
	if l.peekRune(0) == '.' && isDigit(l.peekRune(1)) {
		l.at++
		l.lexDigits(isDigitOrMark)
	}
	if l.peekRune(0) != 'e' && l.peekRune(0) != 'E' {
		return
	}
	skip := 1
	if l.peekRune(1) == '+' || l.peekRune(1) == '-' {
		skip = 2
	}
	if isDigit(l.peekRune(skip)) {
		l.at += skip
		l.lexDigits(isDigit)
	}
}

func (l *lexer) lexDigits(accept func(rune) bool) {
	for l.at < len(l.text) && accept(l.text[l.at]) {
		l.at++
	}
}

// behindOperand reports whether the last token ends an operand directly before the current rune.
func (l *lexer) behindOperand() bool {
	if len(l.tokens) == 0 || l.tokens[len(l.tokens)-1].to != l.at {
		return false
	}
	switch last := l.tokens[len(l.tokens)-1]; last.kind {
	case tokenName:
		return !slices.Contains(operatorWords, last.text)
	case tokenOperator:
		return last.text == ")" || last.text == "]" || last.text == "}" || last.text == "#"
	case tokenNumber:
		n := len(l.tokens)
		return n > 1 && l.tokens[n-2].isOperator(".") // the 0 of rows.0.1
	default:
		return last.kind == tokenString
	}
}

// operatorWords are the names that are operators when they follow an operand.
var operatorWords = []string{
	"and", "or", "not", "in", "is", "if", "else", "matches", "contains", "startsWith", "endsWith",
}

func isQuote(r rune) bool { return r == '"' || r == '\'' || r == '`' }

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func isDigitOrMark(r rune) bool { return isDigit(r) || r == '_' }

func isNameStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

func isNamePart(r rune) bool { return isNameStart(r) || unicode.IsDigit(r) }

// closeString returns the offset after the string that starts at from, or false if the string is not closed. The
// only escape that matters here is that of the quote itself. Templates use closeString to find their }}.
func closeString(text []rune, from int) (int, bool) {
	quote := text[from]
	for i := from + 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote != '`':
			i++
		case text[i] != quote:
		case quote == '`' && i+1 < len(text) && text[i+1] == '`':
			i++
		default:
			return i + 1, true
		}
	}
	return len(text), false
}

func (l *lexer) lexString() {
	from := l.at
	end, closed := closeString(l.text, from)
	if !closed {
		failParse(from, from+1, codeSyntax, fmt.Sprintf("the text that starts with %c is never closed", l.text[from]))
	}
	l.at = end
	body := l.text[from+1 : end-1]
	if l.text[from] == '`' {
		l.addToken(tokenString, strings.ReplaceAll(string(body), "``", "`"), from)
		return
	}
	l.addToken(tokenString, unescapeText(body, from+1), from)
}

// simpleEscapes are the one-letter escapes that JSON, Python and Go share.
var simpleEscapes = map[rune]rune{
	'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', 'a': '\a', 'v': '\v',
	'\\': '\\', '"': '"', '\'': '\'', '/': '/', '`': '`',
}

// hexEscapes is the number of hexadecimal digits after \x, \u and \U.
var hexEscapes = map[rune]int{'x': 2, 'u': 4, 'U': 8}

// unescapeText replaces the escapes of a quoted text. An unknown escape stays as written, so that the \d of a
// pattern needs no second backslash.
func unescapeText(body []rune, offset int) string {
	var out strings.Builder
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			out.WriteRune(body[i])
			continue
		}
		i++ // the text cannot end with a backslash, which would escape the closing quote
		if digits := hexEscapes[body[i]]; digits > 0 {
			i = unescapeHex(&out, body, i, digits, offset)
			continue
		}
		if r, ok := simpleEscapes[body[i]]; ok {
			out.WriteRune(r)
		} else {
			out.WriteRune('\\')
			out.WriteRune(body[i])
		}
	}
	return out.String()
}

// unescapeHex writes the character of the \x, \u or \U whose letter is at i, and returns the offset of its last
// digit. Two \u that form a surrogate pair are read as one character, as in JSON.
func unescapeHex(out *strings.Builder, body []rune, i, digits, offset int) int {
	r, ok := hexRune(body, i+1, digits)
	if !ok {
		failParse(offset+i-1, offset+i+1, codeSyntax,
			fmt.Sprintf(`\%c needs %d hexadecimal digits; a backslash itself is written \\`, body[i], digits))
	}
	end := i + digits
	if utf16.IsSurrogate(r) && digits == 4 && end+2 < len(body) && body[end+1] == '\\' && body[end+2] == 'u' {
		if low, ok := hexRune(body, end+3, 4); ok {
			r, end = utf16.DecodeRune(r, low), end+6
		}
	}
	if utf16.IsSurrogate(r) || r > unicode.MaxRune || r == unicode.ReplacementChar && digits == 4 && end != i+digits {
		failParse(offset+i-1, offset+end+1, codeSyntax, fmt.Sprintf("%q is not a character", string(body[i-1:end+1])))
	}
	out.WriteRune(r)
	return end
}

func hexRune(body []rune, from, digits int) (rune, bool) {
	if from+digits > len(body) {
		return 0, false
	}
	n, err := strconv.ParseUint(string(body[from:from+digits]), 16, 32)
	if err != nil || n > 1<<31-1 {
		return 0, false
	}
	return rune(n), true
}
