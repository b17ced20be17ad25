package run

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/workflows/control"
	"reprise/workflows/drive"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// moves is the part of a run that moves states at its end, for steps that write nothing.
type moves struct {
	*frame
	protocol.RunMoves
	// wait is the current wait of the moves, nil for none.
	wait *interpreter.Wait
	// describe updates the displayed status of the run.
	describe func(workflow.Context)
}

// saveMoves stores the moves of a step that writes nothing. They replace those of an earlier visit, because the
// later visit has claimed the states again.
func (m *moves) saveMoves(step string, meta *interpreter.CallIncremental) {
	if meta == nil || len(meta.Pending) == 0 {
		return
	}
	at := slices.IndexFunc(m.Pending, func(pending protocol.PendingState) bool { return pending.Step == step })
	if at < 0 {
		at, m.Pending = len(m.Pending), append(m.Pending, protocol.PendingState{Step: step})
	}
	m.Pending[at].Moves = incremental.JoinMoves(incremental.WithoutLater(m.Pending[at].Moves, meta.Pending), meta.Pending)
}

// settleMoves makes the stored moves at the end of the run, and reports whether the run is completed. If a move
// fails, the next run reads the rows again. A run that is cancelled, or reaches its timeout, before a state has
// moved is not completed, and moves with an unknown outcome are undone. Once one state has moved, the run is
// completed: no other run reads these rows again.
func (m *moves) settleMoves(ctx workflow.Context) (completed bool) {
	moving, stop := workflow.WithCancel(ctx)
	m.cancel = stop
	moved := false
	for _, pending := range m.Pending {
		var failed error
		for _, chunk := range incremental.MoveChunks(pending.Moves) {
			_, err := drive.ReachState(moving, interpreter.StateInput{Moves: chunk}, pending.Step,
				func() *control.OpenWait { return &control.OpenWait{Step: pending.Step} }, m.recordWait(ctx))
			switch {
			case err == nil:
				moved = true
			case moving.Err() != nil && !moved:
				undoMoves(ctx, chunk)
				return false
			case failed == nil:
				failed = err
			}
		}
		m.recordMoved(ctx, pending, failed)
	}
	m.Pending = nil
	return moved || moving.Err() == nil
}

// recordMoved records that the states of a step have moved, or warns that they have not.
func (m *moves) recordMoved(ctx workflow.Context, pending protocol.PendingState, failed error) {
	if failed != nil {
		m.Warnings = append(m.Warnings, fmt.Sprintf("step %s: its state was not moved, so the next run reads the same rows again: %s",
			pending.Step, protocol.AttemptError(failed).ShortMessage()))
		return
	}
	if step := m.book.Step(pending.Step); step != nil && step.Incremental != nil {
		m.markWatermark(ctx, step.Name, step.Incremental.Type, incremental.LowestWatermark(pending.Moves))
	}
}

// undoMoves lets the keepers of states undo moves that they may have made, or may be about to make. It uses
// signals, which also arrive where an update does not.
func undoMoves(ctx workflow.Context, all []incremental.Moves) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	for _, moves := range all {
		if err := gate.SignalWorkflow(ctx, incremental.WorkflowID(moves.Group), incremental.UndoSignal, moves.Writes).Get(ctx, nil); err != nil {
			gate.Logger(ctx).Warn("cannot undo the moves of states of a cancelled run", "group", moves.Group, "error", err)
		}
	}
}

// recordWait returns a function that shows the current wait in the status of the run.
func (m *moves) recordWait(ctx workflow.Context) func(wait *interpreter.Wait) {
	return func(wait *interpreter.Wait) {
		m.wait = wait
		m.describe(ctx)
	}
}
