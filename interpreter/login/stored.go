package login

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// TypeRequired is the type of the error of attempts whose login somebody has to make anew.
	TypeRequired = "login_required"
	// ReportPatience is how long an exchange whose worker was lost may still be reported from a spool, before the same refresh
	// token is sent again. The lost worker gives its request up before that, so that there are never two, and servers that
	// accept a token twice do so for a minute.
	ReportPatience = 30 * time.Second
	// firstPause and longestPause bound how long no exchange follows one that has failed.
	firstPause   = 2 * time.Second
	longestPause = time.Minute
	// finalPause is how long none follows one that a person has to do something about.
	finalPause = 15 * time.Second
	// mostNotSent is how many exchanges in a row may be lost before they were sent, until those who wait are answered.
	mostNotSent = 3
	// mostSeeds is how many configured tokens are remembered, so that a worker with an old file does not bring one back.
	mostSeeds = 32
)

// StoredLogin is what is known of one login; kept in workflow history.
type StoredLogin struct {
	Connection string `json:"connection"`
	// Issued is the number of the last exchange that has begun, and Generation that of the one whose tokens are kept.
	Issued      int       `json:"issued,omitempty"`
	Generation  int       `json:"generation,omitempty"`
	Refresh     string    `json:"refresh,omitempty"` // sealed; "" before the first login and after a logout
	Access      string    `json:"access,omitempty"`  // sealed
	UsableUntil time.Time `json:"usable_until,omitzero"`
	Scopes      []string  `json:"scopes,omitempty"`
	By          string    `json:"by,omitempty"` // who has logged in
	At          time.Time `json:"at,omitzero"`
	Refreshed   time.Time `json:"refreshed,omitzero"`
	// Seeds are digests of the refresh tokens that connections were configured with, the newest last.
	Seeds []string `json:"seeds,omitempty"`
	// Unanswered counts the exchanges of Refresh without an answer, and ReportedBy is until when the last one may be reported.
	Unanswered int       `json:"unanswered,omitempty"`
	ReportedBy time.Time `json:"reported_by,omitzero"`
	NotSent    int       `json:"not_sent,omitempty"` // exchanges in a row
	Required   string    `json:"required,omitempty"` // why somebody has to log in; "" for nothing
	RequiredAt time.Time `json:"required_at,omitzero"`
	// Failure is the answer to requests until RetryAt; nil for none. Failed counts such in a row.
	Failure *LoginFailure `json:"failure,omitempty"`
	Failed  int           `json:"failed,omitempty"`
	RetryAt time.Time     `json:"retry_at,omitzero"`
}

// ByConfiguration is who has logged in where the first refresh token is that of the connection.
const ByConfiguration = "the connection"

// Adopt begins with the refresh token of a connection, unless that was configured before: by then it is older than the one
// that is kept. It reports whether it did.
func (s *StoredLogin) Adopt(seed *SeedToken, now time.Time) bool {
	if seed == nil || slices.Contains(s.Seeds, seed.Digest) {
		return false
	}
	s.Seeds = append(s.Seeds, seed.Digest)
	s.Seeds = s.Seeds[max(0, len(s.Seeds)-mostSeeds):]
	s.begin(seed.Sealed, ByConfiguration, now)
	return true
}

// begin has another refresh token take the place of what is kept. It has a number of its own, so that no exchange of the
// token before it is taken for newer.
func (s *StoredLogin) begin(refresh, by string, now time.Time) {
	s.Issued++
	s.Generation, s.Refresh, s.By, s.At = s.Issued, refresh, by, now
	s.Access, s.UsableUntil, s.Scopes, s.Refreshed = "", time.Time{}, nil, time.Time{}
	s.settled()
}

// LogIn begins with the tokens that a person has logged in for. It reports why it cannot; nil where it did.
func (s *StoredLogin) LogIn(outcome ExchangeOutcome, by string, now time.Time) *LoginFailure {
	if outcome.End == EndToken && outcome.Refresh == "" {
		return &LoginFailure{
			Kind: "http", Class: "final", Type: "token",
			Message: "the token endpoint has given no refresh token; many give one for a scope such as offline_access",
		}
	}
	if outcome.End != EndToken {
		return outcome.Failure
	}
	s.begin(outcome.Refresh, by, now)
	s.Access, s.UsableUntil, s.Scopes, s.Refreshed = outcome.Access, outcome.UsableUntil, outcome.Scopes, now
	return nil
}

// LogOut forgets the tokens.
func (s *StoredLogin) LogOut(by string, now time.Time) {
	s.begin("", "", now)
	s.Required, s.RequiredAt = by+" has logged out", now
}

