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
// that is answered 401 is sent once more with a new token, once per attempt: its
// answer is there, so the server has not acted on it.
type renewingTransport struct {
	base    http.RoundTripper
	login   *credentials
	given   string // what the requests of the attempt have as Authorization
	renewed string // what is sent in its place; "" before a 401
}

// RoundTrip sends the request. One with other credentials, or none, goes out as
// it is.
func (t *renewingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get(authorization) != t.given {
		return t.base.RoundTrip(request)
	}
	if t.renewed != "" {
		return t.base.RoundTrip(withAuthorization(request, t.renewed))
	}
	response, err := t.base.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	defer response.Body.Close()
	if t.renewed, err = t.login.token(request.Context(), t.given); err != nil {
		return nil, err
	}
	// What is left unread costs the connection, no more.
	_, _ = io.CopyN(io.Discard, response.Body, maxDrained)
	again, err := rewound(request)
	if err != nil {
		return nil, err
	}
	return t.base.RoundTrip(withAuthorization(again, t.renewed))
}

// maxDrained is how much of a 401's body is read so that its connection can be
// used again.
const maxDrained = 64 << 10

func withAuthorization(request *http.Request, value string) *http.Request {
	again := request.Clone(request.Context())
	again.Header.Set(authorization, value)
	return again
}

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
