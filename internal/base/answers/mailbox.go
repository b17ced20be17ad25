package answers

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/interpreter"
	"reprise/interpreter/mailbox"
)

// ErrFull means that the limit for undelivered answers to an attempt is reached.
var ErrFull = fmt.Errorf("the limit for undelivered answers to an attempt is reached (%d answers, or %d bytes)", mailbox.MaxAnswers, mailbox.MaxBytes)

// otherEvents is the number of events that a mailbox no worker has read has besides its answers.
const otherEvents = 2

// HasWaiting reports whether a mailbox has answers to the attempt that no workflow has accepted yet; new answers must
// queue after them. The error is ErrFull if there is no room.
func HasWaiting(ctx context.Context, c client.Client, mail mailbox.StoredAnswer) (bool, error) {
	info, err := describeMailbox(ctx, c, mail.MailboxID())
	if err != nil || !isOpen(info) {
		return false, err
	}
	if mail.Answer.Verb != interpreter.AnswerProgress && isFull(info) {
		return true, ErrFull
	}
	return true, nil
}

// isFull reports whether an open mailbox has no room.
func isFull(info *workflowpb.WorkflowExecutionInfo) bool {
	return info.GetHistoryLength() >= otherEvents+mailbox.MaxAnswers || info.GetHistorySizeBytes() >= mailbox.MaxBytes
}

// DepositAnswer puts an answer into a mailbox until a worker delivers it. Of the progress reports it keeps only the newest.
// The error is ErrClosed if the receiving workflow has ended, or ErrFull. Fullness is read before the answer is
// added: a single sender never exceeds the limit, and concurrent senders exceed it by at most one answer each.
func DepositAnswer(ctx context.Context, c client.Client, mail mailbox.StoredAnswer) error {
	host, err := c.DescribeWorkflowExecution(ctx, mail.Workflow, "")
	switch {
	case connect.IsNotFound(err):
		return fmt.Errorf("%w: %s", ErrClosed, mail.Workflow)
	case err != nil:
		return fmt.Errorf("keep the answer for %s: %w", mail.Workflow, err)
	case host.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return fmt.Errorf("%w: %s", ErrClosed, mail.Workflow)
	}
	id := mail.MailboxID()
	options := client.StartWorkflowOptions{
		ID: id, TaskQueue: host.GetExecutionConfig().GetTaskQueue().GetName(), StaticSummary: "answers to step " + mail.Answer.Step,
	}
	if mail.Answer.Verb == interpreter.AnswerProgress {
		options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING
		if _, err := c.ExecuteWorkflow(ctx, options, mailbox.WorkflowName, mailbox.Mailbox{Progress: &mail}); err != nil {
			return fmt.Errorf("keep the progress for %s: %w", mail.Workflow, err)
		}
		return nil
	}
	for {
		info, err := describeMailbox(ctx, c, id)
		switch {
		case err != nil:
		case !isOpen(info):
			_, err = c.SignalWithStartWorkflow(ctx, id, mailbox.StoreSignal, mail, options, mailbox.WorkflowName,
				mailbox.Mailbox{Refused: mailboxRefusals(ctx, c, info)})
		case isFull(info):
			return ErrFull
		default:
			err = c.SignalWorkflow(ctx, id, info.GetExecution().GetRunId(), mailbox.StoreSignal, mail)
			if connect.IsNotFound(err) {
				continue // it has ended meanwhile, and the next one gets what did not fit
			}
		}
		if err != nil {
			return fmt.Errorf("keep the answer for %s: %w", mail.Workflow, err)
		}
		return nil
	}
}

// describeMailbox describes the latest mailbox with an ID; nil if there has been none.
func describeMailbox(ctx context.Context, c client.Client, id string) (*workflowpb.WorkflowExecutionInfo, error) {
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	if connect.IsNotFound(err) {
		return nil, nil
	}
	return described.GetWorkflowExecutionInfo(), err
}

// isOpen reports whether a mailbox is open, so that it has undelivered answers.
func isOpen(info *workflowpb.WorkflowExecutionInfo) bool {
	return info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// mailboxRefusals returns the answers that a mailbox tried to deliver and the workflow refused; nil while the mailbox
// is open.
func mailboxRefusals(ctx context.Context, c client.Client, info *workflowpb.WorkflowExecutionInfo) []mailbox.RefusedAnswer {
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		return nil
	}
	var result mailbox.Result
	if c.GetWorkflow(ctx, info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()).Get(ctx, &result) != nil {
		return nil // a sender that repeats one of them learns that it is too late
	}
	return result.Refused
}

// RefusalReason returns why a workflow refused an answer that was in a mailbox; false if no mailbox recorded a
// refusal.
func RefusalReason(ctx context.Context, c client.Client, mail mailbox.StoredAnswer) (why string, found bool) {
	info, err := describeMailbox(ctx, c, mail.MailboxID())
	if err != nil {
		return "", false
	}
	digest := mail.Answer.Digest()
	for _, one := range mailboxRefusals(ctx, c, info) {
		if one.Digest == digest {
			return one.Message, true
		}
	}
	return "", false
}
