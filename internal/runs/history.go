package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/connect"
	"reprise/workflows"
)

// history is what the events of one workflow run tell.
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
	initiated         time.Time // when its parent asked for it
	event             int64     // that tells so
	summary           string    // that the UI shows beside it
	detached          bool      // nobody waits for its end
	// end is nil while it runs, as far as the parent knows; an event of the parent,
	// or its own where the parent ended without knowing.
	end *historypb.HistoryEvent
}

// read fetches the history of a run.
func (r *Reader) read(ctx context.Context, workflowID, runID string) (*history, error) {
	return r.readEach(ctx, workflowID, runID, func(*historypb.HistoryEvent) {})
}

// readEach is read for those who want to see the events too.
func (r *Reader) readEach(
	ctx context.Context, workflowID, runID string, see func(*historypb.HistoryEvent),
) (*history, error) {
	events := r.Client.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	h := &history{workflowID: workflowID, runID: runID}
	byEvent := map[int64]*child{}
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("read the history of %s: %w", workflowID, err)
		}
		h.take(event, byEvent)
		see(event)
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
		attribute(started.GetSearchAttributes().GetIndexedFields(), workflows.ScheduledAttribute, &h.scheduledAt)
	}
	if initiated := event.GetStartChildWorkflowExecutionInitiatedEventAttributes(); initiated != nil {
		begun := &child{
			workflowID: initiated.GetWorkflowId(), workflow: initiated.GetWorkflowType().GetName(), input: initiated.GetInput(),
			initiated: event.GetEventTime().AsTime(), event: event.GetEventId(),
			summary:  summaryOf(event),
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
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		h.nextRunID = event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		h.endedAt = event.GetEventTime().AsTime()
	}
}

// Origin is the run that a run belongs to: itself, or the one whose iterations it
// takes up again, by the workflow ID and the first run ID.
func (r *Reader) Origin(ctx context.Context, workflowID, runID string) (originID, originRunID string, err error) {
	first, err := r.begun(ctx, workflowID, runID)
	if err != nil {
		return "", "", err
	}
	var input workflows.Input
	if err := r.decode(ctx, workflowID, first.input, &input); err != nil {
		return "", "", err
	}
	if input.Reprocess != nil {
		return input.Reprocess.Origin.WorkflowID, input.Reprocess.Origin.RunID, nil
	}
	return workflowID, first.firstRunID, nil
}

// closed reports whether the workflow has ended, and did not continue.
func (h *history) closed() bool { return !h.endedAt.IsZero() }

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

// childRun looks for the run of a child that its parent did not see start, ""
// where there is none: other runs may have its workflow ID by now.
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
		return failed(of.end.GetChildWorkflowExecutionFailedEventAttributes().GetFailure(), into), nil
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		payloads = of.end.GetWorkflowExecutionCompletedEventAttributes().GetResult()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		payloads = of.end.GetWorkflowExecutionCanceledEventAttributes().GetDetails()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		return failed(of.end.GetWorkflowExecutionFailedEventAttributes().GetFailure(), into), nil
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

func failed(failure *failurepb.Failure, into any) bool {
	return workflows.DetailsOf(temporal.GetDefaultFailureConverter().FailureToError(failure), into)
}

// decode reads the first arguments of a workflow or an activity. Those behind them may
// be in a payload store that this program does not have.
func (r *Reader) decode(ctx context.Context, of string, input *commonpb.Payloads, into ...any) error {
	payloads := input.GetPayloads()
	first := &commonpb.Payloads{Payloads: slices.Clone(payloads[:min(len(into), len(payloads))])}
	if err := r.Store.Resolve(ctx, first); err != nil {
		return fmt.Errorf("read the input of %s: %w", of, err)
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(first, into...); err != nil {
		return fmt.Errorf("decode the input of %s: %w", of, err)
	}
	return nil
}
