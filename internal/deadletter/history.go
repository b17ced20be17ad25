package deadletter

import (
	"context"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"reprise/workflows"
)

// history is what the events of one workflow run tell.
type history struct {
	workflowID, runID string
	firstRunID        string // of its chain
	nextRunID         string // that it continued as, "" for none
	input             *commonpb.Payloads
	startedAt         time.Time
	taskQueue         string
	closed            bool // and did not continue
	children          []*child
}

// child is a child workflow in its parent's history.
type child struct {
	workflowID, runID string // runID is "" until it has started
	workflow          string // its type
	input             *commonpb.Payloads
	end               *historypb.HistoryEvent // nil while it runs, as far as the parent knows
}

// read fetches the history of a run.
func (r *Reader) read(ctx context.Context, workflowID, runID string) (*history, error) {
	events := r.Client.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	h := &history{workflowID: workflowID, runID: runID}
	byEvent := map[int64]*child{}
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("read the history of %s: %w", workflowID, err)
		}
		h.take(event, byEvent)
	}
	return h, nil
}

// begun reads what the first event of a run tells, and no more.
func (r *Reader) begun(ctx context.Context, workflowID, runID string) (*history, error) {
	events := r.Client.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	h := &history{workflowID: workflowID, runID: runID}
	first, err := events.Next()
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", workflowID, err)
	}
	h.take(first, nil)
	return h, nil
}

// take notes what an event tells; byEvent are the children by the event that
// initiated them.
func (h *history) take(event *historypb.HistoryEvent, byEvent map[int64]*child) {
	if started := event.GetWorkflowExecutionStartedEventAttributes(); started != nil {
		h.taskQueue = started.GetTaskQueue().GetName()
		h.input, h.startedAt, h.firstRunID = started.GetInput(), event.GetEventTime().AsTime(), started.GetFirstExecutionRunId()
	}
	if initiated := event.GetStartChildWorkflowExecutionInitiatedEventAttributes(); initiated != nil {
		begun := &child{
			workflowID: initiated.GetWorkflowId(), workflow: initiated.GetWorkflowType().GetName(), input: initiated.GetInput(),
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
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		h.nextRunID = event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		h.closed = true
	}
}

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

// result decodes what a child that has ended told, as its result or in the
// details of its failure. It is false where the child told nothing.
func (r *Reader) result(ctx context.Context, of *child, into any) (bool, error) {
	if of.end == nil {
		return false, nil
	}
	if err := r.Store.Resolve(ctx, of.end); err != nil {
		return false, fmt.Errorf("read how %s ended: %w", of.workflowID, err)
	}
	var payloads *commonpb.Payloads
	switch of.end.GetEventType() {
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
		payloads = of.end.GetChildWorkflowExecutionCompletedEventAttributes().GetResult()
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
		payloads = of.end.GetChildWorkflowExecutionCanceledEventAttributes().GetDetails()
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
		failure := of.end.GetChildWorkflowExecutionFailedEventAttributes().GetFailure()
		return workflows.DetailsOf(temporal.GetDefaultFailureConverter().FailureToError(failure), into), nil
	default:
		return false, nil
	}
	if len(payloads.GetPayloads()) == 0 {
		return false, nil
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(payloads, into); err != nil {
		return false, fmt.Errorf("decode how %s ended: %w", of.workflowID, err)
	}
	return true, nil
}

// decode reads the argument of a workflow.
func (r *Reader) decode(ctx context.Context, of string, input *commonpb.Payloads, into any) error {
	if err := r.Store.Resolve(ctx, input); err != nil {
		return fmt.Errorf("read the input of %s: %w", of, err)
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(input, into); err != nil {
		return fmt.Errorf("decode the input of %s: %w", of, err)
	}
	return nil
}
