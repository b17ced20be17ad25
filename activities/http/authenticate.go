package http

import (
	"io"
	"net/http"
	"net/url"

	"reprise/activities/tool"
)

// queryTransport adds what a connection has in the query of its requests. It is the last before the network, so that nobody
// sees the address with its key: neither a recording, nor an error, nor a redirect.
type queryTransport struct {
	base http.RoundTripper
	out  *outgoing
}

// RoundTrip sends the request.
func (t *queryTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.out.left {
		return t.base.RoundTrip(request)
	}
	keyed := request.WithContext(request.Context())
	keyed.URL = t.out.login.withQuery(request.URL)
	response, err := t.base.RoundTrip(keyed)
	if response != nil {
		response.Request = request
	}
	return response, err
}

// renewingTransport sends the requests of one attempt with what its connection has now. One
// that is answered 401 is sent once more with a new token, or a new password, once per attempt: its
// answer is there, so the server has not acted on it.
type renewingTransport struct {
	base  http.RoundTripper
	tool  *Tool
	out   *outgoing
	given *credentials // what the requests of the attempt have
	done  bool         // a 401 has come
}

// RoundTrip sends the request. One with other credentials, or none, goes out as
// it is.
func (t *renewingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.out.left || !t.given.isIn(request) {
		return t.base.RoundTrip(request)
	}
	if t.done {
		return t.base.RoundTrip(t.current(request))
	}
	response, err := t.base.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	t.done = true
	fresh, err := t.tool.renewed(request.Context(), t.given)
	if err == nil && fresh == nil {
		return response, nil
	}
	defer response.Body.Close()
	if err != nil {
		return nil, err
	}
	t.out.login = fresh
	// What is left unread costs the connection, no more.
	_, _ = io.CopyN(io.Discard, response.Body, maxDrained)
	again, err := rewound(request)
	if err != nil {
		return nil, err
	}
	return t.base.RoundTrip(t.current(again))
}

// current is a request with what the connection has now in the place of what the attempt was given.
func (t *renewingTransport) current(request *http.Request) *http.Request {
	again := request.Clone(request.Context())
	for name, value := range t.given.header {
		if request.Header.Get(name) == value {
			again.Header.Del(name)
		}
	}
	for name, value := range t.out.login.header {
		setDefault(again.Header, name, value)
	}
	return again
}

// isIn reports whether a request has anything of the connection. What the author has set in its place is the author's.
func (l *credentials) isIn(request *http.Request) bool {
	for name, value := range l.header {
		if request.Header.Get(name) == value {
			return true
		}
	}
	return len(l.query) > 0
}

// maxDrained is how much of a 401's body is read so that its connection can be
// used again.
const maxDrained = 64 << 10

// hostJar keeps cookies of the host that the connection is for, and of no other.
type hostJar struct {
	http.CookieJar

	out *outgoing
}

// SetCookies keeps the cookies of an answer.
func (j hostJar) SetCookies(u *url.URL, cookies []*http.Cookie) {
	if !tool.SameHost(j.out.request.URL, u) || j.out.left {
		return
	}
	for _, cookie := range cookies {
		tool.SecretsOf(j.out.request.Context()).AddSent(j.out.login.secrets.AddToken(cookie.Value))
	}
	j.CookieJar.SetCookies(u, cookies)
}

// Cookies are those that a request to u has.
func (j hostJar) Cookies(u *url.URL) []*http.Cookie {
	if j.out.left || !tool.SameHost(j.out.request.URL, u) {
		return nil
	}
	kept := j.CookieJar.Cookies(u)
	for _, cookie := range kept {
		tool.SecretsOf(j.out.request.Context()).AddSent(j.out.login.secrets.AddToken(cookie.Value))
	}
	return kept
}
