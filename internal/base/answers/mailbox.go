package answers

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/interpreter"
)

// ErrFull says that the limit for undelivered answers to an attempt is reached.
var ErrFull = fmt.Errorf("the limit for undelivered answers to an attempt is reached (%d answers, or %d bytes)", interpreter.MaxMailboxAnswers, interpreter.MaxMailboxBytes)

// otherEvents is the number of events, other than answers, in a mailbox that no worker has
// read.
const otherEvents = 2

// HasWaiting reports whether a mailbox has answers to the attempt that no workflow has accepted
// yet: new answers have to queue after them. The error is ErrFull if there is no room.
func HasWaiting(ctx context.Context, c client.Client, kept interpreter.MailboxAnswer) (bool, error) {
	info, err := describeMailbox(ctx, c, kept.Answer.MailboxID(kept.Workflow))
	if err != nil || !isOpen(info) {
		return false, err
	}
	if kept.Answer.Verb != interpreter.AnswerProgress && isFull(info) {
		return true, ErrFull
	}
	return true, nil
}

// isFull reports whether an open mailbox has no room.
func isFull(info *workflowpb.WorkflowExecutionInfo) bool {
	return info.GetHistoryLength() >= otherEvents+interpreter.MaxMailboxAnswers || info.GetHistorySizeBytes() >= interpreter.MaxMailboxBytes
}

// Deposit puts an answer into a mailbox until a worker delivers it. Of reports of progress the newest is
// kept. The error is ErrClosed where the workflow that would accept it has ended, or
// ErrFull. A mailbox is bounded by its description: a sender that keeps answers one
// after the other exceeds no bound, and each sender at the same time by one answer.
func Deposit(ctx context.Context, c client.Client, kept interpreter.MailboxAnswer) error {
	host, err := c.DescribeWorkflowExecution(ctx, kept.Workflow, "")
	switch {
	case connect.NotFound(err):
		return fmt.Errorf("%w: %s", ErrClosed, kept.Workflow)
	case err != nil:
		return fmt.Errorf("keep the answer for %s: %w", kept.Workflow, err)
	case host.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return fmt.Errorf("%w: %s", ErrClosed, kept.Workflow)
	}
	id := kept.Answer.MailboxID(kept.Workflow)
	options := client.StartWorkflowOptions{
		ID: id, TaskQueue: host.GetExecutionConfig().GetTaskQueue().GetName(), StaticSummary: "answers to step " + kept.Answer.Step,
	}
	if kept.Answer.Verb == interpreter.AnswerProgress {
		options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING
		if _, err := c.ExecuteWorkflow(ctx, options, interpreter.MailboxWorkflow, interpreter.Mailbox{Progress: &kept}); err != nil {
			return fmt.Errorf("keep the progress for %s: %w", kept.Workflow, err)
		}
		return nil
	}
	for {
		info, err := describeMailbox(ctx, c, id)
		switch {
		case err != nil:
		case !isOpen(info):
			_, err = c.SignalWithStartWorkflow(ctx, id, interpreter.MailboxSignal, kept, options, interpreter.MailboxWorkflow,
				interpreter.Mailbox{Refused: mailboxRefusals(ctx, c, info)})
		case isFull(info):
			return ErrFull
		default:
			err = c.SignalWorkflow(ctx, id, info.GetExecution().GetRunId(), interpreter.MailboxSignal, kept)
			if connect.NotFound(err) {
				continue // it has ended meanwhile, and the next one gets what did not fit
			}
		}
		if err != nil {
			return fmt.Errorf("keep the answer for %s: %w", kept.Workflow, err)
		}
		return nil
	}
}

// describeMailbox describes the last mailbox with an ID; nil where there was none.
func describeMailbox(ctx context.Context, c client.Client, id string) (*workflowpb.WorkflowExecutionInfo, error) {
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	if connect.NotFound(err) {
		return nil, nil
	}
	return described.GetWorkflowExecutionInfo(), err
}

// isOpen reports whether a mailbox keeps something.
func isOpen(info *workflowpb.WorkflowExecutionInfo) bool {
	return info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// mailboxRefusals returns the answers that a mailbox which has ended found not to fit.
func mailboxRefusals(ctx context.Context, c client.Client, info *workflowpb.WorkflowExecutionInfo) []interpreter.MailboxRefusal {
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		return nil
	}
	var result interpreter.MailboxResult
	if c.GetWorkflow(ctx, info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()).Get(ctx, &result) != nil {
		return nil // a sender that repeats one of them learns that it is too late
	}
	return result.Refused
}

// RefusalReason says why a kept answer was refused; false if no mailbox says so.
func RefusalReason(ctx context.Context, c client.Client, kept interpreter.MailboxAnswer) (why string, found bool) {
	info, err := describeMailbox(ctx, c, kept.Answer.MailboxID(kept.Workflow))
	if err != nil {
		return "", false
	}
	digest := kept.Answer.Digest()
	for _, one := range mailboxRefusals(ctx, c, info) {
		if one.Digest == digest {
			return one.Message, true
		}
	}
	return "", false
}
