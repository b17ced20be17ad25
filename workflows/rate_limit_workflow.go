package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/ratelimit"
)

// limiterIdle is how long a limiter stays without a request.
const limiterIdle = time.Minute

// RateLimitWorkflow shares one rate limit between all workers of a task queue. Workers
// lease turns from it, many at a time; it decides nothing but when the next turn is,
// and signals calls that wait elsewhere for turns that no worker leases. It ends when
// there was no request for a while, no call waits elsewhere and the turns that it gave
// are over; the next lease starts it again.
func RateLimitWorkflow(ctx workflow.Context, limiter ratelimit.Limiter) error {
	ctx = withOutbox(ctx, interpreter.RunLimits{})
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
	onSignal(ctx, ratelimit.AwaySignal, k.recordAway)
	for !k.over(ctx) {
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
				return err
			}
			return orFailure(continueAsNew(ctx, ratelimit.WorkflowName, k.Limiter, "the rate limit"))
		}
		for _, away := range k.Call(workflow.Now(ctx)) {
			signal(ctx, away.Workflow, ratelimit.TurnSignal, ratelimit.TurnCall{Step: away.Step, Index: away.Index})
		}
		if err := k.wait(ctx); err != nil {
			return err
		}
	}
	return workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// rateLimiter keeps a limiter.
type rateLimiter struct {
	ratelimit.Limiter
	lastRequest time.Time // of a lease, or of a call that waits elsewhere
	wakes       time.Time // the end of the rest
}

// recordAway records the calls that wait elsewhere.
func (k *rateLimiter) recordAway(ctx workflow.Context, away []ratelimit.Away) {
	if err := ratelimit.CheckAway(away); err != nil {
		logger(ctx).Warn("what no worker reports of those away is left out", "error", err)
		return
	}
	k.lastRequest = workflow.Now(ctx)
	k.Left(away)
}

// idle is when the workflow is no longer needed, if nothing happens.
func (k *rateLimiter) idle() time.Time {
	if over := k.lastRequest.Add(limiterIdle); over.After(k.Next) {
		return over
	}
	return k.Next
}

func (k *rateLimiter) over(ctx workflow.Context) bool {
	return len(k.Away) == 0 && !k.idle().After(workflow.Now(ctx))
}

// next is when there is something to do.
func (k *rateLimiter) next() time.Time {
	if call := k.CallAt(); !call.IsZero() {
		return call
	}
	return k.idle()
}

// wait waits until something may have to be done. A deadline that has moved is checked
// then and not before, so that leases cost no timers.
func (k *rateLimiter) wait(ctx workflow.Context) error {
	timed, stop := workflow.WithCancel(ctx)
	defer stop()
	k.wakes = k.next()
	timer := workflow.NewTimerWithOptions(timed, max(k.wakes.Sub(workflow.Now(ctx)), 0), workflow.TimerOptions{Summary: "idle"})
	return workflow.Await(ctx, func() bool {
		return timer.IsReady() || k.next().Before(k.wakes) || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
	})
}

// maxLease bounds how many turns one lease may take.
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
