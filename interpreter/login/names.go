// Package login has the rules of logins whose refresh tokens rotate: which token is the newest, when the next exchange is
// made, and what requests for a token are answered. It knows neither Temporal nor HTTP. All tokens here are sealed.
package login

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"reprise/interpreter/expression"
)

// Names of the workflow that keeps the tokens of one login, of its updates and queries, and of the
// activities for it. They are part of histories, so they never change.
const (
	WorkflowName = "LoginWorkflow"
	// TokenUpdate accepts a TokenRequest and gives a TokenAnswer.
	TokenUpdate = "login_token"
	// SpooledUpdate accepts an ExchangeOutcome that a worker has found in its spool.
	SpooledUpdate = "login_spooled"
	// BeginUpdate accepts a LoginStart and gives a LoginChallenge, FinishUpdate accepts a LoginProof and gives a LoginResult,
	// LogoutUpdate accepts a LogoutRequest: those of people.
	BeginUpdate  = "login_begin"
	FinishUpdate = "login_finish"
	LogoutUpdate = "login_logout"
	// StatusQuery gives a LoginStatus, SnapshotQuery what the next workflow of the login begins with.
	StatusQuery   = "login_status"
	SnapshotQuery = "login_snapshot"
	// ExchangeActivity accepts an ExchangeRequest and gives an ExchangeOutcome.
	ExchangeActivity = "login_exchange"
	// ChallengeActivity accepts a LoginStart and gives a LoginChallenge, ProofActivity accepts a LoginProof and gives an
	// ExchangeOutcome.
	ChallengeActivity = "login_challenge"
	ProofActivity     = "login_proof"
)

// WorkflowID is the ID of the workflow that keeps the tokens of a connection.
func WorkflowID(connection string) string {
	return expression.BoundedID("reprise-login/" + url.PathEscape(connection))
}

// TokenRequest is the argument of TokenUpdate; kept in workflow history.
type TokenRequest struct {
	Connection string `json:"connection"`
	// After is the generation of the token that the worker has, which has ended or was refused; 0 for none.
	After int `json:"after,omitempty"`
	// Seed is the refresh token that the connection is configured with, nil for none.
	Seed *SeedToken `json:"seed,omitempty"`
}

// SeedToken is a refresh token that an operator has configured; kept in workflow history.
type SeedToken struct {
	Sealed string `json:"sealed"`
	// Digest distinguishes the tokens that were configured, and shows nothing of them.
	Digest string `json:"digest"`
}

// TokenAnswer is the result of TokenUpdate: a token, or why there is none; kept in workflow history.
type TokenAnswer struct {
	Access      string        `json:"access,omitempty"` // sealed
	Generation  int           `json:"generation,omitempty"`
	UsableUntil time.Time     `json:"usable_until,omitzero"` // zero where nobody says
	Failure     *LoginFailure `json:"failure,omitempty"`
}

// LoginFailure is why there is no token, in the words of the error of an attempt; kept in workflow history.
type LoginFailure struct {
	Kind       string  `json:"kind"`
	Class      string  `json:"class"`
	Type       string  `json:"type,omitempty"`
	Status     int     `json:"status,omitempty"`
	Message    string  `json:"message"`
	Final      bool    `json:"final,omitempty"`
	RetryAfter float64 `json:"retry_after,omitempty"` // seconds; 0 where the server does not say
}

// ExchangeRequest is the argument of ExchangeActivity; kept in workflow history.
type ExchangeRequest struct {
	Connection string `json:"connection"`
	// Number counts the exchanges of the login. It is the generation of the token that the exchange gives.
	Number  int    `json:"number"`
	Refresh string `json:"refresh"` // sealed
}

// ExchangeEnd is how an exchange has ended.
type ExchangeEnd string

// The ends of exchanges.
const (
	EndToken      ExchangeEnd = "token"
	EndRefused    ExchangeEnd = "refused"    // the refresh token is good no more
	EndFailed     ExchangeEnd = "failed"     // by an answer after which the refresh token is still good
	EndNotSent    ExchangeEnd = "not_sent"   // nothing has reached the endpoint
	EndUnanswered ExchangeEnd = "unanswered" // nobody knows what the endpoint has made of it
)

// ExchangeOutcome is the result of ExchangeActivity; kept in workflow history and in spools.
type ExchangeOutcome struct {
	Number int         `json:"number"`
	End    ExchangeEnd `json:"end"`
	// Access and Refresh are sealed. Refresh is "" where the endpoint has given no other one.
	Access      string        `json:"access,omitempty"`
	Refresh     string        `json:"refresh,omitempty"`
	UsableUntil time.Time     `json:"usable_until,omitzero"`
	Scopes      []string      `json:"scopes,omitempty"`
	Failure     *LoginFailure `json:"failure,omitempty"` // nil for a token
}

