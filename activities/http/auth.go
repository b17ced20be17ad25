package http

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"

	"reprise/activities/tool"
	"reprise/internal/base/awskeys"
	"reprise/internal/base/connection"
	"reprise/internal/base/egress"
	"reprise/internal/base/secrets"
	"reprise/interpreter"
)

// credentials is what a connection adds to a request; the zero value adds nothing.
type credentials struct {
	name   string
	raw    string            // the connection with the values of its secrets
	base   *url.URL          // nil: the credentials are for the host of the call's first request
	header map[string]string // by canonical names, what the attempt's requests have; of a token once it is fetched
	query  map[string]string // what each request to the host has in its query

	sends     *secrets.ConnectionSecrets // nil for no connection
	transport http.RoundTripper          // with the connection's certificates and hosts, nil for the usual one
	jar       http.CookieJar             // nil where cookies are not kept

	// Of a connection whose tokens are fetched.
	tokens  *tokenSource // nil for none
	place   connection.Place
	sent    string          // of the token, "" before it is fetched
	cookie  string          // the value of that of place
	session *sessionLogin   // that the tokens are of, nil for another kind
	secrets *secrets.Masker // that tokens belong to

	aws *awsKeys // that sign each request, nil for none
}

// readLogin reads the connection a step names.
func (t *Tool) readLogin(ctx context.Context, name string) (*credentials, error) {
	if name == "" {
		return &credentials{}, nil
	}
	raw, err := t.res.Connection(ctx, name, "http")
	if err != nil {
		return nil, err
	}
	return t.loginOf(name, raw)
}

// loginOf reads a connection with the values of its secrets.
func (t *Tool) loginOf(name, raw string) (*credentials, error) {
	parsed, err := connection.Parse(raw)
	if errors.Is(err, connection.ErrNotHTTP) {
		return nil, tool.ConfigErrorf("connection %q cannot be used by http: it must be https://user:password@host, "+
			"bearer:TOKEN or header:Name: value, the last two optionally with their host, as in bearer:TOKEN@https://host, "+
			"or a map such as {query: {api_key: KEY}, host: https://host}", name)
	}
	if err != nil {
		return nil, tool.ConfigErrorf("connection %q %w", name, err)
	}
	login := &credentials{
		name: name, raw: raw, base: parsed.Host, header: nameValueMap(parsed.Headers), query: nameValueMap(parsed.Query),
		secrets: t.res.Secrets, sends: t.res.Secrets.AddConnection(raw),
	}
	cached := t.connections.connectionOf(name, raw, parsed, t.transport)
	login.jar = cached.jar
	if cached.transport != nil {
		login.transport = cached.transport
	} else if granted := t.connections.transportOf(parsed, t.transport); granted != nil {
		login.transport = granted
	}
	if parsed.AWS != nil {
		login.aws = &awsKeys{AWS: parsed.AWS, clock: &cached.clock, provider: cached.keys}
	}
	if login.tokens = t.tokens.sourceOf(name, raw, parsed, login.transport, login.jar); login.tokens == nil {
		return login, nil
	}
	login.place = connection.Place{Header: authorization}
	if parsed.Session != nil {
		login.place, login.session = parsed.Session.Send, login.tokens.issuer.(*sessionLogin)
	}
	if login.place.Query != "" {
		login.query[login.place.Query] = "" // the author's may not be there
	}
	return login, nil
}

func nameValueMap(all []connection.NameValue) map[string]string {
	byName := make(map[string]string, len(all))
	for _, pair := range all {
		byName[pair.Name] = pair.Value
	}
	return byName
}

// cachedConnections caches by name what a connection keeps between attempts, such as its
// tokens. It is safe for concurrent use.
type cachedConnections struct {
	mu     sync.Mutex
	byName map[string]*cachedConnection
	// byHosts are the transports of connections without certificates, by the hosts that they name. A new password changes
	// neither.
	byHosts map[string]*guardedTransport
}

// cachedConnection belongs to one resolved text of a connection: a new password makes a new
// one.
type cachedConnection struct {
	raw       string
	transport *guardedTransport // nil without certificates
	jar       http.CookieJar    // nil where cookies are not kept
	clock     remoteClock       // of who checks signatures
	keys      *awskeys.Provider // that sign requests, nil for none
}

