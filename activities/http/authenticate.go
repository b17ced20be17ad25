package http

import (
	"net/http"
	"net/url"

	"reprise/activities/tool"
)

// lastTransport adds the connection's query parameters, cookie and signature to requests. It comes right before the
// network, so that recordings, errors and redirects never contain the address with its key.
type lastTransport struct {
	base http.RoundTripper
	out  *outgoing
}

// RoundTrip sends the request.
func (t *lastTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.out.left {
		return t.base.RoundTrip(request)
	}
	keyed := request.Clone(request.Context())
	keyed.URL = t.out.login.withQuery(request.URL)
	t.out.login.setCookie(keyed)
	if keys := t.out.login.aws; keys != nil {
		if err := keys.signRequest(keyed, t.out.login.name); err != nil {
			return nil, err
		}
	}
	response, err := t.base.RoundTrip(keyed)
	if response != nil {
		response.Request = request
	}
	return response, err
}

// isSentLast reports whether the connection has something that lastTransport adds.
func (l *credentials) isSentLast() bool { return len(l.query) > 0 || l.cookie != "" || l.aws != nil }

// setCookie sets the cookie that contains a session's token, and replaces one of the same name.
func (l *credentials) setCookie(request *http.Request) {
	if l.cookie == "" {
		return
	}
	others := request.Cookies()
	request.Header.Del("Cookie")
	for _, other := range others {
		if other.Name != l.place.Cookie {
			request.AddCookie(other)
		}
	}
	request.AddCookie(&http.Cookie{Name: l.place.Cookie, Value: l.cookie})
}

// renewingTransport sends the requests of one attempt with the connection's present
// credentials. A refused request is sent again once, with a new token or password: it was
// answered, so the server has not acted on it.
type renewingTransport struct {
	base  http.RoundTripper
	tool  *Tool
	out   *outgoing
	given *credentials // what the requests of the attempt have
	done  bool         // one was refused
}

// RoundTrip sends the request. A request with other credentials, or none, is sent unchanged.
func (t *renewingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.out.left || !t.given.isIn(request) {
		return t.base.RoundTrip(request)
	}
	if t.done {
		return t.lastAnswer(t.base.RoundTrip(t.currentRequest(request)))
	}
	response, err := t.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	refused, err := t.given.refusedBy(response)
	if err == nil && !refused {
		return response, nil
	}
	t.done = true
	otherClock := t.given.learnClock(response)
	var fresh *credentials
	if err == nil {
		fresh, err = t.tool.renewLogin(request.Context(), t.given)
	}
	if err == nil && fresh == nil && otherClock && t.given.aws != nil {
		fresh = t.given // which signs by that clock
	}
	if err == nil && fresh == nil {
		return t.lastAnswer(response, nil)
	}
	defer response.Body.Close()
	if err != nil {
		return nil, err
	}
	t.out.login = fresh
	again, err := rewindBody(request)
	if err != nil {
		return nil, err
	}
	return t.lastAnswer(t.base.RoundTrip(t.currentRequest(again)))
}

// learnClock updates the clock that signatures use by the date of a refusal. It reports whether the clock has changed.
func (l *credentials) learnClock(refusal *http.Response) bool {
	if l.aws != nil {
		return l.aws.clock.learnDate(refusal)
	}
	if l.tokens == nil {
		return false
	}
	account, signs := l.tokens.issuer.(*serviceAccount)
	return signs && account.of.TokenURL == nil && account.clock.learnDate(refusal)
}

// lastAnswer returns an answer after which nothing is sent again. If it refuses the request without looking like an error,
// it becomes one.
func (t *renewingTransport) lastAnswer(response *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	login := t.out.login
	refused, err := login.refusedBy(response)
	if login.tokens != nil && login.sent != t.given.sent {
		login.tokens.recordRefusal(refused)
	}
	if refused && response.StatusCode < http.StatusBadRequest {
		err = login.session.refusedError(login.name, response)
	}
	if err != nil {
		_ = response.Body.Close()
		return nil, err
	}
	return response, nil
}

// refusedBy reports whether an answer refuses the credentials.
func (l *credentials) refusedBy(response *http.Response) (bool, error) {
	switch {
	case response.StatusCode == http.StatusUnauthorized:
		return true, nil
	case l.session != nil:
		return l.session.refusedBy(l.name, response)
	}
	return l.aws != nil && l.aws.refusedBy(response), nil
}

// currentRequest returns the request with the connection's present credentials instead of those that the
// attempt began with.
func (t *renewingTransport) currentRequest(request *http.Request) *http.Request {
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
	return l.isSentLast()
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

// Cookies returns the cookies that a request to u has.
func (j hostJar) Cookies(u *url.URL) []*http.Cookie {
	if j.out.left || !tool.SameHost(j.out.request.URL, u) {
		return nil
	}
	cookies := j.CookieJar.Cookies(u)
	for _, cookie := range cookies {
		tool.SecretsOf(j.out.request.Context()).AddSent(j.out.login.secrets.AddToken(cookie.Value))
	}
	return cookies
}
