package runs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"reprise/internal/base/connect"
	"reprise/internal/observe/histories"
	"reprise/workflows/protocol"
)

// history holds what the events of one workflow run say about it and its children.
type history struct {
	workflowID, runID string
	firstRunID        string // of its chain
	nextRunID         string // that it continued as, "" for none
	input             *commonpb.Payloads
	startedAt         time.Time
	scheduledAt       time.Time // that a schedule started it for, zero for none
	taskQueue         string
	endedAt           time.Time // zero while it runs, and where it continued
	children          []*child
}

// child is a child workflow in its parent's history.
type child struct {
	workflowID, runID string // runID is "" until it has started
	workflow          string // its type
	input             *commonpb.Payloads
	initiated         time.Time // when its parent requested it
	event             int64     // by which it did
	detached          bool      // its end is not awaited
	// end is the event with which the child ended, in the parent's history or, if the parent ended first, in its own;
	// nil while it runs.
	end *historypb.HistoryEvent
}

// newHistory creates a history from its events.
func newHistory(workflowID, runID string, events []*historypb.HistoryEvent) *history {
	h := &history{workflowID: workflowID, runID: runID}
	byEvent := map[int64]*child{}
	for _, event := range events {
		h.applyEvent(event, byEvent)
	}
	return h
}

// applyEvent applies an event. byEvent maps the IDs of initiating events to children.
func (h *history) applyEvent(event *historypb.HistoryEvent, byEvent map[int64]*child) {
	if started := event.GetWorkflowExecutionStartedEventAttributes(); started != nil {
		h.taskQueue = started.GetTaskQueue().GetName()
		h.input, h.startedAt, h.firstRunID = started.GetInput(), event.GetEventTime().AsTime(), started.GetFirstExecutionRunId()
		readAttribute(started.GetSearchAttributes().GetIndexedFields(), protocol.ScheduledAttribute, &h.scheduledAt)
	}
	h.applyChild(event, byEvent)
	if next := event.GetWorkflowExecutionContinuedAsNewEventAttributes(); next != nil {
		h.nextRunID = next.GetNewExecutionRunId()
	}
	if isEnd(event) {
		h.endedAt = event.GetEventTime().AsTime()
	}
}

// applyChild applies an event about a child.
func (h *history) applyChild(event *historypb.HistoryEvent, byEvent map[int64]*child) {
	if initiated := event.GetStartChildWorkflowExecutionInitiatedEventAttributes(); initiated != nil {
		begun := &child{
			workflowID: initiated.GetWorkflowId(), workflow: initiated.GetWorkflowType().GetName(), input: initiated.GetInput(),
			initiated: event.GetEventTime().AsTime(), event: event.GetEventId(),
			detached: initiated.GetParentClosePolicy() == enumspb.PARENT_CLOSE_POLICY_ABANDON,
		}
		byEvent[event.GetEventId()] = begun
		h.children = append(h.children, begun)
	}
	if started := event.GetChildWorkflowExecutionStartedEventAttributes(); started != nil {
		if begun := byEvent[started.GetInitiatedEventId()]; begun != nil {
			begun.runID = started.GetWorkflowExecution().GetRunId()
		}
	}
	if id := histories.EndedChild(event); id != 0 && byEvent[id] != nil {
		byEvent[id].end = event
	}
}

// isClosed reports whether the workflow has ended and did not continue as new.
func (h *history) isClosed() bool { return !h.endedAt.IsZero() }

// readHistory fetches the history of a run.
func (r *Reader) readHistory(ctx context.Context, workflowID, runID string) (*history, error) {
	events, err := r.recordedEvents(ctx, workflowID, runID)
	if err != nil {
		return nil, err
	}
	return newHistory(workflowID, runID, events), nil
}

// recordedEvents fetches the events of a history.
func (r *Reader) recordedEvents(ctx context.Context, workflowID, runID string) ([]*historypb.HistoryEvent, error) {
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

// readBegun reads only the first event of a run.
func (r *Reader) readBegun(ctx context.Context, workflowID, runID string) (*history, error) {
	events := r.Client.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	first, err := events.Next()
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", workflowID, err)
	}
	return newHistory(workflowID, runID, []*historypb.HistoryEvent{first}), nil
}

// Origin returns the run that a reprocess belongs to, or else the run itself, by workflow ID and first run ID.
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

// Input returns the input with which a run was started.
func (r *Reader) Input(ctx context.Context, workflowID, runID string) (protocol.Input, error) {
	_, input, err := r.startedWith(ctx, workflowID, runID)
	return input, err
}

func (r *Reader) startedWith(ctx context.Context, workflowID, runID string) (first *history, input protocol.Input, err error) {
	if first, err = r.readBegun(ctx, workflowID, runID); err != nil {
		return nil, input, err
	}
	return first, input, r.newValues(ctx).decodeInput(workflowID, first.input, &input)
}

// endPatience bounds how long the reader waits for the end of a workflow whose parent was terminated; the end is
// certain to come.
const endPatience = 30 * time.Second

// readOutlived finds out how a child ended whose parent was terminated and so could not record it: Temporal
// terminates such children unless they end earlier. A child that never started is left unchanged.
func (r *Reader) readOutlived(ctx context.Context, parent *history, of *child) error {
	if !parent.isClosed() || of.end != nil {
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
		if connect.IsNotFound(err) {
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

// childRun finds the run of a child whose start its parent did not record; "" if there is none. Its workflow ID may
// belong to another run by now.
func (r *Reader) childRun(ctx context.Context, parent *history, of *child) (string, error) {
	described, err := r.Client.DescribeWorkflowExecution(ctx, of.workflowID, "")
	if connect.IsNotFound(err) {
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
