package docs

import (
	"regexp"
	"slices"
	"strings"
)

var (
	fenced     = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	codeInLine = regexp.MustCompile("`[^`\n]+`")
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	listMark   = regexp.MustCompile(`^(?:[-*]|\d+\.) `)
	sentenceAt = regexp.MustCompile(`[.!?]["*)_]*(?:\s+|$)`)
)

// Prose are the paragraphs and entries of lists of a page: no code, tables or headings. Code within
// a line is one word.
func Prose(markdown string) []string {
	text := fenced.ReplaceAllString(markdown, "\n")
	text = linkTarget.ReplaceAllString(codeInLine.ReplaceAllString(text, "code"), "]")
	text = strings.NewReplacer("[", "", "]", "", "**", "").Replace(text)
	var all []string
	begins := true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "<") || strings.HasPrefix(line, "!"):
			begins = true
		case begins || listMark.MatchString(line):
			all = append(all, listMark.ReplaceAllString(line, ""))
			begins = false
		default:
			all[len(all)-1] += " " + line
		}
	}
	return all
}

// Sentences are those of a paragraph.
func Sentences(paragraph string) []string {
	var all []string
	for {
		end := sentenceAt.FindStringIndex(paragraph)
		if end == nil {
			break
		}
		all = append(all, strings.TrimSpace(paragraph[:end[1]]))
		paragraph = paragraph[end[1]:]
	}
	all = append(all, strings.TrimSpace(paragraph))
	return slices.DeleteFunc(all, func(sentence string) bool { return sentence == "" })
}
