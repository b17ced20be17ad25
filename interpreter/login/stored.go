package login

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// TypeRequired is the error type of attempts while somebody has to log in again.
	TypeRequired = "login_required"
	// ReportPatience is how long an exchange whose worker was lost may still be reported from a spool, before the
	// same refresh token is sent again. A lost worker gives up its request before that, so that there are never two
	// at a time; servers that accept a token twice do so for a minute.
	ReportPatience = 30 * time.Second
	// firstPause and longestPause bound the pause after a failed exchange.
	firstPause   = 2 * time.Second
	longestPause = time.Minute
	// finalPause is the pause after a failure that a person has to fix.
	finalPause = 15 * time.Second
	// mostNotSent bounds the consecutive exchanges that were lost before they were sent; then waiting requests get
	// an error.
	mostNotSent = 3
	// mostSeeds bounds how many refresh tokens from connection files are remembered. A remembered token is not used
	// again when a worker still has an old file.
	mostSeeds = 32
)

// StoredLogin is the state of one login; kept in workflow history.
type StoredLogin struct {
	Connection string `json:"connection"`
	// Issued is the number of the last exchange that has begun, and Generation the number of the one whose tokens
	// are stored.
	Issued      int       `json:"issued,omitempty"`
	Generation  int       `json:"generation,omitempty"`
	Refresh     string    `json:"refresh,omitempty"` // sealed; "" before the first login and after a logout
	Access      string    `json:"access,omitempty"`  // sealed
	UsableUntil time.Time `json:"usable_until,omitzero"`
	Scopes      []string  `json:"scopes,omitempty"`
	By          string    `json:"by,omitempty"` // who has logged in
	At          time.Time `json:"at,omitzero"`
	Refreshed   time.Time `json:"refreshed,omitzero"`
	// Seeds are digests of the refresh tokens that were configured in connections, newest last.
	Seeds []string `json:"seeds,omitempty"`
	// Unanswered counts the exchanges of Refresh without a response, and ReportedBy is until when the last one may
	// be reported.
	Unanswered int       `json:"unanswered,omitempty"`
	ReportedBy time.Time `json:"reported_by,omitzero"`
	NotSent    int       `json:"not_sent,omitempty"` // number of consecutive exchanges that were not sent
	Required   string    `json:"required,omitempty"` // why somebody has to log in; "" if nobody has to
	RequiredAt time.Time `json:"required_at,omitzero"`
	// Failure is the answer to requests until RetryAt; nil for none. Failed counts consecutive failures.
	Failure *TokenFailure `json:"failure,omitempty"`
	Failed  int           `json:"failed,omitempty"`
	RetryAt time.Time     `json:"retry_at,omitzero"`
}

// ByConfiguration is the value of By if the first refresh token comes from the connection.
const ByConfiguration = "the connection"

// AdoptSeed starts with the refresh token of a connection, unless that token was configured before: then the stored one
// is newer. It reports whether it did.
func (s *StoredLogin) AdoptSeed(seed *SeedToken, now time.Time) bool {
	if seed == nil || slices.Contains(s.Seeds, seed.Digest) {
		return false
	}
	s.Seeds = append(s.Seeds, seed.Digest)
	s.Seeds = s.Seeds[max(0, len(s.Seeds)-mostSeeds):]
	s.replaceTokens(seed.Sealed, ByConfiguration, now)
	return true
}

// replaceTokens replaces the stored tokens by a refresh token. It gets a new number, so that no exchange of the previous
// token counts as newer.
func (s *StoredLogin) replaceTokens(refresh, by string, now time.Time) {
	s.Issued++
	s.Generation, s.Refresh, s.By, s.At = s.Issued, refresh, by, now
	s.Access, s.UsableUntil, s.Scopes, s.Refreshed = "", time.Time{}, nil, time.Time{}
	s.clearFailures()
}

