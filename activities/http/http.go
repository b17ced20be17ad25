// Package http is the tool that sends HTTP requests.
package http

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptrace"
	"slices"
	"time"

	"reprise/activities/format"
	"reprise/activities/tool"
	"reprise/internal/base/egress"
	"reprise/internal/base/secrets"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Tool sends requests. One transport, and so one pool of connections,
// serves all runs of a worker.
type Tool struct {
	res         tool.Resources
	transport   http.RoundTripper
	observe     func(http.RoundTripper) http.RoundTripper // nil for nobody; see ObserveRequests
	tokens      *tokenCache
	connections *cachedConnections
}

var (
	_ tool.Writer   = (*Tool)(nil)
	_ tool.Beginner = (*Tool)(nil)
)

// New returns the tool. transport replaces the usual transport; nil uses the usual one.
func New(res tool.Resources, transport http.RoundTripper) *Tool {
	if transport == nil {
		transport = newGuardedTransport(res.Egress, egress.NoConnection, nil)
	}
	connections := &cachedConnections{byName: map[string]*cachedConnection{}, byHosts: map[string]*guardedTransport{}}
	return &Tool{res: res, transport: transport, tokens: newTokenCache(transport, res.Secrets, res.Logins), connections: connections}
}

// ObserveRequests wraps the transport of all requests of attempts, redirects included, but not of requests for
// tokens. It must be called before the tool is used.
func (t *Tool) ObserveRequests(around func(http.RoundTripper) http.RoundTripper) { t.observe = around }

// newTransport differs from the standard one in its pool: a loop of 500
// iterations usually calls one host, and 2 idle connections per host would
// make nearly every request open a new one.
func newTransport(dial dialFunc) *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialOnWires(dial),
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    128,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// requestFields are the fields of a request.
var requestFields = []playbook.Field{
	{Name: "url", Kind: playbook.KindText, Required: true, Doc: "The URL of the request: absolute, or a path if auth names a connection with a host."},
	{Name: "method", Kind: playbook.KindText, Enum: []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, Default: "GET", Doc: "The method; for a sink the default is POST."},
	{Name: "params", Kind: playbook.KindMap, Doc: "Query parameters. They replace parameters of the same name in url; a list repeats the parameter, nil omits it."},
	{Name: "headers", Kind: playbook.KindMap, Doc: "Request headers; a list repeats the header, nil omits it."},
	{Name: "body", Kind: playbook.KindValue, Doc: "The body: maps and lists are sent as JSON, text is sent as it is."},
	{Name: "form", Kind: playbook.KindMap, Doc: "Form fields, sent as application/x-www-form-urlencoded."},
	{Name: "follow_redirects", Kind: playbook.KindBoolean, Default: "true", Doc: "Whether to follow redirects, up to 10."},
}

const doc = `The result is the parsed body, or nil if the body is empty. JSON gives its value, JSON
Lines a list with one value per line, CSV a list of maps from column names to texts,
and everything else is text. The field format decides; without it the content type
decides, such as text/csv or application/x-ndjson. If the content type says nothing
(none, application/octet-stream, application/gzip), the file's name decides: that of
Content-Disposition, else that of the url, such as orders.jsonl.gz. Compressed bytes
without such a name are recognized as JSON, JSON Lines or text. Files compressed with
gzip or zstd are unpacked; size limits apply to the unpacked bytes. A body that is not
in its format is an error of type invalid_json, invalid_jsonl or invalid_csv, with the
line.

Valid UTF-8 is read as UTF-8, whatever charset is declared. Other bytes are read in
the charset of their byte order mark, else of the field encoding, else of the content
type; a byte that is invalid in it is a final error of type charset, with its position.
A body that is declared as binary, or contains a NUL, is a final error of type not_text.
Status, headers, links and the final URL are in the envelope's meta: at most 100
headers of 8 KiB each and 32 KiB in all, and as many links. A link to the next page
that is longer than 8 KiB is a final error of type link.

A status of 400 or more is an error of kind http. It has the status, the headers and
the body, and the wait that Retry-After or an exhausted rate limit asks for. A request
without a response is an error of kind connection, of type econnrefused, econnreset,
dns, tls or eof.

An attempt sends its request once, whatever the method, and follows each redirect
once. A broken connection is an error, and retry decides what happens next. Connections
are kept alive; one that the server has closed before anything was sent is replaced.
The same applies to HTTP/2. There, a server may also refuse a request (GOAWAY,
REFUSED_STREAM), which is an error of kind connection without a type.

With auth, the connection is https://user:password@host for basic authentication,
bearer:TOKEN, or header:Name: value. The last two may name their host, as in
bearer:TOKEN@https://host. A connection can also be a map of what is sent: headers,
parameters of the query, certificates, keys that sign requests to AWS, or an OAuth 2.0
client, a login or a service account, whose tokens the worker fetches; a request that
gets a 401 is then sent once more with a new token, within the same attempt. Parameters
that a connection sends are in no url, link or error.
Credentials of a connection with a host are sent to that host only, and url may then be
a path. Without a host, they are sent to the host of the call's first request. A page on
another host, or a step from https to http, is a final error.

Redirects of GET and HEAD are followed, up to 10 times; 307 and 308 repeat any
request, and 303 continues with GET. A 301 or 302 in response to another method would
lose the body, so it is a final error of type redirect, with both addresses.

A redirect to another host, port or scheme (also from https to http) is followed with
method and URL alone: without credentials, the author's headers, Idempotency-Key or
Referer, even if it leads back. It is a final error of type redirects if it would send
a body, or leads to a scheme other than http and https.

As a sink, the tool sends one POST with args, else the result, as its body. The header
Idempotency-Key lets the server recognize a repeated write.`

