package http

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"golang.org/x/sync/singleflight"

	"reprise/activities/tool"
	"reprise/internal/base/connection"
	"reprise/internal/base/secrets"
	"reprise/interpreter"
	"reprise/interpreter/ratelimit"
)

const (
	// tokenTimeout is how long a token endpoint may take.
	tokenTimeout = 30 * time.Second
	// tokenMargin is how long before it expires a token is replaced, at most.
	tokenMargin = time.Minute
	// maxToken bounds an access token, in bytes. Servers refuse a header that long, with an
	// error that does not say why.
	maxToken = 16 << 10
	// shownDescription bounds what an error has of a token endpoint's words.
	shownDescription = 1 << 10
	// typeToken is the type of errors of a token endpoint that has answered.
	typeToken = "token"
)

// issuer fetches the tokens of one connection.
type issuer interface {
	// issueToken requests a token. It belongs to no attempt, since others wait for the token too.
	issueToken(ctx context.Context) (accessToken, error)
	// issueError converts an error of issueToken to the error of an attempt.
	issueError(connection string, err error) error
}

// accessToken is a token in the form in which it is sent.
type accessToken struct {
	value string    // what requests have of it; "" for none
	token string    // without what is beside it
	until time.Time // when it is fetched anew, zero for never
}

// tokenSecrets returns the parts of a token that must be masked, including what is sent with it.
func (a accessToken) tokenSecrets() []string {
	switch {
	case a.value == "":
		return nil
	case strings.Contains(a.value, a.token):
		return []string{a.token}
	}
	return []string{a.token, a.value}
}

// tokenCache holds the access tokens of a worker by the text of their connection, so that a
// changed secret gets a new token.
type tokenCache struct {
	http    *http.Client
	secrets *secrets.Masker
	logins  tool.LoginTokens // of all workers
	mu      sync.Mutex
	sources map[string]*tokenSource
}

func newTokenCache(transport http.RoundTripper, masker *secrets.Masker, logins tool.LoginTokens) *tokenCache {
	return &tokenCache{
		secrets: masker, logins: logins, sources: map[string]*tokenSource{},
		http: &http.Client{
			Transport: transport,
			// A redirect would send the secret along.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// sourceOf returns the connection's source of tokens, made when first needed; nil for a connection without one.
// transport has the connection's certificates, nil for none; jar stores its cookies, nil to drop them.
func (c *tokenCache) sourceOf(name, raw string, of *connection.Login, transport http.RoundTripper, jar http.CookieJar) *tokenSource {
	if of.OAuth2 == nil && of.Session == nil && of.JWT == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := raw
	if of.OAuth2 != nil && of.OAuth2.HasLogin() {
		key = name + "\n" + raw // a login of its own, whatever another one is configured with
	}
	if c.sources[key] == nil {
		own := *c.http
		own.Transport = cmp.Or(transport, own.Transport)
		c.sources[key] = &tokenSource{issuer: c.issuerOf(name, of, &own, jar), patience: tokenTimeout}
		if _, shared := c.sources[key].issuer.(*sharedLogin); shared {
			c.sources[key].patience = loginPatience
		}
	}
	return c.sources[key]
}

// issuerOf is who fetches the tokens of a connection.
func (c *tokenCache) issuerOf(name string, of *connection.Login, own *http.Client, jar http.CookieJar) issuer {
	switch {
	case of.Session != nil:
		return &sessionLogin{session: of.Session, host: of.Host, http: own, jar: jar}
	case of.JWT != nil:
		return &serviceAccount{of: of.JWT, http: own, secrets: c.secrets}
	case of.OAuth2.HasLogin():
		return &sharedLogin{name: name, of: of.OAuth2, logins: c.logins}
	}
	return &oauth2Client{endpoint: of.OAuth2.TokenURL, config: configOf(of.OAuth2), http: own}
}

// endSessions ends the sessions that have a logout.
func (c *tokenCache) endSessions(logger *slog.Logger) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), logoutTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, source := range c.sources {
		login, isSession := source.issuer.(*sessionLogin)
		given := source.removeToken()
		if !isSession || given.value == "" || login.session.Logout == nil {
			continue
		}
		all.Go(func() {
			if err := login.logOut(ctx, given); err != nil {
				c.secrets.Add(given.tokenSecrets()...)
				logger.Warn("cannot end a session", "error", err)
			}
		})
	}
	all.Wait()
}

// configOf returns the client as the library knows it.
func configOf(c *connection.OAuth2) *clientcredentials.Config {
	config := &clientcredentials.Config{
		ClientID: c.ID, ClientSecret: c.Secret, TokenURL: c.TokenURL.String(), Scopes: c.Scopes,
	}
	if c.Audience != "" {
		config.EndpointParams = url.Values{"audience": {c.Audience}}
	}
	return config
}

const (
	// mostVain is how many refused tokens in a row are replaced, and vainPause how long no more are fetched after
	// that: a server may count each request as a login.
	mostVain  = 3
	vainPause = time.Minute
)

// tokenSource returns the access token of one connection. All attempts that wait for it share
// one request.
type tokenSource struct {
	issuer   issuer
	patience time.Duration // with one request
	flight   singleflight.Group

	mu      sync.Mutex
	given   accessToken
	fetched time.Time
	vain    int // tokens in a row that were refused like the ones before them
}

// getToken returns a token other than the one that a server has refused, or none if no other can be fetched.
func (s *tokenSource) getToken(ctx context.Context, refused string) (accessToken, error) {
	if cached, final := s.cachedToken(refused); final {
		return cached, nil
	}
	fetched := s.flight.DoChan("", func() (any, error) {
		if cached, final := s.cachedToken(refused); final {
			return cached, nil
		}
		return s.fetchToken(ctx)
	})
	select {
	case <-ctx.Done():
		return accessToken{}, ctx.Err()
	case result := <-fetched:
		token, _ := result.Val.(accessToken)
		return token, result.Err
	}
}

// cachedToken returns the cached token if it is still valid; final says that none may be fetched.
func (s *tokenSource) cachedToken(refused string) (token accessToken, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.given.value == "" || (!s.given.until.IsZero() && !time.Now().Before(s.given.until)):
		return accessToken{}, false
	case s.given.value == refused:
		return accessToken{}, s.vain >= mostVain && time.Since(s.fetched) < vainPause
	}
	return s.given, true
}

