package http

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"reprise/activities/format"
	"reprise/activities/tool"
	"reprise/internal/base/secrets"
	"reprise/interpreter"
	"reprise/interpreter/call/request"
)

// outgoing is a request and what its redirects need.
type outgoing struct {
	request *http.Request
	login   *credentials
	follow  bool
	plain   http.Header // all that another host is sent
	left    bool        // a redirect has led to another host
}

func (t *Tool) newRequest(ctx context.Context, in interpreter.ToolInput, defaultMethod string) (*outgoing, error) {
	login, err := t.readLogin(ctx, in.Auth)
	if err != nil {
		return nil, err
	}
	target, err := targetURL(in, login)
	if err != nil {
		return nil, err
	}
	method, err := tool.TextField(in, "method")
	if err != nil {
		return nil, err
	}
	content, contentType, err := requestBody(in)
	if err != nil {
		return nil, err
	}
	follow, err := tool.BoolField(in, "follow_redirects", true)
	if err != nil {
		return nil, err
	}
	method = strings.ToUpper(cmp.Or(strings.TrimSpace(method), defaultMethod))
	sent, err := http.NewRequestWithContext(ctx, method, target.String(), bodyReader(content))
	if err != nil {
		return nil, tool.ConfigErrorf("step %q: method is %q; it must be an HTTP method such as GET", in.Step, method)
	}
	plain := http.Header{"Accept": {request.UsualAccept}, "User-Agent": {request.UsualUserAgent}}
	if err := setHeaders(sent, in, contentType, plain); err != nil {
		return nil, err
	}
	// What the author has set; the connection's own headers are known.
	for _, name := range login.headerNames() {
		tool.SecretsOf(ctx).Add(sent.Header[name]...)
	}
	if err := login.applyHeaders(sent); err != nil {
		return nil, err
	}
	tool.Propagate(ctx, sent.Header)
	return &outgoing{request: sent, login: login, follow: follow, plain: plain}, nil
}

func bodyReader(content []byte) io.Reader {
	if content == nil {
		return nil
	}
	return bytes.NewReader(content)
}

// targetURL returns the url field with params laid over its query.
func targetURL(in interpreter.ToolInput, login *credentials) (*url.URL, error) {
	raw, err := tool.RequiredText(in, "url")
	if err != nil {
		return nil, err
	}
	target, err := request.ParseURL(raw)
	if err != nil {
		return nil, tool.ConfigErrorf("step %q: url cannot be parsed; it must look like https://host/path", in.Step)
	}
	if login.base != nil && target.Host == "" && target.Scheme == "" {
		if target, err = login.completeAddress(in, target); err != nil {
			return nil, err
		}
	}
	if (target.Scheme != "http" && target.Scheme != "https") || target.Host == "" {
		return nil, tool.ConfigErrorf("step %q: url is %q; it must start with http:// or https:// and name a host", in.Step, redactURL(target))
	}
	if err := login.checkTarget(in, target); err != nil {
		return nil, err
	}
	params, err := tool.MapField(in, "params")
	if err != nil {
		return nil, err
	}
	target.Fragment = ""
	if target.RawQuery, err = request.MergeQuery(target.RawQuery, params, "params"); err != nil {
		return nil, tool.ConfigErrorf("step %q: %w", in.Step, err)
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if _, ours := login.query[name]; ours {
			return nil, tool.ConfigErrorf("step %q: params has %q, which connection %q sends; remove it from params", in.Step, name, in.Auth)
		}
	}
	return login.withoutQuery(target), nil
}

// requestBody returns the body's bytes, nil for none, and its content type.
func requestBody(in interpreter.ToolInput) ([]byte, string, error) {
	form, err := tool.MapField(in, "form")
	if err != nil {
		return nil, "", err
	}
	content, contentType, err := request.EncodeBody(in.Fields["body"].Data, form)
	if err != nil {
		return nil, "", tool.ConfigErrorf("step %q: %w", in.Step, err)
	}
	return content, contentType, nil
}

// setHeaders sets the author's headers, then the defaults that the author did not set: the defaults in plain, and
// the defaults of this request.
func setHeaders(sent *http.Request, in interpreter.ToolInput, contentType string, plain http.Header) error {
	headers, err := tool.MapField(in, "headers")
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		values, err := request.ParamTexts(headers[name], "headers."+name)
		if err != nil {
			return tool.ConfigErrorf("step %q: %w", in.Step, err)
		}
		if !httpguts.ValidHeaderFieldName(name) {
			return tool.ConfigErrorf("step %q: %q is not the name of a header", in.Step, name)
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return tool.ConfigErrorf("step %q: headers.%s contains a line break or another control character", in.Step, name)
			}
			sent.Header.Add(name, value)
		}
	}
	if host := sent.Header.Get("Host"); host != "" {
		sent.Host = host
		sent.Header.Del("Host")
	}
	if err := refuseOtherType(sent.Header.Get("Content-Type"), contentType); err != nil {
		return tool.ConfigErrorf("step %q: %w", in.Step, err)
	}
	setDefault(sent.Header, "Content-Type", contentType)
	setDefault(sent.Header, "Accept", plain.Get("Accept"))
	setDefault(sent.Header, "User-Agent", plain.Get("User-Agent"))
	setDefault(sent.Header, "Idempotency-Key", in.IdempotencyKey)
	return nil
}

// multipartType is the content type of a form with files, which the tool does not send.
const multipartType = "multipart/form-data"

// refuseOtherType returns an error if the author's header announces a form and the body is JSON, or the other way round: servers take
// neither for an error and see no fields.
func refuseOtherType(announced, sent string) error {
	announced, _ = format.MediaType(announced)
	saysForm := announced == request.FormType || announced == multipartType
	switch {
	case announced == "":
	case sent == request.JSONType && saysForm:
		return fmt.Errorf("headers announce %s, but body is sent as JSON; use form instead of body, or write body as text", announced)
	case sent == request.FormType && announced != request.FormType:
		return fmt.Errorf("headers announce %s, but form is sent as %s; remove the header, or use body instead of form", announced, request.FormType)
	}
	return nil
}

func setDefault(header http.Header, name, value string) {
	if value != "" && header.Get(name) == "" {
		header.Set(name, value)
	}
}

// requestLine names a request in messages: method, host, path and query.
func requestLine(request *http.Request) string {
	return request.Method + " " + tool.ShownURL(request.URL, tool.MaxShownQuery)
}

// requestPath names the request of a step that is wrong whatever page it asks for.
func requestPath(request *http.Request) string {
	return request.Method + " " + redactURL(request.URL)
}

// redactURL returns a URL as configuration errors show it: scheme, host and path, without
// user, password, query and fragment.
func redactURL(u *url.URL) string {
	short := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if u.Opaque != "" {
		return u.Scheme + ":" + secrets.Stars
	}
	return short.String()
}
