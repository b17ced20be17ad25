package format

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"

	"reprise/activities/memory"
)

// Byte order marks.
const (
	markUTF8    = "\xef\xbb\xbf"
	markUTF16BE = "\xfe\xff"
	markUTF16LE = "\xff\xfe"
)

// nameUTF8 is the name of UTF-8 in the Encoding Standard.
const nameUTF8 = "utf-8"

// ErrCharset is that of a charset that is not known.
var ErrCharset = errors.New("the charset is not known")

// Decode makes UTF-8 of content, without its byte order mark. The mark says more than
// the charset, as the Encoding Standard has it. What is in UTF-8 is given as it is.
func Decode(ctx context.Context, content []byte, charset string) ([]byte, error) {
	switch charset = Charset(charset); {
	case bytes.HasPrefix(content, []byte(markUTF8)):
		return content[len(markUTF8):], nil
	case charset != "" && (bytes.HasPrefix(content, []byte(markUTF16BE)) || bytes.HasPrefix(content, []byte(markUTF16LE))),
		isUTF16(content):
		return decodeBytes(ctx, unicode.UTF16(unicode.BigEndian, unicode.UseBOM), content)
	case charset == "":
		return content, nil
	}
	from, name, err := charsetOf(charset)
	if err != nil {
		return nil, err
	}
	if name == nameUTF8 && IsText(content) {
		return content, nil
	}
	return decodeBytes(ctx, from, content)
}

// Charset is the name of a charset without what some servers write around it.
func Charset(name string) string { return strings.Trim(name, " \t\"';") }

// IsUTF8 reports whether a charset is UTF-8, by one of its names.
func IsUTF8(charset string) bool {
	_, name, err := charsetOf(Charset(charset))
	return err == nil && name == nameUTF8
}

func charsetOf(charset string) (encoding.Encoding, string, error) {
	found, err := htmlindex.Get(charset)
	if err != nil {
		return nil, "", ErrCharset
	}
	name, err := htmlindex.Name(found)
	if err != nil || name == "replacement" {
		return nil, "", ErrCharset
	}
	return found, name, nil
}

func decodeBytes(ctx context.Context, from encoding.Encoding, content []byte) ([]byte, error) {
	if err := memory.AcquireCharset(ctx, content); err != nil {
		return nil, err
	}
	return from.NewDecoder().Bytes(content)
}

// isUTF16 distinguishes text in UTF-16 from other bytes that begin like it: the mark is
// followed by a character that text in any language has.
func isUTF16(content []byte) bool {
	const least = 4 // bytes of the mark and one character
	if len(content) < least || len(content)%2 != 0 {
		return false
	}
	switch string(content[:2]) {
	case markUTF16BE:
		return content[2] == 0 && content[3] != 0
	case markUTF16LE:
		return content[3] == 0 && content[2] != 0
	}
	return false
}

// IsText reports whether bytes are text in UTF-8.
func IsText(content []byte) bool { return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 }
