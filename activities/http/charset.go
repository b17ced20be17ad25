package http

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"

	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/interpreter"
)

const (
	// oldCharset is that of an old server's text that is no UTF-8 and names none,
	// as browsers take it.
	oldCharset = "windows-1252"
	// typeCharset is the type of the error of a body whose charset is not known.
	typeCharset = "charset"
	// maxShownCharset bounds what a message has of a charset.
	maxShownCharset = 100
)

// Byte order marks.
const (
	markUTF8    = "\xef\xbb\xbf"
	markUTF16BE = "\xfe\xff"
	markUTF16LE = "\xff\xfe"
)

// decodeCharset makes UTF-8 of a body, without its byte order mark. The mark says
// more than the charset, as the Encoding Standard has it. A body in UTF-8 is
// given as it is.
func decodeCharset(ctx context.Context, response *http.Response, body []byte, charset string) ([]byte, error) {
	switch charset = strings.Trim(charset, " \t\"';"); {
	case bytes.HasPrefix(body, []byte(markUTF8)):
		return body[len(markUTF8):], nil
	case charset != "" && (bytes.HasPrefix(body, []byte(markUTF16BE)) || bytes.HasPrefix(body, []byte(markUTF16LE))),
		isUTF16(body):
		return decodeBytes(ctx, unicode.UTF16(unicode.BigEndian, unicode.UseBOM), body)
	case charset == "":
		return body, nil
	}
	charsetEncoding, err := htmlindex.Get(charset)
	name := ""
	if err == nil {
		name, err = htmlindex.Name(charsetEncoding)
	}
	if err != nil || name == "replacement" {
		return nil, &tool.Error{
			Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: typeCharset, Status: response.StatusCode,
			Message: fmt.Sprintf("the body from %s has the charset %q, which is not known", requestLine(response.Request),
				tool.CutText(charset, maxShownCharset)),
			Headers: flatHeaders(response.Header), Err: err,
		}
	}
	if name == "utf-8" && isText(body) {
		return body, nil
	}
	return decodeBytes(ctx, charsetEncoding, body)
}

func decodeBytes(ctx context.Context, from encoding.Encoding, body []byte) ([]byte, error) {
	if err := memory.AcquireCharset(ctx, body); err != nil {
		return nil, err
	}
	return from.NewDecoder().Bytes(body)
}

// isUTF16 distinguishes text in UTF-16 from other bytes that begin like it: the mark is
// followed by a character that text in any language has.
func isUTF16(body []byte) bool {
	const least = 4 // bytes of the mark and one character
	if len(body) < least || len(body)%2 != 0 {
		return false
	}
	switch string(body[:2]) {
	case markUTF16BE:
		return body[2] == 0 && body[3] != 0
	case markUTF16LE:
		return body[3] == 0 && body[2] != 0
	}
	return false
}
