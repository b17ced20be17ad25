package runs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"reprise/internal/base/connect"
	"reprise/workflows"
)

// read fetches the history of a run.
func (r *Reader) read(ctx context.Context, workflowID, runID string) (*history, error) {
	events, err := r.recorded(ctx, workflowID, runID)
	if err != nil {
		return nil, err
	}
	return newHistory(workflowID, runID, events), nil
}

// recorded fetches the events of a history.
func (r *Reader) recorded(ctx context.Context, workflowID, runID string) ([]*historypb.HistoryEvent, error) {
	pages := r.Client.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var events []*historypb.HistoryEvent
	for pages.HasNext() {
		event, err := pages.Next()
		if err != nil {
			return nil, fmt.Errorf("read the history of %s: %w", workflowID, err)
		}
		events = append(events, event)
	}
	return events, nil
}

// begun reads the first event of a run, and no more.
func (r *Reader) begun(ctx context.Context, workflowID, runID string) (*history, error) {
	events := r.Client.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	first, err := events.Next()
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", workflowID, err)
	}
	return newHistory(workflowID, runID, []*historypb.HistoryEvent{first}), nil
}

// Origin is the run that a run belongs to: itself, or the one whose iterations it runs
// again, by the workflow ID and the first run ID.
func (r *Reader) Origin(ctx context.Context, workflowID, runID string) (originID, originRunID string, err error) {
	first, input, err := r.startedWith(ctx, workflowID, runID)
	if err != nil {
		return "", "", err
	}
	if input.Reprocess != nil {
		return input.Reprocess.Origin.WorkflowID, input.Reprocess.Origin.RunID, nil
	}
	return workflowID, first.firstRunID, nil
}

// Input is what a run was started with.
func (r *Reader) Input(ctx context.Context, workflowID, runID string) (workflows.Input, error) {
	_, input, err := r.startedWith(ctx, workflowID, runID)
	return input, err
}

func (r *Reader) startedWith(ctx context.Context, workflowID, runID string) (first *history, input workflows.Input, err error) {
	if first, err = r.begun(ctx, workflowID, runID); err != nil {
		return nil, input, err
	}
	return first, input, r.values(ctx).decode(workflowID, first.input, &input)
}

// endPatience is for how long an end is waited for that must come: that of a
// workflow whose parent was terminated.
const endPatience = 30 * time.Second

// outlived finds out how a child ended whose parent ended without noticing: it
// was terminated, and Temporal terminates its children behind it, unless they end
// before. A child that has never started stays as it is.
func (r *Reader) outlived(ctx context.Context, parent *history, of *child) error {
	if !parent.closed() || of.end != nil {
		return nil
	}
	if of.runID == "" {
		runID, err := r.childRun(ctx, parent, of)
		if err != nil || runID == "" {
			return err
		}
		of.runID = runID
	}
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	for runID := of.runID; ; {
		events := r.Client.GetWorkflowHistory(ctx, of.workflowID, runID, true, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
		end, err := events.Next()
		if connect.NotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for the end of %s, whose parent has ended: %w", of.workflowID, err)
		}
		if runID = end.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(); runID == "" {
			of.end = end
			return nil
		}
	}
}

// childRun finds the run of a child that its parent did not see start, "" where there
// is none: other runs may have its workflow ID by now.
func (r *Reader) childRun(ctx context.Context, parent *history, of *child) (string, error) {
	described, err := r.Client.DescribeWorkflowExecution(ctx, of.workflowID, "")
	if connect.NotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("look for %s: %w", of.workflowID, err)
	}
	info := described.GetWorkflowExecutionInfo()
	if info.GetParentExecution().GetRunId() != parent.runID {
		return "", nil
	}
	return cmp.Or(info.GetFirstRunId(), info.GetExecution().GetRunId()), nil
}
