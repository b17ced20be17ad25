package protocol

import "reprise/interpreter"

// RefusedMark marks in the history that a policy has made a failure of the answer to an
// attempt, which no other event shows. Kept in workflow history.
type RefusedMark struct {
	Refused string                   `json:"refused"` // the step
	Index   *int                     `json:"index,omitempty"`
	Attempt int                      `json:"attempt"`
	Error   *interpreter.ErrorObject `json:"error"` // without what the answer held
}

// IgnoredMark marks in the history that a policy has ignored the failure of a sink, which then counts as
// written. Kept in workflow history.
type IgnoredMark struct {
	Ignored string `json:"ignored"` // the place of the sink
	Index   *int   `json:"index,omitempty"`
}

// HoldMark records in the history that a call began to wait for a person. Such a wait has no
// timer, so no other event shows it.
type HoldMark struct {
	Held  string `json:"held"` // the step, or the place of a sink
	Index *int   `json:"index,omitempty"`
}

// AnswerMark marks in the history where an attempt began that sends nothing, and where
// one ended that was answered from outside, or not in time: readers of the history need
// not guess. Kept in workflow history.
type AnswerMark struct {
	interpreter.AnswerTo

	Page  int                      `json:"page"`
	Over  bool                     `json:"over,omitempty"`
	Error *interpreter.ErrorObject `json:"error,omitempty"`
	By    string                   `json:"by,omitempty"`
	// Option is what was chosen, of an approval.
	Option string `json:"option,omitempty"`
}
