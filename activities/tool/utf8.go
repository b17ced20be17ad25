package tool

import "unicode/utf8"

// InvalidUTF8 returns the offset of the first byte of a text that is not UTF-8; -1 for none. A replacement character that
// the text has is valid.
func InvalidUTF8(text []byte) int {
	for at := 0; at < len(text); {
		char, size := utf8.DecodeRune(text[at:])
		if char == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}
