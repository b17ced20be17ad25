package keeper

import (
	"fmt"
	"math"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/mailbox"
	"reprise/workflows/gate"
)

const (
	// MailTimeout bounds an activity of a mailbox. It is shorter than heartbeatTimeout, since the activity sends no
	// heartbeats.
	MailTimeout = 9 * time.Second
	// deliverAgain is the pause of a mailbox whose deliveries have all failed, because the workflow that accepts
	// its answers did not respond.
	deliverAgain = time.Minute
)

// MailboxWorkflow stores the answers to one attempt that arrived while no worker accepted them, and delivers them
// in order until one is accepted; the rest are then too late. Its history is the mailbox, whose size the senders
// bound (internal/base/answers). It ends when it is empty, so it never continues as new.
func MailboxWorkflow(ctx workflow.Context, box mailbox.Mailbox) (*mailbox.Result, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a cancel would lose answers that were accepted
	// Answers are delivered unchanged, so none is too large to be sent.
	ctx = gate.WithOutbox(ctx, interpreter.RunLimits{MaxPayload: math.MaxInt32})
	m := &mailboxService{over: map[interpreter.AnswerTo]bool{}, seen: map[string]bool{}}
	m.result.Refused = box.Refused
	if box.Progress != nil {
		m.deliverAnswer(ctx, *box.Progress)
	}
	for stored := range gate.ArrivedSignals[mailbox.StoredAnswer](workflow.GetSignalChannel(ctx, mailbox.StoreSignal)) {
		m.deliverAnswer(ctx, stored)
	}
	return &m.result, nil
}

// mailboxService records which answers a MailboxWorkflow has delivered.
type mailboxService struct {
	over   map[interpreter.AnswerTo]bool // attempts that have an answer; by address, without the index
	seen   map[string]bool
	result mailbox.Result
}

// deliverAnswer lets a worker send an answer to the workflow that accepts it, until the outcome is known. A
// repeated answer has no effect.
func (m *mailboxService) deliverAnswer(ctx workflow.Context, stored mailbox.StoredAnswer) {
	digest, at := stored.Answer.Digest(), stored.Answer.AnswerTo
	at.Index = nil // it is the same in all that is kept here
	mark := fmt.Sprintf("%d/%d/%s", at.Visit, at.Attempt, digest)
	if m.over[at] || m.seen[mark] {
		return
	}
	m.seen[mark] = true
	to := gate.ToTool(mailbox.DeliverActivity, MailTimeout, string(stored.Answer.Verb)+" of step "+stored.Answer.Step)
	for {
		delivered, err := gate.Send[mailbox.DeliveryResult](ctx, to, stored, "an answer")
		if err != nil {
			gate.Logger(ctx).Warn("cannot deliver an answer yet", "workflow_id", stored.Workflow, "step", stored.Answer.Step, "error", err)
			_ = workflow.Sleep(ctx, deliverAgain) // a cancel does not end it
			continue
		}
		switch delivered.Fate {
		case mailbox.Refused:
			m.result.Refused = append(m.result.Refused, mailbox.RefusedAnswer{Digest: digest, Message: delivered.Message})
			if over := len(m.result.Refused) - mailbox.MaxAnswers; over > 0 {
				m.result.Refused = m.result.Refused[over:]
			}
		case mailbox.Accepted:
			m.over[at] = stored.Answer.Verb != interpreter.AnswerProgress
		case mailbox.Late:
			m.over[at] = true
		}
		return
	}
}