// fetchToken requests a token. Of the attempt it has the client of its worker, and not the end.
func (s *tokenSource) fetchToken(ctx context.Context) (accessToken, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.patience)
	defer cancel()
	token, err := s.issuer.issueToken(ctx)
	if err != nil {
		return accessToken{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given, s.fetched = token, time.Now()
	return token, nil
}

// removeToken returns the token that was fetched last, and forgets it.
func (s *tokenSource) removeToken() accessToken {
	s.mu.Lock()
	defer s.mu.Unlock()
	given := s.given
	s.given = accessToken{}
	return given
}

// recordRefusal records whether a token was refused that had replaced a refused one.
func (s *tokenSource) recordRefusal(refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vain++
	if !refused {
		s.vain = 0
	}
}

// oauth2Client fetches tokens by the client credentials grant.
type oauth2Client struct {
	endpoint *url.URL
	config   *clientcredentials.Config
	http     *http.Client
	inBody   bool // where the endpoint reads the secret; of the flight
}

// issueToken requests a token from the endpoint.
func (c *oauth2Client) issueToken(ctx context.Context) (accessToken, error) {
	asked := time.Now()
	token, err := c.requestToken(withTokenClient(ctx, c.http))
	if err != nil {
		return accessToken{}, err
	}
	return bearerToken(token, asked)
}

// bearerToken returns a token endpoint's response to a request at some time.
func bearerToken(token *oauth2.Token, asked time.Time) (accessToken, error) {
	if token.TokenType != "" && !strings.EqualFold(token.TokenType, "bearer") {
		return accessToken{}, errNoBearer
	}
	value := "Bearer " + token.AccessToken
	if len(value) > maxToken || !httpguts.ValidHeaderFieldValue(value) {
		return accessToken{}, errNoToken
	}
	return accessToken{value: value, token: token.AccessToken, until: usableUntil(asked, endOf(token, asked))}, nil
}

func (c *oauth2Client) issueError(connection string, err error) error {
	return tokenError(connection, c.endpoint, err)
}

// requestToken requests a token with the client secret in the header, as RFC 6749 defines. Some
// servers accept it only in the body: after a response that does not know the client, it is
// sent there, and the way that worked is used from then on. There is no second request to a
// server that is overloaded or unreachable.
func (c *oauth2Client) requestToken(ctx context.Context) (*oauth2.Token, error) {
	config := *c.config
	config.AuthStyle = oauth2.AuthStyleInHeader
	if c.inBody {
		config.AuthStyle = oauth2.AuthStyleInParams
	}
	token, err := config.Token(ctx)
	var refused *oauth2.RetrieveError
	if c.inBody || !errors.As(err, &refused) || !unknownClient(refused.Response.StatusCode) {
		return token, err
	}
	config.AuthStyle = oauth2.AuthStyleInParams
	again, errAgain := config.Token(ctx)
	if errAgain != nil {
		return nil, err
	}
	c.inBody = true
	return again, nil
}

// unknownClient reports whether a token endpoint may not have found the client in a
// request.
func unknownClient(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnauthorized || status == http.StatusForbidden
}

// endOf is when a token expires, zero if unknown. Its lifetime is counted from the request,
// however long the response took; 0 means that it has expired.
func endOf(token *oauth2.Token, asked time.Time) time.Time {
	switch life := token.Extra("expires_in").(type) {
	case nil:
		return token.Expiry
	case float64:
		return asked.Add(time.Duration(min(max(life, 0), mostLife.Seconds()) * float64(time.Second)))
	default: // text: the library has read it
		if token.Expiry.IsZero() && life == "0" {
			return asked
		}
		return token.Expiry
	}
}

// mostLife bounds the lifetime of a token: expires_in may be any number, and the sum would
// overflow.
const mostLife = 365 * 24 * time.Hour

// errNoBearer is the error for a token of an unknown type (RFC 6749, section 7.1).
var errNoBearer = errors.New("a token of another type than bearer")

var errNoToken = errors.New("no token that can be sent")

// usableUntil is when a token is replaced: a minute before it expires, or a fifth of a shorter
// lifetime. Zero is never.
func usableUntil(asked, ends time.Time) time.Time {
	if ends.IsZero() {
		return ends
	}
	return ends.Add(-min(tokenMargin, max(0, ends.Sub(asked)/5)))
}

// tokenError returns the error of a token endpoint. It has only the error fields of RFC 6749, and
// nothing else of the response, which may contain a token.
func tokenError(connection string, endpoint *url.URL, err error) error {
	if tool.IsContextError(err) && !isURLError(err) {
		return err // of the attempt
	}
	where := fmt.Sprintf("connection %q: the token endpoint at %s", connection, tool.Origin(endpoint))
	var (
		refused *oauth2.RetrieveError
		broken  *url.Error
	)
	switch {
	case errors.As(err, &refused):
		return refusedToken(where, refused)
	case errors.As(err, &broken):
		return unreachedError(where, broken)
	}
	if errors.Is(err, errNoBearer) {
		return &tool.Error{
			Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: typeToken,
			Message: where + " returned a token that cannot be used: its type is not bearer",
		}
	}
	return &tool.Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable, Type: typeToken,
		Message: where + " returned no token: its response must be JSON with access_token",
	}
}

