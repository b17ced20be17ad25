package runs

import (
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// failedNotice is a notice that failed, and the event of its failure.
type failedNotice struct {
	call  callID
	by    int64
	event Event
}

// noteRetried records that a failed notice is retried, or that its failure is ignored.
func (p *projector) noteRetried(notice callID) {
	for i, failed := range slices.Backward(p.unsent) {
		if failed.call == notice {
			p.unsent = slices.Delete(p.unsent, i, i+1)
			return
		}
	}
}

// pendingNotices returns the unsent notices in the input with which a run continues as new.
func (p *projector) pendingNotices(input *commonpb.Payloads) ([]protocol.UnsentNotice, error) {
	var continued struct {
		State struct {
			Unsent []protocol.UnsentNotice `json:"unsent"`
		} `json:"state"`
	}
	err := p.decodeInput(p.workflowID, input, &continued)
	return continued.State.Unsent, err
}

// failedNotices adds the notices that were not sent. They fail no step, so nothing else shows them. last is the last
// event of the history.
func (p *projector) failedNotices(last *historypb.HistoryEvent) error {
	if continued := last.GetWorkflowExecutionContinuedAsNewEventAttributes(); continued != nil && len(p.unsent) > 0 {
		notices, err := p.pendingNotices(continued.GetInput())
		if err != nil {
			return err
		}
		for _, notice := range notices {
			p.noteRetried(callID{index: -1, sink: notice.Place})
		}
	}
	for _, failed := range p.unsent {
		if failed.by < p.decided {
			p.addEvent(failed.by, "", failed.event)
		}
	}
	return nil
}

// applyMarker applies a marker that the workflow recorded.
func (p *projector) applyMarker(event *historypb.HistoryEvent) {
	data := event.GetMarkerRecordedEventAttributes().GetDetails()["data"]
	if len(data.GetPayloads()) == 0 {
		return // of the SDK
	}
	read := func(mark any) bool { return converter.GetDefaultDataConverter().FromPayloads(data, mark) == nil }
	var (
		answer  protocol.AnswerMark
		refused protocol.RefusedMark
		ignored protocol.IgnoredMark
		held    protocol.HoldMark
	)
	switch {
	case read(&answer) && answer.Key != "":
		p.answerMark(event, answer)
	case read(&refused) && refused.Refused != "":
		p.applyRefused(refused)
	case read(&ignored) && ignored.Ignored != "":
		p.ignoredMark(event, ignored)
	case read(&held) && held.Held != "":
		p.holdMark(event, held)
	}
}

// ignoredMark adds that a sink counts as written although its last attempt failed.
func (p *projector) ignoredMark(event *historypb.HistoryEvent, mark protocol.IgnoredMark) {
	at := p.waitingCall(mark.Ignored, mark.Index)
	p.noteRetried(at)
	if failed := p.lastOf(ActionError, at); failed != nil {
		completed := *failed
		completed.Event, completed.Error, completed.Duration, completed.At = SinkCompleted, nil, 0, event.GetEventTime().AsTime()
		p.addEvent(event.GetEventId(), "", completed)
	}
}

// answerMark adds an attempt that is answered from outside: its start, if nothing was sent for it, and its end.
func (p *projector) answerMark(event *historypb.HistoryEvent, mark protocol.AnswerMark) {
	of := &madeActivity{one: attemptInput{Step: mark.Step, Visit: mark.Visit, Index: mark.Index, Page: mark.Page, Attempt: mark.Attempt}}
	p.visits[mark.Step] = mark.Visit
	at, id := event.GetEventTime().AsTime(), event.GetEventId()
	if !mark.Over {
		of.settled = p.beginAttempt(of.one.callOf())
		started := p.attemptStarted(of)
		started.At = at
		p.addEvent(id, "", started)
		p.calls[of.one.callOf()].began = at
		p.addAwaits(id, started, at)
		return
	}
	last := p.calls[of.one.callOf()]
	if last == nil || last.attempt != mark.Attempt { // it began in a history before
		p.attemptStarted(of)
		last = p.calls[of.one.callOf()]
	}
	last.failure = mark.Error
	if !p.lastInput.Before(last.began) && !p.lastInput.Before(last.awaited) { // the answer, or the end of its time: what follows is decided after it
		at = p.lastInput
	}
	end := attemptEnded(Event{Step: mark.Step, Visit: mark.Visit, Index: mark.Index, Attempt: mark.Attempt, Page: mark.Page}, at, mark.Error)
	end.By, end.Option = mark.By, mark.Option
	if !last.began.IsZero() {
		end.Duration = at.Sub(last.began).Seconds()
	}
	p.addEvent(id, "", end)
}

// addAwaits adds that an attempt awaits its answer.
func (p *projector) addAwaits(by int64, started Event, at time.Time) {
	awaits := started
	awaits.Event, awaits.At, awaits.Reason, awaits.IsRetry, awaits.By = AnswerAwaited, at, string(interpreter.ReasonAnswer), false, ""
	p.addEvent(by, "", awaits)
	p.calls[started.callOf()].awaited = at
}
