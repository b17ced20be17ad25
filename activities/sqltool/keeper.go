package sqltool

import (
	"context"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
)

// StateTool implements the methods that all database tools share: tool.StateStore by means of
// states. Tools embed it.
type StateTool struct {
	// Change runs do in a transaction. It creates missing tables of states; without create it skips do
	// then.
	Change func(ctx context.Context, in interpreter.ToolInput, create bool, do func(StateTx) error) error
	// Read runs do in a read-only transaction. It does nothing if the tables do not exist.
	Read func(ctx context.Context, in interpreter.ToolInput, do func(StateTx) error) error
}

// BeginsItself marks a tool that waits before it acts.
func (StateTool) BeginsItself() {}

// RecordsWrite reports whether a write is noted: one to a table is, and one with a statement is not.
func (StateTool) RecordsWrite(in interpreter.ToolInput) bool {
	_, statement := in.Fields["statement"]
	_, table := in.Fields["table"]
	return table && !statement
}

// ClaimState claims the state for the call.
func (k StateTool) ClaimState(ctx context.Context, in interpreter.ToolInput, claim incremental.Claim) (claimed incremental.ClaimedState, err error) {
	target, err := ParseTarget(in)
	if err != nil {
		return claimed, err
	}
	tables := []*TableWrite{target}
	target.nests = expression.Text(in.Fields["nested"].Data) == nestedTables
	if in.Fields["children"].Data != nil {
		if tables, err = withTables(target, in); err != nil {
			return claimed, err
		}
	}
	err = k.Change(ctx, in, true, func(tx StateTx) (err error) {
		claimed, err = claimState(ctx, tx, claim, tables)
		return err
	})
	return claimed, err
}

// MoveState moves the state without a write of rows.
func (k StateTool) MoveState(ctx context.Context, in interpreter.ToolInput, write incremental.StateWrite) error {
	return k.Change(ctx, in, true, func(tx StateTx) error { return MoveState(ctx, tx, &TableWrite{stateRows: stateRows{State: &write}}) })
}

// States returns the states whose names have the prefix.
func (k StateTool) States(ctx context.Context, in interpreter.ToolInput, prefix string) (states []incremental.State, err error) {
	err = k.Read(ctx, in, func(tx StateTx) (err error) {
		states, err = findStates(ctx, tx, prefix)
		return err
	})
	return states, err
}

// SetState changes a state for a person.
func (k StateTool) SetState(ctx context.Context, in interpreter.ToolInput, change incremental.StateChange) error {
	return k.Change(ctx, in, !change.To.IsZero(), func(tx StateTx) error { return setState(ctx, tx, change) })
}

// RemoveStates forgets states that are unchanged since they were listed.
func (k StateTool) RemoveStates(ctx context.Context, in interpreter.ToolInput, removal incremental.Removal) (removed []string, err error) {
	err = k.Change(ctx, in, false, func(tx StateTx) (err error) {
		removed, err = removeStates(ctx, tx, removal)
		return err
	})
	return removed, err
}

// StateHistory returns the changes of a state.
func (k StateTool) StateHistory(ctx context.Context, in interpreter.ToolInput, name string) (changes []incremental.StateChange, err error) {
	err = k.Read(ctx, in, func(tx StateTx) (err error) {
		changes, err = stateHistory(ctx, tx, name)
		return err
	})
	return changes, err
}
