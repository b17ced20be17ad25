package interpreter

import (
	"time"

	"reprise/interpreter/incremental"
)

// StateActivity is the name of the activity that claims and moves the states which steps keep
// between runs, where no write of rows does.
const StateActivity = "state"

// StateInput is the argument of StateActivity: one of Claim, Moves and Begins. Kept in workflow history.
type StateInput struct {
	// Place is the sink whose destination keeps the state, without what it writes; nil for
	// states that Temporal keeps.
	Place *ToolInput `json:"place,omitempty"`
	// Group is the name of the workflow that keeps the state of the Claim, where Place is nil:
	// states of the elements of a loop have one.
	Group string              `json:"group,omitempty"`
	Claim *incremental.Claim  `json:"claim,omitempty"`
	Moves []incremental.Moves `json:"moves,omitempty"`
	// Begins are the sinks whose rows are published together, and whose call or loop begins to read.
	Begins []ToolInput `json:"begins,omitempty"`
}

// Describe names the state that is claimed, or the first one that is moved; or the first sink that begins.
func (in StateInput) Describe() string {
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
	Claimed incremental.ClaimedState `json:"claimed,omitzero"` // of a Claim
}

// Names of the workflow with which a person reads or changes states through a worker, and of its
// activity. Both accept a StateCommand and return a StateAnswer.
const (
	StateCommandWorkflow = "StateCommandWorkflow"
	StateCommandActivity = "state_command"
)

// StateCommand is what a person wants to know of states, or to change. Kept in workflow history.
type StateCommand struct {
	// Place and Group are as in StateInput. In a place without a tool, the kind of the
	// connection decides.
	Place *ToolInput `json:"place,omitempty"`
	Group string     `json:"group,omitempty"`
	// Prefix is the prefix of the states that are listed, without Place and Group those of all groups
	// whose names begin so; History is the name of the one whose
	// changes are.
	Prefix  string `json:"prefix,omitempty"`
	History string `json:"history,omitempty"`
	// Change is made in place of that, unless a run has its turn in Queue, by workflow ID: that
	// run holds the state. With Queue a list has the holders too.
	Change *incremental.StateChange `json:"change,omitempty"`
	Queue  string                   `json:"queue,omitempty"`
	// Held has a list of a place say of each state who holds it, by all queues of states that there are.
	Held bool `json:"held,omitempty"`
}

// HeldState is a state that runs hold. Kept in workflow history.
type HeldState struct {
	State   string    `json:"state"`
	Holders []string  `json:"holders"` // workflow IDs
	Since   time.Time `json:"since"`   // that the first got its turn
}

// StateAnswer is the answer to a StateCommand; kept in workflow history.
type StateAnswer struct {
	States  []incremental.State       `json:"states,omitempty"`
	Changes []incremental.StateChange `json:"changes,omitempty"`
	// Holders are the workflow IDs of the runs that hold the states, or kept a change back, and HeldSince is when the first
	// got its turn. HoldersUnknown says why those of a list are not known.
	Holders        []string  `json:"holders,omitempty"`
	HeldSince      time.Time `json:"held_since,omitzero"`
	HoldersUnknown string    `json:"holders_unknown,omitempty"`
	// Held lists those of the States that runs hold, for a command with Held.
	Held []HeldState `json:"held,omitempty"`
	// Tool is the tool of the place.
	Tool string `json:"tool,omitempty"`
	// More says that there are more states than are given.
	More bool `json:"more,omitempty"`
}
