package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/activities/tool"
	"reprise/internal/base/connect"
	"reprise/internal/base/heartbeat"
	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/partition"
	"reprise/interpreter/queue"
)

// statesOfOne is how many updates of one group of states the activities of a worker send at a
// time: see admissionsOfOne.
const statesOfOne = 2

// State is the activity that claims the state of a call, or moves states, where no write of
// rows does. A call that an activity hosts has it done in that activity. The error of a
// destination that is away is one that Temporal makes again, for an hour; one of a state that
// the call holds no longer is final.
func (c *Catalogue) State(ctx context.Context, in interpreter.StateInput) (interpreter.StateOutput, error) {
	return c.stateAfter(ctx, time.Since(activity.GetInfo(ctx).ScheduledTime), in)
}

// stateAfter is State so long after the activity was scheduled.
func (c *Catalogue) stateAfter(ctx context.Context, waited time.Duration, in interpreter.StateInput) (interpreter.StateOutput, error) {
	if !isHosted(ctx) {
		defer heartbeat.Keep(ctx)()
		ctx = hosted(ctx, newDelivery(ctx, true))
	}
	out, err := c.doState(ctx, in)
	return out, stateError(ctx, waited, in.Describe(), err)
}

// doState claims, begins or moves. A group whose moves are refused keeps no other one back.
func (c *Catalogue) doState(ctx context.Context, in interpreter.StateInput) (out interpreter.StateOutput, err error) {
	if in.Claim != nil {
		if out.Claimed, err = c.keeperOf(in.Place, in.Group).claim(ctx, *in.Claim); err != nil {
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
		err := c.keeperOf(in.Place, moves.Group).move(ctx, moves.Writes)
		if refused = cmp.Or(refused, err); err != nil && !isStateMoved(err) {
			return out, err
		}
	}
	return out, refused
}

// stateStore is where states are kept.
type stateStore interface {
	claim(ctx context.Context, claim incremental.Claim) (incremental.Claimed, error)
	move(ctx context.Context, writes []incremental.StateWrite) error
	states(ctx context.Context, prefix string) ([]incremental.State, error)
	history(ctx context.Context, name string) ([]incremental.StateChange, error)
	set(ctx context.Context, change incremental.StateChange) error
}

// keeperOf is the keeper of a place, or of a group.
func (c *Catalogue) keeperOf(place *interpreter.ToolInput, group string) stateStore {
	if place == nil {
		return groupKeeper{c, group}
	}
	return placeKeeper{c, *place}
}

// placeKeeper is a destination that keeps states beside its rows.
type placeKeeper struct {
	catalogue *Catalogue
	in        interpreter.ToolInput
}

func (k placeKeeper) claim(ctx context.Context, claim incremental.Claim) (incremental.Claimed, error) {
	return atPlace(ctx, k, func(ctx context.Context, keeper tool.StateKeeper, place interpreter.ToolInput) (incremental.Claimed, error) {
		return keeper.ClaimState(ctx, place, claim)
	})
}

func (k placeKeeper) move(ctx context.Context, writes []incremental.StateWrite) error {
	_, err := atPlace(ctx, k, func(ctx context.Context, keeper tool.StateKeeper, place interpreter.ToolInput) (_ struct{}, moved error) {
		for _, write := range writes { // one that is refused keeps no other one back
			err := keeper.MoveState(ctx, place, write)
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
	_, err := atPlace(ctx, k, func(ctx context.Context, keeper tool.StateKeeper, place interpreter.ToolInput) (interpreter.ToolResult, error) {
		return keeper.Write(ctx, place)
	})
	return err
}

func isStateMoved(err error) bool {
	if failure, ok := errors.AsType[*tool.Error](err); ok {
		return failure.Kind == interpreter.KindIncremental
	}
	object := failureOf(err)
	return object != nil && object.Kind == interpreter.KindIncremental
}

// atPlace has the tool of the place do something, as it makes an attempt: within its time, with
// its connection, and without its secrets in errors.
func atPlace[R any](
	ctx context.Context, k placeKeeper, do func(context.Context, tool.StateKeeper, interpreter.ToolInput) (R, error),
) (done R, err error) {
	keeper, ok := k.catalogue.tools[k.in.Tool].(tool.StateKeeper)
	if !ok {
		return done, applicationError(&interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true,
			Message: fmt.Sprintf("this worker has no tool %q that keeps the state of a step", k.in.Tool),
		})
	}
	place := k.in
	place.RateLimit, place.ControlID = nil, "" // no attempt of the call
	const beginsItself = true                  // and never does: whatever is done may be done again
	attempt := k.catalogue.wrap(func(ctx context.Context, in interpreter.ToolInput) (_ interpreter.ToolResult, err error) {
		done, err = do(ctx, keeper, in)
		return interpreter.ToolResult{}, err
	}, beginsItself)
	_, _, err = attempt(ctx, place)
	return done, err
}

// groupKeeper is the workflow that keeps the states of a group.
type groupKeeper struct {
	catalogue *Catalogue
	group     string
}

func (k groupKeeper) claim(ctx context.Context, claim incremental.Claim) (claimed incremental.Claimed, err error) {
	err = k.update(ctx, incremental.ClaimUpdate, claim, &claimed)
	return claimed, err
}

func (k groupKeeper) move(ctx context.Context, writes []incremental.StateWrite) error {
	var moved incremental.Moved
	if err := k.update(ctx, incremental.MoveUpdate, writes, &moved); err != nil {
		return err
	}
	for _, refused := range moved.Refused {
		if refused != nil {
			return applicationError(&interpreter.ErrorObject{
				Kind: interpreter.KindIncremental, Class: interpreter.ClassFinal, Type: refused.Type, Final: true, Message: refused.Message,
			})
		}
	}
	return nil
}

// update sends an update to the workflow of the group.
func (k groupKeeper) update(ctx context.Context, name string, arg, result any) error {
	of := lastingWorkflow{
		name: incremental.WorkflowName, id: incremental.WorkflowID(k.group), query: incremental.SnapshotQuery,
		summary: "keeps between runs the states of " + k.group,
	}
	if err := k.catalogue.updateStates(ctx, of, name, arg, result); err != nil {
		return fmt.Errorf("%s the state in %s: %w", name, of.id, err)
	}
	return nil
}

// updateStates sends an update, some at a time, to a workflow that keeps something for runs to come.
// It may be sent again: whatever was done is not done twice.
func (c *Catalogue) updateStates(ctx context.Context, of lastingWorkflow, name string, arg, result any) error {
	leave, err := c.states.Enter(ctx, of.id)
	if err != nil {
		return err
	}
	defer leave()
	return updateLasting[[]byte](ctx, of, client.UpdateWorkflowOptions{UpdateName: name, Args: []any{arg}}, result)
}

// lastingWorkflow is a workflow that keeps something for others, and begins where one of them sends it
// an update.
type lastingWorkflow struct {
	name, id, summary string
	query             string // gives what the next one begins with
	priority          int
}

// updateLasting sends an update to a workflow that keeps a K, which begins with it where there is none, and
// with what the last one knew: it may have been ended from outside. The error of one that cannot be
// queried stays: without its answer everything would begin anew.
func updateLasting[K any](ctx context.Context, w lastingWorkflow, update client.UpdateWorkflowOptions, result any) error {
	c := activity.GetClient(ctx)
	update.WorkflowID = w.id
	err := connect.Update(ctx, c, update, result)
	if !connect.NotFound(err) {
		return err
	}
	var last K
	answer, err := c.QueryWorkflow(ctx, w.id, "", w.query)
	if err == nil {
		err = answer.Get(&last)
	}
	if err != nil && !connect.NotFound(err) {
		return fmt.Errorf("the workflow %s was ended from outside, and what it knew cannot be asked: %w", w.id, err)
	}
	return connect.UpdateWithStart(ctx, c, update, result, client.StartWorkflowOptions{
		TaskQueue: activity.GetInfo(ctx).TaskQueue, Priority: temporal.Priority{PriorityKey: w.priority},
		StaticSummary: tool.CutText(w.summary, maxLimitSummary),
	}, w.name, last)
}

// stateError is the end of the activity, which is about something: what may be over soon is left to Temporal to be done
// again, for an hour.
func stateError(ctx context.Context, waited time.Duration, what string, err error) error {
	var refused *temporal.ApplicationError
	isFailure, failure := errors.As(err, &refused), failureOf(err)
	switch {
	case err == nil:
		return nil
	case cancelled(ctx):
		return ctx.Err()
	case failure != nil && failure.IsFinal():
		return err
	case isFailure && failure == nil && refused.Type() != string(interpreter.KindWorkerLost): // an update that is refused
		return refusedChange(err.Error())
	}
	if waited < recallPatience {
		cause := err.Error()
		if failure != nil {
			cause = failure.Message
		}
		return deliverAgainAfter(nextDelivery(waited), outOfReach(interpreter.KindWorkerLost, what, cause))
	}
	if failure != nil {
		return err
	}
	object := outOfReach(interpreter.KindTool, what, err.Error())
	return applicationError(&object)
}

// outOfReach is the error of a state that cannot be claimed or moved now.
func outOfReach(kind interpreter.Kind, what, cause string) interpreter.ErrorObject {
	return interpreter.ErrorObject{Kind: kind, Class: interpreter.ClassRetryable, Message: what + " is out of reach: " + cause, Cause: cause}
}

// NotePartition is the activity that has the workflow of a playbook's partitions know what became of
// one. Where that is away Temporal makes it again, for an hour.
func (c *Catalogue) NotePartition(ctx context.Context, note partition.Note) error {
	defer heartbeat.Keep(ctx)()
	waited, ledger := time.Since(activity.GetInfo(ctx).ScheduledTime), partitionsOf(note.Playbook)
	err := c.updateStates(ctx, ledger, partition.NoteUpdate, note, nil)
	if err != nil {
		err = fmt.Errorf("note it in %s: %w", ledger.id, err)
	}
	return stateError(ctx, waited, "what is done of the partitions", err)
}

// partitionsOf is the workflow that keeps what is done of a playbook's partitions.
func partitionsOf(playbook string) lastingWorkflow {
	return lastingWorkflow{
		name: partition.WorkflowName, id: partition.WorkflowID(playbook), query: partition.SnapshotQuery,
		summary: "keeps what is done of the partitions of " + playbook,
	}
}

// ClaimPartitions is the activity that claims the partitions of a backfill or releases them, and
// gives the conflict for which it cannot. A claim whose run has ended is none.
func (c *Catalogue) ClaimPartitions(ctx context.Context, request partition.ClaimRequest) (*partition.Conflict, error) {
	defer heartbeat.Keep(ctx)()
	waited := time.Since(activity.GetInfo(ctx).ScheduledTime)
	conflict, err := c.claimPartitions(ctx, request)
	return conflict, stateError(ctx, waited, "what is done of the partitions", err)
}

func (c *Catalogue) claimPartitions(ctx context.Context, request partition.ClaimRequest) (*partition.Conflict, error) {
	ledger := partitionsOf(request.Playbook)
	for {
		var others []partition.BackfillClaim
		if err := c.updateStates(ctx, ledger, partition.ClaimUpdate, request, &others); err != nil {
			return nil, fmt.Errorf("claim them in %s: %w", ledger.id, err)
		}
		if len(others) == 0 {
			return nil, nil
		}
		request.Ended = nil
		for _, other := range others {
			open, err := isRunning(ctx, queue.Member{WorkflowID: other.Run, RunID: other.First})
			switch {
			case err != nil:
				return nil, err
			case open:
				overlap := cmp.Or(other.Overlap(request.BackfillClaim).Words(), fmt.Sprintf("no more than %d backfills may be open", len(others)))
				return &partition.Conflict{Run: other.Run, Overlap: overlap}, nil
			}
			request.Ended = append(request.Ended, other.Holder)
		}
	}
}
