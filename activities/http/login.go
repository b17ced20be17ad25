package http

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"

	"reprise/activities/tool"
	"reprise/internal/base/connection"
	"reprise/interpreter"
	"reprise/interpreter/login"
)

// loginPatience is how long an attempt waits for a login's token: for one exchange, and a second one if the worker
// that made the first is lost.
const loginPatience = 2 * time.Minute

// sharedLogin gives tokens of a login that all workers share.
type sharedLogin struct {
	name   string
	of     *connection.OAuth2
	logins tool.LoginTokens
	after  atomic.Int64 // generation of the token that was given last
}

// issueToken requests a token that is newer than the last one.
func (l *sharedLogin) issueToken(ctx context.Context) (accessToken, error) {
	if l.logins == nil {
		return accessToken{}, tool.ConfigErrorf("connection %q logs in with tokens that a workflow keeps, so only a worker can use it", l.name)
	}
	given, err := l.logins.LoginToken(ctx, l.name, l.of.RefreshToken, int(l.after.Load()))
	if err != nil {
		return accessToken{}, err
	}
	l.after.Store(int64(given.Generation))
	return accessToken{value: "Bearer " + given.Access, token: given.Access, until: given.UsableUntil}, nil
}

// issueError converts an error of issueToken to the error of an attempt.
func (l *sharedLogin) issueError(name string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &tool.Error{
			Kind: interpreter.KindConnection, Class: interpreter.ClassRetryable, Type: "timeout",
			Message: fmt.Sprintf("connection %q: its login returned no token within %s", name, loginPatience),
		}
	}
	return err
}

// ExchangeLogin sends the refresh token of a connection to its token endpoint. An endpoint that knows the client in the body
// alone gets a second request: it has refused the client, so it has not seen the token.
func (t *Tool) ExchangeLogin(ctx context.Context, name, refresh string, begin func() error) (tool.ExchangedTokens, login.ExchangeEnd, error) {
	x, err := t.newExchange(ctx, name)
	if err != nil {
		return tool.ExchangedTokens{}, login.EndNotSent, err
	}
	if err := begin(); err != nil {
		return tool.ExchangedTokens{}, login.EndNotSent, fmt.Errorf("connection %q: the exchange of its refresh token is left to another worker: %w", name, err)
	}
	return x.exchangeToken(ctx, refresh)
}

// newExchange reads the login of a connection and prepares one exchange of its refresh token. It fails for a connection
// without a login.
func (t *Tool) newExchange(ctx context.Context, name string) (*loginExchange, error) {
	credentials, err := t.readLogin(ctx, name)
	if err != nil {
		return nil, err
	}
	shared, isLogin := credentials.tokenIssuer().(*sharedLogin)
	if !isLogin {
		return nil, tool.ConfigErrorf("connection %q has no login: that needs oauth2 with grant: authorization_code, or refresh_token", name)
	}
	client := *t.tokens.http
	if credentials.transport != nil {
		client.Transport = credentials.transport
	}
	return &loginExchange{name: name, of: shared.of, http: &client}, nil
}

// tokenIssuer fetches the tokens of the connection, nil if it needs none.
func (l *credentials) tokenIssuer() issuer {
	if l.tokens == nil {
		return nil
	}
	return l.tokens.issuer
}

// loginExchange exchanges one refresh token.
type loginExchange struct {
	name string
	of   *connection.OAuth2
	http *http.Client
	sent atomic.Bool // something of a request has reached the endpoint
}

// exchangeToken makes the exchange within tokenTimeout, after which nothing more is sent.
func (x *loginExchange) exchangeToken(ctx context.Context, refresh string) (tool.ExchangedTokens, login.ExchangeEnd, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { x.sent.Store(true) }})
	asked := time.Now()
	token, err := x.sendRefresh(withTokenClient(ctx, x.http), refresh)
	if err != nil {
		end, failure := x.exchangeEnd(err)
		return tool.ExchangedTokens{}, end, failure
	}
	tokens, err := exchangedTokens(token, asked)
	if err != nil {
		return tool.ExchangedTokens{}, login.EndUnanswered, x.failureOf(err)
	}
	if tokens.Refresh == refresh {
		tokens.Refresh = "" // it is still good
	}
	return tokens, login.EndToken, nil
}

