package hosting

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

// StateStores claims and moves the states that steps keep between runs, where they are stored: in the database of a
// sink or, by groups, in workflows.
type StateStores struct {
	Groups   *keeper.States
	attempts *attempt.Runner
	lent     tool.Resources // has the connections of places without a tool
}

// NewStateStores returns the stores that attempts of tools use; lent is what these tools get.
func NewStateStores(attempts *attempt.Runner, lent tool.Resources) *StateStores {
	return &StateStores{Groups: keeper.NewStates(), attempts: attempts, lent: lent}
}

// Apply is the activity that claims the state of a call, or moves states, unless a write of
// rows does that in its transaction. Calls that run inside an activity do it there. If the
// destination is unreachable, Temporal repeats the activity for an hour; the error about a
// state that the call no longer holds is final.
func (s *StateStores) Apply(ctx context.Context, in interpreter.StateInput) (interpreter.StateOutput, error) {
	return s.applyAfter(ctx, time.Since(activity.GetInfo(ctx).ScheduledTime), in)
}

// applyAfter is Apply so long after the activity was scheduled.
func (s *StateStores) applyAfter(ctx context.Context, waited time.Duration, in interpreter.StateInput) (interpreter.StateOutput, error) {
	if !attempt.IsHosted(ctx) {
		defer heartbeat.StartSending(ctx)()
		ctx = attempt.WithDelivery(ctx, attempt.NewDelivery(ctx, true))
	}
	out, err := s.applyInput(ctx, in)
	return out, StateError(ctx, waited, in.DescribeState(), err)
}

// applyInput claims, begins or moves states. If a group refuses, the other groups are moved
// nevertheless.
func (s *StateStores) applyInput(ctx context.Context, in interpreter.StateInput) (out interpreter.StateOutput, err error) {
	if in.Claim != nil {
		if out.Claimed, err = s.StoreOf(in.Place, in.Group).Claim(ctx, *in.Claim); err != nil {
			return out, err
		}
	}
	for _, begin := range in.Begins {
		if err := (placeStore{s.attempts, begin}).beginReading(ctx); err != nil {
			return out, err
		}
	}
	var refused error
	for _, moves := range in.Moves {
		err := s.StoreOf(in.Place, moves.Group).Move(ctx, moves.Writes)
		if refused = cmp.Or(refused, err); err != nil && !isStateMoved(err) {
			return out, err
		}
	}
	return out, refused
}

// StepStates finds where states are stored.
type StepStates interface {
	Claim(ctx context.Context, claim incremental.Claim) (incremental.ClaimedState, error)
	Move(ctx context.Context, writes []incremental.StateWrite) error
	// States returns the states whose names have a prefix, sorted by name, behind the one named after.
	States(ctx context.Context, prefix, after string) ([]incremental.State, error)
	History(ctx context.Context, name string) ([]incremental.StateChange, error)
	Set(ctx context.Context, change incremental.StateChange) error
	Remove(ctx context.Context, removal incremental.Removal) ([]string, error)
}

// StoreOf returns the store of a place, or of a group.
func (s *StateStores) StoreOf(place *interpreter.ToolInput, group string) StepStates {
	if place == nil {
		return s.Groups.GroupOf(group)
	}
	return placeStore{s.attempts, *place}
}

// placeStore is a destination that stores states beside its rows.
type placeStore struct {
	attempts *attempt.Runner
	in       interpreter.ToolInput
}

// Claim claims a state for a call.
func (p placeStore) Claim(ctx context.Context, claim incremental.Claim) (incremental.ClaimedState, error) {
	return callAtPlace(ctx, p, func(ctx context.Context, of tool.StateStore, place interpreter.ToolInput) (incremental.ClaimedState, error) {
		return of.ClaimState(ctx, place, claim)
	})
}

// Move applies writes to states.
func (p placeStore) Move(ctx context.Context, writes []incremental.StateWrite) error {
	_, err := callAtPlace(ctx, p, func(ctx context.Context, of tool.StateStore, place interpreter.ToolInput) (_ struct{}, moved error) {
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

// beginReading records in a sink's database that its call or loop begins to read.
func (p placeStore) beginReading(ctx context.Context) error {
	_, err := callAtPlace(ctx, p, func(ctx context.Context, of tool.StateStore, place interpreter.ToolInput) (interpreter.ToolResult, error) {
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

// callAtPlace lets the tool of the place do something in the way attempts are made: within the time
// limit, with the connection, and with secrets masked in errors.
func callAtPlace[R any](
	ctx context.Context, p placeStore, do func(context.Context, tool.StateStore, interpreter.ToolInput) (R, error),
) (done R, err error) {
	of, ok := p.attempts.Tools[p.in.Tool].(tool.StateStore)
	if !ok {
		return done, attempt.ApplicationError(&interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true,
			Message: fmt.Sprintf("this worker has no tool %q that keeps the state of a step", p.in.Tool),
		})
	}
	place := p.in
	place.RateLimit, place.ControlID = nil, "" // no attempt of the call
	return attempt.CallTool(ctx, p.attempts, place, func(ctx context.Context, in interpreter.ToolInput) (R, error) { return do(ctx, of, in) })
}

// StateError ends an activity that works on the named state. Temporal repeats it for an hour if the error may be
// temporary.
func StateError(ctx context.Context, waited time.Duration, what string, err error) error {
	var refused *temporal.ApplicationError
	isFailure, failure := errors.As(err, &refused), attempt.FailureOf(err)
	switch {
	case err == nil:
		return nil
	case attempt.IsRunCancelled(ctx):
		return ctx.Err()
	case failure != nil && failure.IsFinal():
		return err
	case isFailure && failure == nil && refused.Type() != string(interpreter.KindWorkerLost): // an update that is refused
		return keeper.RefusalError(err.Error())
	}
	if waited < recallPatience {
		cause := err.Error()
		if failure != nil {
			cause = failure.Message
		}
		return attempt.DelayedRedeliveryError(attempt.NextDelivery(waited), unreachableError(interpreter.KindWorkerLost, what, cause))
	}
	if failure != nil {
		return err
	}
	object := unreachableError(interpreter.KindTool, what, err.Error())
	return attempt.ApplicationError(&object)
}

// unreachableError returns the error of a state that cannot be claimed or moved now.
func unreachableError(kind interpreter.Kind, what, cause string) interpreter.ErrorObject {
	return interpreter.ErrorObject{Kind: kind, Class: interpreter.ClassRetryable, Message: what + " is out of reach: " + cause, Cause: cause}
}
