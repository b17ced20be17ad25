package incremental

import (
	"net/url"

	"reprise/interpreter/expression"
)

// Names of the workflow that keeps the states of a group where no table does, and of its updates,
// signal and queries. They are part of histories, so they never change.
const (
	WorkflowName = "StateWorkflow"
	// ClaimUpdate accepts a Claim and gives a Claimed, MoveUpdate accepts a list of Write and
	// gives a Moved, SetUpdate accepts a Change.
	ClaimUpdate = "claim"
	MoveUpdate  = "move"
	SetUpdate   = "set"
	// UndoSignal has a list of Write, which are undone whether or not a MoveUpdate has brought them.
	UndoSignal = "undo"
	// StatesQuery gives for a Range a list of State, HistoryQuery for a name a list of Change,
	// SnapshotQuery what the next workflow of the group begins with.
	StatesQuery   = "states"
	HistoryQuery  = "history"
	SnapshotQuery = "snapshot"
)

// WorkflowID is the ID of the workflow that keeps the states of a group. Different groups have
// different ones, whatever their names hold.
func WorkflowID(group string) string {
	return expression.BoundedID(WorkflowIDPrefix(group))
}

// WorkflowIDPrefix begins the IDs of groups whose names begin with a prefix, unless they are so long
// that a digest is in their place.
func WorkflowIDPrefix(prefix string) string { return "reprise-state/" + url.PathEscape(prefix) }

// NameRange is a part of the states of a group, in the order of their names.
type NameRange struct {
	Prefix string `json:"prefix,omitempty"`
	After  string `json:"after,omitempty"` // the last name of the part before
	Most   int    `json:"most,omitempty"`  // 0 is RangeSize, which is as many as there may be
}

// MoveResult is the outcome of a MoveUpdate; kept in workflow history.
type MoveResult struct {
	// Refused is why each was refused, by its position; without any where all were applied.
	Refused []*Refusal `json:"refused,omitempty"`
}
