package incremental

import (
	"net/url"

	"reprise/interpreter/expression"
)

// Names of the workflow that keeps the states of a group if no table does, and of its updates, signal and queries.
// They are part of histories, so they never change.
const (
	WorkflowName = "StateWorkflow"
	// ClaimUpdate takes a Claim and returns a ClaimedState. MoveUpdate takes a list of StateWrite and returns a
	// MoveResult. SetUpdate takes a StateChange. RemoveUpdate takes a Removal and returns the names of the states that
	// were removed.
	ClaimUpdate  = "claim"
	MoveUpdate   = "move"
	SetUpdate    = "set"
	RemoveUpdate = "remove"
	// UndoSignal takes a list of StateWrite, which are undone whether or not a MoveUpdate has applied them.
	UndoSignal = "undo"
	// StatesQuery takes a NameRange and returns a list of State. HistoryQuery takes a name and returns a list of
	// StateChange. SnapshotQuery returns the state with which the next workflow of the group begins.
	StatesQuery   = "states"
	HistoryQuery  = "history"
	SnapshotQuery = "snapshot"
)

// WorkflowID returns the ID of the workflow that keeps the states of a group; it differs for different groups,
// whatever characters their names contain.
func WorkflowID(group string) string {
	return expression.BoundedID(WorkflowIDPrefix(group))
}

// WorkflowIDPrefix returns the prefix of the IDs of groups whose names begin with prefix. Very long IDs have a
// digest instead.
func WorkflowIDPrefix(prefix string) string { return "reprise-state/" + url.PathEscape(prefix) }

// NameRange is a range of the states of a group, sorted by name.
type NameRange struct {
	Prefix string `json:"prefix,omitempty"`
	After  string `json:"after,omitempty"` // last name of the previous range, "" for the first one
	Most   int    `json:"most,omitempty"`  // 0 is RangeSize, which is also the maximum
}

// MoveResult is the outcome of a MoveUpdate; kept in workflow history.
type MoveResult struct {
	// Refused has, by position, why each write was refused, nil for applied ones; it is empty if all were applied.
	Refused []*Refusal `json:"refused,omitempty"`
}
