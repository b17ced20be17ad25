package interpreter

import (
	"time"

	"reprise/interpreter/incremental"
)

// StateActivity is the name of the activity that claims and moves states between runs, unless a write of rows does
// that.
const StateActivity = "state"

// StateInput is the argument of StateActivity: exactly one of Claim, Moves and Begins is set. Kept in workflow
// history.
type StateInput struct {
	// Place is the sink whose destination keeps the state, without data to write; nil for states that Temporal
	// keeps.
	Place *ToolInput `json:"place,omitempty"`
	// Group is the ID of the group of states in Temporal that the Claim is for, if Place is nil; all elements of a
	// loop share one.
	Group string              `json:"group,omitempty"`
	Claim *incremental.Claim  `json:"claim,omitempty"`
	Moves []incremental.Moves `json:"moves,omitempty"`
	// Begins are sinks whose rows are published together, and whose call or loop begins to read.
	Begins []ToolInput `json:"begins,omitempty"`
}

// DescribeState names the claimed state, the first moved state, or the table of the first sink in Begins.
func (in StateInput) DescribeState() string {
	for _, begin := range in.Begins {
		return "the table of sink " + begin.Place
	}
	if in.Claim != nil {
		return "the state " + in.Claim.Name
	}
	for _, moves := range in.Moves {
		for _, write := range moves.Writes {
			return "the state " + write.Name
		}
	}
	return "the state of a step"
}

// StateOutput is the result of StateActivity; kept in workflow history.
type StateOutput struct {
	Claimed incremental.ClaimedState `json:"claimed,omitzero"` // the state, for a Claim
}

// Names of the workflow with which a person reads or changes states through a worker, and of its activity. Both
// take a StateCommand and return a StateAnswer.
const (
	StateCommandWorkflow = "StateCommandWorkflow"
	StateCommandActivity = "state_command"
)

// StateCommand is a person's request to read or change states. Kept in workflow history.
type StateCommand struct {
	// Place and Group are as in StateInput. If Place has no tool, the kind of its connection determines the tool.
	Place *ToolInput `json:"place,omitempty"`
	Group string     `json:"group,omitempty"`
	// Prefix lists the states whose names begin with it; without Place and Group, those of all groups whose names
	// begin with it. History is the name of the state whose changes are listed.
	Prefix  string `json:"prefix,omitempty"`
	History string `json:"history,omitempty"`
	// Change, if set, is made instead of listing, unless a run has a slot in Queue, a workflow ID, and thereby
	// holds the state. With Queue, a list includes the holders.
	Change *incremental.StateChange `json:"change,omitempty"`
	Queue  string                   `json:"queue,omitempty"`
	// Removal, if set, is made like a Change. After continues a list behind the state with that name.
	Removal *incremental.Removal `json:"removal,omitempty"`
	After   string               `json:"after,omitempty"`
	// Held adds the holders of each state to the list of a Place, from all existing queues of states.
	Held bool `json:"held,omitempty"`
}

// HeldState is a state held by runs. Kept in workflow history.
type HeldState struct {
	State   string    `json:"state"`
	Holders []string  `json:"holders"` // workflow IDs
	Since   time.Time `json:"since"`   // when the first one got its slot
}

// StateAnswer is the result of a StateCommand; kept in workflow history.
type StateAnswer struct {
	States  []incremental.State       `json:"states,omitempty"`
	Changes []incremental.StateChange `json:"changes,omitempty"`
	// Holders are the workflow IDs of the runs that hold the states, or prevented a change, and HeldSince is when
	// the first got its slot. HoldersUnknown says why the holders of listed states are not known.
	Holders        []string  `json:"holders,omitempty"`
	HeldSince      time.Time `json:"held_since,omitzero"`
	HoldersUnknown string    `json:"holders_unknown,omitempty"`
	// Removed are the names of the states that a Removal has removed; nil if none was made.
	Removed []string `json:"removed,omitzero"`
	// Held lists those States that runs hold, if the command has Held.
	Held []HeldState `json:"held,omitempty"`
	// Tool is the tool of the place.
	Tool string `json:"tool,omitempty"`
	// More says that there are further states.
	More bool `json:"more,omitempty"`
}
