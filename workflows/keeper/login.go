package keeper

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/meter"
	"reprise/interpreter"
	"reprise/interpreter/login"
	"reprise/interpreter/source"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// exchangeTimeout bounds an exchange, including the worker's work around the request.
const exchangeTimeout = time.Minute

// LoginWorkflow keeps the tokens of one login for the workers of its task queue. All exchanges are made on its
// request, one at a time, since many servers revoke a login whose refresh token is used twice. login.StoredLogin
// makes the decisions. Once a login exists it never ends, because without it somebody has to log in again.
func LoginWorkflow(ctx workflow.Context, stored login.StoredLogin) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a cancel would make it forget
	ctx = gate.WithOutbox(ctx, interpreter.RunLimits{})
	k := &storedLogin{StoredLogin: stored}
	k.endless = newEndless(k.renderDetails)
	if err := errors.Join(k.serveUpdates(ctx), k.serveQueries(ctx)); err != nil {
		return err
	}
	return serveUntilOver(ctx, k)
}

// storedLogin connects a StoredLogin to its workflow.
type storedLogin struct {
	login.StoredLogin
	endless

	waiting []login.TokenRequest // requests without an answer
	asked   bool                 // an update was received
}

func (k *storedLogin) serveUpdates(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetUpdateHandlerWithOptions(ctx, login.TokenUpdate, k.giveToken,
			workflow.UpdateHandlerOptions{Validator: login.TokenRequest.Check}),
		workflow.SetUpdateHandlerWithOptions(ctx, login.SpooledUpdate,
			func(ctx workflow.Context, outcome login.ExchangeOutcome) error {
				if k.AcceptTokens(outcome, workflow.Now(ctx)) {
					k.changed = true
					gate.Logger(ctx).Info("an exchange whose worker was lost was reported from a spool", "connection", k.Connection, "generation", outcome.Number)
				}
				return nil
			},
			workflow.UpdateHandlerOptions{Validator: login.ExchangeOutcome.Check}),
		workflow.SetUpdateHandlerWithOptions(ctx, login.BeginUpdate, k.beginLogin, workflow.UpdateHandlerOptions{Validator: login.BeginRequest.Check}),
		workflow.SetUpdateHandlerWithOptions(ctx, login.FinishUpdate, k.finishLogin, workflow.UpdateHandlerOptions{Validator: login.FinishRequest.Check}),
		workflow.SetUpdateHandlerWithOptions(ctx, login.LogoutUpdate,
			func(ctx workflow.Context, request login.LogoutRequest) error {
				k.LogOut(request.By, workflow.Now(ctx))
				k.changed = true
				return nil
			},
			workflow.UpdateHandlerOptions{Validator: login.LogoutRequest.Check}),
	)
}

func (k *storedLogin) serveQueries(ctx workflow.Context) error {
	return errors.Join(
		workflow.SetQueryHandler(ctx, login.StatusQuery, func() (login.TokenStatus, error) { return k.Status(), nil }),
		workflow.SetQueryHandler(ctx, login.SnapshotQuery, func() (login.StoredLogin, error) { return k.StoredLogin, nil }),
	)
}

// giveToken answers a worker's request once there is a token, or an error that rules one out.
func (k *storedLogin) giveToken(ctx workflow.Context, request login.TokenRequest) (answer login.TokenAnswer, err error) {
	k.Connection, k.asked = request.Connection, true
	if k.AdoptSeed(request.Seed, workflow.Now(ctx)) {
		k.changed = true
	}
	k.waiting = append(k.waiting, request)
	err = workflow.Await(ctx, func() (answered bool) {
		answer, answered = k.AnswerRequest(request, workflow.Now(ctx))
		return answered
	})
	at := slices.Index(k.waiting, request)
	k.waiting = slices.Delete(k.waiting, at, at+1)
	return answer, err
}

// challengeTimeout bounds the request for a device's code, and loginTimeout the time that a person has to enter it.
const (
	challengeTimeout = time.Minute
	loginTimeout     = 30 * time.Minute
)

// beginLogin lets a worker find out where a person has to log in.
func (k *storedLogin) beginLogin(ctx workflow.Context, start login.BeginRequest) (login.Challenge, error) {
	ctx = gate.WithOutbox(ctx, interpreter.RunLimits{})
	k.Connection, k.asked = start.Connection, true
	to := gate.ToTool(login.ChallengeActivity, challengeTimeout, "a login by "+start.By)
	to.Tries = mostCommandTries
	return gate.Send[login.Challenge](ctx, to, start, "a login")
}

// finishLogin lets a worker exchange the code of a person's login for tokens. It does not use the refresh token, so
// it waits for no other exchange.
func (k *storedLogin) finishLogin(ctx workflow.Context, proof login.FinishRequest) (login.FinishResult, error) {
	ctx = gate.WithOutbox(ctx, interpreter.RunLimits{})
	k.Connection, k.asked = proof.Connection, true
	limit := exchangeTimeout
	if proof.Device {
		limit = loginTimeout
	}
	to := gate.ToTool(login.ProofActivity, limit, "the login by "+proof.By)
	to.Tries = 1 // a code can be used once
	outcome, err := gate.Send[login.ExchangeOutcome](ctx, to, proof, "a login")
	if err != nil {
		return login.FinishResult{}, err
	}
	failure := k.LogIn(outcome, proof.By, workflow.Now(ctx))
	k.changed = true
	return login.FinishResult{Status: k.Status(), Failure: failure}, nil
}

