package runs

import (
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/observe/histories"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// playbookRun is a child run: an attempt of a step that runs another playbook.
type playbookRun struct {
	*child
	madeActivity
	recorded bool // its start
}

// playbookEvent applies events of attempts that are child runs. It returns false for other events.
func (p *projector) playbookEvent(event *historypb.HistoryEvent) (bool, error) {
	switch {
	case event.GetStartChildWorkflowExecutionInitiatedEventAttributes() != nil:
		return p.playbookStarting(event)
	case event.GetChildWorkflowExecutionStartedEventAttributes() != nil:
		of := p.runs[event.GetChildWorkflowExecutionStartedEventAttributes().GetInitiatedEventId()]
		if of != nil {
			p.playStarted(of, event)
		}
		return of != nil, nil
	}
	if of := p.runs[histories.EndedChild(event)]; of != nil {
		return true, p.playEnded(of, event)
	}
	if requested := event.GetRequestCancelExternalWorkflowExecutionInitiatedEventAttributes(); requested != nil {
		p.cancelling[requested.GetWorkflowExecution().GetWorkflowId()] = true
	}
	if fired := event.GetTimerFiredEventAttributes(); fired != nil {
		p.late[p.limits[fired.GetTimerId()]] = true
	}
	return false, nil
}

// playbookStarting records the child run that an attempt starts.
func (p *projector) playbookStarting(event *historypb.HistoryEvent) (bool, error) {
	for _, begun := range p.h.children {
		if begun.event != event.GetEventId() || begun.workflow != protocol.PlaybookWorkflowName {
			continue
		}
		var input struct {
			Called *protocol.ParentAttempt `json:"called"`
		}
		if err := p.decodeInput(begun.workflowID, begun.input, &input); err != nil || input.Called == nil {
			return true, err
		}
		in := input.Called
		p.visits[in.Step] = in.Visit
		settled := p.beginAttempt(callID{in.Step, in.Visit, indexOr(in.Index), ""})
		p.runs[begun.event] = &playbookRun{child: begun, madeActivity: madeActivity{settled: settled, one: attemptInput{
			Step: in.Step, Visit: in.Visit, Index: in.Index, Page: in.Page, Attempt: in.Attempt,
		}}}
		return true, nil
	}
	return false, nil
}

// playStarted adds the start of a child run. A run whose end is not awaited ends its attempt at once.
func (p *projector) playStarted(of *playbookRun, event *historypb.HistoryEvent) {
	of.started, of.recorded = event, true
	started := p.attemptStarted(&of.madeActivity)
	started.Child = of.workflowID
	if !of.detached {
		started.ChildRunID = of.runID
	}
	p.addEvent(of.event, "", started)
	if of.detached {
		p.addEvent(of.event, "", playEnd(started, event, nil))
		p.calls[of.one.callOf()].failure = nil
	}
}

// playEnded adds the end of a child run.
func (p *projector) playEnded(of *playbookRun, event *historypb.HistoryEvent) error {
	if of.detached && of.recorded {
		return nil
	}
	if !of.recorded { // it could not begin
		p.playStarted(of, event)
	}
	var result protocol.Result
	known, err := p.decodeResult(of.child, &result)
	if err != nil {
		return err
	}
	outcome, _ := protocol.EndOf(of.workflowID, result, missingResult(known, event))
	failure := outcome.Err
	if cancelled := event.GetChildWorkflowExecutionCanceledEventAttributes() != nil; cancelled && p.cancelling[of.workflowID] {
		failure = protocol.AttemptError(temporal.NewCanceledError())
		if p.late[limit{of.one.callOf(), of.one.Attempt}] {
			failure.Kind, failure.Message = interpreter.KindTimeout, "the run "+of.workflowID+" did not end in time and was cancelled"
		}
	}
	started := p.attemptStarted(&of.madeActivity)
	started.Child = of.workflowID
	p.addEvent(of.event, "", playEnd(started, event, failure))
	p.calls[of.one.callOf()].failure = failure
	return nil
}

func playEnd(started Event, event *historypb.HistoryEvent, failure *interpreter.ErrorObject) Event {
	end := attemptEnded(started, event.GetEventTime().AsTime(), failure)
	end.Duration = end.At.Sub(started.At).Seconds()
	return end
}

// missingResult returns why a child run ended without a result; nil if it has one.
func missingResult(known bool, event *historypb.HistoryEvent) error {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
		return errors.New("it was terminated")
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TIMED_OUT:
		return errors.New("it timed out")
	case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED:
		return errors.New("it could not begin")
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
		if !known {
			return temporal.NewCanceledError()
		}
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
		if !known {
			return temporal.GetDefaultFailureConverter().FailureToError(event.GetChildWorkflowExecutionFailedEventAttributes().GetFailure())
		}
	}
	return nil
}
