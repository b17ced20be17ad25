package protocol

import (
	"reprise/interpreter"
)

// IterationsQuery queries a loop, a shard of one, or one of its children for iterations;
// the answer is an Iterations.
const IterationsQuery = "iterations"

// Iterations is the answer to IterationsQuery.
type Iterations struct {
	// Iterations are the failed iterations of a loop, or all iterations of a child.
	Iterations []IterationRecord `json:"iterations"`
	// Left counts failed iterations that are not among them.
	Left int `json:"left,omitempty"`
	// Hosted says that an activity makes attempts of a child that has a rate limit: its
	// heartbeats know which of them wait for their turns.
	Hosted bool `json:"hosted,omitempty"`
}

// IterationRecord is the state of one iteration.
type IterationRecord struct {
	Index int `json:"index"`
	interpreter.CallStatus
	// Incremental is the reading progress of an open call with a state, as of its last ended activity; nil for
	// others.
	Incremental *interpreter.StateRecord `json:"incremental,omitempty"`
	// Rows is what the call has done to data so far; nil if nothing was counted.
	Rows *interpreter.Rows `json:"rows,omitempty"`
}