// isWanted reports whether a request waits for an exchange.
func (k *storedLogin) isWanted(ctx workflow.Context) bool {
	return slices.ContainsFunc(k.waiting, func(request login.TokenRequest) bool {
		_, answered := k.AnswerRequest(request, workflow.Now(ctx))
		return !answered
	})
}

// isLong reports whether the workflow should continue as new. It does not while a request waits: handlers would
// wait for this loop, and the loop for a person.
func (k *storedLogin) isLong(ctx workflow.Context) bool {
	return workflow.AllHandlersFinished(ctx) && k.endless.isLong(ctx)
}

// isOver reports whether the workflow ends because nobody has logged in.
func (k *storedLogin) isOver(ctx workflow.Context) bool {
	return k.asked && k.Issued == 0 && workflow.AllHandlersFinished(ctx)
}

func (k *storedLogin) isDue(ctx workflow.Context) bool {
	return k.changed || k.isOver(ctx) || k.isWanted(ctx)
}

// actWhenDue makes an exchange if a request waits for one, once the previous exchange can no longer be reported.
func (k *storedLogin) actWhenDue(ctx workflow.Context) {
	k.endless.actWhenDue(ctx)
	if !k.isWanted(ctx) {
		return
	}
	if wait := k.ReportedBy.Sub(workflow.Now(ctx)); wait > 0 {
		_, _ = workflow.AwaitWithTimeout(ctx, wait, func() bool { return !k.isWanted(ctx) }) // a cancel does not end it
		return
	}
	k.runExchange(ctx)
}

// runExchange lets a worker exchange the refresh token.
func (k *storedLogin) runExchange(ctx workflow.Context) {
	request, refresh := k.NextExchange(), k.Refresh
	to := gate.ToTool(login.ExchangeActivity, exchangeTimeout, fmt.Sprintf("exchange %d of the login %s", request.Number, k.Connection))
	to.Tries = 1 // a server may revoke a login whose token comes twice
	outcome, err := gate.Send[login.ExchangeOutcome](ctx, to, request, "a refresh token")
	if err != nil {
		outcome = lostExchange(request, err)
	}
	if k.changed = true; refresh != k.Refresh {
		return // meanwhile it was reported from a spool, or a new login was made
	}
	required := k.Required
	k.EndExchange(outcome, err != nil, workflow.Now(ctx))
	metrics := gate.MetricsOf(ctx)
	metrics.Add(meter.LoginExchanges, 1, k.Connection, string(outcome.End))
	if k.Required != "" && required == "" {
		metrics.Add(meter.LoginsRequired, 1, k.Connection)
		gate.Logger(ctx).Error("somebody has to log in", "connection", k.Connection, "why", k.Required)
	}
}

// lostExchange returns the outcome of an exchange that no worker has reported. Its last heartbeat shows whether the
// request may have been sent.
func lostExchange(request login.ExchangeRequest, err error) login.ExchangeOutcome {
	end, mark := login.EndUnanswered, login.ExchangeMark{}
	if lost, ok := errors.AsType[*temporal.TimeoutError](err); ok && (!lost.HasLastHeartbeatDetails() || lost.LastHeartbeatDetails(&mark) == nil && !mark.Sent) {
		end = login.EndNotSent
	}
	return login.ExchangeOutcome{Number: request.Number, End: end, Failure: &login.TokenFailure{
		Kind: string(interpreter.KindConnection), Class: string(interpreter.ClassRetryable), Type: "login",
		Message: fmt.Sprintf("connection %q: the worker that exchanged the refresh token was lost", request.Connection),
	}}
}

func (k *storedLogin) continueAsNew(ctx workflow.Context) (failure *interpreter.ErrorObject, next error) {
	return gate.ContinueAsNew(ctx, login.WorkflowName, k.StoredLogin, "the tokens of a login")
}

// renderDetails writes the login's status into the details, without secrets.
func (k *storedLogin) renderDetails(ctx workflow.Context) {
	table, status := gate.NewMarkdownTable("what", ""), k.Status()
	for _, row := range [][2]string{
		{"login by", status.By},
		{"at", gate.RenderTime(status.At)},
		{"refreshed", gate.RenderTime(status.Refreshed)},
		{"next refresh", gate.RenderTime(status.NextRefresh)},
		{"scopes", strings.Join(status.Scopes, " ")},
		{"login required", status.Required},
		{"last failure", status.Failure},
	} {
		if row[1] != "" {
			table.Row(row[0], source.MarkdownCode(row[1], protocol.MaxText))
		}
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Login of the connection %s, generation %d\n\n%s", source.MarkdownCode(k.Connection, protocol.MaxText), status.Generation, table))
}
