package http

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/ratelimit"
)

// read turns a response into the attempt's result or its error, which describes the answer
// too.
func (t *Tool) read(ctx context.Context, response *http.Response) (interpreter.ToolResult, error) {
	headers := flatHeaders(response.Header)
	result, err := t.readAnswer(ctx, response, headers)
	var e *tool.Error
	if errors.As(err, &e) {
		related, _ := links(response.Header.Values("Link"), response.Request.URL) // no page follows from them
		e.Answer = &interpreter.ToolMeta{Status: response.StatusCode, Links: related, URL: redacted(response.Request.URL)}
		if e.Headers == nil {
			e.Answer.Headers = headers
		}
	}
	return result, err
}

func (t *Tool) readAnswer(ctx context.Context, response *http.Response, headers map[string]string) (interpreter.ToolResult, error) {
	if response.StatusCode >= http.StatusBadRequest {
		return interpreter.ToolResult{}, t.statusError(ctx, response, headers)
	}
	body, err := readBody(ctx, response, t.res.MaxResponseBytes)
	var waited *memory.WaitError
	switch {
	case errors.Is(err, memory.ErrTooLarge):
		return interpreter.ToolResult{}, tool.TooLargef("the body from %s is over the limit of %d bytes",
			requestLine(response.Request), t.res.MaxResponseBytes)
	case errors.As(err, &waited):
		return interpreter.ToolResult{}, err
	case err != nil:
		return interpreter.ToolResult{}, requestError(ctx, response.Request, fmt.Errorf("the body was cut short: %w", err))
	}
	tool.SecretsOf(ctx).Inspect(body)
	data, err := t.parseBody(ctx, response, body)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	related, err := links(response.Header.Values("Link"), response.Request.URL)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	meta := interpreter.ToolMeta{
		Status: response.StatusCode, Headers: tool.AnswerHeaders(headers), Links: related, URL: finalURL(response.Request),
	}
	if wait, told := ratelimit.RetryAfter(headers, response.StatusCode, time.Now()); told {
		seconds := wait.Seconds()
		meta.RetryAfter = &seconds
	}
	return interpreter.ToolResult{Data: expression.Of(data), Meta: meta}, nil
}

// finalURL is the address after redirects; it goes into the history, so it
// has no password.
func finalURL(request *http.Request) string {
	u := *request.URL
	u.User = nil
	return tool.CutText(u.String(), maxLink)
}

// flatHeaders are the headers in lower case, several of one name joined.
func flatHeaders(header http.Header) map[string]string {
	flat := make(map[string]string, len(header))
	for name, values := range header {
		flat[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
	}
	return flat
}

// readBody reads at most limit bytes, counted after decompression, for which
// there is memory. It gives what it has read with every error.
func readBody(ctx context.Context, response *http.Response, limit int64) ([]byte, error) {
	var body io.Reader = response.Body
	most := limit
	if claimed := response.ContentLength; claimed >= 0 {
		most = min(claimed, limit)
	}
	// The transport decompresses by itself, unless the author asked for an
	// encoding.
	if strings.EqualFold(response.Header.Get("Content-Encoding"), "gzip") {
		reader, err := gzip.NewReader(body)
		if errors.Is(err, io.EOF) {
			return nil, nil // an answer without a body, such as one to HEAD
		}
		if err != nil {
			return nil, err
		}
		body, most = reader, limit
	}
	body, packed, err := unpacked(body)
	if err != nil {
		return nil, err
	}
	if packed {
		most = limit
	}
	return memory.ReadAll(ctx, body, most, limit)
}

// gzipMagic is what every gzip file begins with, and no text in UTF-8.
const gzipMagic = "\x1f\x8b"

// unpacked is a body that may be a gzip file, whatever its headers say.
func unpacked(body io.Reader) (_ io.Reader, packed bool, err error) {
	buffered := bufio.NewReader(body)
	if magic, _ := buffered.Peek(len(gzipMagic)); string(magic) != gzipMagic {
		return buffered, false, nil // what broke the connection is seen by who reads on
	}
	reader, err := gzip.NewReader(buffered)
	return reader, true, err
}

// parseBody gives the body's value by its content type: JSON with exact
// numbers, else text.
func (t *Tool) parseBody(ctx context.Context, response *http.Response, body []byte) (any, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, nil
	}
	mediaType, parameters, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	charset := parameters["charset"]
	if charset == "" && strings.HasPrefix(mediaType, "text/") && !utf8.Valid(body) {
		charset = oldCharset
	}
	body, err := decodeCharset(ctx, response, body, charset)
	if err != nil {
		return nil, err
	}
	what := "the body from " + requestLine(response.Request)
	if !isJSON(mediaType) {
		if !isText(body) {
			return nil, notText(response, body)
		}
		if err := memory.AcquireValue(ctx, int64(len(body)), what); err != nil {
			return nil, err
		}
		return string(body), nil
	}
	if err := memory.AcquireJSON(ctx, body, t.res.MaxPayload, what); err != nil {
		return nil, err
	}
	v, err := expression.Decode(body)
	if err == nil {
		return v, nil
	}
	invalid := &tool.Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable, Type: "invalid_json", Status: response.StatusCode,
		Message: fmt.Sprintf("%s says it is JSON and is not: %s", what, err),
		Headers: flatHeaders(response.Header), Err: err,
	}
	if errors.Is(err, expression.ErrLongNumber) { // not what is left of a body that was cut short
		invalid.Class, invalid.Type = interpreter.ClassFinal, typeLongNumber
		invalid.Message = fmt.Sprintf("the JSON of %s cannot be taken: %s", what, err)
	}
	if isText(body) {
		invalid.Body = leadingText(body)
	}
	return nil, invalid
}

