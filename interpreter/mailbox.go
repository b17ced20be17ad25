package interpreter

import (
	"net/url"
	"strconv"

	"reprise/interpreter/expression"
)

// Answers that no worker accepts at once are stored in a mailbox: a separate workflow for each attempt, so that a
// flood of answers fills only the mailbox of its attempt (docs/decisions/0023-kept-answers.md). The names are part
// of histories, so they never change.
const (
	// AnswerUpdate accepts an Answer and returns an AnswerReceipt.
	AnswerUpdate = "answer"
	// MailboxWorkflow takes a Mailbox and returns a MailboxResult.
	MailboxWorkflow = "MailboxWorkflow"
	// MailboxSignal delivers a MailboxAnswer to the mailbox.
	MailboxSignal = "keep"
	// DeliverActivity takes a MailboxAnswer and returns a DeliveryResult. SettleActivity takes a list of mailboxes,
	// by ID, and returns once they are empty.
	DeliverActivity = "answer_deliver"
	SettleActivity  = "answer_settle"
)

// Bounds of a mailbox.
const (
	// MaxMailboxAnswers bounds the answers that a mailbox stores for one attempt. A holder of a token may send any
	// number before the attempt awaits one.
	MaxMailboxAnswers = 100
	// MaxMailboxBytes bounds the history of a mailbox, in bytes, because Temporal terminates workflows with
	// histories of 50 MB.
	MaxMailboxBytes = 8 << 20
)

// MailboxAnswer is an answer for a workflow that awaits it, or knows which workflow does; kept in workflow history.
type MailboxAnswer struct {
	Workflow string `json:"workflow"` // ID of the workflow that the answer is delivered to
	Answer   Answer `json:"answer"`
}

// Mailbox is the argument of MailboxWorkflow; kept in workflow history.
type Mailbox struct {
	// Progress is the newest report of progress, which has a separate mailbox; nil if answers arrive by signals.
	Progress *MailboxAnswer `json:"progress,omitempty"`
	// Refused are answers that the previous mailbox had delivered and that were refused.
	Refused []MailboxRefusal `json:"refused,omitempty"`
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
	FateAccepted Fate = "taken"   // it counts
	FateRefused  Fate = "refused" // it was refused; another one may be accepted
	FateLate     Fate = "late"    // the attempt has another answer, or is over
)

// MailboxResult lists the answers that were refused; kept in workflow history.
type MailboxResult struct {
	Refused []MailboxRefusal `json:"refused,omitempty"`
}

// MailboxRefusal is an answer that was refused.
type MailboxRefusal struct {
	Digest  string `json:"digest"` // of the refused answer, see Answer.Digest
	Message string `json:"message"`
}

// MailboxID returns the workflow ID of the mailbox for the answer: one per attempt if the answer has the attempt's
// key, as tokens do, otherwise one per step of the run with the given workflow ID. Reports of progress have a
// separate mailbox, so that they do not use up room for answers.
func (a Answer) MailboxID(workflow string) string {
	return a.mailboxID(workflow, a.Verb == AnswerProgress)
}

// MailboxIDs returns the workflow IDs of all mailboxes that may have answers to an attempt of a run.
func (a AnswerTo) MailboxIDs(run string) []string {
	step := AnswerTo{Step: a.Step, Index: a.Index}
	return []string{a.mailboxID(run, true), a.mailboxID(run, false), step.mailboxID(run, true), step.mailboxID(run, false)}
}

func (a AnswerTo) mailboxID(workflow string, progress bool) string {
	id := "reprise-answers/" + url.PathEscape(a.Key)
	if a.Key == "" {
		id = "reprise-answers-of-step/" + url.PathEscape(workflow) + "/" + url.PathEscape(a.Step)
		if a.Index != nil {
			id += "/" + strconv.Itoa(*a.Index)
		}
	}
	id = expression.BoundedID(id)
	if progress {
		id += "~progress"
	}
	return id
}
