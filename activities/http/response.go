package http

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reprise/activities/format"
	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/internal/base/egress"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/ratelimit"
)

// readResponse turns a response into the attempt's result, or into an error with the response.
func (t *Tool) readResponse(ctx context.Context, response *http.Response, login *credentials, options format.Options) (interpreter.ToolResult, error) {
	headers := flatHeaders(response.Header)
	if login.jar != nil {
		delete(headers, "set-cookie") // they are credentials of the connection
	}
	result, err := t.readAnswer(ctx, response, headers, options)
	result.Meta.Links = login.withoutQueries(result.Meta.Links)
	if e, ok := errors.AsType[*tool.Error](err); ok {
		related, _ := parseLinks(response.Header.Values("Link"), response.Request.URL) // no page follows from them
		related = login.withoutQueries(related)
		e.Answer = &interpreter.ToolMeta{Status: response.StatusCode, Links: related, URL: redactURL(response.Request.URL)}
		if e.Headers == nil {
			e.Answer.Headers = headers
		}
	}
	return result, err
}

func (t *Tool) readAnswer(ctx context.Context, response *http.Response, headers map[string]string, options format.Options) (interpreter.ToolResult, error) {
	if response.StatusCode >= http.StatusBadRequest {
		return interpreter.ToolResult{}, t.statusError(ctx, response, headers)
	}
	if err := cmp.Or(refusePart(response), refuseUnchanged(response)); err != nil {
		return interpreter.ToolResult{}, err
	}
	body, packing, err := readBody(ctx, response, t.res.MaxResponseBytes, options)
	var waited *memory.WaitError
	switch {
	case errors.Is(err, memory.ErrTooLarge):
		return interpreter.ToolResult{}, tool.TooLargeErrorf("the body from %s is larger than the limit of %d bytes",
			requestLine(response.Request), t.res.MaxResponseBytes)
	case errors.As(err, &waited):
		return interpreter.ToolResult{}, err
	case format.UnpackError(err) != nil:
		return interpreter.ToolResult{}, unpackError(response, err)
	case mispackedError(response, err) != nil:
		return interpreter.ToolResult{}, mispackedError(response, err)
	case err != nil:
		return interpreter.ToolResult{}, requestError(ctx, response.Request, fmt.Errorf("the body was cut short: %w", err))
	}
	tool.SecretsOf(ctx).Inspect(body)
	options.Format = formatOf(response, options.Format, packing)
	data, err := t.parseBody(ctx, response, body, options)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	related, err := parseLinks(response.Header.Values("Link"), response.Request.URL)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	meta := interpreter.ToolMeta{
		Status: response.StatusCode, Headers: tool.AnswerHeaders(headers), Links: related, URL: finalURL(response.Request),
		Notes: answerNotes(response, body, options.Format),
	}
	switch from := "the response of " + requestPath(response.Request); options.Format {
	case format.XML:
		meta.Notes = append(meta.Notes, format.LoneElements(data, from)...)
	case format.CSV:
		meta.Notes = append(meta.Notes, format.OddRows(data, from, 0)...)
	}
	if wait, found := ratelimit.RetryAfter(headers, response.StatusCode, time.Now()); found {
		seconds := wait.Seconds()
		meta.RetryAfter = &seconds
	}
	return interpreter.ToolResult{Data: expression.Of(data), Meta: meta}, nil
}

// typePartial is the type of the error of an answer that is a part of what was requested.
const typePartial = "partial_content"

// refusePart returns an error if an answer is some bytes of a body that was requested whole (RFC 9110, section 15.3.7). Parts in other
// units are pages of rows.
func refusePart(response *http.Response) error {
	part := response.Header.Get("Content-Range")
	if response.StatusCode != http.StatusPartialContent || response.Request.Header.Get("Range") != "" || !strings.HasPrefix(strings.TrimSpace(part), "bytes") {
		return nil
	}
	return &tool.Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable, Type: typePartial, Status: response.StatusCode,
		Message: fmt.Sprintf("%s returned part of the body (HTTP 206, Content-Range: %s), although no Range header requested that",
			requestLine(response.Request), tool.CutText(part, shownType)),
		Headers: flatHeaders(response.Header),
	}
}