// fieldTexts describe the fields that say how an answer is read.
var fieldTexts = format.FieldTexts{
	FormatDefault: "by content type, then by name", Format: "The format of the response. A response with an error status is read as JSON or text in any case.",
	CompressionDefault: "by the first bytes", Compression: "The compression of what is read; none uses the bytes as they are.",
}

// Spec describes the tool.
func (t *Tool) Spec() playbook.ToolSpec {
	return playbook.ToolSpec{
		Name:    "http",
		Secrets: []string{"url", "headers", "params", "body", "form"},
		Summary: "Sends an HTTP request; its result is the parsed body.",
		Doc:     doc,
		Fields:  append(slices.Clone(requestFields), format.ReadingFields(fieldTexts)...),
		Writes:  true,
		Example: `step: fetch
tool: http
url: "{{ workload.api }}/patients"
params: {status: [open, late], year: 2026}
headers: {Accept: application/json}
`,
	}
}

// Run sends one request.
func (t *Tool) Run(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	return t.SendRequest(ctx, in, http.MethodGet)
}

// Write sends one request whose body is the rows, unless the sink has a body
// of its own.
func (t *Tool) Write(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	_, hasBody := in.Fields["body"]
	_, hasForm := in.Fields["form"]
	if !hasBody && !hasForm {
		in.Fields = withField(in.Fields, "body", tool.SinkData(in))
	}
	result, err := t.SendRequest(ctx, in, http.MethodPost)
	if answer, ok := errors.AsType[*tool.Error](err); ok && slices.Contains([]string{typeNotText, typeCharset, typeEncoding, typeLink, typeInvalid + format.JSONL, typeInvalid + format.CSV, typeInvalid + format.XML, typeInvalid + format.Parquet}, answer.Type) {
		return interpreter.ToolResult{}, nil // it is written, and the answer is not used
	}
	return result, err
}

// Close ends the sessions of connections and drops idle connections.
func (t *Tool) Close() error {
	t.tokens.endSessions(t.res.Logger)
	t.connections.closeIdle()
	if idle, ok := t.transport.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
	return nil
}

// BeginsItself marks a tool that waits before it acts.
func (*Tool) BeginsItself() {}

// beginOnConnection returns a request that begins the attempt once it has a connection. If the transport cannot be
// traced, the attempt begins at once.
func (t *Tool) beginOnConnection(request *http.Request) (*http.Request, error) {
	ctx := request.Context()
	switch t.transport.(type) {
	case *guardedTransport, *http.Transport:
	default:
		return request, tool.BeginAttempt(ctx)
	}
	ctx, end := context.WithCancelCause(ctx)
	return request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) {
			if err := tool.BeginAttempt(ctx); err != nil {
				end(err)
			}
		},
		GotFirstResponseByte: func() { tool.MarkAnswered(ctx) },
	})), nil
}

// SendRequest makes the request of an attempt.
func (t *Tool) SendRequest(ctx context.Context, in interpreter.ToolInput, defaultMethod string) (interpreter.ToolResult, error) {
	options, err := format.OptionsOf(in)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	sending, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	out, err := t.newRequest(sending, in, defaultMethod)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	result, err := t.exchangeRequest(ctx, out, stop, options)
	if err != nil {
		params, _ := tool.MapField(in, "params") // which newRequest has read
		err = &tool.RequestError{URL: tool.ShownURL(out.request.URL, tool.MaxShownURL), Params: params, Err: err}
	}
	return result, err
}

// exchangeRequest sends a request and reads its answer.
func (t *Tool) exchangeRequest(ctx context.Context, out *outgoing, stop context.CancelCauseFunc, options format.Options) (interpreter.ToolResult, error) {
	response, err := t.sendRequest(ctx, out, stop)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	defer response.Body.Close()
	return t.readResponse(ctx, response, out.login, options)
}

// sendRequest sends a request and returns its response, whose body is not read yet. ctx is that of the attempt, and stop ends the context of out.request.
func (t *Tool) sendRequest(ctx context.Context, out *outgoing, stop context.CancelCauseFunc) (*http.Response, error) {
	client := t.newClient(out, stop)
	request, err := t.beginOnConnection(out.request)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		cause := context.Cause(request.Context())
		if ctx.Err() == nil && cause != nil && !errors.Is(cause, errNotProcessed) {
			return nil, cause // the attempt may not begin
		}
		return nil, requestError(ctx, out.request, err)
	}
	if err := out.unfollowedError(response); err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// newClient sends the requests of one attempt.
