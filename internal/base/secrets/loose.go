package secrets

import (
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/interpreter/credential"
)

// minLoose is how many letters and digits a secret must have to be found by these
// alone; see [credential.Looks] for the rest.
const minLoose = 8

// loosely are the patterns with which a secret is found in its letters and digits
// alone: in capitals, with other separators, over line breaks, and in dumps of its
// bytes. A part of a secret that could be a word is no pattern.
func loosely(secret string) []pattern {
	var all []pattern
	add := func(text string, least int) {
		if core := squashed(layer{text: text}).text; len(core) >= least && credential.Looks(core) {
			all = append(all, pattern{text: core, kind: loose})
		}
	}
	add(secret, minLoose)
	if len(secret) < minSecret {
		return all
	}
	add(hex.EncodeToString([]byte(secret)), 2*minSecret)
	for _, bytes := range written(secret) {
		for _, core := range base64s(bytes) {
			add(core, 2*minLoose)
		}
	}
	return all
}

// squash is the letters and digits of ASCII in a text, in lower case, and the position
// of each.
type squash struct {
	of   layer
	text string
	at   []int32 // in the text of the layer
	// lines are the ends of the lines that are taken for lines of a dump, sorted. The
	// text behind the bytes in one repeats them.
	lines []int32
}

func squashed(of layer) squash {
	s := squash{of: of, at: make([]int32, 0, len(of.text))}
	out := make([]byte, 0, len(of.text))
	for i := 0; i < len(of.text); i++ {
		c := of.text[i]
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c == '0' && i+2 < len(of.text) && (of.text[i+1]|0x20) == 'x' && isHex(of.text[i+2]) && (i == 0 || !isWord(of.text[i-1])):
			i++ // of 0x51, 0x37
			continue
		case !isWord(c) || c == '_' || c >= utf8.RuneSelf: // what has no width is among these
			continue
		}
		out, s.at = append(out, c), append(s.at, int32(i))
	}
	s.text = string(out)
	return s
}

// dump is the bytes in the lines of a dump, as xxd, hexdump -C and od write them,
// without their offsets and without the letters beside them. It is empty where there
// are none.
func dump(of layer) squash {
	s := squash{of: of}
	var out []byte
	for start := 0; start < len(of.text); {
		end := len(of.text)
		if length := strings.IndexByte(of.text[start:], '\n'); length >= 0 {
			end = start + length
		}
		before := len(out)
		out, s.at = dumpLine(of.text, start, end, out, s.at)
		if len(out) > before {
			s.lines = append(s.lines, int32(end))
		}
		start = end + 1
	}
	s.text = strings.ToLower(string(out))
	return s
}

// dumpLine adds the digits of the bytes in a line: behind an offset, groups of two
// digits and more, as far as a gap, but for the one in the middle that hexdump has.
func dumpLine(text string, start, end int, out []byte, at []int32) ([]byte, []int32) {
	const leastOffset, middle, mostDigits = 4, 16, 64
	i := start
	for i < end && (text[i] == ' ' || text[i] == '\t') {
		i++
	}
	offset := i
	for i < end && isHex(text[i]) {
		i++
	}
	if i-offset < leastOffset || i == end {
		return out, at
	}
	if text[i] == ':' {
		i++
	}
	digits := 0
	for gap := 0; i < end && digits < mostDigits; gap = 0 {
		for i < end && (text[i] == ' ' || text[i] == '\t') {
			i++
			gap++
		}
		group := i
		for i < end && isHex(text[i]) {
			i++
		}
		length := i - group
		if length == 0 || length%2 != 0 || i < end && text[i] > ' ' || gap == 0 || gap > 1 && digits > 0 && (digits != middle || length != 2) {
			break
		}
		for k := group; k < i; k++ {
			out, at = append(out, text[k]), append(at, int32(k))
		}
		digits += length
	}
	return out, at
}

// find calls found with the positions in the original of what the matcher finds.
func (s squash) find(m *matcher, found func(start, end int)) {
	each(m, s.text, func(start, end int) bool {
		last := s.at[end-1] + 1
		if line, _ := slices.BinarySearch(s.lines, last); line < len(s.lines) {
			last = s.lines[line]
		}
		found(s.of.from(int(s.at[start])), s.of.from(int(last)))
		return true
	})
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || (c|0x20) >= 'a' && (c|0x20) <= 'f' }