// ExchangeMark is what the heartbeat of an exchange says: that its request may have been sent since; kept in workflow history.
type ExchangeMark struct {
	Sent bool `json:"sent"`
}

// LoginStatus is the result of StatusQuery. It has no token.
type LoginStatus struct {
	Connection string    `json:"connection"`
	LoggedIn   bool      `json:"logged_in"`
	Generation int       `json:"generation"`
	By         string    `json:"by,omitempty"`
	At         time.Time `json:"at,omitzero"`
	Refreshed  time.Time `json:"refreshed,omitzero"`
	// NextRefresh is when the access token is exchanged if an attempt needs one; zero where nobody says.
	NextRefresh time.Time `json:"next_refresh,omitzero"`
	Scopes      []string  `json:"scopes,omitempty"`
	Required    string    `json:"required,omitempty"` // why somebody has to log in; "" for nothing
	RequiredAt  time.Time `json:"required_at,omitzero"`
	Unanswered  int       `json:"unanswered,omitempty"` // exchanges of the newest refresh token
	Failure     string    `json:"failure,omitempty"`    // of the last exchange
}

// LoginStart is the argument of BeginUpdate; kept in workflow history.
type LoginStart struct {
	Connection string `json:"connection"`
	By         string `json:"by"`
	// Redirect is the loopback address at which the person's starter awaits the code (RFC 8252), and State what comes back with
	// it. Device asks for a code that the person types elsewhere (RFC 8628).
	Redirect string `json:"redirect,omitempty"`
	State    string `json:"state,omitempty"`
	Device   bool   `json:"device,omitempty"`
}

// LoginChallenge is what a person needs to log in; kept in workflow history.
type LoginChallenge struct {
	// URL is where the person logs in; UserCode is typed there, of a device.
	URL      string `json:"url"`
	UserCode string `json:"user_code,omitempty"`
	// Secret is sealed for workers: the verifier of PKCE, or the code of a device. It comes back in the LoginProof.
	Secret string `json:"secret"`
	// PublicKey is that of the workers, for which the starter seals the code.
	PublicKey []byte        `json:"public_key,omitempty"`
	ExpiresAt time.Time     `json:"expires_at,omitzero"` // of a device
	Failure   *LoginFailure `json:"failure,omitempty"`
}

// LoginProof is the argument of FinishUpdate; kept in workflow history.
type LoginProof struct {
	LoginStart
	// Secret is that of the LoginChallenge. Code is sealed to the public key; none for a device.
	Secret    string    `json:"secret"`
	Code      []byte    `json:"code,omitempty"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // of a device
}

// LoginResult is the result of FinishUpdate; kept in workflow history.
type LoginResult struct {
	Status  LoginStatus   `json:"status"`
	Failure *LoginFailure `json:"failure,omitempty"`
}

// LogoutRequest is the argument of LogoutUpdate; kept in workflow history.
type LogoutRequest struct {
	By string `json:"by"`
}

// CodePlace is what a code is sealed for.
func CodePlace(connection string) string { return "code of the login " + connection }

// Check refuses what no starter sends.
func (s LoginStart) Check() error {
	if s.Connection == "" || s.By == "" || (s.Redirect == "") != s.Device || len(s.Connection)+len(s.By)+len(s.Redirect)+len(s.State) > maxText {
		return errors.New("a login names its connection and its person, and either redirects or is that of a device")
	}
	return nil
}

// Check refuses what no starter sends.
func (p LoginProof) Check() error {
	if p.Secret == "" || (len(p.Code) == 0) != p.Device || len(p.Secret)+len(p.Code) > maxText {
		return errors.New("the proof of a login has its secret, and a code unless it is that of a device")
	}
	return p.LoginStart.Check()
}

// Check refuses what no starter sends.
func (r LogoutRequest) Check() error {
	if r.By == "" || len(r.By) > maxText {
		return errors.New("a logout names its person")
	}
	return nil
}

// maxText bounds each text of a request, in bytes: clients of the namespace can send any, and a workflow that keeps too much
// cannot continue as new. A token has at most 16 KiB, and sealed a third more.
const maxText = 64 << 10

// Check refuses what no worker sends.
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

// Check refuses what no spool has.
func (o ExchangeOutcome) Check() error {
	if o.Number <= 0 || o.End != EndToken || o.Access == "" || len(o.Access) > maxText || len(o.Refresh) > maxText {
		return errors.New("a spool has the tokens of exchanges that were answered with some")
	}
	return nil
}
