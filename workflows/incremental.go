package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/source"
)

// stateTimeout bounds one delivery of the activity for states.
const stateTimeout = time.Minute

// reachState has a state claimed, or states moved. place names the step. Where their keeper is out of reach, such as
// a file that another process has locked, shown shows the wait until they are, and with nil its end. people may end the wait:
// the state is tried again at once, or given up. The error is errRenews where the wait continues in the next history.
func reachState(
	ctx workflow.Context, input interpreter.StateInput, place string, people func() *openWait, shown func(wait *interpreter.Wait),
) (interpreter.StateOutput, error) {
	output, err := sendState(ctx, input, place, 1)
	if err == nil || ctx.Err() != nil {
		return output, err
	}
	failure := AttemptError(err)
	if failure.IsFinal() {
		return output, err
	}
	shown(&interpreter.Wait{Reason: interpreter.ReasonKeeper, Summary: failure.ShortMessage(), Cause: source.Cut(failure.Cause, mostText)})
	defer shown(nil)
	for {
		trying, end := workflow.WithCancel(ctx)
		wait := people()
		wait.end = end
		over := controlsOf(ctx).open(wait)
		output, err = sendState(trying, input, place, mostDeliveries)
		over()
		if err == nil || trying.Err() == nil {
			return output, err
		}
		settlement, err := wait.outcome(ctx, err)
		if err != nil {
			return output, err
		}
		if settlement != nil && settlement.Skip {
			return output, &interpreter.ErrorObject{
				Kind: interpreter.KindExplicit, Class: interpreter.ClassFinal, Message: fmt.Sprintf("%s (%s)", settlement.SkipText(), failure.ShortMessage()),
			}
		}
	}
}

// sendState has a state claimed, or states moved, in so many tries.
func sendState(ctx workflow.Context, input interpreter.StateInput, place string, tries int32) (interpreter.StateOutput, error) {
	summary := place + ": moves its state"
	switch {
	case input.Claim != nil:
		summary = place + ": claims the state " + input.Claim.Name
	case len(input.Begins) > 0:
		summary = place + ": begins to read for " + input.Begins[0].Place
	}
	to := toTool(interpreter.StateActivity, stateTimeout, summary)
	to.tries = tries
	return send[interpreter.StateOutput](ctx, to, input, "the state of "+place)
}

// PendingState are moves that wait for the run to end as completed: those of a step that writes
// nothing. Kept in workflow history.
type PendingState struct {
	Step  string              `json:"step"`
	Moves []incremental.Moves `json:"moves"`
}

// keepMoves keeps the moves of a step that writes nothing. Another visit of it has claimed anew the
// states that it moves.
func (r *run) keepMoves(step string, meta *interpreter.CallIncremental) {
	if meta == nil || len(meta.Pending) == 0 {
		return
	}
	at := slices.IndexFunc(r.Pending, func(pending PendingState) bool { return pending.Step == step })
	if at < 0 {
		at, r.Pending = len(r.Pending), append(r.Pending, PendingState{Step: step})
	}
	r.Pending[at].Moves = incremental.Join(incremental.Without(r.Pending[at].Moves, meta.Pending), meta.Pending)
}

// movePending moves what waited for the end of the run, and reports whether the run is completed. What cannot be moved is
// read again. A run that is cancelled, or reaches its timeout, before a state has moved is not completed: a move of which
// it does not know is undone. Once one has moved it is: no other run reads those rows again.
func (r *run) movePending(ctx workflow.Context) (completed bool) {
	moving, stop := workflow.WithCancel(ctx)
	r.cancel = stop
	moved := false
	for _, pending := range r.Pending {
		var failed error
		for _, moves := range incremental.Chunks(pending.Moves) {
			_, err := reachState(moving, interpreter.StateInput{Moves: moves}, pending.Step,
				func() *openWait { return &openWait{step: pending.Step} }, r.movesWait(ctx))
			switch {
			case err == nil:
				moved = true
			case moving.Err() != nil && !moved:
				undoMoves(ctx, moves)
				return false
			case failed == nil:
				failed = err
			}
		}
		r.moveEnded(ctx, pending, failed)
	}
	r.Pending = nil
	return moved || moving.Err() == nil
}

// moveEnded records that the states of a step have moved, or why some have not.
func (r *run) moveEnded(ctx workflow.Context, pending PendingState, failed error) {
	if failed != nil {
		r.Warnings = append(r.Warnings, fmt.Sprintf("step %s: its state was not moved, and the next run reads the same rows again: %s",
			pending.Step, AttemptError(failed).ShortMessage()))
		return
	}
	if step := r.book.Step(pending.Step); step != nil && step.Incremental != nil {
		r.markWatermark(ctx, step.Name, step.Incremental.Type, incremental.Lowest(pending.Moves))
	}
}

// undoMoves has the keepers of states undo moves that they may have made, or may be about to make: a signal arrives
// also where an update does not.
func undoMoves(ctx workflow.Context, all []incremental.Moves) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	for _, moves := range all {
		if err := signal(ctx, incremental.WorkflowID(moves.Group), incremental.UndoSignal, moves.Writes).Get(ctx, nil); err != nil {
			logger(ctx).Warn("the states of a run that is cancelled may have moved", "group", moves.Group, "error", err)
		}
	}
}

// movesWait shows in the status of the run that it waits at its end, and for what.
func (r *run) movesWait(ctx workflow.Context) func(wait *interpreter.Wait) {
	return func(wait *interpreter.Wait) {
		r.moving = wait
		r.describe(ctx)
	}
}

// movingText says for what the run waits at its end.
func (r *run) movingText() string {
	if r.moving == nil {
		return ""
	}
	return fmt.Sprintf("**waits: %s**\n\n", source.Code(r.moving.Summary, mostText))
}
