package protocol

import (
	"time"

	"reprise/interpreter"
)

// Answers from outside come as updates of the workflow that hosts the attempt, or,
// where the sender does not wait for the outcome, as signals (docs/concepts/answers.md).
const (
	// AnswerUpdate takes an interpreter.Answer and returns an interpreter.AnswerReceipt.
	AnswerUpdate = interpreter.AnswerUpdate
	// AnswerSignal takes an interpreter.Answer, from a sender that does not wait to hear whether it was accepted.
	AnswerSignal = "answer"
)

// AcceptedAnswer records an answer that an attempt got, so that a second one is refused with who was first. Kept in workflow
// history.
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

// Is reports whether an address means the attempt that was answered; it may name the attempt by its key, or its step and index.
func (a AcceptedAnswer) Is(to interpreter.AnswerTo) bool {
	at := a.Receipt.Address()
	at.Key = a.Key
	return (to.Step != "" || to.Key != "") && to.Matches(at)
}

// AttemptDetailsQuery takes an interpreter.AnswerTo that names an attempt, and returns
// its AttemptDetails: the request, for the people who are to answer it.
const AttemptDetailsQuery = "asked"

// AttemptDetails is what a workflow knows of an attempt that is answered from outside. Exactly
// one field is set; none if the workflow does not know the attempt, or no longer waits for its
// answer.
type AttemptDetails struct {
	// Awaiting is the attempt that has no answer yet; Since is zero while its request
	// is still being sent.
	Awaiting *interpreter.AwaitedDetails `json:"awaiting,omitempty"`
	// Answered is the answer that the attempt has.
	Answered *AcceptedAnswer `json:"answered,omitempty"`
	// Elsewhere is the ID of the workflow that accepts the answer in place of this one.
	Elsewhere string `json:"elsewhere,omitempty"`
}

// A call that was stopped before its end is continued by the run that replaces its run
// (interpreter/call/stopped.go). Its state is read from the workflow that was making it, by
// a query, which a worker answers from the history.

// StoppedQuestion says which call is meant; a workflow with one call of a visit needs
// no index.
type StoppedQuestion struct {
	Step  string `json:"step"`
	Visit int    `json:"visit"`
	Index *int   `json:"index,omitempty"`
}
