package runs

import (
	"cmp"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"reprise/interpreter"
	"reprise/interpreter/queue"
	"reprise/workflows/protocol"
)

// runEvent applies events that only the history of a run has.
func (p *projector) runEvent(event *historypb.HistoryEvent) error {
	if written := event.GetWorkflowPropertiesModifiedEventAttributes(); written != nil {
		p.queueChanged(event, written.GetUpsertedMemo())
		return nil
	}
	if cancelled := event.GetWorkflowExecutionCancelRequestedEventAttributes(); cancelled != nil {
		p.cancelled = cancelled
		return nil
	}
	return p.runEnded(event)
}

// runEnded adds the end of a run.
func (p *projector) runEnded(event *historypb.HistoryEvent) error {
	if p.h.endedAt.IsZero() || !event.GetEventTime().AsTime().Equal(p.h.endedAt) || !isEnd(event) {
		return nil
	}
	result, err := p.resultOf(&child{workflowID: p.workflowID, end: event})
	if err != nil {
		return err
	}
	out := Event{Event: ExecutionFailed, At: p.h.endedAt, Status: result.Status, Error: result.Error, Rows: result.Rows}
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		out.Event = ExecutionCompleted
		if result.Status == interpreter.Failed { // the output could not be made
			out.Event = ExecutionFailed
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		out.Event, out.Status = ExecutionCancelled, interpreter.Cancelled
		out.Reason, out.By = p.cancelled.GetCause(), p.cancelled.GetIdentity()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		out.Error = noResult("the run was terminated: " + event.GetWorkflowExecutionTerminatedEventAttributes().GetReason())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		out.Error = noResult("the run timed out")
	}
	out.Status = cmp.Or(out.Status, interpreter.Failed)
	p.addEvent(event.GetEventId(), "", out)
	return nil
}

func noResult(message string) *interpreter.ErrorObject {
	return &interpreter.ErrorObject{Kind: "no_result", Class: interpreter.ClassFinal, Message: message}
}

func isEnd(event *historypb.HistoryEvent) bool {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		return true
	}
	return false
}

// queueChanged adds that the run was queued under its concurrency key, or got its slot, according to its memo.
func (p *projector) queueChanged(event *historypb.HistoryEvent, memo *commonpb.Memo) {
	if p.workflow != protocol.PlaybookWorkflowName || memo.GetFields()[queue.Memo] == nil {
		return
	}
	before := p.queued
	p.queued = queueOf(memo)
	out := Event{Event: ExecutionQueued, At: event.GetEventTime().AsTime()}
	switch {
	case p.queued != nil && before == nil:
		out.Concurrency = p.queued.Name.Key
	case p.queued == nil && before != nil:
		out.Event, out.Concurrency, out.Duration = ExecutionAdmitted, before.Name.Key, out.At.Sub(before.Since).Seconds()
	default:
		return
	}
	p.addEvent(event.GetEventId(), "", out)
}

// applyRefused converts the success of a call's last attempt to a failure: a policy refused its answer.
func (p *projector) applyRefused(mark protocol.RefusedMark) {
	at := p.waitingCall(mark.Refused, mark.Index)
	if last := p.calls[at]; last != nil {
		last.failure = mark.Error
	}
	if made := p.lastOf(ActionCompleted, at); made != nil && made.Attempt == mark.Attempt {
		made.key = strings.Replace(made.key, "/"+ActionCompleted+"/", "/"+ActionError+"/", 1)
		made.Event, made.Error = ActionError, mark.Error
	}
}
