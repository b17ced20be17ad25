package http

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"reprise/activities/tool"
	"reprise/internal/base/connection"
	"reprise/internal/base/secrets"
)

// grantJWT is the grant that exchanges a signed token (RFC 7523, section 2.1).
const grantJWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// issuedBefore is how long before now a token says that it was issued: servers refuse one that comes from the future, and clocks
// differ by seconds.
const issuedBefore = time.Minute

// serviceAccount signs tokens, which are sent as they are or exchanged for access tokens.
type serviceAccount struct {
	of      *connection.JWT
	http    *http.Client
	secrets *secrets.Masker
	clock   remoteClock // of who checks what is signed
}

// issueToken gives a token. An endpoint that refuses one and has another clock gets a second one, by that clock.
func (a *serviceAccount) issueToken(ctx context.Context) (accessToken, error) {
	if a.of.TokenURL == nil {
		signed, err := a.signToken()
		now := time.Now()
		return accessToken{value: "Bearer " + signed, token: signed, until: usableUntil(now, now.Add(a.of.Lifetime))}, err
	}
	token, err := a.exchangeToken(ctx)
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && unknownClient(refused.Response.StatusCode) && a.clock.learnDate(refused.Response) {
		token, err = a.exchangeToken(ctx)
	}
	return token, err
}

// exchangeToken sends a signed token to the endpoint.
func (a *serviceAccount) exchangeToken(ctx context.Context) (accessToken, error) {
	signed, err := a.signToken()
	if err != nil {
		return accessToken{}, err
	}
	config := clientcredentials.Config{
		TokenURL: a.of.TokenURL.String(), Scopes: a.of.Scopes, AuthStyle: oauth2.AuthStyleInParams,
		EndpointParams: url.Values{"grant_type": {grantJWT}, "assertion": {signed}},
	}
	asked := time.Now()
	token, err := config.Token(withTokenClient(ctx, a.http))
	if err != nil {
		return accessToken{}, err
	}
	return bearerToken(token, asked)
}

// signError says that a token cannot be signed, without revealing the key.
type signError struct{ err error }

func (e *signError) Error() string { return e.err.Error() }

// signToken makes a token, which is masked from then on.
func (a *serviceAccount) signToken() (string, error) {
	now := a.clock.remoteNow()
	claims := jwt.MapClaims{}
	maps.Copy(claims, a.of.Claims)
	claims["iss"], claims["jti"] = a.of.Issuer, uuid.NewString()
	claims["iat"], claims["exp"] = now.Add(-issuedBefore).Unix(), now.Add(a.of.Lifetime).Unix()
	if a.of.Subject != "" {
		claims["sub"] = a.of.Subject
	}
	if len(a.of.Audience) == 1 {
		claims["aud"] = a.of.Audience[0]
	} else if len(a.of.Audience) > 1 {
		claims["aud"] = a.of.Audience
	}
	if len(a.of.Scopes) > 0 {
		claims["scope"] = strings.Join(a.of.Scopes, " ")
	}
	token := jwt.NewWithClaims(jwt.GetSigningMethod(a.of.Algorithm), claims)
	if a.of.KeyID != "" {
		token.Header["kid"] = a.of.KeyID
	}
	signed, err := token.SignedString(a.of.Key)
	if err != nil {
		return "", &signError{err}
	}
	a.secrets.AddToken(signed)
	return signed, nil
}

// issueError converts an error of issueToken to the error of an attempt.
func (a *serviceAccount) issueError(name string, err error) error {
	if unsigned, ok := errors.AsType[*signError](err); ok {
		return tool.ConfigErrorf("connection %q: jwt cannot sign a token: %w", name, unsigned)
	}
	failure := tokenError(name, a.of.TokenURL, err)
	refused, ok := errors.AsType[*tool.Error](failure)
	if ahead := time.Duration(a.clock.ahead.Load()); ok && ahead != 0 {
		refused.Message += fmt.Sprintf("; its clock differs by %s from that of the worker", ahead.Abs().Round(time.Second))
	}
	return failure
}
