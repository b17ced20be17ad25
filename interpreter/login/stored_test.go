package login_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/login"
)

var now = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)

func seed(n int) *login.SeedToken {
	return &login.SeedToken{Sealed: fmt.Sprintf("seed %d", n), Digest: fmt.Sprint(n)}
}

func given(number int) login.ExchangeOutcome {
	return login.ExchangeOutcome{
		Number: number, End: login.EndToken, Access: fmt.Sprintf("access %d", number), Refresh: fmt.Sprintf("refresh %d", number), UsableUntil: now.Add(time.Hour),
	}
}

func failed(number int, end login.ExchangeEnd, message string) login.ExchangeOutcome {
	return login.ExchangeOutcome{Number: number, End: end, Failure: &login.TokenFailure{Kind: "http", Class: "final", Message: message}}
}

// newLogin is a login that begins with the first seed.
func newLogin(t *testing.T) *login.StoredLogin {
	t.Helper()
	s := &login.StoredLogin{Connection: "shop"}
	require.True(t, s.AdoptSeed(seed(1), now))
	return s
}

// requireFailure is why there is no token.
func requireFailure(t *testing.T, s *login.StoredLogin, at time.Time, want string) {
	t.Helper()
	answer, answered := s.AnswerRequest(login.TokenRequest{Connection: "shop"}, at)
	require.True(t, answered)
	require.NotNil(t, answer.Failure)
	require.Contains(t, answer.Failure.Message, want)
}

// requireExchange is that an exchange has to be made for a request.
func requireExchange(t *testing.T, s *login.StoredLogin, after int, at time.Time) {
	t.Helper()
	_, answered := s.AnswerRequest(login.TokenRequest{Connection: "shop", After: after}, at)
	require.False(t, answered)
}

// TestTokensAreExchangedWhenTheyAreNeeded: nobody asks for an exchange while a token is good, unless it was refused.
func TestTokensAreExchangedWhenTheyAreNeeded(t *testing.T) {
	t.Parallel()
	nobody := &login.StoredLogin{Connection: "shop"}
	requireFailure(t, nobody, now, `connection "shop" needs a login: nobody has logged in yet`)
	s := newLogin(t)
	requireExchange(t, s, 0, now)
	require.Equal(t, login.ExchangeRequest{Connection: "shop", Number: 2, Refresh: "seed 1"}, s.NextExchange())
	s.EndExchange(given(2), false, now)
	answer, answered := s.AnswerRequest(login.TokenRequest{Connection: "shop"}, now)
	require.True(t, answered)
	require.Equal(t, login.TokenAnswer{Access: "access 2", Generation: 2, UsableUntil: now.Add(time.Hour)}, answer)
	requireExchange(t, s, 2, now)                // it was refused
	requireExchange(t, s, 0, now.Add(time.Hour)) // it has ended
	require.Equal(t, "refresh 2", s.NextExchange().Refresh)
}

// TestAnOlderTokenNeverReplacesANewerOne, whoever brings it.
func TestAnOlderTokenNeverReplacesANewerOne(t *testing.T) {
	t.Parallel()
	s := newLogin(t)
	first, second := s.NextExchange(), s.NextExchange()
	require.False(t, s.AcceptTokens(given(second.Number+1), now), "an exchange that was never made")
	require.True(t, s.AcceptTokens(given(second.Number), now))
	require.False(t, s.AcceptTokens(given(first.Number), now), "of the exchange before")
	s.EndExchange(failed(first.Number, login.EndRefused, "revoked"), false, now)
	require.Empty(t, s.Required)
	require.Equal(t, "refresh 3", s.Refresh)
	require.False(t, s.AdoptSeed(seed(1), now), "a worker with the file of before")
	exchange := s.NextExchange()
	require.True(t, s.AdoptSeed(seed(2), now), "an operator has written another one")
	require.False(t, s.AcceptTokens(given(exchange.Number), now), "of the token before")
	require.Equal(t, "seed 2", s.Refresh)
}

