package http

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
	"reprise/interpreter"
	"reprise/interpreter/ratelimit"
)

const (
	// tokenTimeout is how long a token endpoint may take.
	tokenTimeout = 30 * time.Second
	// tokenMargin is how long before its end a token is fetched anew, at most.
	tokenMargin = time.Minute
	// maxToken bounds an access token, in bytes: servers take no longer headers.
	maxToken = 16 << 10
	// maxDescription bounds what an error has of a token endpoint's words.
	maxDescription = 1 << 10
	// typeToken is the type of errors of a token endpoint that has answered.
	typeToken = "token"
)

// tokenCache has the access tokens of a worker, by connection as it is
// configured: who changes the secret gets another token.
type tokenCache struct {
	http    *http.Client
	mu      sync.Mutex
	sources map[string]*tokenSource
}

func newTokenCache(transport http.RoundTripper) *tokenCache {
	return &tokenCache{
		sources: map[string]*tokenSource{},
		http: &http.Client{
			Transport: transport,
			// A redirect would send the secret along.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// source is the connection's source of tokens, made when it is first needed. transport has the connection's certificates,
// nil for none.
func (c *tokenCache) source(raw string, client *connection.OAuth2, transport http.RoundTripper) *tokenSource {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sources[raw] == nil {
		own := *c.http
		own.Transport = cmp.Or(transport, own.Transport)
		c.sources[raw] = &tokenSource{config: configOf(client), http: &own}
	}
	return c.sources[raw]
}

// configOf is the client as the library knows it.
func configOf(c *connection.OAuth2) *clientcredentials.Config {
	config := &clientcredentials.Config{
		ClientID: c.ID, ClientSecret: c.Secret, TokenURL: c.TokenURL.String(), Scopes: c.Scopes,
	}
	if c.Audience != "" {
		config.EndpointParams = url.Values{"audience": {c.Audience}}
	}
	return config
}

// tokenSource gives the access token of one connection, which is fetched once
// for all that wait for it.
type tokenSource struct {
	config *clientcredentials.Config
	http   *http.Client
	flight singleflight.Group
	inBody bool // where the endpoint reads the secret; of the flight

	mu    sync.Mutex
	value string // of the header Authorization, "" for none yet
	until time.Time
}

// get gives the value of the header Authorization. One that a server has
// refused is not given again.
func (s *tokenSource) get(ctx context.Context, refused string) (string, error) {
	if value := s.kept(refused); value != "" {
		return value, nil
	}
	fetched := s.flight.DoChan("", func() (any, error) {
		if value := s.kept(refused); value != "" {
			return value, nil
		}
		return s.fetch()
	})
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case result := <-fetched:
		value, _ := result.Val.(string)
		return value, result.Err
	}
}

// kept is the value that is still good, "" for none.
func (s *tokenSource) kept(refused string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.value == refused || (!s.until.IsZero() && !time.Now().Before(s.until)) {
		return ""
	}
	return s.value
}

// fetch requests a token from the endpoint. It belongs to no attempt: others wait too.
func (s *tokenSource) fetch() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tokenTimeout)
	defer cancel()
	asked := time.Now()
	token, err := s.request(context.WithValue(ctx, oauth2.HTTPClient, s.http))
	if err != nil {
		return "", err
	}
	if token.TokenType != "" && !strings.EqualFold(token.TokenType, "bearer") {
		return "", errNoBearer
	}
	value := "Bearer " + token.AccessToken
	if len(value) > maxToken || !httpguts.ValidHeaderFieldValue(value) {
		return "", errNoToken
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value, s.until = value, usableUntil(asked, endOf(token, asked))
	return value, nil
}

// request requests a token with the secret in the header, as RFC 6749 has it. Some
// servers know it in the body alone: one that does not know the client is sent another
// request, and what it accepts is what the next one has. A server that is overloaded, or
// away, gets no second request.
func (s *tokenSource) request(ctx context.Context) (*oauth2.Token, error) {
	config := *s.config
	config.AuthStyle = oauth2.AuthStyleInHeader
	if s.inBody {
		config.AuthStyle = oauth2.AuthStyleInParams
	}
	token, err := config.Token(ctx)
	var refused *oauth2.RetrieveError
	if s.inBody || !errors.As(err, &refused) || !unknownClient(refused.Response.StatusCode) {
		return token, err
	}
	config.AuthStyle = oauth2.AuthStyleInParams
	again, errAgain := config.Token(ctx)
	if errAgain != nil {
		return nil, err
	}
	s.inBody = true
	return again, nil
}

// unknownClient reports whether a token endpoint may not have found the client in a
// request.
func unknownClient(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusUnauthorized || status == http.StatusForbidden
}

// endOf is when a token ends, zero where nobody says. Its life began no earlier than
// it was asked for, however long its answer took, and is over at once where the
// answer says 0.
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

// mostLife bounds what is believed of a token's life.
const mostLife = 365 * 24 * time.Hour

// errNoBearer is a token that must be used in a way that nobody here knows (RFC
// 6749, section 7.1).
var errNoBearer = errors.New("a token of another type than bearer")

var errNoToken = errors.New("no token that can be sent")

// usableUntil is when a token that was asked for at one time and ends at another
// is fetched anew: a minute before its end, or a fifth of a shorter life. Zero
// is never.
func usableUntil(asked, ends time.Time) time.Time {
	if ends.IsZero() {
		return ends
	}
	return ends.Add(-min(tokenMargin, max(0, ends.Sub(asked)/5)))
}

// tokenError is the error of a token endpoint. Of what it answered only what
// RFC 6749 has for errors is kept, and nothing of an answer that may hold a
// token.
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
		return &tool.Error{
			Kind: interpreter.KindConnection, Class: interpreter.ClassRetryable, Type: tool.ConnectionType(err),
			Message: fmt.Sprintf("%s: %s", where, broken.Err),
		}
	}
	if errors.Is(err, errNoBearer) {
		return &tool.Error{
			Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: typeToken,
			Message: where + " returned a token of a type other than bearer, which cannot be used",
		}
	}
	return &tool.Error{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable, Type: typeToken,
		Message: where + " returned no token: its response must be JSON with access_token",
	}
}

// errorCode is what token endpoints call an error: invalid_client.
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
	e.Class = interpreter.ClassifyHTTP(status, ratelimit.Limited(headers))
	if wait, found := ratelimit.RetryAfter(headers, status, time.Now()); found {
		e.RetryAfter = &wait
	} else if unread := ratelimit.Unread(headers, status); unread != "" {
		e.Message += "; " + unread
	}
	if refused.ErrorDescription != "" {
		e.Body = map[string]any{"error_description": tool.CutText(refused.ErrorDescription, maxDescription)}
	}
	return e
}

// bearer is the token in the value of the header Authorization.
func bearer(value string) string {
	_, token, _ := strings.Cut(value, " ")
	return token
}
