package workflows

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
)

// stateTimeout bounds one delivery of the activity for states.
const stateTimeout = time.Minute

// sendState has a state claimed, or states moved. place names the step.
func sendState(ctx workflow.Context, input interpreter.StateInput, place string) (interpreter.StateOutput, error) {
	summary := place + ": moves its state"
	if input.Claim != nil {
		summary = place + ": claims the state " + input.Claim.Name
	}
	return send[interpreter.StateOutput](ctx, toTool(interpreter.StateActivity, stateTimeout, summary), input, "the state of "+place)
}

// PendingState are the moves of a group that wait for the run to end as completed: those of
// steps that write nothing. Kept in workflow history.
type PendingState struct {
	Step  string              `json:"step"`
	Group string              `json:"group"`
	Moves []incremental.Write `json:"moves"`
}

// keepMove keeps the move of a step that writes nothing.
func (r *run) keepMove(step string, meta *interpreter.CallIncremental) {
	if meta == nil || meta.Pending == nil {
		return
	}
	at := slices.IndexFunc(r.Pending, func(pending PendingState) bool { return pending.Step == step && pending.Group == meta.Group })
	if at < 0 {
		r.Pending = append(r.Pending, PendingState{Step: step, Group: meta.Group})
		at = len(r.Pending) - 1
	}
	r.Pending[at].Moves = append(r.Pending[at].Moves, *meta.Pending)
}

// movePending moves what waited for the end of the run. What cannot be moved is read again.
func (r *run) movePending(ctx workflow.Context) {
	for _, pending := range r.Pending {
		if _, err := sendState(ctx, interpreter.StateInput{Group: pending.Group, Moves: pending.Moves}, pending.Step); err != nil {
			r.Warnings = append(r.Warnings, fmt.Sprintf("step %s: its state was not moved, and the next run reads the same rows again: %s",
				pending.Step, AttemptError(err).ShortMessage()))
			continue
		}
		if step := r.book.Step(pending.Step); step != nil && step.Incremental != nil {
			r.markWatermark(ctx, step.Name, step.Incremental.Type, oldest(pending.Moves))
		}
	}
	r.Pending = nil
}

// oldest is the lowest watermark of those to which moves in their order bring states.
func oldest(moves []incremental.Write) (lowest incremental.Cursor) {
	for i, write := range moves {
		movesAgain := slices.ContainsFunc(moves[i+1:], func(later incremental.Write) bool { return later.Name == write.Name })
		if write.Move == nil || movesAgain {
			continue
		}
		if to := write.Move.To; lowest.IsZero() || bytes.Compare(to.Position, lowest.Position) < 0 {
			lowest = to
		}
	}
	return lowest
}
