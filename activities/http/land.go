package http

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"time"

	"reprise/activities/format"
	"reprise/activities/tool"
	"reprise/internal/base/sleep"
	"reprise/interpreter"
)

const (
	// landIdle is how long a body may send nothing before it counts as interrupted.
	landIdle = time.Minute
	// mostCuts is how often the download of one body is continued: a server that interrupts each time would
	// keep the attempt for days.
	mostCuts = 1000
	// mostStalls is how often in a row a body is continued without a byte more, as by a server that ignores ranges.
	mostStalls = 3
	// mostBodies bounds how often a download starts over because the body was replaced by another. Without it,
	// a file that is written all the time would be downloaded without end.
	mostBodies = 3
)

// DownloadRows downloads the body of a successful response into a file, of any size, and returns it as a source of rows. An
// interrupted download is continued with Range and If-Range if the body is still the same; otherwise it starts over,
// so that the file never mixes two bodies. Errors are like those of an attempt.
func (t *Tool) DownloadRows(ctx context.Context, in interpreter.ToolInput, into *os.File) (*format.RowSource, error) {
	l := &landing{tool: t, in: in, into: into, length: -1, parts: newBodyParts(t.res, in)}
	err := l.landBody(ctx)
	if err != nil {
		params, _ := tool.MapField(in, "params")
		return nil, &tool.RequestError{URL: l.shown, Params: params, Err: err}
	}
	return l.rowSource(), nil
}

// landing is a body on its way into a file.
type landing struct {
	tool  *Tool
	in    interpreter.ToolInput
	into  *os.File
	shown string // the address, for errors

	have   int64          // bytes in the file
	answer *http.Response // the first of the body, whose own body is read
	length int64          // as its answer says, -1 for nothing
	// validator is its ETag or Last-Modified, "" where it has none that distinguishes all its versions: it cannot be continued then.
	validator string
	bodies    int
	parts     bodyParts
}

// cutError says that part of a body is missing.
type cutError struct{ err error }

func (e *cutError) Error() string { return "the body was cut short: " + e.err.Error() }

func (e *cutError) Unwrap() error { return e.err }

// errAnother says that the server now sends a different body than the one whose beginning was
// downloaded.
var errAnother = errors.New("the server sent part of a different body")

// errWhole says that the server has no more of a body whose length was not known.
var errWhole = errors.New("the body is whole")

// landBody downloads the body, or what another worker has not stored of it.
func (l *landing) landBody(ctx context.Context) error {
	if whole, err := l.recallParts(ctx); whole || err != nil {
		return err
	}
	if err := l.downloadBody(ctx); err != nil {
		return err
	}
	return l.storeParts(ctx, true)
}

func (l *landing) downloadBody(ctx context.Context) error {
	for cuts, stalls := 0, 0; ; cuts++ {
		before := l.have
		err := l.fetchRest(ctx)
		if err == nil && (l.length < 0 || l.have == l.length) {
			return nil
		}
		cut, isCut := errors.AsType[*cutError](err)
		if stalls++; l.have > before {
			stalls = 0
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil, errors.Is(err, errAnother):
		case !isCut && (l.have == 0 || !isConnection(err)):
			return err
		case l.validator != "" && cuts < mostCuts && stalls < mostStalls:
		case isCut:
			return requestError(ctx, l.answer.Request, cut)
		default:
			return err
		}
		if err := sleep.For(ctx, time.Duration(stalls)*time.Second); err != nil {
			return err
		}
	}
}

// isConnection reports whether a request has met nobody.
func isConnection(err error) bool {
	failure, ok := errors.AsType[*tool.Error](err)
	return ok && failure.Kind == interpreter.KindConnection
}

// fetchRest requests the missing part of the file. The error is a cutError if a part is still
// missing.
func (l *landing) fetchRest(ctx context.Context) error {
	sending, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out, err := l.tool.newRequest(sending, l.in, http.MethodGet)
	if err != nil {
		return err
	}
	l.shown = tool.ShownURL(out.request.URL, tool.MaxShownURL)
	setDefault(out.request.Header, "Accept-Encoding", "identity") // parts are those of the bytes as they lie there
	setDefault(out.plain, "Accept-Encoding", "identity")
	if l.have > 0 {
		for _, header := range []http.Header{out.request.Header, out.plain} {
			header.Set("Range", fmt.Sprintf("bytes=%d-", l.have))
			header.Set("If-Range", l.validator)
		}
	}
	response, err := l.tool.sendRequest(ctx, out, stop)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := l.acceptHead(ctx, response); errors.Is(err, errWhole) {
		return nil
	} else if err != nil {
		return err
	}
	return l.copyBody(response, stop)
}

