package interpreter

import (
	"net/url"
	"strconv"

	"reprise/interpreter/expression"
)

// Answers that no worker accepts at once are kept in a mailbox: a workflow of its own for
// each attempt, so that a flood of answers fills the mailbox of its attempt and nothing
// else (docs/decisions/0023-kept-answers.md). Its names are part of histories, so they
// never change.
const (
	// AnswerUpdate accepts an Answer and returns an AnswerReceipt.
	AnswerUpdate = "answer"
	// MailboxWorkflow takes a Mailbox and returns a MailboxResult.
	MailboxWorkflow = "MailboxWorkflow"
	// MailboxSignal brings a MailboxAnswer.
	MailboxSignal = "keep"
	// DeliverActivity takes a MailboxAnswer and returns a Delivered. SettleActivity takes a list of
	// mailboxes, by ID, and returns once they are empty.
	DeliverActivity = "answer_deliver"
	SettleActivity  = "answer_settle"
)

// Bounds of a mailbox.
const (
	// MaxMailboxAnswers is how many answers a mailbox keeps for one attempt. A holder of a token
	// may send any number before the attempt awaits one.
	MaxMailboxAnswers = 100
	// MaxMailboxBytes bounds the history of a mailbox, in bytes, because Temporal terminates
	// workflows with histories of 50 MB.
	MaxMailboxBytes = 8 << 20
)

// MailboxAnswer is an answer on its way to the workflow that awaits it, or knows which one does;
// kept in workflow history.
type MailboxAnswer struct {
	Workflow string `json:"workflow"`
	Answer   Answer `json:"answer"`
}

// Mailbox is the argument of MailboxWorkflow; kept in workflow history.
type Mailbox struct {
	// Progress is the newest report of progress, for which there is a separate mailbox: nil if
	// answers come by signals.
	Progress *MailboxAnswer `json:"progress,omitempty"`
	// Refused are answers that the mailbox before this one found not to fit.
	Refused []MailboxRefusal `json:"refused,omitempty"`
}

// DeliveryResult says whether a stored answer was accepted; kept in workflow history.
type DeliveryResult struct {
	Fate    Fate   `json:"fate"`
	Message string `json:"message,omitempty"`
}

// Fate says whether an answer was accepted.
type Fate string

// The fates of answers.
const (
	FateAccepted Fate = "taken"   // it counts
	FateRefused  Fate = "refused" // it does not fit, and another one may
	FateLate     Fate = "late"    // the attempt has another one, or is over
)

// MailboxResult says which answers did not fit; kept in workflow history.
type MailboxResult struct {
	Refused []MailboxRefusal `json:"refused,omitempty"`
}

// MailboxRefusal is an answer that did not fit.
type MailboxRefusal struct {
	Digest  string `json:"digest"`
	Message string `json:"message"`
}

// MailboxID is the workflow ID of the mailbox for the answer: one per attempt if the answer has
// the attempt's key, as tokens do, else one per step in the run whose workflow ID is given.
// Reports of progress have a separate one, so that they do not use up room for answers.
func (a Answer) MailboxID(workflow string) string {
	return a.mailboxID(workflow, a.Verb == AnswerProgress)
}

// MailboxIDs are the workflow IDs of all that may keep answers to an attempt of a run.
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