// typeNotModified is the type of the error of an answer without rows that leaves it to a cache to have them.
const typeNotModified = "not_modified"

// refuseUnchanged returns an error if an answer says that nothing has changed and the request did not ask that (RFC 9110, section
// 15.4.5): a cache on the way is broken, and no rows would look like an empty page.
func refuseUnchanged(response *http.Response) error {
	asked := slices.ContainsFunc([]string{"If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range"},
		func(header string) bool { return response.Request.Header.Get(header) != "" })
	if response.StatusCode != http.StatusNotModified || asked {
		return nil
	}
	return &tool.Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable, Type: typeNotModified, Status: response.StatusCode,
		Message: requestLine(response.Request) + " returned HTTP 304 (not modified), although no If-None-Match or If-Modified-Since header requested that",
		Headers: flatHeaders(response.Header),
	}
}

// answerNotes returns remarks about a success that may have other rows than were requested: it has no body although it says that it is
// JSON or XML, or a redirect has lost the query. They name no query, so that they are the same for each page.
func answerNotes(response *http.Response, body []byte, as string) (notes []string) {
	request := response.Request
	declared, _ := format.MediaType(response.Header.Get("Content-Type"))
	byType, _ := format.FormatOfType(declared)
	isRead := request.Method == http.MethodGet && response.StatusCode == http.StatusOK
	if isRead && len(bytes.TrimSpace(body)) == 0 && byType == as && (as == format.JSON || as == format.XML) {
		notes = append(notes, fmt.Sprintf("%s returned HTTP 200 with an empty body, which counts as no rows, although its Content-Type is %s",
			requestPath(request), tool.CutText(declared, shownType)))
	}
	first := request
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	if isRead && first != request && first.URL.RawQuery != "" && request.URL.RawQuery == "" && tool.SameHost(first.URL, request.URL) {
		notes = append(notes, fmt.Sprintf("%s redirects to %s without the query, so the response may have other rows than were requested; use that URL",
			requestPath(first), redactURL(request.URL)))
	}
	return notes
}

// finalURL returns the address after redirects; it goes into the history, so it
// has no password.
func finalURL(request *http.Request) string {
	u := *request.URL
	u.User = nil
	return tool.CutText(u.String(), maxLink)
}

// flatHeaders returns the headers in lower case, several of one name joined.
func flatHeaders(header http.Header) map[string]string {
	flat := make(map[string]string, len(header))
	for name, values := range header {
		flat[strings.ToLower(name)] = strings.ToValidUTF8(strings.Join(values, ", "), "\uFFFD")
	}
	return flat
}

// packing is how a body was packed.
type packing struct {
	packed bool   // it was a packed file
	member string // its name in an archive, "" outside of one
}

// readBody reads at most limit bytes, counted after decompression, within the memory bound.
// With an error it returns what it has read.
func readBody(ctx context.Context, response *http.Response, limit int64, options format.Options) (_ []byte, was packing, err error) {
	most := limit
	if claimed := response.ContentLength; claimed >= 0 {
		most = min(claimed, limit)
	}
	body, unpacked, err := decodeBody(response)
	if err != nil {
		return nil, was, err
	}
	if unpacked {
		most = limit
	}
	file, err := options.Unpack(ctx, body, unpacked || response.Uncompressed, limit)
	if err != nil {
		return nil, was, err
	}
	defer file.Close()
	if was = (packing{file.Packed, file.Member}); was.packed {
		most = limit
	}
	content, err := memory.ReadAll(ctx, file, most, limit)
	return content, was, err
}

// formatOf returns the format of a successful response: as the author says, else by content type,
// else by its name or that of an archive member, else by its decompressed bytes.
func formatOf(response *http.Response, said string, was packing) string {
	if said != "" {
		return said
	}
	mediaType, _ := format.MediaType(response.Header.Get("Content-Type"))
	byType, packedType := format.FormatOfType(mediaType)
	if byType != "" {
		return byType
	}
	name := cmp.Or(was.member, format.FileNameOf(response.Header.Get("Content-Disposition")), response.Request.URL.Path)
	byName, _ := format.FormatOfName(name)
	if byName != "" || was.packed || packedType {
		return byName // format.Unpacked without one
	}
	return format.Text
}