// connectionOf returns what a connection keeps between attempts: a transport with its own certificates, its cookies.
// A transport that is not ours, such as that of a test, does not get certificates.
func (k *cachedConnections) connectionOf(name, raw string, parsed *connection.Login, usual http.RoundTripper) *cachedConnection {
	if parsed.TLS == nil && !parsed.StoreCookies && parsed.AWS == nil {
		return &cachedConnection{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	cached := k.byName[name]
	if cached == nil || cached.raw != raw {
		if cached != nil && cached.transport != nil {
			cached.transport.CloseIdleConnections()
		}
		cached = &cachedConnection{raw: raw}
		if parsed.AWS != nil {
			cached.keys = awskeys.New(parsed.AWS)
		}
		if own, ok := usual.(*guardedTransport); ok && parsed.TLS != nil {
			cached.transport = newGuardedTransport(own.rules, hostMatcher(parsed.Hosts()), parsed.TLS)
		}
		if parsed.StoreCookies {
			cached.jar, _ = cookiejar.New(nil) // its error is always nil
		}
		k.byName[name] = cached
	}
	return cached
}

// transportOf gives the transport of a connection without certificates: one that may reach the hosts that the connection names. nil
// is for a connection that names none, and where the usual transport is not ours.
func (k *cachedConnections) transportOf(parsed *connection.Login, usual http.RoundTripper) *guardedTransport {
	own, ok := usual.(*guardedTransport)
	hosts := parsed.Hosts()
	if !ok || len(hosts) == 0 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := strings.Join(hosts, " ")
	if k.byHosts[key] == nil {
		k.byHosts[key] = newGuardedTransport(own.rules, hostMatcher(hosts), nil)
	}
	return k.byHosts[key]
}

// hostMatcher reports which addresses are of the hosts that a connection names.
func hostMatcher(hosts []string) egress.HostMatcher {
	return func(hostPort string) bool { return slices.Contains(hosts, hostPort) }
}

// closeIdle drops idle connections.
func (k *cachedConnections) closeIdle() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, transport := range k.byHosts {
		transport.CloseIdleConnections()
	}
	for _, cached := range k.byName {
		if cached.transport != nil {
			cached.transport.CloseIdleConnections()
		}
	}
}

const authorization = "Authorization"

// withToken makes requests send another token than the one that a server has refused. It reports
// whether there is one.
func (l *credentials) withToken(ctx context.Context, refused string) (bool, error) {
	token, err := l.tokens.getToken(ctx, refused)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) && !isURLError(err) {
		return false, &tool.TokenWaitError{Connection: l.name, Err: err}
	}
	if err != nil {
		return false, l.tokens.issuer.issueError(l.name, err)
	}
	for _, secret := range token.tokenSecrets() {
		tool.SecretsOf(ctx).AddSent(l.secrets.AddToken(secret))
	}
	l.sent = token.value
	switch {
	case l.place.Header != "":
		l.header[l.place.Header] = token.value
	case l.place.Query != "":
		l.query[l.place.Query] = token.value
	default:
		l.cookie = token.value
	}
	return token.value != "", nil
}

// renewLogin returns the login to use after a server has refused it: with a new token, or with the current secrets of
// the connection. nil means that there is nothing else to send.
func (t *Tool) renewLogin(ctx context.Context, refused *credentials) (*credentials, error) {
	raw, err := t.res.RereadConnection(ctx, refused.name, "http")
	if err != nil {
		return nil, err
	}
	fresh := refused
	if raw != refused.raw {
		if fresh, err = t.loginOf(refused.name, raw); err != nil {
			return nil, err
		}
		if fresh.transport != refused.transport || !sameBase(fresh.base, refused.base) {
			return nil, nil // the next attempt has them
		}
	}
	if fresh.tokens != nil {
		renewed := *fresh
		renewed.header, renewed.query = maps.Clone(fresh.header), maps.Clone(fresh.query)
		if has, err := renewed.withToken(ctx, refused.sent); err != nil || !has {
			return nil, err
		}
		return &renewed, nil
	}
	if fresh != refused {
		return fresh, nil
	}
	if fresh.aws == nil {
		return nil, nil
	}
	return fresh.withOtherKeys(ctx)
}

// sameBase reports whether two connections are for the same address.
func sameBase(a, b *url.URL) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.String() == b.String()
}

// checkTarget reports whether the credentials may be sent to target, the current request of a
// call that began at in.Origin. Links to pages come from the server and may lead anywhere.
func (l *credentials) checkTarget(in interpreter.ToolInput, target *url.URL) error {
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

// completeAddress resolves a relative address at the connection's host. In a field it is relative to the connection's
// path, with or without a leading slash; in next_call to the previous request.
func (l *credentials) completeAddress(in interpreter.ToolInput, address *url.URL) (*url.URL, error) {
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
			in.Step, address.Path, redactURL(l.base), in.Auth)
	}
	return target, nil
}

// applyHeaders adds the headers. One the author has set wins.
func (l *credentials) applyHeaders(request *http.Request) error {
	if l.tokens != nil && (l.place.Header == "" || request.Header.Get(l.place.Header) == "") {
		if _, err := l.withToken(request.Context(), ""); err != nil {
			return err
		}
	}
	for name, value := range l.header {
		setDefault(request.Header, name, value)
	}
	return nil
}

// headerNames returns the headers that may carry credentials.
func (l *credentials) headerNames() []string {
	return append([]string{authorization, "Cookie", "Proxy-Authorization", l.place.Header}, slices.Collect(maps.Keys(l.header))...)
}

// withoutQuery returns an address without the parameters that the connection adds, for messages and the history: servers
// repeat them in links.
func (l *credentials) withoutQuery(address *url.URL) *url.URL {
	if len(l.query) == 0 || address.RawQuery == "" {
		return address
	}
	bare := *address
	bare.RawQuery = strings.Join(slices.DeleteFunc(strings.Split(address.RawQuery, "&"), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(name)
		_, ours := l.query[plain]
		return err == nil && ours
	}), "&")
	return &bare
}

// withoutQueries are links without the parameters that the connection adds.
func (l *credentials) withoutQueries(links map[string]string) map[string]string {
	for relation, link := range links {
		if u, err := url.Parse(link); err == nil && len(l.query) > 0 {
			links[relation] = l.withoutQuery(u).String()
		}
	}
	return links
}

// withQuery adds the connection's parameters to an address. They replace parameters of the same names, which may be
// masked copies in a link of the response.
func (l *credentials) withQuery(address *url.URL) *url.URL {
	sent := *l.withoutQuery(address)
	added := url.Values{}
	for name, value := range l.query {
		added.Set(name, value)
	}
	sent.RawQuery = strings.TrimPrefix(sent.RawQuery+"&"+added.Encode(), "&")
	return &sent
}