// exchangedTokens returns the tokens of an endpoint's response to a request at some time.
func exchangedTokens(token *oauth2.Token, asked time.Time) (tool.ExchangedTokens, error) {
	access, err := bearerToken(token, asked)
	if err != nil {
		return tool.ExchangedTokens{}, err
	}
	return tool.ExchangedTokens{Access: access.token, Refresh: token.RefreshToken, UsableUntil: access.until, Scopes: scopesOf(token)}, nil
}

// sendRefresh sends the refresh token.
func (x *loginExchange) sendRefresh(ctx context.Context, refresh string) (*oauth2.Token, error) {
	return x.asClient(func(config *oauth2.Config) (*oauth2.Token, error) {
		return config.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
	})
}

// clientConfig returns the client as the library knows it.
func (x *loginExchange) clientConfig() *oauth2.Config {
	config := &oauth2.Config{
		ClientID: x.of.ID, ClientSecret: x.of.Secret, Scopes: x.of.Scopes,
		Endpoint: oauth2.Endpoint{TokenURL: x.of.TokenURL.String(), AuthStyle: oauth2.AuthStyleInHeader},
	}
	if x.of.Secret == "" { // RFC 6749, section 3.2.1
		config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	if x.of.AuthorizeURL != nil {
		config.Endpoint.AuthURL = x.of.AuthorizeURL.String()
	}
	if x.of.DeviceURL != nil {
		config.Endpoint.DeviceAuthURL = x.of.DeviceURL.String()
	}
	return config
}

// asClient sends a request with the client in the header, and else in the body.
func (x *loginExchange) asClient(send func(*oauth2.Config) (*oauth2.Token, error)) (*oauth2.Token, error) {
	config := x.clientConfig()
	token, err := send(config)
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	if !ok || refused.ErrorCode == invalidGrant || x.of.Secret == "" || !unknownClient(refused.Response.StatusCode) {
		return token, err
	}
	config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	again, errAgain := send(config)
	if refusedAgain, ok := errors.AsType[*oauth2.RetrieveError](errAgain); ok && refusedAgain.ErrorCode != invalidGrant && unknownClient(refusedAgain.Response.StatusCode) {
		return nil, err
	}
	return again, errAgain
}

// invalidGrant is the error code of token endpoints for an invalid refresh token (RFC 6749, section 5.2).
const invalidGrant = "invalid_grant"

// exchangeEnd returns the end of an exchange with an error.
func (x *loginExchange) exchangeEnd(err error) (login.ExchangeEnd, error) {
	failure := x.failureOf(err)
	refused, answered := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case !answered && !x.sent.Load():
		return login.EndNotSent, failure
	case !answered:
		return login.EndUnanswered, failure
	case refused.ErrorCode == invalidGrant:
		return login.EndRefused, failure
	case slices.Contains([]int{http.StatusOK, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout}, refused.Response.StatusCode):
		return login.EndUnanswered, failure // who is behind it may have exchanged the token
	}
	return login.EndFailed, failure
}

// failureOf converts an error of the endpoint to the error of an attempt.
func (x *loginExchange) failureOf(err error) error {
	if tool.IsContextError(err) {
		err = &url.Error{Op: "Post", URL: tool.Origin(x.of.TokenURL), Err: err}
	}
	return tokenError(x.name, x.of.TokenURL, err)
}

// scopesOf returns the scopes that an endpoint has granted, nil if it does not say.
func scopesOf(token *oauth2.Token) []string {
	text, _ := token.Extra("scope").(string)
	if text == "" {
		return nil
	}
	return strings.Fields(text)
}
