package protocol

import (
	"reprise/interpreter"
)

// IterationsQuery asks a loop, a shard of one, or one of its children for iterations; the result is an Iterations.
const IterationsQuery = "iterations"

// Iterations is the result of IterationsQuery.
type Iterations struct {
	// Iterations are the failed iterations of a loop, or all iterations of a child.
	Iterations []IterationRecord `json:"iterations"`
	// Left counts failed iterations that are not listed.
	Left int `json:"left,omitempty"`
	// Hosted are the indexes of the iterations that an activity drives, in its order: only its heartbeats show which of them have
	// begun, wait for a rate limit or have ended.
	Hosted []int `json:"hosted,omitempty"`
}

// IterationRecord is the state of one iteration.
type IterationRecord struct {
	Index int `json:"index"`
	interpreter.CallStatus
	// Incremental is the reading progress of an open call with a state, as of the end of its last activity; nil for
	// others.
	Incremental *interpreter.StateRecord `json:"incremental,omitempty"`
	// Rows is what the call has done to data so far; nil if nothing was counted.
	Rows *interpreter.Rows `json:"rows,omitempty"`
}
