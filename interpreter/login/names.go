// Package login implements logins whose refresh tokens rotate: which token is the newest, when the next exchange is
// made, and how requests for a token are answered. It uses neither Temporal nor HTTP. All tokens here are sealed.
package login

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"reprise/interpreter/expression"
)

// Names of the workflow that keeps the tokens of one login, of its updates and queries, and of its activities. They
// are part of histories, so they never change.
const (
	WorkflowName = "LoginWorkflow"
	// TokenUpdate takes a TokenRequest and returns a TokenAnswer.
	TokenUpdate = "login_token"
	// SpooledUpdate takes an ExchangeOutcome that a worker found in its spool.
	SpooledUpdate = "login_spooled"
	// The updates of people: BeginUpdate takes a BeginRequest and returns a Challenge, FinishUpdate takes a
	// FinishRequest and returns a FinishResult, LogoutUpdate takes a LogoutRequest.
	BeginUpdate  = "login_begin"
	FinishUpdate = "login_finish"
	LogoutUpdate = "login_logout"
	// StatusQuery returns a TokenStatus, SnapshotQuery the state with which the next workflow of the login begins.
	StatusQuery   = "login_status"
	SnapshotQuery = "login_snapshot"
	// ExchangeActivity takes an ExchangeRequest and returns an ExchangeOutcome.
	ExchangeActivity = "login_exchange"
	// ChallengeActivity takes a BeginRequest and returns a Challenge, ProofActivity takes a FinishRequest and
	// returns an ExchangeOutcome.
	ChallengeActivity = "login_challenge"
	ProofActivity     = "login_proof"
)

// WorkflowID returns the ID of the workflow that keeps the tokens of a connection.
func WorkflowID(connection string) string {
	return expression.BoundedID("reprise-login/" + url.PathEscape(connection))
}

// TokenRequest is the argument of TokenUpdate; kept in workflow history.
type TokenRequest struct {
	Connection string `json:"connection"`
	// After is the generation of the worker's token, which has expired or was rejected; 0 for none.
	After int `json:"after,omitempty"`
	// Seed is the refresh token that the connection is configured with, nil for none.
	Seed *SeedToken `json:"seed,omitempty"`
}

// SeedToken is a refresh token that an operator has configured; kept in workflow history.
type SeedToken struct {
	Sealed string `json:"sealed"`
	// Digest distinguishes configured tokens without revealing them.
	Digest string `json:"digest"`
}

// TokenAnswer is the result of TokenUpdate: a token, or why there is none; kept in workflow history.
type TokenAnswer struct {
	Access      string        `json:"access,omitempty"` // sealed
	Generation  int           `json:"generation,omitempty"`
	UsableUntil time.Time     `json:"usable_until,omitzero"` // zero if the endpoint does not say
	Failure     *TokenFailure `json:"failure,omitempty"`
}

// TokenFailure says why there is no token, with the fields of an attempt's error; kept in workflow history.
type TokenFailure struct {
	Kind       string  `json:"kind"`
	Class      string  `json:"class"`
	Type       string  `json:"type,omitempty"`
	Status     int     `json:"status,omitempty"`
	Message    string  `json:"message"`
	Final      bool    `json:"final,omitempty"`
	RetryAfter float64 `json:"retry_after,omitempty"` // seconds; 0 if the server does not say
}

// ExchangeRequest is the argument of ExchangeActivity; kept in workflow history.
type ExchangeRequest struct {
	Connection string `json:"connection"`
	// Number counts the exchanges of the login. It becomes the generation of the resulting token.
	Number  int    `json:"number"`
	Refresh string `json:"refresh"` // sealed
}

// ExchangeEnd says how an exchange ended.
type ExchangeEnd string

// The ends of exchanges.
const (
	EndToken      ExchangeEnd = "token"
	EndRefused    ExchangeEnd = "refused"    // the refresh token is no longer valid
	EndFailed     ExchangeEnd = "failed"     // with a response after which the refresh token is still valid
	EndNotSent    ExchangeEnd = "not_sent"   // no request has reached the endpoint
	EndUnanswered ExchangeEnd = "unanswered" // it is unknown whether the endpoint has processed the request
)

// ExchangeOutcome is the result of ExchangeActivity; kept in workflow history and in spools.
type ExchangeOutcome struct {
	Number int         `json:"number"`
	End    ExchangeEnd `json:"end"`
	// Access and Refresh are sealed. Refresh is "" if the endpoint did not return a new one.
	Access      string        `json:"access,omitempty"`
	Refresh     string        `json:"refresh,omitempty"`
	UsableUntil time.Time     `json:"usable_until,omitzero"`
	Scopes      []string      `json:"scopes,omitempty"`
	Failure     *TokenFailure `json:"failure,omitempty"` // nil if there is a token
}

// ExchangeMark is the heartbeat of an exchange whose request may have been sent; kept in workflow history.
type ExchangeMark struct {
	Sent bool `json:"sent"`
}

