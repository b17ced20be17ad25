package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// limiterIdle is how long a limiter that nobody asks stays.
const limiterIdle = time.Minute

// RateLimitWorkflow shares one rate limit between all workers of a task queue.
// Workers lease turns from it, many at a time; it decides nothing but when the
// next turn is. It ends when nobody has asked for a while and the turns that it
// gave are over; the next lease starts it again.
func RateLimitWorkflow(ctx workflow.Context, limiter interpreter.Limiter) error {
	ctx = withOutbox(ctx, interpreter.RunLimits{})
	leases := 0
	err := workflow.SetUpdateHandlerWithOptions(ctx, interpreter.LeaseUpdate,
		func(ctx workflow.Context, request interpreter.LeaseRequest) (interpreter.Lease, error) {
			leases++
			return limiter.Lease(request, workflow.Now(ctx)), nil
		},
		workflow.UpdateHandlerOptions{Validator: validLease})
	if err != nil {
		return fmt.Errorf("set update handler: %w", err)
	}
	for seen := -1; seen != leases || limiter.Next.After(workflow.Now(ctx)); {
		seen = leases
		over := max(limiterIdle, limiter.Next.Sub(workflow.Now(ctx)))
		idle := workflow.NewTimerWithOptions(ctx, over, workflow.TimerOptions{Summary: "idle"})
		if err := workflow.Await(ctx, func() bool {
			return idle.IsReady() || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
		}); err != nil {
			return err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return continueLimiter(ctx, limiter)
		}
	}
	return workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

func continueLimiter(ctx workflow.Context, limiter interpreter.Limiter) error {
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	failure, next := goOn(ctx, interpreter.RateLimitWorkflow, limiter, "the rate limit")
	if failure != nil {
		return failure
	}
	return next
}

// maxLease bounds how many turns one lease may take.
const maxLease = 10_000

func validLease(request interpreter.LeaseRequest) error {
	switch {
	case request.Count < 1 || request.Count > maxLease:
		return fmt.Errorf("a lease takes 1 to %d turns, not %d", maxLease, request.Count)
	case request.Due < 0 || request.Fresh < 0 || request.Due+request.Fresh > request.Count:
		return fmt.Errorf("of %d who ask for a turn %d cannot be due and %d fresh", request.Count, request.Due, request.Fresh)
	case request.Limit.Requests < 1 || request.Limit.PerSeconds <= 0:
		return errors.New("a rate limit needs requests and a time of more than 0")
	}
	return nil
}