// TestAnExchangeWithoutAnAnswerIsMadeOnceMore, once it cannot be reported any more; then the server decides.
func TestAnExchangeWithoutAnAnswerIsMadeOnceMore(t *testing.T) {
	t.Parallel()
	s := newLogin(t)
	first := s.NextExchange()
	s.EndExchange(failed(first.Number, login.EndUnanswered, "lost"), true, now)
	require.Equal(t, now.Add(login.ReportPatience), s.ReportedBy)
	requireExchange(t, s, 0, now)
	again := s.NextExchange()
	require.Equal(t, first.Refresh, again.Refresh)
	s.EndExchange(failed(again.Number, login.EndRefused, "the endpoint says invalid_grant"), false, now)
	requireFailure(t, s, now, `connection "shop" needs a login: the endpoint says invalid_grant`)
	require.False(t, s.Status().LoggedIn)
	late := s.AcceptTokens(given(first.Number), now)
	require.True(t, late, "a spool has the token that was lost")
	require.True(t, s.Status().LoggedIn)
}

// TestFailuresAreAnsweredForAWhile, so that a thousand attempts make one exchange. Of those that were lost before they were sent, mostNotSent are
// made first.
func TestFailuresAreAnsweredForAWhile(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		end   login.ExchangeEnd
		lost  bool
		times int // until requests are answered with the failure
		pause time.Duration
	}{
		{login.EndFailed, false, 1, 2 * time.Second},
		{login.EndNotSent, false, 1, 2 * time.Second},
		{login.EndNotSent, true, 3, 2 * time.Second},
		{login.EndUnanswered, false, 2, 2 * time.Second},
	} {
		s := newLogin(t)
		for range row.times {
			requireExchange(t, s, 0, now)
			s.EndExchange(failed(s.NextExchange().Number, row.end, "away"), row.lost, now)
		}
		requireFailure(t, s, now, "away")
		requireFailure(t, s, now.Add(row.pause-1), "away")
		requireExchange(t, s, 0, now.Add(row.pause))
		s.EndExchange(failed(s.NextExchange().Number, login.EndFailed, "away"), false, now)
		requireFailure(t, s, now.Add(2*row.pause-1), "away")
		s.EndExchange(given(s.NextExchange().Number), false, now)
		require.Nil(t, s.Failure)
		require.Zero(t, s.Failed)
	}
	s := newLogin(t)
	outcome := failed(s.NextExchange().Number, login.EndFailed, "slower")
	outcome.Failure.RetryAfter = 1e9
	s.EndExchange(outcome, false, now)
	requireFailure(t, s, now.Add(59*time.Second), "slower")
	requireExchange(t, s, 0, now.Add(time.Minute))
}

// TestSeedsAreRemembered: mostSeeds of them.
func TestSeedsAreRemembered(t *testing.T) {
	t.Parallel()
	s := newLogin(t)
	for n := range 100 {
		s.AdoptSeed(seed(n), now)
	}
	require.Len(t, s.Seeds, 32)
	require.False(t, s.AdoptSeed(seed(70), now))
}

// TestWhatNoWorkerSendsIsRefused: clients of the namespace send what they like, also texts longer than maxText.
func TestWhatNoWorkerSendsIsRefused(t *testing.T) {
	t.Parallel()
	long := string(make([]byte, 64<<10+1))
	require.NoError(t, login.TokenRequest{Connection: "shop", Seed: seed(1)}.Check())
	for _, request := range []login.TokenRequest{
		{}, {Connection: long}, {Connection: "shop", After: -1}, {Connection: "shop", Seed: &login.SeedToken{Sealed: long, Digest: "1"}}, {Connection: "shop", Seed: &login.SeedToken{Digest: "1"}},
	} {
		require.Error(t, request.Check())
	}
	require.NoError(t, given(1).Check())
	for _, outcome := range []login.ExchangeOutcome{{}, given(0), failed(1, login.EndFailed, "x"), {Number: 1, End: login.EndToken, Access: long}} {
		require.Error(t, outcome.Check())
	}
}