// acceptHead reads the head of a response and decides whether it continues the body or brings a new one.
func (l *landing) acceptHead(ctx context.Context, response *http.Response) error {
	switch {
	case response.StatusCode == http.StatusRequestedRangeNotSatisfiable && l.length < 0 && response.Header.Get("Content-Range") == fmt.Sprintf("bytes */%d", l.have):
		return errWhole
	case response.StatusCode == http.StatusRequestedRangeNotSatisfiable && l.have > 0:
		return requestError(ctx, response.Request, fmt.Errorf("the body was cut short after %d of %d bytes, and the server sends no more of it", l.have, l.length))
	case response.StatusCode >= http.StatusBadRequest:
		return l.tool.statusError(ctx, response, flatHeaders(response.Header))
	case response.StatusCode == http.StatusPartialContent && l.have > 0 && l.isContinuation(response):
		return nil
	case response.StatusCode == http.StatusPartialContent && l.have == 0:
		return requestError(ctx, response.Request, errors.New("the server sent part of the body, although all of it was requested"))
	}
	if l.bodies++; l.bodies > mostBodies {
		return requestError(ctx, response.Request, fmt.Errorf("the body changed %d times while it was downloaded", mostBodies))
	}
	if err := l.into.Truncate(0); err != nil {
		return diskError(err)
	}
	l.have, l.answer, l.length, l.validator = 0, response, response.ContentLength, validatorOf(response)
	l.parts.begin(l)
	if response.StatusCode == http.StatusPartialContent {
		return errAnother
	}
	return nil
}

// isContinuation reports whether a response continues the downloaded body.
func (l *landing) isContinuation(part *http.Response) bool {
	var from, to, length int64
	if n, err := fmt.Sscanf(part.Header.Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &length); err != nil || n < 3 {
		length = -1
		if n, err = fmt.Sscanf(part.Header.Get("Content-Range"), "bytes %d-%d/*", &from, &to); err != nil || n < 2 {
			return false
		}
	}
	same := validatorOf(part) == l.validator && part.Header.Get("Content-Encoding") == l.answer.Header.Get("Content-Encoding")
	if same && l.length < 0 {
		l.length = length
	}
	return same && from == l.have && (length < 0 || length == l.length)
}

// validatorOf returns what identifies this version of the body (RFC 9110, section 8.8), or "" if there is only a
// weak ETag, or a date within the second in which the body may have changed again.
func validatorOf(response *http.Response) string {
	if response.Request.Method != http.MethodGet {
		return ""
	}
	if tag := response.Header.Get("ETag"); tag != "" {
		if strings.HasPrefix(tag, "W/") {
			return ""
		}
		return tag
	}
	modified, err := http.ParseTime(response.Header.Get("Last-Modified"))
	date, errDate := http.ParseTime(response.Header.Get("Date"))
	if err != nil || errDate != nil || date.Sub(modified) < time.Second {
		return ""
	}
	return response.Header.Get("Last-Modified")
}

// copyBody adds the body of an answer to the file.
func (l *landing) copyBody(response *http.Response, stop context.CancelCauseFunc) error {
	idle := time.AfterFunc(landIdle, func() { stop(errIdle) })
	defer idle.Stop()
	buffer := make([]byte, landBuffer)
	for {
		n, err := response.Body.Read(buffer)
		idle.Reset(landIdle)
		if _, failed := l.into.WriteAt(buffer[:n], l.have); failed != nil {
			return diskError(failed)
		}
		l.have += int64(n)
		if l.have-l.parts.stored >= landPart(l.parts.store) {
			idle.Stop()
			if err := l.storeParts(response.Request.Context(), false); err != nil {
				return err
			}
			idle.Reset(landIdle)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(context.Cause(response.Request.Context()), errIdle):
			return &cutError{errIdle}
		case err != nil:
			return &cutError{err}
		case l.length >= 0 && l.have > l.length:
			return requestError(context.Background(), response.Request, fmt.Errorf("the body is longer than the %d bytes that its Content-Length announces", l.length))
		}
	}
}

// landPart returns how many bytes are stored at once, more than any body has where there is no store.
func landPart(store tool.BodyStore) int64 {
	if store == nil {
		return math.MaxInt64
	}
	return store.PartBytes()
}

// landBuffer is how much of a body is read at once, in bytes.
const landBuffer = 64 << 10

// errIdle is the error for a body that has sent nothing for landIdle.
var errIdle = fmt.Errorf("no data arrived for %s", landIdle)

// diskError returns the error of the file that a body is landed in.
func diskError(err error) error {
	return &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: "no_space", Err: err,
		Message: "the body cannot be kept on the worker's disk: " + err.Error(),
	}
}

// rowSource returns the body that was landed.
func (l *landing) rowSource() *format.RowSource {
	mediaType, charset := format.MediaType(l.answer.Header.Get("Content-Type"))
	as, _ := format.FormatOfType(mediaType)
	if as == "" {
		as, _ = format.FormatOfName(cmp.Or(format.FileNameOf(l.answer.Header.Get("Content-Disposition")), l.answer.Request.URL.Path))
	}
	source := &format.RowSource{
		Content: l.into, Size: l.have, What: "the body from " + requestLine(l.answer.Request), Format: as, Charset: charset,
		Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable, Temporary: l.tool.res.TemporaryFile,
		Discard: l.parts.remove,
	}
	if l.answer.Header.Get("Content-Encoding") != "" {
		source.Unwrap = func(content io.Reader) (io.Reader, error) {
			packed := *l.answer
			packed.Body = io.NopCloser(content)
			unpacked, _, err := decodeBody(&packed)
			return unpacked, err
		}
	}
	return source
}