// parseBody returns the value of a body by its format: JSON with exact numbers, rows, else
// text.
func (t *Tool) parseBody(ctx context.Context, response *http.Response, body []byte, options format.Options) (any, error) {
	if len(bytes.TrimSpace(body)) == 0 && options.Format != format.JSONL && options.Format != format.CSV {
		return nil, nil
	}
	if options.Format != format.Parquet {
		_, charset := format.MediaType(response.Header.Get("Content-Type"))
		decoded, err := decodeCharset(ctx, response, body, options.CharsetOf(body, charset), options.Format)
		if err != nil {
			return nil, err
		}
		body = decoded
	}
	if isPlain(options.Format) && !format.IsText(body) {
		return nil, notTextError(response, body, "")
	}
	what := "the body from " + requestLine(response.Request)
	v, err := options.Value(ctx, body, what, t.res.MaxPayload)
	var own *tool.Error
	var waited *memory.WaitError
	switch {
	case err == nil:
		return v, nil
	case errors.As(err, &own), errors.As(err, &waited), tool.IsContextError(err):
		return nil, err
	}
	return nil, invalidError(response, body, options.Format, what, err)
}

// typeInvalid is the prefix of error types for a body that cannot be read in its format: invalid_json.
const typeInvalid = "invalid_"

// formatNames are the formats as people call them.
var formatNames = map[string]string{format.JSON: "JSON", format.JSONL: "JSON Lines", format.CSV: "CSV", format.XML: "XML", format.Parquet: "Parquet"}

// invalidError returns the error of a body that is invalid in its format, maybe because it was
// truncated.
func invalidError(response *http.Response, body []byte, as, what string, err error) error {
	e := &tool.Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable, Type: typeInvalid + as, Status: response.StatusCode,
		Message: fmt.Sprintf("%s cannot be read as %s: %s", what, formatNames[as], err),
		Headers: flatHeaders(response.Header), Err: err,
	}
	if as == format.JSON {
		e.Message = fmt.Sprintf("%s is declared as JSON but is not: %s", what, err)
	}
	switch {
	case errors.Is(err, expression.ErrLongNumber):
		e.Class, e.Type = interpreter.ClassFinal, typeLongNumber
		e.Message = fmt.Sprintf("the JSON of %s cannot be represented: %s", what, err)
	case errors.Is(err, expression.ErrInexact):
		e.Class = interpreter.ClassFinal // it is whole, and would be the same again
		e.Message = fmt.Sprintf("the JSON of %s cannot be represented: %s", what, err)
	}
	if format.IsText(body) {
		e.Body = leadingText(body)
	}
	return e
}

// unpackError returns the error of a body that is not packed as the author says, or takes
// too much to unpack.
func unpackError(response *http.Response, err error) error {
	return &tool.Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: typeCompression, Status: response.StatusCode,
		Message: fmt.Sprintf("the body from %s cannot be unpacked: %s", requestLine(response.Request), format.UnpackError(err)),
		Headers: flatHeaders(response.Header), Err: err,
	}
}

// typeCompression is the type of the error of a body that cannot be unpacked.
const typeCompression = "compression"

// typeLongNumber is the type of the error of a number with too many digits.
const typeLongNumber = "long_number"

// typeNotText is the type of the error of a body that is no text.
const typeNotText = "not_text"

// notTextError returns the error of a body that is not text. Converted to text it would look like a
// response.
func notTextError(response *http.Response, body []byte, where string) error {
	return &tool.Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: typeNotText, Status: response.StatusCode,
		Message: fmt.Sprintf("the body from %s is not text: %s, %d bytes%s",
			requestLine(response.Request), cmp.Or(tool.CutText(response.Header.Get("Content-Type"), shownType), "without a content type"), len(body), where),
	}
}

// shownType bounds what a message has of a content type.
const shownType = 100

// maxErrorRead bounds how much of a failed response's body is read, of which MaxErrorBody is
// kept: JSON is larger in the response than in the history. Without it, a failing server makes
// workers read pages that nobody sees.
const maxErrorRead = 8 * tool.MaxErrorBody

