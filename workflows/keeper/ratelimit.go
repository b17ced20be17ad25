package keeper

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/ratelimit"
	"reprise/workflows/gate"
)

// limiterIdle is how long a limiter without requests stays open.
const limiterIdle = time.Minute

// RateLimitWorkflow shares one rate limit between all workers of a task queue. Workers lease slots from it, many at
// a time. It decides only when the next slot is free, and signals calls that wait elsewhere if no worker leases the
// free slots. It ends when there was no request for a while, no call waits elsewhere and the granted slots have
// passed; the next lease starts it again.
func RateLimitWorkflow(ctx workflow.Context, limiter ratelimit.Limiter) error {
	ctx = gate.WithOutbox(ctx, interpreter.RunLimits{})
	k := &rateLimiter{Limiter: limiter, lastRequest: workflow.Now(ctx)}
	err := workflow.SetUpdateHandlerWithOptions(ctx, ratelimit.LeaseUpdate,
		func(ctx workflow.Context, request ratelimit.LeaseRequest) (ratelimit.Lease, error) {
			k.lastRequest = workflow.Now(ctx)
			return k.Lease(request, k.lastRequest), nil
		},
		workflow.UpdateHandlerOptions{Validator: validLease})
	if err != nil {
		return fmt.Errorf("set update handler: %w", err)
	}
	gate.HandleSignal(ctx, ratelimit.AwaySignal, k.recordAway)
	return serveUntilOver(ctx, k)
}

// rateLimiter connects a limiter to its workflow.
type rateLimiter struct {
	ratelimit.Limiter
	lastRequest time.Time // of a lease, or of calls that wait elsewhere
	wakes       time.Time // when the timer fires
	timer       workflow.Future
	stop        workflow.CancelFunc // cancels the timer
}

// recordAway records calls that wait elsewhere, outside a worker's lease.
func (k *rateLimiter) recordAway(ctx workflow.Context, away []ratelimit.Away) {
	if err := ratelimit.CheckAway(away); err != nil {
		gate.Logger(ctx).Warn("slots in use that no worker reports are dropped", "error", err)
		return
	}
	k.lastRequest = workflow.Now(ctx)
	k.NoteAway(away)
}

// idleAt returns when the workflow ends unless another request arrives.
func (k *rateLimiter) idleAt() time.Time {
	if over := k.lastRequest.Add(limiterIdle); over.After(k.Next) {
		return over
	}
	return k.Next
}

func (k *rateLimiter) isOver(ctx workflow.Context) bool {
	return len(k.Away) == 0 && !k.idleAt().After(workflow.Now(ctx))
}

func (k *rateLimiter) isLong(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// dueAt returns when there is something to do.
func (k *rateLimiter) dueAt() time.Time {
	if call := k.CallAt(); !call.IsZero() {
		return call
	}
	return k.idleAt()
}

// actWhenDue signals the waiting calls that may now be made, and starts the next timer. A later deadline is noticed only
// when the timer fires, so that leases cost no timers.
func (k *rateLimiter) actWhenDue(ctx workflow.Context) {
	for _, away := range k.CallBack(workflow.Now(ctx)) {
		gate.SignalWorkflow(ctx, away.Workflow, ratelimit.TurnSignal, ratelimit.TurnCall{Step: away.Step, Index: away.Index})
	}
	timed, stop := workflow.WithCancel(ctx)
	k.wakes, k.stop = k.dueAt(), stop
	k.timer = workflow.NewTimerWithOptions(timed, max(k.wakes.Sub(workflow.Now(ctx)), 0), workflow.TimerOptions{Summary: "idle"})
}

func (k *rateLimiter) isDue(workflow.Context) bool {
	return k.timer.IsReady() || k.dueAt().Before(k.wakes)
}

func (k *rateLimiter) afterWait(workflow.Context) { k.stop() }

func (k *rateLimiter) continueAsNew(ctx workflow.Context) (failure *interpreter.ErrorObject, next error) {
	return gate.ContinueAsNew(ctx, ratelimit.WorkflowName, k.Limiter, "the rate limit")
}

// maxLease bounds the slots of one lease: it is granted within one workflow task, and any client can request one.
const maxLease = 10_000

func validLease(request ratelimit.LeaseRequest) error {
	switch {
	case request.Count < 1 || request.Count > maxLease:
		return fmt.Errorf("a lease has 1 to %d slots, not %d", maxLease, request.Count)
	case request.Due < 0 || request.Fresh < 0 || request.Due+request.Fresh > request.Count:
		return fmt.Errorf("of %d requests for a slot %d cannot be due and %d fresh", request.Count, request.Due, request.Fresh)
	case request.Limit.Requests < 1 || request.Limit.PerSeconds <= 0:
		return errors.New("a rate limit needs requests and a time of more than 0")
	}
	return nil
}
