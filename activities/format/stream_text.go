package format

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"

	"reprise/activities/tool"
)

// beyondUTF8 are bytes that text in a charset has and none in UTF-8: see isUTF8.
var beyondUTF8 = map[string]byte{"utf-16le": 0, "utf-16be": 0, "iso-2022-jp": 0x1b}

// utf8Validator passes valid UTF-8 on and fails at anything else with a ByteError.
type utf8Validator struct {
	transform.NopResetter

	offset, line int
	unknown      string // the charset that is said and not known, "" for none
	beyond       byte   // refused too, if it is not 0
}

// Transform implements transform.Transformer.
func (v *utf8Validator) Transform(dst, src []byte, atEOF bool) (written, read int, err error) {
	whole := src[:min(len(src), len(dst))]
	good := validUTF8(whole)
	copy(dst, whole[:good])
	if v.beyond != 0 {
		if at := bytes.IndexByte(whole[:good], v.beyond); at >= 0 {
			return 0, 0, &ByteError{Byte: v.beyond, Offset: v.offset + at, Line: v.line, Charset: nameUTF8}
		}
	}
	v.line += bytes.Count(whole[:good], []byte("\n"))
	v.offset += good
	rest := src[good:]
	first, size := utf8.DecodeRune(rest)
	switch {
	case len(rest) == 0:
		return good, good, nil
	case !utf8.FullRune(rest) && !atEOF:
		return good, good, transform.ErrShortSrc
	case first == utf8.RuneError && size == 1:
		return good, good, &ByteError{Byte: rest[0], Offset: v.offset, Line: v.line, Charset: nameUTF8, Unknown: v.unknown}
	}
	return good, good, transform.ErrShortDst
}

// validUTF8 returns the length of the longest valid UTF-8 at the beginning of content.
func validUTF8(content []byte) int {
	if utf8.Valid(content) {
		return len(content)
	}
	return tool.InvalidUTF8(content)
}

// streamDecoded makes UTF-8 of text in a charset. Its error is a LineError.
func streamDecoded(content io.Reader, from encoding.Encoding, name string) io.Reader {
	return transform.NewReader(transform.NewReader(content, from.NewDecoder()), &replacements{charset: name, line: 1})
}

// replacements refuses the replacement character, which decoders write for invalid bytes. Text that contains
// the character itself is refused too.
type replacements struct {
	transform.NopResetter

	charset string
	line    int
}

// Transform implements transform.Transformer.
func (r *replacements) Transform(dst, src []byte, _ bool) (written, read int, err error) {
	n := copy(dst, src)
	whole := src[:n]
	for !utf8.Valid(whole) { // what decoders write is UTF-8, cut anywhere
		whole = whole[:len(whole)-1]
	}
	if at := bytes.IndexRune(whole, utf8.RuneError); at >= 0 {
		line := r.line + bytes.Count(whole[:at], []byte("\n"))
		return 0, 0, &LineError{line, fmt.Errorf("it has bytes that are not %s; set encoding to the charset that the text is in", r.charset)}
	}
	r.line += bytes.Count(whole, []byte("\n"))
	switch {
	case len(whole) == len(src):
		return len(whole), len(whole), nil
	case n < len(src):
		return len(whole), len(whole), transform.ErrShortDst
	}
	return len(whole), len(whole), transform.ErrShortSrc
}
