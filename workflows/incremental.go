package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
)

// stateTimeout bounds one delivery of the activity for states.
const stateTimeout = time.Minute

// sendState has a state claimed, or states moved, in so many tries. place names the step.
func sendState(ctx workflow.Context, input interpreter.StateInput, place string, tries int32) (interpreter.StateOutput, error) {
	summary := place + ": moves its state"
	if input.Claim != nil {
		summary = place + ": claims the state " + input.Claim.Name
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

// movePending moves what waited for the end of the run. What cannot be moved is read again.
func (r *run) movePending(ctx workflow.Context) {
	for _, pending := range r.Pending {
		var failed error
		for _, moves := range incremental.Chunks(pending.Moves) {
			if _, err := sendState(ctx, interpreter.StateInput{Moves: moves}, pending.Step, mostDeliveries); err != nil && failed == nil {
				failed = err
			}
		}
		if failed != nil {
			r.Warnings = append(r.Warnings, fmt.Sprintf("step %s: its state was not moved, and the next run reads the same rows again: %s",
				pending.Step, AttemptError(failed).ShortMessage()))
			continue
		}
		if step := r.book.Step(pending.Step); step != nil && step.Incremental != nil {
			r.markWatermark(ctx, step.Name, step.Incremental.Type, incremental.Lowest(pending.Moves))
		}
	}
	r.Pending = nil
}
