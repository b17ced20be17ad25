package protocol

import (
	"slices"

	"reprise/interpreter"
)

// ControlSignal passes requests of people from a workflow to its children, as a Steering.
const ControlSignal = "control"

// Steering is a message from a workflow to its children; kept in workflow history.
type Steering struct {
	Control interpreter.Control `json:"control"`
	// Resumes says that Control resumes something: calls held by a pause continue.
	Resumes bool            `json:"resumes,omitempty"`
	Settle  *ItemSettlement `json:"settle,omitempty"`
	// Then are further decisions, in order after Settle.
	Then []ItemSettlement `json:"then,omitempty"`
	// Run is the workflow ID of the parent run whose Control this is. It is "" if Control is that of the receiver's
	// own run or, when the receiver is a child run, of the run that started it.
	Run string `json:"run,omitempty"`
	// Slot grants a child of a loop the slot that it requested.
	Slot *SlotGrant `json:"slot,omitempty"`
	// Shared is what other shards of the loop use of its window.
	Shared *SharedWindow `json:"shared,omitempty"`
}

// ItemSettlement is a Settlement together with the calls that it applies to. Kept in workflow history.
type ItemSettlement struct {
	Step  string `json:"step,omitempty"`  // "" means every step
	Index *int   `json:"index,omitempty"` // nil means every iteration
	interpreter.Settlement
}

// IsAbout reports whether the decision applies to the call of a step, or of its iteration index.
func (s *ItemSettlement) IsAbout(step string, index *int) bool {
	return (s.Step == "" || s.Step == step) && (s.Index == nil || index != nil && *index == *s.Index)
}

// CoversDecision reports whether the decisions in s include an equal one that applies at least to the same calls;
// true for nil.
func (s *Steering) CoversDecision(decision *ItemSettlement) bool {
	if decision == nil {
		return true
	}
	covers := func(earlier ItemSettlement) bool {
		return earlier.Skip == decision.Skip && earlier.IsAbout(decision.Step, decision.Index)
	}
	return covers(*s.Settle) || slices.ContainsFunc(s.Then, covers)
}
