package format

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"reprise/activities/memory"
	"reprise/activities/tool"
)

// nameUTF8 is the name of UTF-8 in the Encoding Standard.
const nameUTF8 = "utf-8"

// marks are byte order marks of charsets other than UTF-8, longer ones first.
var marks = []struct {
	bytes string
	name  string
	from  encoding.Encoding
}{
	{"\xff\xfe\x00\x00", "utf-32le", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)},
	{"\x00\x00\xfe\xff", "utf-32be", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)},
	{"\xff\xfe", "utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
	{"\xfe\xff", "utf-16be", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
}

const markUTF8 = "\xef\xbb\xbf"

// errCharset is the error for an unknown charset.
var errCharset = errors.New("the charset is not known")

// ByteError says which byte of a text is wrong.
type ByteError struct {
	Byte    byte
	Offset  int    // from 0
	Line    int    // from 1
	Charset string // that the bytes should be in
	Unknown string // the charset that is named and not known, "" for none
}

func (e *ByteError) Error() string {
	where := fmt.Sprintf("byte 0x%02X at offset %d (line %d) is not %s", e.Byte, e.Offset, e.Line, e.Charset)
	switch {
	case e.Unknown != "":
		return fmt.Sprintf("%s, and the charset %q is not known; set encoding, such as windows-1252", where, e.Unknown)
	case e.Charset == nameUTF8:
		return where + "; set encoding to the charset of the text, such as windows-1252"
	}
	return where + "; set encoding to the charset that the text is in"
}

// DecodeText makes UTF-8 of content, without its byte order mark. Valid UTF-8 is always read as UTF-8. Other bytes are
// read in the charset of their byte order mark, or else in the named one; a byte that is invalid there gives a
// ByteError.
func DecodeText(ctx context.Context, content []byte, charset string) ([]byte, error) {
	charset = CharsetName(charset)
	for _, mark := range marks {
		if rest, marked := bytes.CutPrefix(content, []byte(mark.bytes)); marked {
			return decodeBytes(ctx, mark.from, mark.name, rest, len(mark.bytes))
		}
	}
	before := len(content)
	content = bytes.TrimPrefix(content, []byte(markUTF8))
	before -= len(content)
	from, name, err := charsetOf(charset)
	switch {
	case isUTF8(content, name):
		return content, nil
	case err != nil || name == nameUTF8:
		at := tool.InvalidUTF8(content)
		return nil, &ByteError{Byte: content[at], Offset: before + at, Line: lineAt(content[:at]), Charset: nameUTF8, Unknown: unknownCharset(charset, err)}
	case isASCII(charset):
		at := bytes.IndexFunc(content, func(char rune) bool { return char >= utf8.RuneSelf })
		return nil, &ByteError{Byte: content[at], Offset: before + at, Line: lineAt(content[:at]), Charset: charset}
	}
	return decodeBytes(ctx, from, name, content, before)
}

func unknownCharset(charset string, err error) string {
	const shown = 100
	if err == nil {
		return ""
	}
	return charset[:min(len(charset), shown)]
}

// asciiNames are names that the Encoding Standard reads as windows-1252. ASCII has no byte beyond it.
var asciiNames = []string{"ascii", "us-ascii", "ansi_x3.4-1968"}

func isASCII(charset string) bool { return slices.Contains(asciiNames, strings.ToLower(charset)) }

// isUTF8 reports whether content is UTF-8 although its sender names another charset. Text in UTF-16 or ISO-2022-JP
// may look like UTF-8, but contains bytes that text in UTF-8 does not have.
func isUTF8(content []byte, name string) bool {
	const escape = 0x1b
	switch name {
	case "utf-16le", "utf-16be":
		return IsText(content)
	case "iso-2022-jp":
		return utf8.Valid(content) && bytes.IndexByte(content, escape) < 0
	}
	return utf8.Valid(content)
}

// lineAt returns the number of the line after a text.
func lineAt(before []byte) int {
	if feeds := bytes.Count(before, []byte("\n")); feeds > 0 {
		return feeds + 1
	}
	return bytes.Count(before, []byte("\r")) + 1
}

// CharsetName returns the name of a charset without the quotes and the like that some servers add.
func CharsetName(name string) string { return strings.Trim(name, " \t\"';") }

func charsetOf(charset string) (encoding.Encoding, string, error) {
	found, err := htmlindex.Get(charset)
	if err != nil {
		return nil, "", errCharset
	}
	name, err := htmlindex.Name(found)
	if err != nil || name == "replacement" {
		return nil, "", errCharset
	}
	return found, name, nil
}

// decodeBytes converts content to UTF-8. The given number of bytes was cut off before it.
func decodeBytes(ctx context.Context, from encoding.Encoding, name string, content []byte, cut int) ([]byte, error) {
	if err := memory.AcquireCharset(ctx, content); err != nil {
		return nil, err
	}
	decoded, err := from.NewDecoder().Bytes(content)
	if err != nil {
		return nil, err
	}
	// A decoder writes a replacement character for invalid bytes, and for a replacement
	// character in the text.
	replacement := []byte(string(utf8.RuneError))
	has, _ := from.NewEncoder().Bytes(replacement)
	for at, offset := 0, 0; ; {
		next := bytes.Index(decoded[at:], replacement)
		if next < 0 {
			return decoded, nil
		}
		good, _ := from.NewEncoder().Bytes(decoded[at : at+next])
		offset = min(offset+len(good), len(content)-1)
		if len(has) == 0 || !bytes.HasPrefix(content[offset:], has) {
			return nil, &ByteError{Byte: content[offset], Offset: cut + offset, Line: lineAt(decoded[:at+next]), Charset: name}
		}
		at, offset = at+next+len(replacement), offset+len(has)
	}
}

// IsText reports whether bytes are text in UTF-8.
func IsText(content []byte) bool { return utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 }
