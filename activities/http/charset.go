package http

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"reprise/activities/format"
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

// decodeCharset makes UTF-8 of a body, without its byte order mark.
func decodeCharset(ctx context.Context, response *http.Response, body []byte, charset string) ([]byte, error) {
	decoded, err := format.Decode(ctx, body, charset)
	if errors.Is(err, format.ErrCharset) {
		return nil, &tool.Error{
			Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: typeCharset, Status: response.StatusCode,
			Message: fmt.Sprintf("the body from %s has the charset %q, which is not known", requestLine(response.Request),
				tool.CutText(format.Charset(charset), maxShownCharset)),
			Headers: flatHeaders(response.Header), Err: err,
		}
	}
	return decoded, err
}