// unreachedError returns the error of an endpoint that has not answered.
func unreachedError(where string, err *url.Error) error {
	failure := tool.UnreachableError(fmt.Sprintf("%s: %s", where, deniedCause(err.Err)), err.Err)
	failure.Err = nil // a timeout of the endpoint is not one of the attempt
	return failure
}

// errorCode is the code of an error as token endpoints name it, such as invalid_client.
var errorCode = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

func refusedToken(where string, refused *oauth2.RetrieveError) error {
	status := refused.Response.StatusCode
	headers := flatHeaders(refused.Response.Header)
	e := &tool.Error{Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: typeToken, Status: status}
	e.Message = fmt.Sprintf("%s returned HTTP %d", where, status)
	if errorCode.MatchString(refused.ErrorCode) {
		e.Message += " (" + refused.ErrorCode + ")"
	}
	if status < http.StatusBadRequest {
		return e
	}
	e.Class = interpreter.ClassifyHTTP(status, ratelimit.IsLimited(headers))
	if wait, found := ratelimit.RetryAfter(headers, status, time.Now()); found {
		e.RetryAfter = &wait
	} else if unread := ratelimit.UnreadHeader(headers, status); unread != "" {
		e.Message += "; " + unread
	}
	if refused.ErrorDescription != "" {
		e.Body = map[string]any{"error_description": tool.CutText(refused.ErrorDescription, shownDescription)}
	}
	return e
}
