package keeper

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"reprise/activities/tool"
	"reprise/internal/base/connect"
	"reprise/internal/base/heartbeat"
	"reprise/internal/base/seal"
	"reprise/internal/base/secrets"
	"reprise/internal/base/sleep"
	"reprise/interpreter"
	"reprise/interpreter/login"
)

// Logins reaches the workflows that keep the tokens of logins, and makes their exchanges. Tokens are plain in the worker alone.
type Logins struct {
	Keys      *seal.Keys // nil refuses logins
	Spool     *TokenSpool
	Exchanger tool.LoginExchanger
	Secrets   *secrets.Masker
	Logger    *slog.Logger
}

var _ tool.LoginTokens = (*Logins)(nil)

// Activities returns the activities of login workflows, by name.
func (l *Logins) Activities() map[string]any {
	return map[string]any{login.ExchangeActivity: l.exchange, login.ChallengeActivity: l.challenge, login.ProofActivity: l.prove}
}

// accessPlace and refreshPlace are bound into sealed tokens, so that one cannot be used as the
// other.
func accessPlace(connection string) string  { return "access token of the login " + connection }
func refreshPlace(connection string) string { return "refresh token of the login " + connection }

// LoginToken requests an access token from the workflow of the login, and starts that workflow if there
// is none.
func (l *Logins) LoginToken(ctx context.Context, connection, seed string, after int) (tool.LoginToken, error) {
	switch {
	case !activity.IsActivity(ctx):
		return tool.LoginToken{}, tool.ConfigErrorf("connection %q logs in with tokens that a workflow keeps, so only a worker can use it", connection)
	case l.Keys == nil:
		return tool.LoginToken{}, l.noKeys(connection)
	}
	request := login.TokenRequest{Connection: connection, After: after}
	if seed != "" {
		sealed, err := l.Keys.Seal([]byte(seed), refreshPlace(connection))
		if err != nil {
			return tool.LoginToken{}, tool.ConfigErrorf("connection %q: seal its refresh token: %w", connection, err)
		}
		request.Seed = &login.SeedToken{Sealed: sealed, Digest: seedDigest(connection, seed)}
	}
	answer, err := updateLogin[login.TokenAnswer](ctx, connection, login.TokenUpdate, request)
	switch {
	case tool.IsContextError(err):
		return tool.LoginToken{}, err
	case err != nil:
		return tool.LoginToken{}, &tool.Error{
			Kind: interpreter.KindConnection, Class: interpreter.ClassRetryable, Message: fmt.Sprintf("connection %q: request a token of its login: %v", connection, err),
		}
	case answer.Failure != nil:
		return tool.LoginToken{}, tool.LoginError(answer.Failure)
	}
	access, err := l.Keys.Open(answer.Access, accessPlace(connection))
	if err != nil {
		return tool.LoginToken{}, tool.ConfigErrorf("connection %q: open the token of its login: %w", connection, err)
	}
	return tool.LoginToken{Access: string(access), Generation: answer.Generation, UsableUntil: answer.UsableUntil}, nil
}

// unreachablePause is the wait before a server that was out of reach is asked again: the attempt has not failed by that.
const unreachablePause = time.Second

// updateLogin sends an update to the workflow of a login, until ctx ends.
func updateLogin[T any](ctx context.Context, connection, update string, arg any) (answer T, err error) {
	of := lasting{name: login.WorkflowName, id: login.WorkflowID(connection), query: login.SnapshotQuery, summary: "keeps the tokens of the login " + connection}
	for {
		err = updateLasting[login.StoredLogin](ctx, of, client.UpdateWorkflowOptions{UpdateName: update, Args: []any{arg}}, &answer)
		if ctx.Err() != nil || !connect.IsUnreachable(err) {
			return answer, err
		}
		if err := sleep.For(ctx, unreachablePause); err != nil {
			return answer, err
		}
	}
}

// digestBytes of a digest distinguish all tokens that one connection was ever configured with.
const digestBytes = 8

// seedDigest distinguishes configured tokens. It stays when keys change.
func seedDigest(connection, seed string) string {
	sum := sha256.Sum256([]byte(connection + "\x00" + seed))
	return hex.EncodeToString(sum[:digestBytes])
}

// exchange is the activity that exchanges a refresh token. It is delivered once, and its outcome is in the spool before it is
// reported, so that a worker which is lost after the answer loses no token.
func (l *Logins) exchange(ctx context.Context, in login.ExchangeRequest) (login.ExchangeOutcome, error) {
	outcome := login.ExchangeOutcome{Number: in.Number, End: login.EndNotSent}
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return outcome, nil // for another worker
	default:
	}
	refresh, err := l.Keys.Open(in.Refresh, refreshPlace(in.Connection)) // nil keys have a name too
	if err != nil {
		outcome.Failure = tool.LoginFailureOf(tool.ConfigErrorf("connection %q: open the refresh token of its login: %w", in.Connection, err))
		return outcome, nil
	}
	l.Secrets.AddToken(string(refresh))
	mark := &exchangeMark{ctx: ctx}
	stop := mark.startHeartbeats()
	defer stop()
	tokens, end, err := l.Exchanger.ExchangeLogin(context.WithoutCancel(ctx), in.Connection, string(refresh), mark.markSent)
	if outcome.End = end; err != nil {
		outcome.Failure = tool.LoginFailureOf(failureOf(err))
		return outcome, nil
	}
	if err := l.sealTokens(&outcome, in.Connection, tokens); err != nil {
		return outcome, fmt.Errorf("seal the tokens of an exchange: %w", err)
	}
	if err := l.Spool.addTokens(ctx, spooledTokens{Namespace: activity.GetInfo(ctx).Namespace, Connection: in.Connection, Outcome: outcome}); err != nil {
		l.Logger.Error("the tokens of a login are not in the spool; if this worker is lost now, somebody has to log in", "connection", in.Connection, "error", err)
	}
	return outcome, nil
}

