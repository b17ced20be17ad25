package http

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/oauth2"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/login"
)

// deviceLife is how long a device's code is polled if the endpoint does not say when it
// expires.
const deviceLife = 10 * time.Minute

// ChallengeLogin returns where a person logs in: with PKCE (RFC 7636), or with a device code (RFC 8628).
func (t *Tool) ChallengeLogin(ctx context.Context, start login.BeginRequest) (login.Challenge, string, error) {
	x, err := t.personalExchange(ctx, start)
	if err != nil {
		return login.Challenge{}, "", err
	}
	config := x.clientConfig()
	if !start.Device {
		config.RedirectURL = start.Redirect
		verifier := oauth2.GenerateVerifier()
		return login.Challenge{URL: config.AuthCodeURL(start.State, oauth2.S256ChallengeOption(verifier))}, verifier, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	answer, err := config.DeviceAuth(withTokenClient(ctx, x.http))
	if err != nil {
		return login.Challenge{}, "", tokenError(x.name, x.of.DeviceURL, err)
	}
	challenge := login.Challenge{URL: answer.VerificationURI, UserCode: answer.UserCode, ExpiresAt: answer.Expiry}
	if challenge.ExpiresAt.IsZero() {
		challenge.ExpiresAt = time.Now().Add(deviceLife)
	}
	return challenge, answer.DeviceCode, nil
}

// personalExchange returns an exchange for a login that people make.
func (t *Tool) personalExchange(ctx context.Context, start login.BeginRequest) (*loginExchange, error) {
	x, err := t.newExchange(ctx, start.Connection)
	switch {
	case err != nil:
		return nil, err
	case x.of.AuthorizeURL == nil && x.of.DeviceURL == nil:
		return nil, tool.ConfigErrorf("connection %q is not one that people log in to: that needs oauth2 with grant: authorization_code", start.Connection)
	case start.Device && x.of.DeviceURL == nil:
		return nil, tool.ConfigErrorf("connection %q has no oauth2.device_url, which --device needs", start.Connection)
	case !start.Device && x.of.AuthorizeURL == nil:
		return nil, tool.ConfigErrorf("connection %q has no oauth2.authorize_url; log in with --device", start.Connection)
	}
	return x, nil
}

// ProveLogin exchanges a code with its verifier, or polls for the code of a device.
func (t *Tool) ProveLogin(ctx context.Context, proof login.FinishRequest, code, secret string) (tool.ExchangedTokens, error) {
	x, err := t.personalExchange(ctx, proof.BeginRequest)
	if err != nil {
		return tool.ExchangedTokens{}, err
	}
	asked := time.Now()
	var token *oauth2.Token
	if proof.Device {
		token, err = x.pollDevice(ctx, secret, proof.ExpiresAt)
	} else {
		bounded, cancel := context.WithTimeout(withTokenClient(ctx, x.http), tokenTimeout)
		defer cancel()
		token, err = x.asClient(func(config *oauth2.Config) (*oauth2.Token, error) {
			config.RedirectURL = proof.Redirect
			return config.Exchange(bounded, code, oauth2.VerifierOption(secret))
		})
	}
	if err != nil {
		return tool.ExchangedTokens{}, x.failureOf(err)
	}
	tokens, err := exchangedTokens(token, asked)
	if err != nil {
		return tool.ExchangedTokens{}, x.failureOf(err)
	}
	if tokens.Scopes == nil {
		tokens.Scopes = x.of.Scopes // RFC 6749, section 5.1: as they were requested
	}
	return tokens, nil
}

// pollDevice asks the token endpoint until the person has logged in, or the code has ended.
func (x *loginExchange) pollDevice(ctx context.Context, device string, ends time.Time) (*oauth2.Token, error) {
	ctx, cancel := context.WithDeadline(ctx, ends)
	defer cancel()
	token, err := x.asClient(func(config *oauth2.Config) (*oauth2.Token, error) {
		return config.DeviceAccessToken(withTokenClient(ctx, x.http), &oauth2.DeviceAuthResponse{DeviceCode: device, Expiry: ends})
	})
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode == "expired_token" || errors.Is(err, context.DeadlineExceeded) {
		return nil, &tool.Error{
			Kind: interpreter.KindHTTP, Class: interpreter.ClassFinal, Type: typeToken, Message: fmt.Sprintf("connection %q: the code expired before anybody logged in with it", x.name),
		}
	}
	return token, err
}
