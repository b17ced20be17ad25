package protocol

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// Answers from outside arrive as updates of the workflow that hosts the attempt or, if the sender does not wait for
// the outcome, as signals (docs/concepts/answers.md).
const (
	// AnswerUpdate takes an interpreter.Answer and returns an interpreter.AnswerReceipt.
	AnswerUpdate = interpreter.AnswerUpdate
	// AnswerSignal takes an interpreter.Answer, from a sender that does not wait for the outcome.
	AnswerSignal = "answer"
)

// AcceptedAnswer records the answer that an attempt received, so that the refusal of a second one can name the
// first. Kept in workflow history.
type AcceptedAnswer struct {
	Key     string                    `json:"key"`    // of the attempt
	Digest  string                    `json:"digest"` // of the answer
	Receipt interpreter.AnswerReceipt `json:"receipt"`
	// Verb, Option, By and At say what was answered, by whom and when.
	Verb   interpreter.AnswerVerb `json:"verb,omitempty"`
	Option string                 `json:"option,omitempty"`
	By     string                 `json:"by,omitempty"`
	At     time.Time              `json:"at,omitzero"`
}

// MatchesAddress reports whether an address refers to the answered attempt, by its key or by its step and index.
func (a AcceptedAnswer) MatchesAddress(to interpreter.AnswerTo) bool {
	at := a.Receipt.AttemptAddress()
	at.Key = a.Key
	return (to.Step != "" || to.Key != "") && to.Matches(at)
}

// AttemptDetailsQuery takes an interpreter.AnswerTo that identifies an attempt, and returns its AttemptDetails, for
// the people who have to answer it.
const AttemptDetailsQuery = "asked"

// AttemptDetails describes an attempt that is answered from outside. At most one of Awaiting, Answered and Elsewhere is set; none
// if the workflow does not know the attempt, or no longer waits for its answer.
type AttemptDetails struct {
	// Awaiting describes an attempt without an answer; Since is zero while its request is still being sent.
	Awaiting *interpreter.AwaitedDetails `json:"awaiting,omitempty"`
	// Answered is the answer that the attempt received.
	Answered *AcceptedAnswer `json:"answered,omitempty"`
	// Elsewhere is the ID of the workflow that accepts the answer instead of this one.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Asked is the question of an attempt that is no longer open; nil if it is not remembered, and for webhooks.
	Asked *AskedQuestion `json:"asked,omitempty"`
}

// AskedQuestion is what people were asked, and how that ended. It is kept in workflow history, for links that are opened later.
type AskedQuestion struct {
	Key     string             `json:"key"` // of the attempt
	Message string             `json:"message"`
	Data    []expression.Range `json:"data,omitempty"` // as in playbook.Approval
	// Late is set if nobody answered by Until. Option is then what applied in place of an answer; "" if the attempt failed.
	Late   bool      `json:"late,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	Option string    `json:"option,omitempty"`
}

// A call that was stopped before its end is continued by the run that replaces its run
// (interpreter/call/stopped.go). The state of the call is read from the workflow that was making it, by a query
// that a worker answers from the history.

// StoppedQuestion identifies a stopped call. If the workflow has only one call of the visit, the index may be nil.
type StoppedQuestion struct {
	Step  string `json:"step"`
	Visit int    `json:"visit"`
	Index *int   `json:"index,omitempty"`
}