// statusError returns the error of a response that says it failed.
func (t *Tool) statusError(ctx context.Context, response *http.Response, headers map[string]string) error {
	wait, found := ratelimit.RetryAfter(headers, response.StatusCode, time.Now())
	e := &tool.Error{
		Kind: interpreter.KindHTTP, Status: response.StatusCode,
		Class:   interpreter.ClassifyHTTP(response.StatusCode, ratelimit.IsLimited(headers)),
		Message: fmt.Sprintf("HTTP %d from %s", response.StatusCode, requestLine(response.Request)), Headers: headers,
	}
	if found {
		e.RetryAfter = &wait
	} else if unread := ratelimit.UnreadHeader(headers, response.StatusCode); unread != "" {
		e.Message += "; " + unread
	}
	body, _, err := readBody(ctx, response, min(t.res.MaxResponseBytes, maxErrorRead), format.Options{})
	if err == nil {
		e.Body, err = t.parseBody(ctx, response, body, format.Options{Format: formatOfError(response)})
	}
	if err != nil {
		readable := format.IsText(body) || declaresText(response) || formatOfError(response) == format.JSON
		// What is only shown may have replacement characters.
		if text := strings.ToValidUTF8(leadingText(body), "\uFFFD"); text != "" && readable && format.IsText([]byte(text)) {
			if len(body) >= maxErrorRead {
				text += unreadRest
			}
			e.Body = text
		}
	}
	return e
}

// unreadRest ends the text of a failed response that is longer than what is read of it.
var unreadRest = fmt.Sprintf("\n… the response has more than %d bytes; the rest was not read …", maxErrorRead)

// formatOfError returns the format of an answer that failed.
func formatOfError(response *http.Response) string {
	mediaType, _ := format.MediaType(response.Header.Get("Content-Type"))
	if byType, _ := format.FormatOfType(mediaType); byType == format.JSON {
		return format.JSON
	}
	return format.Text
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

// requestError returns the error of a request without a usable answer. The error of
// net/http quotes the whole URL, so only its cause is quoted.
func requestError(ctx context.Context, request *http.Request, err error) error {
	if own, ok := errors.AsType[*tool.Error](err); ok {
		return own
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	cause := err
	for unwrapped := errors.Unwrap(cause); unwrapped != nil && isURLError(cause); unwrapped = errors.Unwrap(cause) {
		cause = unwrapped
	}
	return tool.UnreachableError(fmt.Sprintf("%s: %s", requestLine(request), deniedCause(cause)), cause)
}

// deniedCause returns the error of an address that may not be connected to, without what says how it was connected to; another error
// is unchanged.
func deniedCause(err error) error {
	if denied, ok := errors.AsType[*egress.DeniedError](err); ok {
		return denied
	}
	return err
}

// typeCharset is the type of the error of a body that has bytes which are no text.
const typeCharset = "charset"

// isPlain reports whether a format accepts any text.
func isPlain(as string) bool { return as == format.Text || as == format.Unpacked }

// declaresText reports whether a content type is one of text.
func declaresText(response *http.Response) bool {
	mediaType, charset := format.MediaType(response.Header.Get("Content-Type"))
	return charset != "" || strings.HasPrefix(mediaType, "text/")
}

// decodeCharset makes UTF-8 of a body, without its byte order mark.
func decodeCharset(ctx context.Context, response *http.Response, body []byte, charset, as string) ([]byte, error) {
	decoded, err := format.DecodeText(ctx, body, charset)
	var wrong *format.ByteError
	switch {
	case !errors.As(err, &wrong):
		return decoded, err
	case isPlain(as) && (!declaresText(response) || bytes.IndexByte(body, 0) >= 0):
		return nil, notTextError(response, body, "; "+wrong.Error())
	}
	return nil, &tool.Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: typeCharset, Status: response.StatusCode,
		Message: fmt.Sprintf("the body from %s cannot be read: %s", requestLine(response.Request), wrong),
		Headers: flatHeaders(response.Header), Err: err,
	}
}
