package runs

import (
	"time"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"reprise/interpreter"
	"reprise/workflows"
)

// marked applies what a workflow has recorded as a marker.
func (p *projector) marked(event *historypb.HistoryEvent) {
	data := event.GetMarkerRecordedEventAttributes().GetDetails()["data"]
	if len(data.GetPayloads()) == 0 {
		return // of the SDK
	}
	var mark workflows.AnswerMark
	if converter.GetDefaultDataConverter().FromPayloads(data, &mark) == nil && mark.Key != "" {
		p.answerMark(event, mark)
		return
	}
	var refused workflows.RefusedMark
	if converter.GetDefaultDataConverter().FromPayloads(data, &refused) == nil && refused.Refused != "" {
		p.refusedMark(refused)
		return
	}
	var held workflows.HoldMark
	if converter.GetDefaultDataConverter().FromPayloads(data, &held) == nil && held.Held != "" {
		p.holdMark(event, held)
	}
}

// answerMark adds an attempt that is answered from outside: where it began without
// sending anything, and how it ended.
func (p *projector) answerMark(event *historypb.HistoryEvent, mark workflows.AnswerMark) {
	of := &made{one: attemptInput{Step: mark.Step, Visit: mark.Visit, Index: mark.Index, Page: mark.Page, Attempt: mark.Attempt}}
	p.visits[mark.Step] = mark.Visit
	at, id := event.GetEventTime().AsTime(), event.GetEventId()
	if !mark.Over {
		of.settled = p.begins(of.one.call())
		started := p.attemptStarted(of)
		started.At = at
		p.add(id, "", started)
		p.calls[of.one.call()].began = at
		p.awaits(id, started, at)
		return
	}
	last := p.calls[of.one.call()]
	if last == nil || last.attempt != mark.Attempt { // it began in a history before
		p.attemptStarted(of)
		last = p.calls[of.one.call()]
	}
	last.failure = mark.Error
	if !p.lastInput.Before(last.began) && !p.lastInput.Before(last.awaited) { // the answer, or the end of its time: what follows is decided after it
		at = p.lastInput
	}
	end := Event{
		Event: ActionCompleted, At: at, Step: mark.Step, Visit: mark.Visit, Index: mark.Index, Attempt: mark.Attempt, Page: mark.Page,
		Error: mark.Error, By: mark.By, Option: mark.Option,
	}
	if mark.Error != nil {
		end.Event = ActionError
	}
	if !last.began.IsZero() {
		end.Duration = at.Sub(last.began).Seconds()
	}
	p.add(id, "", end)
}

// awaits adds that an attempt which was sent, or sends nothing, awaits its answer.
func (p *projector) awaits(by int64, started Event, at time.Time) {
	awaits := started
	awaits.Event, awaits.At, awaits.Reason, awaits.IsRetry, awaits.By = AnswerAwaited, at, string(interpreter.ReasonAnswer), false, ""
	p.add(by, "", awaits)
	p.calls[callID{started.Step, started.Visit, indexOr(started.Index), started.Sink}].awaited = at
}
