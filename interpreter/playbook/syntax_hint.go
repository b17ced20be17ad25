package playbook

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var secondColon = regexp.MustCompile(`^\s*(?:- +)*[^\s:#"'{\[][^:#"'{\[]*: +[^"'{\[|>].*?(: )`)

var (
	tightDash   = regexp.MustCompile(`^\s*(-[A-Za-z_][\w-]*: )`)
	inBrackets  = regexp.MustCompile(`[{\[,].*?:\s+(\$[^\s,}'"]*\[[^\s,}'"]*)`)
	bracketHint = `; in {…} and […] of YAML, text with [, ], {, } or a comma in it must be quoted`
)

// writtenTight finds a line that is a list's entry without the space behind its dash, at
// the line that a message names or directly above it.
func writtenTight(text func(int) string, line int) (tight, column int, hint string) {
	for _, n := range []int{line, line - 1} {
		if n < 1 {
			continue
		}
		if at := tightDash.FindStringSubmatchIndex(text(n)); at != nil {
			entry := strings.TrimSpace(text(n)[at[2]:at[3]])
			return n, at[2] + 1, "; a dash needs a space behind it: - " + strings.TrimPrefix(entry, "-")
		}
	}
	return 0, 0, ""
}

// pathInBrackets finds a JSONPath within brackets of YAML, which end it early.
func pathInBrackets(text string) (column int, hint string) {
	at := inBrackets.FindStringSubmatchIndex(text)
	if at == nil {
		return 0, ""
	}
	hint = bracketHint
	if plain, ok := plainPath(text[at[2]:at[3]]); ok {
		hint += "; a path here is dotted: write path: " + plain
	}
	return utf8.RuneCountInString(text[:at[2]]) + 1, hint
}

// syntaxHint says what usually lies behind a message of the YAML parser, and in
// which column of the line it does; 0 where the column is not known.
func syntaxHint(message, text string) (column int, hint string) {
	if column, hint := pathInBrackets(text); column > 0 {
		return column, hint
	}
	switch {
	case strings.HasPrefix(message, "mapping values are not allowed"):
		if at := secondColon.FindStringSubmatchIndex(text); at != nil {
			return utf8.RuneCountInString(text[:at[2]]) + 1, `; text with ": " in it must be quoted`
		}
		return 0, "; a key belongs in the same column as the key before it, or the line above lacks its colon"
	case strings.HasPrefix(message, "found unexpected end of stream"):
		return 0, "; a quote is opened here and never closed"
	case strings.HasPrefix(message, "found character that cannot start any token"):
		return 0, "; text that begins with @, ` or % must be quoted"
	case strings.HasPrefix(message, "did not find expected '-' indicator"):
		return 0, "; the keys of an entry begin in the same column, behind its dash"
	}
	return 0, ""
}