func (t *Tool) newClient(out *outgoing, stop context.CancelCauseFunc) *http.Client {
	once := &onceTransport{base: cmp.Or(out.login.transport, t.transport), stop: stop}
	if out.login.isSentLast() {
		once.base = &lastTransport{base: once.base, out: out}
	}
	if t.observe != nil {
		once.base = t.observe(once.base)
	}
	client := &http.Client{Transport: once, CheckRedirect: out.checkRedirect}
	if out.login.name != "" {
		client.Transport = &renewingTransport{base: once, tool: t, out: out, given: out.login}
	}
	if out.login.jar != nil {
		client.Jar = hostJar{out.login.jar, out}
	}
	return client
}

// withField returns a copy of fields with one more.
func withField(fields map[string]expression.Value, name string, v any) map[string]expression.Value {
	more := maps.Clone(fields)
	if more == nil {
		more = map[string]expression.Value{}
	}
	more[name] = expression.Of(v)
	return more
}

// maxRedirects is how many redirects one request follows: two addresses that redirect to each
// other would keep the attempt until its timeout.
const maxRedirects = 10

// checkRedirect keeps a request at its host. After a redirect to another host, only method and
// URL are sent, even if a later redirect leads back. The standard client drops only
// Authorization and Cookie.
func (out *outgoing) checkRedirect(next *http.Request, via []*http.Request) error {
	if !out.follow {
		return http.ErrUseLastResponse
	}
	if len(via) > maxRedirects {
		return redirectErrorf(typeRedirects, "stopped after 10 redirects from %s", requestPath(out.request))
	}
	if before := via[len(via)-1]; dropsBody(before, next.Response) {
		return redirectErrorf(typeRedirect, "%s redirects (HTTP %d) to %s, and following it would send a GET without the body; "+
			"use that URL", requestPath(before), next.Response.StatusCode, redactURL(next.URL))
	}
	if (next.URL.Scheme != "http" && next.URL.Scheme != "https") || next.URL.Host == "" {
		return redirectErrorf(typeRedirects, "the redirect from %s leads to a URL that is not http or https (%s)",
			requestPath(out.request), tool.CutText(next.URL.Scheme, shownScheme))
	}
	next.URL = out.login.withoutQuery(next.URL) // which the server may repeat
	if out.left = out.left || !tool.SameHost(out.request.URL, next.URL); !out.left {
		return nil
	}
	if next.Body != nil && next.Body != http.NoBody {
		return redirectErrorf(typeRedirects, "the redirect would send the body from %s to %s, so it was not followed; "+
			"if the body is meant for that host, use it in url", requestPath(out.request), tool.Origin(next.URL))
	}
	next.Header, next.Host = out.plain.Clone(), ""
	return out.refuseSecrets(next)
}

// refuseSecrets refuses a redirect to another host whose address repeats a secret of the connection.
func (out *outgoing) refuseSecrets(next *http.Request) error {
	if out.login.sends != nil && secrets.ResponseEchoes(out.login.sends, next.URL.String()) {
		return redirectErrorf(typeRedirects, "the redirect from %s would send a secret of connection %q to %s, so it was not followed",
			requestPath(out.request), out.login.name, tool.Origin(next.URL))
	}
	return nil
}

// dropsBody reports whether clients follow a redirect by a GET without the body of the request, which the server of a 303 alone
// has asked for (RFC 9110, section 15.4).
func dropsBody(request *http.Request, redirect *http.Response) bool {
	if redirect.StatusCode != http.StatusMovedPermanently && redirect.StatusCode != http.StatusFound {
		return false
	}
	return request.Method != http.MethodGet && request.Method != http.MethodHead || request.ContentLength != 0
}

// unfollowedError returns the error of an answer that refers to another place and cannot be followed: its body is not what was
// requested (RFC 9110, section 15.4).
func (out *outgoing) unfollowedError(response *http.Response) error {
	status, where := response.StatusCode, requestPath(response.Request)
	switch {
	case !out.follow || status < http.StatusMultipleChoices || status >= http.StatusBadRequest || status == http.StatusNotModified:
		return nil
	case slices.Contains([]int{301, 302, 303, 307, 308}, status):
		return redirectErrorf(typeRedirect, "%s redirects (HTTP %d) without a Location header", where, status)
	}
	return redirectErrorf(typeRedirect, "%s returned HTTP %d, a redirect with no single location to follow; "+
		"to use its body, set follow_redirects: false", where, status)
}

const (
	// shownScheme bounds what a message has of a scheme.
	shownScheme = 20
	// typeRedirect is the type of the error of a redirect that would make another request of this one, and typeRedirects that
	// of one that is not followed.
	typeRedirect  = "redirect"
	typeRedirects = "redirects"
)

func redirectErrorf(kind, format string, args ...any) error {
	return &tool.Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: kind, Message: fmt.Sprintf(format, args...),
	}
}
