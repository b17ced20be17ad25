package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"

	"reprise/internal/base/answers"
	"reprise/internal/base/connect"
	"reprise/internal/base/slots"
	"reprise/interpreter"
	"reprise/interpreter/mailbox"
)

const (
	// mailPatience bounds what is done in one go, within the limit of the activities.
	mailPatience = 8 * time.Second
	// settleEvery is how often it is looked whether a mailbox is empty.
	settleEvery = 200 * time.Millisecond
	// deliveriesOfOne is how many answers are delivered to one workflow at a time. The server
	// accepts ten updates at a time from all its clients, and continues those that a client
	// gives up.
	deliveriesOfOne = 4
)

// MailboxActivities returns the activities for answers that were kept, by name.
func MailboxActivities() map[string]any {
	d := deliverer{slots.New(deliveriesOfOne, 0)}
	return map[string]any{mailbox.DeliverActivity: d.deliverAnswer, mailbox.SettleActivity: settleAnswers}
}

// deliverer delivers answers that were kept, a few at a time to each workflow.
type deliverer struct{ slots *slots.ByKey }

// deliverAnswer delivers a stored answer to the workflow that accepts it. After an error it is
// unknown whether the workflow has it.
func (d deliverer) deliverAnswer(ctx context.Context, stored mailbox.StoredAnswer) (mailbox.DeliveryResult, error) {
	limited, cancel := context.WithTimeout(ctx, mailPatience)
	defer cancel()
	done, err := d.slots.Enter(limited, stored.Workflow)
	if err != nil {
		return mailbox.DeliveryResult{}, fmt.Errorf("deliver an answer: others are delivered there: %w", err)
	}
	defer done()
	_, _, err = answers.SendAnswer(limited, activity.GetClient(ctx), stored.Workflow, stored.Answer, mailPatience)
	var refused *interpreter.AnswerError
	if errors.As(err, &refused) && !errors.Is(err, answers.ErrClosed) {
		activity.GetLogger(ctx).Warn("a kept answer was refused", "workflow_id", stored.Workflow, "step", stored.Answer.Step,
			"verb", stored.Answer.Verb, "error", refused.Message)
	}
	switch {
	case err == nil:
		return mailbox.DeliveryResult{Fate: mailbox.Accepted}, nil
	case errors.Is(err, answers.ErrClosed):
		return mailbox.DeliveryResult{Fate: mailbox.Late}, nil
	case refused != nil && refused.Type == interpreter.AnswerRefused:
		return mailbox.DeliveryResult{Fate: mailbox.Refused, Message: refused.Message}, nil
	case refused != nil:
		return mailbox.DeliveryResult{Fate: mailbox.Late, Message: refused.Message}, nil
	}
	return mailbox.DeliveryResult{}, fmt.Errorf("deliver an answer: %w", err)
}

// errMail says that answers are still undelivered.
var errMail = errors.New("answers to the attempt are being delivered")

// settleAnswers waits until none of the mailboxes has anything to deliver.
func settleAnswers(ctx context.Context, mailboxes []string) error {
	ctx, cancel := context.WithTimeout(ctx, mailPatience)
	defer cancel()
	c := activity.GetClient(ctx)
	for _, id := range mailboxes {
		for {
			described, err := c.DescribeWorkflowExecution(ctx, id, "")
			if connect.IsNotFound(err) {
				break
			}
			if err != nil {
				return fmt.Errorf("look for answers that are kept: %w", err)
			}
			if described.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
				break
			}
			if waitFor(ctx, settleEvery) != nil {
				return errMail
			}
		}
	}
	return nil
}
