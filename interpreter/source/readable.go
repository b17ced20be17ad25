package source

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// mostMarks is how many marks a letter may carry, one above the other. Letters with
	// hundreds of marks cover the lines above and below them.
	mostMarks = 4
	zwnj, zwj = '\u200c', '\u200d'
)

// blanks have a width and no picture, and are no spaces either.
const blanks = "\u115f\u1160\u2800\u3164\uffa0"

// ReadableText makes text from outside readable next to other text: characters that are
// invisible, change the direction of their surroundings, or are drawn over others are escaped.
// Line breaks stay.
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

// IsHidden reports whether a character is invisible or reorders others: control characters,
// including line breaks and tabs, those that change the direction of text ("Trojan Source",
// CVE-2021-42574), and those without width, except the two joiners.
func IsHidden(r rune) bool {
	return unicode.IsControl(r) || r != zwnj && r != zwj && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// ShortenMiddle cuts a text in its middle, so that both of its ends are seen.
func ShortenMiddle(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	const ofHead = 3 // parts of four
	head := most * ofHead / (ofHead + 1)
	return string(runes[:head]) + " … " + string(runes[len(runes)-(most-head):])
}

// Count says how many there are of something: 1 row, 2 rows.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
