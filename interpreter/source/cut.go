package source

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// CutText shortens a text to a number of runes, for a message or a line, and appends … if it cut
// something. It closes directional marks of Unicode that the text has opened, so that they do
// not affect what follows.
func CutText(text string, most int) string {
	runes := 0
	for at := range text {
		if runes == most {
			start := []rune(text[:at])
			return string(start) + closingMarks(start) + "…"
		}
		runes++
	}
	return text
}

// closingMarks returns the characters that close the embeddings and isolates which a text leaves open (Unicode
// Standard Annex 9, explicit directional formatting).
func closingMarks(text []rune) string {
	const (
		popEmbedding = '\u202C'
		popIsolate   = '\u2069'
	)
	var open []rune // the closing mark of each
	for _, r := range text {
		switch r {
		case '\u202A', '\u202B', '\u202D', '\u202E':
			open = append(open, popEmbedding)
		case '\u2066', '\u2067', '\u2068':
			open = append(open, popIsolate)
		case popEmbedding: // it closes no embedding outside of an isolate
			if last := len(open) - 1; last >= 0 && open[last] == popEmbedding {
				open = open[:last]
			}
		case popIsolate: // it also closes the embeddings in it
			for i := len(open) - 1; i >= 0; i-- {
				if open[i] == popIsolate {
					open = open[:i]
					break
				}
			}
		}
	}
	slices.Reverse(open)
	return string(open)
}

// CutEnds shortens text to at most limit bytes, keeping its beginning and end, in whole runes and valid UTF-8. A
// line between them says how much was omitted.
func CutEnds(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	const longestMark = 80
	half := (limit - longestMark) / 2
	head, tail := half, len(text)-half
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	const near = 300 // bytes: lines up to this length are not split
	if end := strings.LastIndexByte(text[:head], '\n'); end >= 0 && head-end < near {
		head = end
	}
	if begin := strings.IndexByte(text[tail:], '\n'); begin >= 0 && begin < near {
		tail += begin + 1
	}
	left := text[head:tail]
	mark := fmt.Sprintf("… %d bytes left out …", len(left))
	if lines := strings.Count(left, "\n"); lines > 0 {
		mark = fmt.Sprintf("… %d bytes with %d line breaks left out …", len(left), lines)
	}
	return text[:head] + "\n" + mark + "\n" + text[tail:]
}
