package runs

import (
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"reprise/workflows"
)

// history is what the events of one workflow run say of it and of its children.
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
	// end is nil while it runs, as far as the parent knows; an event of the parent,
	// or its own where the parent ended without knowing.
	end *historypb.HistoryEvent
}

// newHistory reads events.
func newHistory(workflowID, runID string, events []*historypb.HistoryEvent) *history {
	h := &history{workflowID: workflowID, runID: runID}
	byEvent := map[int64]*child{}
	for _, event := range events {
		h.apply(event, byEvent)
	}
	return h
}

// apply applies an event; byEvent are the children by the event that initiated them.
func (h *history) apply(event *historypb.HistoryEvent, byEvent map[int64]*child) {
	if started := event.GetWorkflowExecutionStartedEventAttributes(); started != nil {
		h.taskQueue = started.GetTaskQueue().GetName()
		h.input, h.startedAt, h.firstRunID = started.GetInput(), event.GetEventTime().AsTime(), started.GetFirstExecutionRunId()
		attribute(started.GetSearchAttributes().GetIndexedFields(), workflows.ScheduledAttribute, &h.scheduledAt)
	}
	h.applyChild(event, byEvent)
	if next := event.GetWorkflowExecutionContinuedAsNewEventAttributes(); next != nil {
		h.nextRunID = next.GetNewExecutionRunId()
	}
	if ends(event) {
		h.endedAt = event.GetEventTime().AsTime()
	}
}

// applyChild applies an event of a child.
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
	if id := endedChild(event); id != 0 && byEvent[id] != nil {
		byEvent[id].end = event
	}
}

// closed reports whether the workflow has ended, and did not continue.
func (h *history) closed() bool { return !h.endedAt.IsZero() }

// endedChild gives the event that initiated the child whose end an event is; 0
// for other events.
func endedChild(event *historypb.HistoryEvent) int64 {
	for _, attributes := range []interface{ GetInitiatedEventId() int64 }{
		event.GetChildWorkflowExecutionCompletedEventAttributes(),
		event.GetChildWorkflowExecutionFailedEventAttributes(),
		event.GetChildWorkflowExecutionCanceledEventAttributes(),
		event.GetChildWorkflowExecutionTerminatedEventAttributes(),
		event.GetChildWorkflowExecutionTimedOutEventAttributes(),
		event.GetStartChildWorkflowExecutionFailedEventAttributes(),
	} {
		if id := attributes.GetInitiatedEventId(); id != 0 { // nil attributes give 0
			return id
		}
	}
	return 0
}
