package source

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// mostMarks bounds the combining marks on a letter. Letters with hundreds of marks cover the lines above and
	// below them.
	mostMarks = 4
	zwnj, zwj = '\u200c', '\u200d'
)

// blanks have a width but are invisible, and do not count as spaces.
const blanks = "\u115f\u1160\u2800\u3164\uffa0"

// ReadableText makes untrusted text safe to show: it escapes characters that are invisible, change the direction of
// surrounding text, or are drawn over others. Line breaks are kept.
func ReadableText(text string) string {
	var out strings.Builder
	marks, last := mostMarks, rune(0) // a mark at the start would be on the letter of somebody else
	for at, r := range text {
		isMark := unicode.In(r, unicode.Mn, unicode.Me)
		if isMark {
			marks++
		} else {
			marks = 0
		}
		_, width := utf8.DecodeRuneInString(text[at:])
		switch {
		case r == '\r' && strings.HasPrefix(text[at:], "\r\n"):
		case r == '\n':
			out.WriteRune(r)
		case r == '\t' || unicode.Is(unicode.Zs, r):
			out.WriteByte(' ')
		case r == utf8.RuneError && width == 1:
			fmt.Fprintf(&out, `\x%02x`, text[at])
		case isMark && marks > mostMarks, IsHidden(r), strings.ContainsRune(blanks, r),
			(r == zwnj || r == zwj) && last < unicode.MaxLatin1:
			fmt.Fprintf(&out, `\u%04x`, r)
			last = 0
			continue
		default:
			out.WriteRune(r)
		}
		last = r
	}
	return out.String()
}

// IsHidden reports whether a character is invisible or reorders others: control characters, including line breaks
// and tabs, those that change the direction of text ("Trojan Source", CVE-2021-42574), and those without width,
// except the two joiners.
func IsHidden(r rune) bool {
	return unicode.IsControl(r) || r != zwnj && r != zwj && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// ShortenMiddle shortens a text by removing its middle.
func ShortenMiddle(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	const ofHead = 3 // parts of four
	head := most * ofHead / (ofHead + 1)
	return string(runes[:head]) + " … " + string(runes[len(runes)-(most-head):])
}

// Count returns a number with a noun: 1 row, 2 rows.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
