package jinja

import (
	"strconv"
	"strings"
)

// token is a token of an expression.
type token struct {
	kind  byte // n name, s string, i number, o operator, 0 end
	text  string
	value any // of strings and numbers
}

var operators = []string{"==", "!=", "<=", ">=", "//", "**", "<", ">", "+", "-", "*", "/", "%", "~", "|", ".", ",", ":", "(", ")", "[", "]", "{", "}", "="}

// lexTokens splits an expression into tokens.
func lexTokens(source string) (tokens []token, err error) {
	rest := source
	for {
		rest = strings.TrimLeft(rest, " \t\r\n")
		if rest == "" {
			return append(tokens, token{}), nil
		}
		var one token
		if one, rest, err = nextToken(rest); err != nil {
			return nil, err
		}
		tokens = append(tokens, one)
	}
}

func nextToken(rest string) (token, string, error) {
	c := rest[0]
	switch {
	case c == '"' || c == '\'':
		return quotedToken(rest)
	case c >= '0' && c <= '9':
		return numberToken(rest)
	case isWord(c):
		end := 0
		for end < len(rest) && (isWord(rest[end]) || rest[end] >= '0' && rest[end] <= '9') {
			end++
		}
		return token{kind: 'n', text: rest[:end]}, rest[end:], nil
	}
	for _, operator := range operators {
		if behind, found := strings.CutPrefix(rest, operator); found {
			return token{kind: 'o', text: operator}, behind, nil
		}
	}
	return token{}, "", errorf("%q cannot be read", rest[:1])
}

func isWord(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func quotedToken(rest string) (token, string, error) {
	var out strings.Builder
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == rest[0]:
			return token{kind: 's', text: rest[:i+1], value: out.String()}, rest[i+1:], nil
		case rest[i] == '\\' && i+1 < len(rest):
			i++
			out.WriteString(escapedByte(rest[i]))
		default:
			out.WriteByte(rest[i])
		}
	}
	return token{}, "", errorf("a quote is not closed")
}

func escapedByte(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case '\\', '\'', '"':
		return string(c)
	}
	return `\` + string(c)
}

func numberToken(rest string) (token, string, error) {
	end := 0
	for end < len(rest) && (rest[end] >= '0' && rest[end] <= '9' || rest[end] == '_') {
		end++
	}
	whole := true
	if end+1 < len(rest) && rest[end] == '.' && rest[end+1] >= '0' && rest[end+1] <= '9' {
		whole = false
		for end++; end < len(rest) && rest[end] >= '0' && rest[end] <= '9'; {
			end++
		}
	}
	text := strings.ReplaceAll(rest[:end], "_", "")
	if whole {
		n, err := strconv.Atoi(text)
		if err != nil {
			return token{}, "", errorf("%s is too large", text)
		}
		return token{kind: 'i', text: text, value: n}, rest[end:], nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return token{}, "", errorf("%s is no number", text)
	}
	return token{kind: 'i', text: text, value: f}, rest[end:], nil
}
