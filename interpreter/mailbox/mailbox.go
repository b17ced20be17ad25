// Package mailbox stores answers that no worker accepts at once, in a separate workflow for each attempt, so that a
// flood of answers fills only the mailbox of its attempt (docs/decisions/0023-kept-answers.md).
package mailbox

import (
	"net/url"
	"strconv"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// Names of the workflow that stores the answers to one attempt, of its signal, and of the activities that deliver
// stored answers and wait until they are delivered. They are part of histories, so they never change.
const (
	// The workflow takes a Mailbox and returns a Result.
	WorkflowName = "MailboxWorkflow"
	// StoreSignal delivers a StoredAnswer to the mailbox.
	StoreSignal = "keep"
	// DeliverActivity takes a StoredAnswer and returns a DeliveryResult. SettleActivity takes a list of mailboxes,
	// by ID, and returns once they are empty.
	DeliverActivity = "answer_deliver"
	SettleActivity  = "answer_settle"
)

// Bounds of a mailbox.
const (
	// MaxAnswers bounds the answers that a mailbox stores for one attempt. A holder of a token may send any number
	// before the attempt awaits one.
	MaxAnswers = 100
	// MaxBytes bounds the history of a mailbox, in bytes, because Temporal terminates workflows with histories of
	// 50 MB.
	MaxBytes = 8 << 20
)

// StoredAnswer is an answer for a workflow that awaits it, or knows which workflow does; kept in workflow history.
type StoredAnswer struct {
	Workflow string             `json:"workflow"` // ID of the workflow that the answer is delivered to
	Answer   interpreter.Answer `json:"answer"`
}

// Mailbox is the argument of the workflow; kept in workflow history.
type Mailbox struct {
	// Progress is the newest report of progress, which has a separate mailbox; nil if answers arrive by signals.
	Progress *StoredAnswer `json:"progress,omitempty"`
	// Refused are answers that the previous mailbox had delivered and that were refused.
	Refused []RefusedAnswer `json:"refused,omitempty"`
}

// DeliveryResult says whether a stored answer was accepted; kept in workflow history.
type DeliveryResult struct {
	Fate    Fate   `json:"fate"`
	Message string `json:"message,omitempty"` // why it was not accepted
}

// Fate says whether a stored answer was accepted.
type Fate string

// The fates of answers.
const (
	Accepted Fate = "taken"   // it counts
	Refused  Fate = "refused" // it was refused; another one may be accepted
	Late     Fate = "late"    // the attempt has another answer, or is over
)

// Result lists the answers that were refused; kept in workflow history.
type Result struct {
	Refused []RefusedAnswer `json:"refused,omitempty"`
}

// RefusedAnswer is an answer that was refused.
type RefusedAnswer struct {
	Digest  string `json:"digest"` // of the refused answer, see Answer.Digest
	Message string `json:"message"`
}

// MailboxID returns the workflow ID of the mailbox for the answer: one per attempt if the answer has the attempt's
// key, as tokens do, otherwise one per step of the workflow that it is for. Reports of progress have a separate
// mailbox, so that they do not use up room for answers.
func (s StoredAnswer) MailboxID() string {
	return workflowID(s.Answer.AnswerTo, s.Workflow, s.Answer.Verb == interpreter.AnswerProgress)
}

// IDs returns the workflow IDs of all mailboxes that may have answers to an attempt of a run.
func IDs(attempt interpreter.AnswerTo, run string) []string {
	step := interpreter.AnswerTo{Step: attempt.Step, Index: attempt.Index}
	return []string{workflowID(attempt, run, true), workflowID(attempt, run, false), workflowID(step, run, true), workflowID(step, run, false)}
}

func workflowID(to interpreter.AnswerTo, workflow string, progress bool) string {
	id := "reprise-answers/" + url.PathEscape(to.Key)
	if to.Key == "" {
		id = "reprise-answers-of-step/" + url.PathEscape(workflow) + "/" + url.PathEscape(to.Step)
		if to.Index != nil {
			id += "/" + strconv.Itoa(*to.Index)
		}
	}
	id = expression.BoundedID(id)
	if progress {
		id += "~progress"
	}
	return id
}
