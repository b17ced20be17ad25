package tool

import (
	"strings"
	"unicode/utf8"
)

// CutText keeps at most limit bytes of text, whole runes, and makes it valid
// UTF-8, which JSON needs.
func CutText(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	const mark = " … (cut)"
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
