package runs

import (
	"strings"

	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// addTimer adds the wait of a call, or records a timer that bounds an attempt.
func (p *projector) addTimer(event *historypb.HistoryEvent) {
	mark, marked := interpreter.ParseTimerMark(summaryOf(event))
	timer := event.GetTimerStartedEventAttributes()
	if !marked {
		return
	}
	at := p.waitingCall(mark.Call, mark.Index)
	if mark.Limits > 0 {
		p.limits[timer.GetTimerId()] = limit{at, mark.Limits}
		return
	}
	p.noteRetried(at)
	delay := timer.GetStartToFireTimeout().AsDuration()
	out := p.waitStartEvent(event, at, mark.Reason)
	out.Delay, out.NextRetryAt = delay.Seconds(), out.At.Add(delay)
	p.addEvent(event.GetEventId(), "", out)
}

// holdMark adds a wait for a person.
func (p *projector) holdMark(event *historypb.HistoryEvent, mark protocol.HoldMark) {
	at := p.waitingCall(mark.Held, mark.Index)
	p.noteRetried(at)
	p.addEvent(event.GetEventId(), "", p.waitStartEvent(event, at, interpreter.ReasonPerson))
}

// waitingCall returns the call with a name, which is that of a step or the place of a sink.
func (p *projector) waitingCall(name string, index *int) callID {
	at := callID{step: name, visit: p.visit, index: indexOr(index)}
	if step, _, isSink := strings.Cut(name, "."); isSink {
		at.step, at.sink = step, name
		if playbook.IsRunPlace(name) {
			at.step = ""
		}
	}
	if p.visit == 0 {
		at.visit = p.visits[at.step]
	}
	if index == nil && len(p.indexes) == 1 {
		at.index = p.indexes[0]
	}
	return at
}

// waitStartEvent returns the event with which a call's wait begins.
func (p *projector) waitStartEvent(event *historypb.HistoryEvent, at callID, reason interpreter.Reason) Event {
	out := Event{
		Event: StepRetry, At: event.GetEventTime().AsTime(), Step: at.step, Visit: at.visit, Sink: at.sink, Reason: string(reason),
	}
	if at.index >= 0 {
		out.Index = &at.index
	}
	last := p.calls[at]
	if last == nil { // one that waits before its first attempt
		last = &lastAttempt{}
		p.calls[at] = last
	}
	last.waits, last.settled = true, nil
	out.Attempt, out.Page = last.attempt, last.page
	if reason.AfterFailure() {
		out.Error = last.failure
	}
	return out
}

// recordSettled records what people decided about waits. It returns false for other events.
func (p *projector) recordSettled(event *historypb.HistoryEvent) (bool, error) {
	if signal := event.GetWorkflowExecutionSignaledEventAttributes(); signal.GetSignalName() == protocol.ControlSignal {
		var steering protocol.Steering
		if err := p.decodeInput(p.workflowID, signal.GetInput(), &steering); err != nil {
			return true, err
		}
		if steering.Settle != nil {
			p.settleCalls(*steering.Settle)
		}
		for _, then := range steering.Then {
			p.settleCalls(then)
		}
		return true, nil
	}
	request := event.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest()
	if request.GetInput().GetName() != protocol.RetryNowUpdate {
		return request != nil, nil
	}
	var command protocol.CommandInput
	if err := p.decodeInput(p.workflowID, request.GetInput().GetArgs(), &command); err != nil {
		return true, err
	}
	p.settleCalls(protocol.ItemSettlement{
		Step: command.Step, Index: command.Index, Settlement: interpreter.Settlement{By: command.By, Reason: command.Reason},
	})
	return true, nil
}

// settleCalls records what people decided about waiting calls. A skipped call gets a failure that says so.
func (p *projector) settleCalls(decided protocol.ItemSettlement) {
	for at, last := range p.calls {
		index := &at.index
		if at.index < 0 {
			index = nil
		}
		if last.waits && last.settled == nil && !decided.Skip && decided.IsAbout(at.step, index) {
			last.settled = &decided.Settlement
		}
	}
}

// beginAttempt records that a call continues with its next attempt, and returns the decision that ended its wait; nil
// if the wait ended by itself.
func (p *projector) beginAttempt(at callID) *interpreter.Settlement {
	last := p.calls[at]
	if last == nil {
		return nil
	}
	settled := last.settled
	last.waits, last.settled = false, nil
	return settled
}

// summaryOf returns the summary that Temporal's UI shows with an event.
func summaryOf(event interface{ GetUserMetadata() *sdkpb.UserMetadata }) string {
	var summary string
	if payload := event.GetUserMetadata().GetSummary(); payload != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(payload, &summary)
	}
	return summary
}
