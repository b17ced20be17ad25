package source

import (
	"strings"
	"unicode"
)

// Code is a text of somebody else as code in Markdown, where nothing in it is a
// link, a picture or a cell of a table. It keeps at most a number of runes.
func Code(text string, most int) string {
	plain := strings.Map(func(r rune) rune { // Readable has made escapes of the rest
		switch r {
		case '`':
			return '\''
		case '|':
			return '¦'
		case '\n':
			return ' '
		}
		return r
	}, Cut(ReadableText(text), most))
	if strings.TrimSpace(plain) == "" {
		return ""
	}
	return "`" + plain + "`"
}

// ProseText is a text of somebody else as text in Markdown: its paragraphs stay, and
// whatever else Markdown would make of it is shown as it was written.
func ProseText(text string) string {
	var prose strings.Builder
	begins := true // a line, of which spaces would make code
	for _, r := range ReadableText(text) {
		switch {
		case r == '\n':
			begins = true
		case begins && unicode.IsSpace(r):
			continue
		default:
			begins = false
		}
		if strings.ContainsRune("\\`*_{}[]()#+-=.!:|&<>~^$", r) {
			prose.WriteByte('\\')
		}
		prose.WriteRune(r)
	}
	return prose.String()
}