// settled forgets what went wrong with the refresh token before.
func (s *StoredLogin) settled() {
	s.Unanswered, s.ReportedBy, s.NotSent, s.Failed = 0, time.Time{}, 0, 0
	s.Required, s.RequiredAt, s.Failure, s.RetryAt = "", time.Time{}, nil, time.Time{}
}

// Answer is the answer to a request; false where an exchange has to be made for it.
func (s *StoredLogin) Answer(request TokenRequest, now time.Time) (TokenAnswer, bool) {
	switch {
	case s.Required != "":
		return TokenAnswer{Failure: s.loginRequired(s.Required)}, true
	case s.Refresh == "":
		return TokenAnswer{Failure: s.loginRequired("nobody has logged in yet")}, true
	case s.isGood(now) && s.Generation > request.After:
		return TokenAnswer{Access: s.Access, Generation: s.Generation, UsableUntil: s.UsableUntil}, true
	case s.Failure != nil && now.Before(s.RetryAt):
		failure := *s.Failure
		return TokenAnswer{Failure: &failure}, true
	}
	return TokenAnswer{}, false
}

// isGood reports whether the access token can still be used.
func (s *StoredLogin) isGood(now time.Time) bool {
	return s.Access != "" && (s.UsableUntil.IsZero() || now.Before(s.UsableUntil))
}

// loginRequired is the error of attempts until somebody logs in.
func (s *StoredLogin) loginRequired(why string) *LoginFailure {
	advice := "run: starter auth login " + s.Connection
	if len(s.Seeds) > 0 {
		advice = "give the connection a new refresh_token"
	}
	return &LoginFailure{
		Kind: "connection", Class: "final", Type: TypeRequired, Final: true, Message: fmt.Sprintf("connection %q needs a login: %s; %s", s.Connection, why, advice),
	}
}

// NextExchange begins the next exchange.
func (s *StoredLogin) NextExchange() ExchangeRequest {
	s.Issued++
	return ExchangeRequest{Connection: s.Connection, Number: s.Issued, Refresh: s.Refresh}
}

// Accept keeps the tokens of an exchange, unless newer ones are kept. It reports whether it did.
func (s *StoredLogin) Accept(outcome ExchangeOutcome, now time.Time) bool {
	if outcome.End != EndToken || outcome.Number <= s.Generation || outcome.Number > s.Issued {
		return false
	}
	s.Generation, s.Access, s.UsableUntil, s.Refreshed = outcome.Number, outcome.Access, outcome.UsableUntil, now
	if outcome.Refresh != "" {
		s.Refresh = outcome.Refresh
	}
	if outcome.Scopes != nil {
		s.Scopes = outcome.Scopes
	}
	s.settled()
	return true
}

// End applies the outcome of the exchange that was made. lost says that its worker did not report it.
func (s *StoredLogin) End(outcome ExchangeOutcome, lost bool, now time.Time) {
	if s.Generation >= outcome.Number {
		return // reported from a spool meanwhile
	}
	switch outcome.End {
	case EndToken:
		s.Accept(outcome, now)
	case EndRefused:
		s.Required, s.RequiredAt = strings.TrimPrefix(outcome.Failure.Message, fmt.Sprintf("connection %q: ", s.Connection)), now
		s.Access = ""
	case EndNotSent:
		if s.NotSent++; s.NotSent >= mostNotSent || !lost {
			s.fail(outcome.Failure, now)
		}
	case EndUnanswered:
		if s.Unanswered++; lost {
			s.ReportedBy = now.Add(ReportPatience)
		}
		if s.Unanswered > 1 {
			s.fail(outcome.Failure, now)
		}
	default:
		s.fail(outcome.Failure, now)
	}
}

// fail has requests be answered with a failure for a while.
func (s *StoredLogin) fail(failure *LoginFailure, now time.Time) {
	pause := min(firstPause<<min(s.Failed, 10), longestPause)
	if failure.Final {
		pause = finalPause
	}
	if asked := time.Duration(failure.RetryAfter * float64(time.Second)); asked > pause {
		pause = min(asked, longestPause)
	}
	s.Failed++
	s.NotSent, s.Failure, s.RetryAt = 0, failure, now.Add(pause)
}

// Status is what may be shown.
func (s *StoredLogin) Status() LoginStatus {
	status := LoginStatus{
		Connection: s.Connection, LoggedIn: s.Refresh != "" && s.Required == "", Generation: s.Generation, By: s.By, At: s.At, Refreshed: s.Refreshed,
		NextRefresh: s.UsableUntil, Scopes: s.Scopes, Required: s.Required, RequiredAt: s.RequiredAt, Unanswered: s.Unanswered,
	}
	if s.Failure != nil {
		status.Failure = s.Failure.Message
	}
	return status
}
