package runs

import (
	"errors"
	"strings"
)

// closed says why a list filter must not be put between brackets: with one of its own
// it would leave ours, and take what we have excluded. The server's SQL has strings in
// both quotes with escapes, names in backquotes without, and comments, in which quotes
// and brackets count for nothing; no filter needs those.
func closed(filter string) error {
	open := 0
	for i := 0; i < len(filter); i++ {
		switch c := filter[i]; c {
		case '\'', '"', '`':
			length := quote(filter[i+1:], c)
			if length < 0 {
				return errors.New("a quote in it is not closed")
			}
			i += length + 1
		case '(':
			open++
		case ')':
			if open--; open < 0 {
				return errors.New("it closes a bracket that it has not opened")
			}
		case '#', ';':
			return errors.New("it has a " + string(c) + " outside of texts")
		case '-', '/':
			if strings.HasPrefix(filter[i:], "--") || strings.HasPrefix(filter[i:], "/*") || strings.HasPrefix(filter[i:], "//") {
				return errors.New("it has a comment")
			}
		}
	}
	if open > 0 {
		return errors.New("a bracket in it is not closed")
	}
	return nil
}

// quote is how long a text is up to the quote that ends it; -1 where none does.
func quote(text string, end byte) int {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == end:
			return i
		case text[i] == '\\' && end != '`':
			i++
		}
	}
	return -1
}
