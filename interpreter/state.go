package interpreter

import "reprise/interpreter/incremental"

// StateActivity is the name of the activity that claims and moves the states which steps keep
// between runs, where no write of rows does.
const StateActivity = "state"

// StateInput is the argument of StateActivity: one of Claim and Moves. Kept in workflow history.
type StateInput struct {
	// Place is the sink whose destination keeps the state, without what it writes; nil for
	// states that Temporal keeps.
	Place *ToolInput `json:"place,omitempty"`
	// Group is the name of the workflow that keeps the state, where Place is nil: states of
	// the elements of a loop have one.
	Group string              `json:"group,omitempty"`
	Claim *incremental.Claim  `json:"claim,omitempty"`
	Moves []incremental.Write `json:"moves,omitempty"`
}

// StateOutput is what StateActivity gives; kept in workflow history.
type StateOutput struct {
	Claimed incremental.Claimed `json:"claimed,omitzero"` // of a Claim
}
