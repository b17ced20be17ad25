package protocol

import (
	"slices"

	"reprise/interpreter"
)

// ControlSignal passes on what people have requested of a run, from a workflow to its
// children, as a Steering.
const ControlSignal = "control"

// Steering is a message from a workflow to its children; kept in workflow history.
type Steering struct {
	Control interpreter.Control `json:"control"`
	// Resumes says that Control resumes something: calls that were held by a pause continue.
	Resumes bool            `json:"resumes,omitempty"`
	Settle  *ItemSettlement `json:"settle,omitempty"`
	// Then are the decisions after Settle, in their order.
	Then []ItemSettlement `json:"then,omitempty"`
	// Run is the workflow ID of the parent run whose Control this is. It is "" for the control of the run that the receiver
	// belongs to; to a child run that is the run which started it.
	Run string `json:"run,omitempty"`
	// Slot grants a child of a loop the slot in the window that it requested.
	Slot *SlotGrant `json:"slot,omitempty"`
	// Shared is what the other shards of the loop use of its window.
	Shared *SharedWindow `json:"shared,omitempty"`
}

// ItemSettlement is a Settlement with the calls that it is about: a step, or one iteration. Kept in workflow history.
type ItemSettlement struct {
	Step  string `json:"step,omitempty"`  // "" is every step
	Index *int   `json:"index,omitempty"` // nil is every iteration
	interpreter.Settlement
}

// IsAbout reports whether the decision is about the call of a step, or of its iteration index.
func (s *ItemSettlement) IsAbout(step string, index *int) bool {
	return (s.Step == "" || s.Step == step) && (s.Index == nil || index != nil && *index == *s.Index)
}

// CoversDecision reports whether the decisions in s include an equal one about the same calls, or about more; true for nil.
func (s *Steering) CoversDecision(decision *ItemSettlement) bool {
	if decision == nil {
		return true
	}
	covers := func(earlier ItemSettlement) bool {
		return earlier.Skip == decision.Skip && earlier.IsAbout(decision.Step, decision.Index)
	}
	return covers(*s.Settle) || slices.ContainsFunc(s.Then, covers)
}
