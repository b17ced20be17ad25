package activities

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"reprise/interpreter"
)

// LineActivities are the activities of runs that share a concurrency key, and of the
// workflow that gives them their turns, by name.
func LineActivities() map[string]any {
	return map[string]any{
		interpreter.LineEnterActivity:  enterLine,
		interpreter.LineLookActivity:   lookAtLine,
		interpreter.LineCancelActivity: cancelForLine,
	}
}

// enterLine passes a run's request to the workflow of its key, which begins with it
// where there is none. The workflow answers the run with a signal, so that nobody
// waits here.
func enterLine(ctx context.Context, enter interpreter.LineEnter) error {
	id := enter.Name.ID()
	_, err := activity.GetClient(ctx).SignalWithStartWorkflow(ctx, id, interpreter.LineSignal, enter.Request,
		client.StartWorkflowOptions{ID: id, TaskQueue: activity.GetInfo(ctx).TaskQueue, StaticSummary: lineSummary(enter.Name)},
		interpreter.ConcurrencyWorkflow, interpreter.Line{Name: enter.Name})
	if err != nil {
		return fmt.Errorf("ask for a turn under the concurrency key %q: %w", enter.Name.Key, err)
	}
	return nil
}

// lineSummary is what Temporal's UI shows beside the workflow of a key.
func lineSummary(name interpreter.LineName) string {
	summary := "runs of the concurrency key " + name.Key
	if name.Playbook != "" {
		summary += ", playbook " + name.Playbook
	}
	return cutText(summary, maxLimitSummary)
}

// lookAtLine gives those of some runs that have ended, or are not there any more:
// who was terminated cannot say that it needs no turn.
func lookAtLine(ctx context.Context, members []interpreter.Member) ([]interpreter.Member, error) {
	ended := []interpreter.Member{}
	for _, member := range members {
		goesOn, err := memberGoesOn(ctx, member)
		if err != nil {
			return nil, err
		}
		if !goesOn {
			ended = append(ended, member)
		}
	}
	return ended, nil
}

func memberGoesOn(ctx context.Context, member interpreter.Member) (bool, error) {
	described, err := activity.GetClient(ctx).DescribeWorkflowExecution(ctx, member.WorkflowID, "")
	if errors.As(err, new(*serviceerror.NotFound)) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whether the run %s goes on: %w", member.WorkflowID, err)
	}
	info := described.GetWorkflowExecutionInfo()
	return info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING && info.GetFirstRunId() == member.RunID, nil
}

// cancelForLine asks a run to cancel, and says in its history why. One that has
// ended needs no cancel.
func cancelForLine(ctx context.Context, cancel interpreter.LineCancel) error {
	info := activity.GetInfo(ctx)
	_, err := activity.GetClient(ctx).WorkflowService().RequestCancelWorkflowExecution(ctx,
		&workflowservice.RequestCancelWorkflowExecutionRequest{
			Namespace:         info.Namespace,
			WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: cancel.WorkflowID},
			Identity:          info.WorkflowExecution.ID, RequestId: info.WorkflowExecution.RunID + info.ActivityID,
			FirstExecutionRunId: cancel.RunID, Reason: cancel.Reason,
		})
	if err != nil && !errors.As(err, new(*serviceerror.NotFound)) {
		return fmt.Errorf("cancel the run %s: %w", cancel.WorkflowID, err)
	}
	return nil
}
