package keeper

import (
	"fmt"
	"math"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/gate"
)

const (
	// MailTimeout bounds an activity for a mailbox: shorter than heartbeatTimeout, since it
	// sends none.
	MailTimeout = 9 * time.Second
	// deliverAgain is how long a mailbox waits for the workflow that accepts its
	// answers, where that has not answered a thousand requests.
	deliverAgain = time.Minute
)

// MailboxWorkflow keeps the answers to one attempt that arrived while no worker accepted them,
// and delivers them in order until one is accepted: the rest are too late then. Its history is
// the box, whose size its senders bound (internal/base/answers). It ends when it is empty, so
// it never continues as new.
func MailboxWorkflow(ctx workflow.Context, box interpreter.Mailbox) (*interpreter.MailboxResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a cancel would lose answers that were accepted
	// Answers are delivered as they arrived, so none is too large to be sent.
	ctx = gate.WithOutbox(ctx, interpreter.RunLimits{MaxPayload: math.MaxInt32})
	m := &mailbox{over: map[interpreter.AnswerTo]bool{}, seen: map[string]bool{}}
	m.result.Refused = box.Refused
	if box.Progress != nil {
		m.deliverAnswer(ctx, *box.Progress)
	}
	for kept := range gate.Arrived[interpreter.MailboxAnswer](workflow.GetSignalChannel(ctx, interpreter.MailboxSignal)) {
		m.deliverAnswer(ctx, kept)
	}
	return &m.result, nil
}

// mailbox is what a MailboxWorkflow knows of the answers that it has delivered.
type mailbox struct {
	over   map[interpreter.AnswerTo]bool // attempts that have their answer; by address, without its index
	seen   map[string]bool
	result interpreter.MailboxResult
}

// deliverAnswer makes a worker send an answer to the workflow that accepts it, until the
// outcome is known. Repeating an answer has no effect.
func (m *mailbox) deliverAnswer(ctx workflow.Context, kept interpreter.MailboxAnswer) {
	digest, at := kept.Answer.Digest(), kept.Answer.AnswerTo
	at.Index = nil // it is the same in all that is kept here
	mark := fmt.Sprintf("%d/%d/%s", at.Visit, at.Attempt, digest)
	if m.over[at] || m.seen[mark] {
		return
	}
	m.seen[mark] = true
	to := gate.ToTool(interpreter.DeliverActivity, MailTimeout, string(kept.Answer.Verb)+" of step "+kept.Answer.Step)
	for {
		delivered, err := gate.Send[interpreter.DeliveryResult](ctx, to, kept, "an answer")
		if err != nil {
			gate.Logger(ctx).Warn("cannot deliver an answer yet", "workflow_id", kept.Workflow, "step", kept.Answer.Step, "error", err)
			_ = workflow.Sleep(ctx, deliverAgain) // no cancel ends it
			continue
		}
		switch delivered.Fate {
		case interpreter.FateRefused:
			m.result.Refused = append(m.result.Refused, interpreter.MailboxRefusal{Digest: digest, Message: delivered.Message})
			if over := len(m.result.Refused) - interpreter.MaxMailboxAnswers; over > 0 {
				m.result.Refused = m.result.Refused[over:]
			}
		case interpreter.FateAccepted:
			m.over[at] = kept.Answer.Verb != interpreter.AnswerProgress
		case interpreter.FateLate:
			m.over[at] = true
		}
		return
	}
}
