package protocol

import "reprise/interpreter"

// RefusedMark is a history marker: a policy turned the response of an attempt into a failure, which no other event
// shows. Kept in workflow history.
type RefusedMark struct {
	Refused string                   `json:"refused"` // the step
	Index   *int                     `json:"index,omitempty"`
	Attempt int                      `json:"attempt"`
	Error   *interpreter.ErrorObject `json:"error"` // without the contents of the response
}

// IgnoredMark is a history marker: a policy ignored the failure of a sink, which then counts as written. Kept in
// workflow history.
type IgnoredMark struct {
	Ignored string `json:"ignored"` // place of the sink
	Index   *int   `json:"index,omitempty"`
}

// HoldMark is a history marker: a call began to wait for a person. Such a wait has no timer, so no other event
// shows it.
type HoldMark struct {
	Held  string `json:"held"` // the step, or the place of the sink
	Index *int   `json:"index,omitempty"`
}

// AnswerMark is a history marker: an awaited attempt that sends nothing has begun, or an awaited attempt has ended,
// with or without an answer. Readers of histories need it, since no other event shows these. Kept in workflow
// history.
type AnswerMark struct {
	interpreter.AnswerTo

	Page  int                      `json:"page"`
	Over  bool                     `json:"over,omitempty"`
	Error *interpreter.ErrorObject `json:"error,omitempty"`
	By    string                   `json:"by,omitempty"`
	// Option is the chosen option of an approval.
	Option string `json:"option,omitempty"`
}