func isJSON(mediaType string) bool {
	return mediaType == "application/json" || mediaType == "text/json" || strings.HasSuffix(mediaType, "+json")
}

// isText reports whether bytes are text in UTF-8.
func isText(body []byte) bool { return utf8.Valid(body) && bytes.IndexByte(body, 0) < 0 }

// typeLongNumber is the type of the error of a number with too many digits.
const typeLongNumber = "long_number"

// typeNotText is the type of the error of a body that is no text.
const typeNotText = "not_text"

// notText is the error of a body that is no text. Made into one it would look
// like an answer.
func notText(response *http.Response, body []byte) error {
	return &tool.Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: typeNotText, Status: response.StatusCode,
		Message: fmt.Sprintf("the body from %s is no text: %s, %d bytes",
			requestLine(response.Request), cmp.Or(tool.CutText(response.Header.Get("Content-Type"), maxShownType), "without a content type"), len(body)),
	}
}

// maxShownType bounds what a message has of a content type.
const maxShownType = 100

// maxErrorRead is how much is read of the body of an answer that failed, of which
// MaxErrorBody is kept: JSON takes more on its way than in the history.
const maxErrorRead = 8 * tool.MaxErrorBody

// statusError is the error of a response that says it failed.
func (t *Tool) statusError(ctx context.Context, response *http.Response, headers map[string]string) error {
	wait, told := ratelimit.RetryAfter(headers, response.StatusCode, time.Now())
	e := &tool.Error{
		Kind: interpreter.KindHTTP, Status: response.StatusCode,
		Class:   interpreter.ClassifyHTTP(response.StatusCode, ratelimit.Limited(headers)),
		Message: fmt.Sprintf("HTTP %d from %s", response.StatusCode, requestLine(response.Request)), Headers: headers,
	}
	if told {
		e.RetryAfter = &wait
	}
	body, err := readBody(ctx, response, min(t.res.MaxResponseBytes, maxErrorRead))
	if err == nil {
		e.Body, err = t.parseBody(ctx, response, body)
	}
	if err != nil {
		if text := leadingText(body); isText([]byte(text)) {
			e.Body = nilIfEmpty(text)
		}
	}
	return e
}

// leadingText is as much of a text as an error may quote. What a bound has cut
// in the middle of a character ends before it.
func leadingText(body []byte) string {
	body = body[:min(len(body), maxErrorRead)]
	for range utf8.UTFMax - 1 {
		if last, size := utf8.DecodeLastRune(body); last != utf8.RuneError || size != 1 {
			break
		}
		body = body[:len(body)-1]
	}
	return string(body)
}

// nilIfEmpty is nil for a text that is empty.
func nilIfEmpty(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// requestError is the error of a request without a usable answer. The error of
// net/http quotes the whole URL, so only its cause is quoted.
func requestError(ctx context.Context, request *http.Request, err error) error {
	var own *tool.Error
	if errors.As(err, &own) {
		return own
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	cause := err
	for unwrapped := errors.Unwrap(cause); unwrapped != nil && isURLError(cause); unwrapped = errors.Unwrap(cause) {
		cause = unwrapped
	}
	return &tool.Error{
		Kind: interpreter.KindConnection, Class: interpreter.ClassRetryable, Type: tool.ConnectionType(err),
		Message: fmt.Sprintf("%s: %s", requestLine(request), cause), Err: cause,
	}
}
