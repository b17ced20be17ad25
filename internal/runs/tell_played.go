package runs

import (
	"context"
	"errors"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"reprise/interpreter"
	"reprise/workflows"
)

// played is a run of another playbook: what an attempt of a step is.
type played struct {
	*child
	made
	told bool // its start
}

// plays tells the attempts that are runs of other playbooks. It is false for an
// event of something else.
func (t *teller) plays(ctx context.Context, event *historypb.HistoryEvent) (bool, error) {
	switch {
	case event.GetStartChildWorkflowExecutionInitiatedEventAttributes() != nil:
		return t.called(ctx, event)
	case event.GetChildWorkflowExecutionStartedEventAttributes() != nil:
		of := t.runs[event.GetChildWorkflowExecutionStartedEventAttributes().GetInitiatedEventId()]
		if of != nil {
			t.playStarted(of, event)
		}
		return of != nil, nil
	}
	if of := t.runs[endedChild(event)]; of != nil {
		return true, t.playEnded(ctx, of, event)
	}
	if asked := event.GetRequestCancelExternalWorkflowExecutionInitiatedEventAttributes(); asked != nil {
		t.given[asked.GetWorkflowExecution().GetWorkflowId()] = true
	}
	if summary, timeout := strings.CutPrefix(summaryOf(event), workflows.TimeoutSummary); timeout && event.GetTimerStartedEventAttributes() != nil {
		t.limits[event.GetTimerStartedEventAttributes().GetTimerId()] = summary
		return true, nil
	}
	if fired := event.GetTimerFiredEventAttributes(); fired != nil {
		t.late[t.limits[fired.GetTimerId()]] = true
	}
	return false, nil
}

// called notes the run that an attempt asks for.
func (t *teller) called(ctx context.Context, event *historypb.HistoryEvent) (bool, error) {
	for _, begun := range t.h.children {
		if begun.event != event.GetEventId() || begun.workflow != workflows.PlaybookWorkflowName {
			continue
		}
		var input struct {
			Called *workflows.Called `json:"called"`
		}
		if err := t.decode(ctx, begun.workflowID, begun.input, &input); err != nil || input.Called == nil {
			return true, err
		}
		in := input.Called
		t.visits[in.Step] = in.Visit
		settled := t.begins(call{in.Step, in.Visit, indexOr(in.Index), ""})
		t.runs[begun.event] = &played{child: begun, made: made{settled: settled, one: attemptInput{
			Step: in.Step, Visit: in.Visit, Index: in.Index, Page: in.Page, Attempt: in.Attempt,
		}}}
		return true, nil
	}
	return false, nil
}

// playStarted tells that a run has begun; one that nobody waits for is done with that.
func (t *teller) playStarted(of *played, event *historypb.HistoryEvent) {
	of.started, of.told = event, true
	started := t.attemptStarted(&of.made)
	started.Child = of.workflowID
	t.add(of.event, "", started)
	if of.detached {
		t.add(of.event, "", playEnd(started, event, nil))
		t.calls[of.one.call()].failure = nil
	}
}

// playEnded tells how a run has ended.
func (t *teller) playEnded(ctx context.Context, of *played, event *historypb.HistoryEvent) error {
	if of.detached && of.told {
		return nil
	}
	if !of.told { // it could not begin
		t.playStarted(of, event)
	}
	var result workflows.Result
	told, err := t.result(ctx, of.child, &result)
	if err != nil {
		return err
	}
	failure := workflows.EndOf(of.workflowID, result, untold(told, event)).Err
	if cancelled := event.GetChildWorkflowExecutionCanceledEventAttributes() != nil; cancelled && t.given[of.workflowID] {
		failure = workflows.AttemptError(temporal.NewCanceledError())
		if t.late[of.summary] {
			failure.Kind, failure.Message = interpreter.KindTimeout, "the run "+of.workflowID+" did not end in time and was cancelled"
		}
	}
	started := t.attemptStarted(&of.made)
	started.Child = of.workflowID
	t.add(of.event, "", playEnd(started, event, failure))
	t.calls[of.one.call()].failure = failure
	return nil
}

func playEnd(started Event, event *historypb.HistoryEvent, failure *interpreter.ErrorObject) Event {
	end := started
	end.At, end.Error, end.Event = event.GetEventTime().AsTime(), failure, ActionCompleted
	end.IsRetry, end.By, end.Reason = false, "", ""
	if failure != nil {
		end.Event = ActionError
	}
	end.Duration = end.At.Sub(started.At).Seconds()
	return end
}

// untold is the error of a run that has ended without a result, nil for others.
func untold(told bool, event *historypb.HistoryEvent) error {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
		return errors.New("it was terminated")
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
		return errors.New("it timed out")
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
		return errors.New("it could not begin")
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
		if !told {
			return temporal.NewCanceledError()
		}
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
		if !told {
			return temporal.GetDefaultFailureConverter().FailureToError(event.GetChildWorkflowExecutionFailedEventAttributes().GetFailure())
		}
	}
	return nil
}

// summaryOf is what the UI shows beside an event.
func summaryOf(event interface{ GetUserMetadata() *sdkpb.UserMetadata }) string {
	var summary string
	if payload := event.GetUserMetadata().GetSummary(); payload != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(payload, &summary)
	}
	return summary
}
