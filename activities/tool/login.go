package tool

import (
	"context"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/login"
)

// LoginTokens has the access tokens of logins that all workers of a namespace share. It is safe for concurrent use.
type LoginTokens interface {
	// LoginToken returns an access token of a connection newer than a generation, 0 for any. seed is the refresh
	// token in the connection's configuration, "" for none. The error is an *Error, or that of ctx.
	LoginToken(ctx context.Context, connection, seed string, after int) (LoginToken, error)
}

// LoginToken is an access token of a login.
type LoginToken struct {
	Access      string
	Generation  int
	UsableUntil time.Time // zero where nobody says
}

// LoginExchanger exchanges refresh tokens.
type LoginExchanger interface {
	// ExchangeLogin sends the refresh token of a connection to its token endpoint, once. begin is called just before;
	// its error means that nothing is sent. The returned end says whether the refresh token is still valid
	// afterwards; the error is nil for EndToken, and an *Error for the others.
	ExchangeLogin(ctx context.Context, connection, refresh string, begin func() error) (ExchangedTokens, login.ExchangeEnd, error)
	// ChallengeLogin returns where a person logs in. secret is what ProveLogin needs: a PKCE verifier, or a device
	// code.
	ChallengeLogin(ctx context.Context, start login.BeginRequest) (challenge login.Challenge, secret string, err error)
	// ProveLogin exchanges what a person has brought. The code of a device is polled until the person has logged in.
	ProveLogin(ctx context.Context, proof login.FinishRequest, code, secret string) (ExchangedTokens, error)
}

// ExchangedTokens are the tokens in a response of a token endpoint.
type ExchangedTokens struct {
	Access      string
	Refresh     string // "" where the one that was sent is still good
	UsableUntil time.Time
	Scopes      []string
}

// LoginFailureOf returns an error as the workflow of a login keeps it.
func LoginFailureOf(e *Error) *login.TokenFailure {
	failure := &login.TokenFailure{
		Kind: string(e.Kind), Class: string(e.Class), Type: e.Type, Status: e.Status, Message: CutText(e.Error(), maxLoginMessage), Final: e.Final,
	}
	if e.RetryAfter != nil {
		failure.RetryAfter = e.RetryAfter.Seconds()
	}
	return failure
}

// maxLoginMessage bounds the message of a failed exchange, in bytes: each answer to a worker has it in the history of the login.
const maxLoginMessage = 1 << 10

// LoginError returns a failure of the workflow of a login as the error of an attempt.
func LoginError(failure *login.TokenFailure) *Error {
	e := &Error{
		Kind: interpreter.Kind(failure.Kind), Class: interpreter.Class(failure.Class), Type: failure.Type, Status: failure.Status, Message: failure.Message, Final: failure.Final,
	}
	if failure.RetryAfter > 0 {
		wait := time.Duration(failure.RetryAfter * float64(time.Second))
		e.RetryAfter = &wait
	}
	return e
}
