package http

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"reprise/activities/format"
	"reprise/activities/tool"
	"reprise/interpreter"
)

// typeEncoding is the type of the error of a body whose Content-Encoding cannot be taken off.
const typeEncoding = "encoding"

// maxEncodings bounds how often a body may be packed: each layer can multiply its size by a
// thousand, and has a decoder of its own.
const maxEncodings = 4

// plainEncodings are values of Content-Encoding without effect: those of RFC 9110, and charsets that servers send
// there by mistake.
var plainEncodings = []string{"", "identity", "none", "utf-8", "utf8", "iso-8859-1", "binary", "8bit", "7bit"}

// decodeBody removes the encodings that Content-Encoding lists, the last first. The transport has removed gzip
// itself, unless the author asked for an encoding; servers may use others without being asked. done says that
// something was removed.
func decodeBody(response *http.Response) (body io.Reader, done bool, err error) {
	body = response.Body
	words := strings.Split(strings.ToLower(strings.Join(response.Header.Values("Content-Encoding"), ",")), ",")
	if len(words) > maxEncodings {
		return nil, false, encodingErrorf(response, interpreter.ClassFinal, "has more than %d encodings", maxEncodings)
	}
	for _, word := range slices.Backward(words) {
		if word = strings.TrimSpace(word); slices.Contains(plainEncodings, word) {
			continue
		}
		buffered := bufio.NewReader(body)
		if _, err := buffered.Peek(1); errors.Is(err, io.EOF) {
			return buffered, done, nil // an answer without a body, such as one to HEAD
		}
		if body, err = newDecoder(buffered, word); err != nil {
			return nil, false, err
		}
		if body == nil {
			return nil, false, encodingErrorf(response, interpreter.ClassFinal, "has the Content-Encoding %q, and only gzip, deflate and zstd are supported; "+
				"request one of them in headers, as in Accept-Encoding: gzip", tool.CutText(word, shownEncoding))
		}
		done = true
	}
	return body, done, nil
}

// shownEncoding bounds what a message has of an encoding.
const shownEncoding = 40

// newDecoder returns a decoder for an encoding, nil if it is unknown.
func newDecoder(body *bufio.Reader, encoding string) (io.Reader, error) {
	switch encoding {
	case "gzip", "x-gzip":
		return gzip.NewReader(body)
	case "deflate":
		return newInflater(body)
	case "zstd":
		return format.NewZstdReader(body)
	}
	return nil, nil
}

// newInflater reads deflate: a zlib stream, as RFC 9110 defines it, or without the zlib frame, as some servers
// send it.
func newInflater(body *bufio.Reader) (io.Reader, error) {
	const method, deflate, multiple = 0x0f, 8, 31
	head, _ := body.Peek(2)
	if len(head) == 2 && head[0]&method == deflate && (int(head[0])<<8|int(head[1]))%multiple == 0 {
		return zlib.NewReader(body)
	}
	return flate.NewReader(body), nil
}

// mispackedError returns the error of a body that is not encoded as Content-Encoding says; nil for other errors and for a
// truncated body.
func mispackedError(response *http.Response, err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case !response.Uncompressed && response.Header.Get("Content-Encoding") == "":
		return nil
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, zlib.ErrHeader), errors.Is(err, zlib.ErrChecksum),
		errors.Is(err, zstd.ErrMagicMismatch), errors.As(err, &corrupt):
		return encodingErrorf(response, interpreter.ClassRetryable, "is not encoded as its Content-Encoding says: %w", err)
	}
	return nil
}

func encodingErrorf(response *http.Response, class interpreter.Class, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &tool.Error{
		Kind: interpreter.KindHTTP, Class: class, Type: typeEncoding, Status: response.StatusCode,
		Message: fmt.Sprintf("the body from %s %s", requestLine(response.Request), err),
		Headers: flatHeaders(response.Header), Err: errors.Unwrap(err),
	}
}
