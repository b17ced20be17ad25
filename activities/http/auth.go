package http

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"reprise/activities/tool"
	"reprise/internal/base/secrets"
	"reprise/interpreter"
)

// credentials is what a connection adds to a request; the zero value adds
// nothing.
type credentials struct {
	base           *url.URL // nil: the credentials are for the host of the call's first request
	user, password string
	header, value  string

	// Of a connection whose tokens are fetched.
	name    string
	client  *oauth2Client
	tokens  *tokenSource
	secrets *secrets.Masker // that tokens belong to
}

// login reads the connection a step names: https://user:password@host,
// bearer:TOKEN or header:Name: value, the last two perhaps with @https://host;
// or an OAuth 2.0 client.
func (t *Tool) login(ctx context.Context, name string) (*credentials, error) {
	if name == "" {
		return &credentials{}, nil
	}
	raw, err := t.res.Connection(ctx, name)
	if err != nil {
		return nil, err
	}
	if tool.IsOAuth2(raw) {
		return t.oauth2Login(name, raw)
	}
	login, err := parseLogin(strings.TrimSpace(raw))
	if err != nil {
		return nil, tool.ConfigErrorf("connection %q cannot be used by http: it must be https://user:password@host, "+
			"bearer:TOKEN or header:Name: value, the last two optionally with their host, as in bearer:TOKEN@https://host", name)
	}
	return login, nil
}

// oauth2Login is the login with the tokens of an OAuth 2.0 client, of which none
// is fetched yet.
func (t *Tool) oauth2Login(name, raw string) (*credentials, error) {
	client, err := parseOAuth2(raw)
	if err != nil {
		return nil, tool.ConfigErrorf("connection %q %w", name, err)
	}
	return &credentials{
		base: client.host, header: "Authorization", name: name, client: client,
		tokens: t.tokens.source(raw, client), secrets: t.res.Secrets,
	}, nil
}

// errNoLogin is a connection that is none of http. It says nothing of it.
var errNoLogin = errors.New("not a connection of http")

func parseLogin(raw string) (*credentials, error) {
	scheme, rest, _ := strings.Cut(raw, ":")
	switch strings.ToLower(scheme) {
	case "bearer":
		token, base, err := cutHost(rest)
		if err != nil || token == "" || !httpguts.ValidHeaderFieldValue(token) {
			return nil, errNoLogin
		}
		return &credentials{base: base, header: "Authorization", value: "Bearer " + token}, nil
	case "header":
		field, rest, _ := strings.Cut(rest, ":")
		field = strings.TrimSpace(field)
		value, base, err := cutHost(rest)
		if err != nil || value == "" || !httpguts.ValidHeaderFieldName(field) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, errNoLogin
		}
		return &credentials{base: base, header: http.CanonicalHeaderKey(field), value: value}, nil
	case "http", "https":
		return urlLogin(raw)
	}
	return nil, errNoLogin
}

// cutHost cuts the host off a secret that has one behind it; nil where there is
// none.
func cutHost(text string) (string, *url.URL, error) {
	secret, host := secrets.CutHost(text)
	if host == "" {
		return secret, nil, nil
	}
	base, err := hostURL(host)
	return secret, base, err
}

// hostURL is a host that credentials are for, with a path for relative URLs to
// begin at.
func hostURL(text string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimSpace(text))
	if err != nil || !isWeb(base) || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, errNoLogin
	}
	return base, nil
}

// isWeb reports whether a URL names a host that requests go to.
func isWeb(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

func urlLogin(raw string) (*credentials, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" { // neither would be sent
		return nil, errNoLogin
	}
	login := &credentials{base: u}
	if u.User != nil {
		login.user = u.User.Username()
		login.password, _ = u.User.Password()
	}
	u.User = nil
	return login, nil
}

// token is what Authorization has of a connection whose tokens are fetched,
// another one than a server has refused.
func (l *credentials) token(ctx context.Context, refused string) (string, error) {
	value, err := l.tokens.get(ctx, refused)
	if err != nil {
		return "", tokenError(l.name, l.client.tokenURL, err)
	}
	l.value = value
	tool.SecretsOf(ctx).AddSent(l.secrets.AddToken(bearer(value)))
	return value, nil
}

// permits reports whether the credentials may go to target, the request at hand
// of a call that began at in.Origin. Pages and links are named by whoever
// answers, and may be anywhere.
func (l *credentials) permits(in interpreter.ToolInput, target *url.URL) error {
	if l.base != nil {
		if tool.SameHost(l.base, target) {
			return nil
		}
		return tool.ConfigErrorf("step %q: connection %q is for %s, and its credentials are not sent to %s; "+
			"use a connection for that host, or remove auth", in.Step, in.Auth, tool.Origin(l.base), tool.Origin(target))
	}
	if in.Auth == "" || in.Origin == "" {
		return nil
	}
	first, err := url.Parse(in.Origin)
	if err == nil && tool.SameHost(first, target) {
		return nil
	}
	return tool.ConfigErrorf("step %q: the call started at %s, and the credentials of connection %q are not sent to %s; "+
		"add the host to the connection, as in bearer:TOKEN@https://host, or remove auth",
		in.Step, in.Origin, in.Auth, tool.Origin(target))
}

// complete is a relative address at the connection's host. That of a field begins below the connection's path, with or without
// a leading slash; that of a next_call is relative to the request before it, which began there.
func (l *credentials) complete(in interpreter.ToolInput, address *url.URL) (*url.URL, error) {
	if address.Path == "" {
		return l.base.ResolveReference(address), nil
	}
	folder, below := *l.base, *address
	if !strings.HasSuffix(folder.Path, "/") {
		folder = *folder.JoinPath("/")
	}
	if in.NextURL {
		return folder.ResolveReference(&below), nil
	}
	below.Path, below.RawPath = strings.TrimLeft(below.Path, "/"), strings.TrimLeft(below.RawPath, "/")
	if below.Path == "" {
		folder.RawQuery = below.RawQuery
		return &folder, nil
	}
	target := folder.ResolveReference(&below)
	if !strings.HasPrefix(target.EscapedPath(), folder.EscapedPath()) {
		return nil, tool.ConfigErrorf("step %q: url is %q, which is outside %s, the base of connection %q; write the whole URL",
			in.Step, address.Path, redacted(l.base), in.Auth)
	}
	return target, nil
}

// apply adds the credentials. A header the author has set wins.
func (l *credentials) apply(request *http.Request) error {
	switch {
	case l.tokens != nil && request.Header.Get(l.header) == "":
		value, err := l.token(request.Context(), "")
		if err != nil {
			return err
		}
		request.Header.Set(l.header, value)
	case l.header != "":
		setDefault(request.Header, l.header, l.value)
	case (l.user != "" || l.password != "") && request.Header.Get("Authorization") == "":
		request.SetBasicAuth(l.user, l.password)
	}
	return nil
}

// transport is what sends the requests of an attempt with this login.
func (l *credentials) transport(base http.RoundTripper) http.RoundTripper {
	if l.tokens == nil || l.value == "" {
		return base
	}
	return &tokenTransport{base: base, login: l, given: l.value}
}