// TokenStatus is the result of StatusQuery. It contains no tokens.
type TokenStatus struct {
	Connection string    `json:"connection"`
	LoggedIn   bool      `json:"logged_in"`
	Generation int       `json:"generation"`
	By         string    `json:"by,omitempty"`
	At         time.Time `json:"at,omitzero"`
	Refreshed  time.Time `json:"refreshed,omitzero"`
	// NextRefresh is when an attempt that needs the access token triggers an exchange; zero if unknown.
	NextRefresh time.Time `json:"next_refresh,omitzero"`
	Scopes      []string  `json:"scopes,omitempty"`
	Required    string    `json:"required,omitempty"` // why somebody has to log in; "" if nobody has to
	RequiredAt  time.Time `json:"required_at,omitzero"`
	Unanswered  int       `json:"unanswered,omitempty"` // number of exchanges of the newest refresh token without a response
	Failure     string    `json:"failure,omitempty"`    // of the last exchange
}

// BeginRequest is the argument of BeginUpdate; kept in workflow history.
type BeginRequest struct {
	Connection string `json:"connection"`
	By         string `json:"by"`
	// Redirect is the loopback address at which the person's starter awaits the code (RFC 8252), and State a value
	// that must come back with it. Device requests a code that the person enters elsewhere (RFC 8628).
	Redirect string `json:"redirect,omitempty"`
	State    string `json:"state,omitempty"`
	Device   bool   `json:"device,omitempty"`
}

// Challenge is what a person needs to log in; kept in workflow history.
type Challenge struct {
	// URL is where the person logs in; UserCode must be entered there, for a device.
	URL      string `json:"url"`
	UserCode string `json:"user_code,omitempty"`
	// Secret is sealed for workers: the verifier of PKCE, or the code of a device. It is returned in the
	// FinishRequest.
	Secret string `json:"secret"`
	// PublicKey is the key of the workers with which the starter seals the code.
	PublicKey []byte        `json:"public_key,omitempty"`
	ExpiresAt time.Time     `json:"expires_at,omitzero"` // for a device
	Failure   *TokenFailure `json:"failure,omitempty"`
}

// FinishRequest is the argument of FinishUpdate; kept in workflow history.
type FinishRequest struct {
	BeginRequest
	// Secret is that of the Challenge. Code is sealed with the public key; empty for a device.
	Secret    string    `json:"secret"`
	Code      []byte    `json:"code,omitempty"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // for a device
}

// FinishResult is the result of FinishUpdate; kept in workflow history.
type FinishResult struct {
	Status  TokenStatus   `json:"status"`
	Failure *TokenFailure `json:"failure,omitempty"`
}

// LogoutRequest is the argument of LogoutUpdate; kept in workflow history.
type LogoutRequest struct {
	By string `json:"by"`
}

// CodePlace returns the context for which a code is sealed.
func CodePlace(connection string) string { return "code of the login " + connection }

// Check returns an error for a request that no starter sends.
func (s BeginRequest) Check() error {
	if s.Connection == "" || s.By == "" || (s.Redirect == "") != s.Device || len(s.Connection)+len(s.By)+len(s.Redirect)+len(s.State) > maxText {
		return errors.New("a login names its connection and its person, and either redirects or is that of a device")
	}
	return nil
}

// Check returns an error for a request that no starter sends.
func (p FinishRequest) Check() error {
	if p.Secret == "" || (len(p.Code) == 0) != p.Device || len(p.Secret)+len(p.Code) > maxText {
		return errors.New("the proof of a login has its secret, and a code unless it is that of a device")
	}
	return p.BeginRequest.Check()
}

// Check returns an error for a request that no starter sends.
func (r LogoutRequest) Check() error {
	if r.By == "" || len(r.By) > maxText {
		return errors.New("a logout names its person")
	}
	return nil
}

// maxText bounds each text of a request, in bytes: clients of the namespace can send any, and a workflow with too
// much state cannot continue as new. A token has at most 16 KiB, and a sealed one a third more.
const maxText = 64 << 10

// Check returns an error for a request that no worker sends.
func (r TokenRequest) Check() error {
	switch {
	case r.Connection == "" || len(r.Connection) > maxText:
		return errors.New("a request for a token names its connection")
	case r.After < 0:
		return fmt.Errorf("a request for a token has no generation %d", r.After)
	case r.Seed != nil && (r.Seed.Sealed == "" || r.Seed.Digest == "" || len(r.Seed.Sealed)+len(r.Seed.Digest) > maxText):
		return errors.New("a configured refresh token is sealed and has a digest")
	}
	return nil
}

// Check returns an error for an outcome that no spool contains.
func (o ExchangeOutcome) Check() error {
	if o.Number <= 0 || o.End != EndToken || o.Access == "" || len(o.Access) > maxText || len(o.Refresh) > maxText {
		return errors.New("a spool has the tokens of exchanges that were answered with some")
	}
	return nil
}