// failureOf returns an error as an *Error.
func failureOf(err error) *tool.Error {
	if own, ok := errors.AsType[*tool.Error](err); ok {
		return own
	}
	return &tool.Error{Kind: interpreter.KindConnection, Class: interpreter.ClassRetryable, Message: err.Error()}
}

// sealTokens puts tokens into an outcome.
func (l *Logins) sealTokens(outcome *login.ExchangeOutcome, connection string, tokens tool.ExchangedTokens) (err error) {
	l.Secrets.AddToken(tokens.Access)
	outcome.UsableUntil, outcome.Scopes = tokens.UsableUntil, tokens.Scopes
	if outcome.Access, err = l.Keys.Seal([]byte(tokens.Access), accessPlace(connection)); err != nil || tokens.Refresh == "" {
		return err
	}
	l.Secrets.AddToken(tokens.Refresh)
	outcome.Refresh, err = l.Keys.Seal([]byte(tokens.Refresh), refreshPlace(connection))
	return err
}

// exchangeMark is the heartbeat of an exchange. It is sent at once, because it is all that the workflow learns of an
// exchange whose worker is lost.
type exchangeMark struct {
	ctx context.Context

	mu   sync.Mutex
	mark login.ExchangeMark
}

// beatTimeout bounds one heartbeat.
const beatTimeout = 3 * time.Second

func (m *exchangeMark) beat() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(m.ctx), beatTimeout)
	defer cancel()
	return activity.GetClient(m.ctx).RecordActivityHeartbeat(ctx, activity.GetInfo(m.ctx).TaskToken, m.mark)
}

// markSent records that the request may have been sent. If it fails, the request must not be sent.
func (m *exchangeMark) markSent() error {
	m.mu.Lock()
	m.mark.Sent = true
	m.mu.Unlock()
	return m.beat()
}

// startHeartbeats sends heartbeats until it is stopped.
func (m *exchangeMark) startHeartbeats() (stop func()) {
	ticks, stopTicks := heartbeat.Ticker(m.ctx)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-ticks:
				_ = m.beat() // the next one may arrive
			case <-done:
				return
			}
		}
	}()
	return func() {
		stopTicks()
		close(done)
	}
}

// secretPlace is bound into the sealed secret of a challenge.
func secretPlace(connection string) string { return "challenge of the login " + connection }

// challenge is the activity that returns where a person logs in.
func (l *Logins) challenge(ctx context.Context, start login.BeginRequest) (login.Challenge, error) {
	if l.Keys == nil {
		return login.Challenge{Failure: tool.LoginFailureOf(l.noKeys(start.Connection))}, nil
	}
	defer heartbeat.StartSending(ctx)()
	challenge, secret, err := l.Exchanger.ChallengeLogin(ctx, start)
	if err != nil {
		return login.Challenge{Failure: tool.LoginFailureOf(failureOf(err))}, nil
	}
	l.Secrets.AddToken(secret)
	challenge.PublicKey = l.Keys.PublicKey()
	challenge.Secret, err = l.Keys.Seal([]byte(secret), secretPlace(start.Connection))
	return challenge, err
}

// prove is the activity that exchanges what a person has brought.
func (l *Logins) prove(ctx context.Context, proof login.FinishRequest) (login.ExchangeOutcome, error) {
	outcome := login.ExchangeOutcome{End: login.EndFailed}
	secret, err := l.Keys.Open(proof.Secret, secretPlace(proof.Connection))
	var code []byte
	if err == nil && !proof.Device {
		code, err = l.Keys.OpenSealed(proof.Code, login.CodePlace(proof.Connection))
	}
	if err != nil {
		outcome.Failure = tool.LoginFailureOf(tool.ConfigErrorf("connection %q: open what the login has brought: %w", proof.Connection, err))
		return outcome, nil
	}
	l.Secrets.AddToken(string(secret))
	if len(code) > 0 {
		l.Secrets.AddToken(string(code))
	}
	defer heartbeat.StartSending(ctx)()
	tokens, err := l.Exchanger.ProveLogin(ctx, proof, string(code), string(secret))
	if err != nil {
		outcome.Failure = tool.LoginFailureOf(failureOf(err))
		return outcome, nil
	}
	outcome.End = login.EndToken
	return outcome, l.sealTokens(&outcome, proof.Connection, tokens)
}

// noKeys returns the error of a worker that cannot keep tokens.
func (l *Logins) noKeys(connection string) *tool.Error {
	return tool.ConfigErrorf("connection %q is a login whose tokens are kept, which requires %s in the worker's environment; %s", connection, seal.Variable, seal.Advice)
}
