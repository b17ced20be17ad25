package source

import (
	"strings"
	"unicode"
)

// MarkdownCode returns an untrusted text as code in Markdown, where nothing in it becomes a link, an image or a table cell,
// shortened to most runes.
func MarkdownCode(text string, most int) string {
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
	}, CutText(ReadableText(text), most))
	if strings.TrimSpace(plain) == "" {
		return ""
	}
	return "`" + plain + "`"
}

// ProseText returns an untrusted text as prose in Markdown: paragraphs are kept, and all other Markdown in it is
// escaped.
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
