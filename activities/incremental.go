package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"reprise/activities/attempt"
	"reprise/activities/keeper"
	"reprise/activities/tool"
	"reprise/internal/base/heartbeat"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
)

// State is the activity that claims the state of a call, or moves states, where no write of
// rows does. A call that an activity hosts has it done in that activity. The error of a
// destination that is away is one that Temporal makes again, for an hour; one of a state that
// the call holds no longer is final.
func (c *Catalogue) State(ctx context.Context, in interpreter.StateInput) (interpreter.StateOutput, error) {
	return c.stateAfter(ctx, time.Since(activity.GetInfo(ctx).ScheduledTime), in)
}

// stateAfter is State so long after the activity was scheduled.
func (c *Catalogue) stateAfter(ctx context.Context, waited time.Duration, in interpreter.StateInput) (interpreter.StateOutput, error) {
	if !attempt.IsHosted(ctx) {
		defer heartbeat.Keep(ctx)()
		ctx = attempt.WithDelivery(ctx, attempt.NewDelivery(ctx, true))
	}
	out, err := c.doState(ctx, in)
	return out, stateError(ctx, waited, in.Describe(), err)
}

// doState claims, begins or moves. A group whose moves are refused keeps no other one back.
func (c *Catalogue) doState(ctx context.Context, in interpreter.StateInput) (out interpreter.StateOutput, err error) {
	if in.Claim != nil {
		if out.Claimed, err = c.storeOf(in.Place, in.Group).Claim(ctx, *in.Claim); err != nil {
			return out, err
		}
	}
	for _, begin := range in.Begins {
		if err := (placeKeeper{c, begin}).begin(ctx); err != nil {
			return out, err
		}
	}
	var refused error
	for _, moves := range in.Moves {
		err := c.storeOf(in.Place, moves.Group).Move(ctx, moves.Writes)
		if refused = cmp.Or(refused, err); err != nil && !isStateMoved(err) {
			return out, err
		}
	}
	return out, refused
}

// stateStore is where states are kept.
type stateStore interface {
	Claim(ctx context.Context, claim incremental.Claim) (incremental.ClaimedState, error)
	Move(ctx context.Context, writes []incremental.StateWrite) error
	States(ctx context.Context, prefix string) ([]incremental.State, error)
	History(ctx context.Context, name string) ([]incremental.StateChange, error)
	Set(ctx context.Context, change incremental.StateChange) error
}

// storeOf is the store of a place, or of a group.
func (c *Catalogue) storeOf(place *interpreter.ToolInput, group string) stateStore {
	if place == nil {
		return c.states.Group(group)
	}
	return placeKeeper{c, *place}
}

// placeKeeper is a destination that keeps states beside its rows.
type placeKeeper struct {
	catalogue *Catalogue
	in        interpreter.ToolInput
}

// Claim has a call hold a state.
func (k placeKeeper) Claim(ctx context.Context, claim incremental.Claim) (incremental.ClaimedState, error) {
	return atPlace(ctx, k, func(ctx context.Context, of tool.StateKeeper, place interpreter.ToolInput) (incremental.ClaimedState, error) {
		return of.ClaimState(ctx, place, claim)
	})
}

// Move applies writes to states.
func (k placeKeeper) Move(ctx context.Context, writes []incremental.StateWrite) error {
	_, err := atPlace(ctx, k, func(ctx context.Context, of tool.StateKeeper, place interpreter.ToolInput) (_ struct{}, moved error) {
		for _, write := range writes { // one that is refused keeps no other one back
			err := of.MoveState(ctx, place, write)
			if moved = cmp.Or(moved, err); err != nil && !isStateMoved(err) {
				return struct{}{}, err
			}
		}
		return struct{}{}, moved
	})
	return err
}

// begin has the table of a sink know that its call or loop begins to read.
func (k placeKeeper) begin(ctx context.Context) error {
	_, err := atPlace(ctx, k, func(ctx context.Context, of tool.StateKeeper, place interpreter.ToolInput) (interpreter.ToolResult, error) {
		return of.Write(ctx, place)
	})
	return err
}

func isStateMoved(err error) bool {
	if failure, ok := errors.AsType[*tool.Error](err); ok {
		return failure.Kind == interpreter.KindIncremental
	}
	object := attempt.FailureOf(err)
	return object != nil && object.Kind == interpreter.KindIncremental
}

// atPlace has the tool of the place do something, as it makes an attempt: within its time, with
// its connection, and without its secrets in errors.
func atPlace[R any](
	ctx context.Context, k placeKeeper, do func(context.Context, tool.StateKeeper, interpreter.ToolInput) (R, error),
) (done R, err error) {
	of, ok := k.catalogue.tools[k.in.Tool].(tool.StateKeeper)
	if !ok {
		return done, attempt.ApplicationError(&interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true,
			Message: fmt.Sprintf("this worker has no tool %q that keeps the state of a step", k.in.Tool),
		})
	}
	place := k.in
	place.RateLimit, place.ControlID = nil, "" // no attempt of the call
	return attempt.CallTool(ctx, k.catalogue.Attempts, place, func(ctx context.Context, in interpreter.ToolInput) (R, error) { return do(ctx, of, in) })
}

// stateError is the end of the activity, which is about something: what may be over soon is left to Temporal to be done
// again, for an hour.
func stateError(ctx context.Context, waited time.Duration, what string, err error) error {
	var refused *temporal.ApplicationError
	isFailure, failure := errors.As(err, &refused), attempt.FailureOf(err)
	switch {
	case err == nil:
		return nil
	case attempt.Cancelled(ctx):
		return ctx.Err()
	case failure != nil && failure.IsFinal():
		return err
	case isFailure && failure == nil && refused.Type() != string(interpreter.KindWorkerLost): // an update that is refused
		return keeper.Refuse(err.Error())
	}
	if waited < recallPatience {
		cause := err.Error()
		if failure != nil {
			cause = failure.Message
		}
		return attempt.DeliverAgainAfter(attempt.NextDelivery(waited), outOfReach(interpreter.KindWorkerLost, what, cause))
	}
	if failure != nil {
		return err
	}
	object := outOfReach(interpreter.KindTool, what, err.Error())
	return attempt.ApplicationError(&object)
}

// outOfReach is the error of a state that cannot be claimed or moved now.
func outOfReach(kind interpreter.Kind, what, cause string) interpreter.ErrorObject {
	return interpreter.ErrorObject{Kind: kind, Class: interpreter.ClassRetryable, Message: what + " is out of reach: " + cause, Cause: cause}
}
