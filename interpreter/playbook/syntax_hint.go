package playbook

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

var secondColon = regexp.MustCompile(`^\s*(?:- +)*[^\s:#"'{\[][^:#"'{\[]*: +[^"'{\[|>].*?(: )`)

// syntaxHint says what usually lies behind a message of the YAML parser, and in
// which column of the line it does; 0 where the column is not known.
func syntaxHint(message, text string) (column int, hint string) {
	switch {
	case strings.HasPrefix(message, "mapping values are not allowed"):
		if at := secondColon.FindStringSubmatchIndex(text); at != nil {
			return utf8.RuneCountInString(text[:at[2]]) + 1, `; text with ": " in it must stand in quotes`
		}
		return 0, "; a key stands in the same column as the key before it, or the line above lacks its colon"
	case strings.HasPrefix(message, "found unexpected end of stream"):
		return 0, "; a quote is opened here and never closed"
	case strings.HasPrefix(message, "found character that cannot start any token"):
		return 0, "; text that begins with @, ` or % must stand in quotes"
	}
	return 0, ""
}