// LogIn stores the tokens of a person's login. It returns why it cannot; nil if it did.
func (s *StoredLogin) LogIn(outcome ExchangeOutcome, by string, now time.Time) *TokenFailure {
	if outcome.End == EndToken && outcome.Refresh == "" {
		return &TokenFailure{
			Kind: "http", Class: "final", Type: "token",
			Message: "the token endpoint has given no refresh token; many give one for a scope such as offline_access",
		}
	}
	if outcome.End != EndToken {
		return outcome.Failure
	}
	s.replaceTokens(outcome.Refresh, by, now)
	s.Access, s.UsableUntil, s.Scopes, s.Refreshed = outcome.Access, outcome.UsableUntil, outcome.Scopes, now
	return nil
}

// LogOut deletes the tokens.
func (s *StoredLogin) LogOut(by string, now time.Time) {
	s.replaceTokens("", "", now)
	s.Required, s.RequiredAt = by+" has logged out", now
}

// clearFailures clears the records of earlier failures.
func (s *StoredLogin) clearFailures() {
	s.Unanswered, s.ReportedBy, s.NotSent, s.Failed = 0, time.Time{}, 0, 0
	s.Required, s.RequiredAt, s.Failure, s.RetryAt = "", time.Time{}, nil, time.Time{}
}

// AnswerRequest returns the answer to a request; false if an exchange is necessary first.
func (s *StoredLogin) AnswerRequest(request TokenRequest, now time.Time) (TokenAnswer, bool) {
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

// isGood reports whether the access token is still valid.
func (s *StoredLogin) isGood(now time.Time) bool {
	return s.Access != "" && (s.UsableUntil.IsZero() || now.Before(s.UsableUntil))
}

// loginRequired returns the error of attempts until somebody logs in.
func (s *StoredLogin) loginRequired(why string) *TokenFailure {
	advice := "run: starter auth login " + s.Connection
	if len(s.Seeds) > 0 {
		advice = "give the connection a new refresh_token"
	}
	return &TokenFailure{
		Kind: "connection", Class: "final", Type: TypeRequired, Final: true, Message: fmt.Sprintf("connection %q needs a login: %s; %s", s.Connection, why, advice),
	}
}

// NextExchange begins the next exchange, and returns its request.
func (s *StoredLogin) NextExchange() ExchangeRequest {
	s.Issued++
	return ExchangeRequest{Connection: s.Connection, Number: s.Issued, Refresh: s.Refresh}
}

// AcceptTokens stores the tokens of an exchange, unless newer ones are stored. It reports whether it did.
func (s *StoredLogin) AcceptTokens(outcome ExchangeOutcome, now time.Time) bool {
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
	s.clearFailures()
	return true
}

// EndExchange applies the outcome of an exchange. lost says that its worker did not report it.
func (s *StoredLogin) EndExchange(outcome ExchangeOutcome, lost bool, now time.Time) {
	if s.Generation >= outcome.Number {
		return // reported from a spool meanwhile
	}
	switch outcome.End {
	case EndToken:
		s.AcceptTokens(outcome, now)
	case EndRefused:
		s.Required, s.RequiredAt = strings.TrimPrefix(outcome.Failure.Message, fmt.Sprintf("connection %q: ", s.Connection)), now
		s.Access = ""
	case EndNotSent:
		if s.NotSent++; s.NotSent >= mostNotSent || !lost {
			s.recordFailure(outcome.Failure, now)
		}
	case EndUnanswered:
		if s.Unanswered++; lost {
			s.ReportedBy = now.Add(ReportPatience)
		}
		if s.Unanswered > 1 {
			s.recordFailure(outcome.Failure, now)
		}
	default:
		s.recordFailure(outcome.Failure, now)
	}
}

// recordFailure answers requests with a failure for a while.
func (s *StoredLogin) recordFailure(failure *TokenFailure, now time.Time) {
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

// Status returns the parts of the login that may be shown.
func (s *StoredLogin) Status() TokenStatus {
	status := TokenStatus{
		Connection: s.Connection, LoggedIn: s.Refresh != "" && s.Required == "", Generation: s.Generation, By: s.By, At: s.At, Refreshed: s.Refreshed,
		NextRefresh: s.UsableUntil, Scopes: s.Scopes, Required: s.Required, RequiredAt: s.RequiredAt, Unanswered: s.Unanswered,
	}
	if s.Failure != nil {
		status.Failure = s.Failure.Message
	}
	return status
}
