package runs

import (
	"cmp"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
	"reprise/interpreter/service"
	"reprise/workflows/protocol"
)

// madeActivity is an activity and what is known about it.
type madeActivity struct {
	scheduled time.Time
	id        string
	one       attemptInput            // of a tool
	many      *call.DriveInput        // of the one that hosts calls
	input     *commonpb.Payloads      // of the same
	started   *historypb.HistoryEvent // nil until it has ended
	settled   *interpreter.Settlement // by which people have let it begin, nil for none
}

// beganAt returns the earliest time at which the activity's first delivery may have begun. History has only the start
// of the last delivery, which includes what earlier ones did.
func (m *madeActivity) beganAt() time.Time {
	if m.started.GetActivityTaskStartedEventAttributes().GetAttempt() > 1 {
		return m.scheduled
	}
	return m.started.GetEventTime().AsTime()
}

// attemptInput is the part of a ToolInput that events need.
type attemptInput struct {
	Step    string `json:"step"`
	Visit   int    `json:"visit"`
	Index   *int   `json:"index"`
	Page    int    `json:"page"`
	Attempt int    `json:"attempt"`
	Place   string `json:"place"`
	Sends   string `json:"sends"`
	// RateLimit is set if the attempt waits for its turn under a rate limit.
	RateLimit *struct{} `json:"rate_limit"`
}

func (in attemptInput) callOf() callID { return callID{in.Step, in.Visit, indexOr(in.Index), in.Place} }

func (p *projector) activityScheduled(event *historypb.HistoryEvent) error {
	attributes := event.GetActivityTaskScheduledEventAttributes()
	if service.IsActivity(attributes.GetActivityType().GetName()) {
		return nil
	}
	of := &madeActivity{id: attributes.GetActivityId(), scheduled: event.GetEventTime().AsTime()}
	if attributes.GetActivityType().GetName() == call.DriveActivity {
		of.many, of.input = &call.DriveInput{}, attributes.GetInput()
		if err := p.decodeInput(p.workflowID, attributes.GetInput(), of.many); err != nil {
			return err
		}
		p.visits[of.many.Task.Step] = of.many.Task.Visit
		for _, snapshot := range of.many.Calls {
			p.beginAttempt(callID{of.many.Task.Step, of.many.Task.Visit, indexOr(snapshot.Index), ""})
		}
	} else {
		if err := p.decodeInput(p.workflowID, attributes.GetInput(), &of.one); err != nil {
			return err
		}
		p.visits[of.one.Step] = of.one.Visit
		of.settled = p.beginAttempt(of.one.callOf())
		if of.one.Attempt > 1 {
			p.noteRetried(of.one.callOf())
		}
	}
	p.made[event.GetEventId()] = of
	return nil
}

// activityEnded adds the end of an attempt, or the attempts of calls that an activity hosted together.
func (p *projector) activityEnded(id int64, event *historypb.HistoryEvent) error {
	of := p.made[id]
	if of.many != nil {
		return p.hostEnded(id, event)
	}
	failure, wasMade, err := p.attemptFailure(of, event)
	if err != nil || !wasMade {
		return err
	}
	if of.one.Sends != "" && of.one.Sends != "on_start" {
		return nil // it informs others of the end of an attempt
	}
	waited, err := p.turnOf(of, event)
	if err != nil {
		return err
	}
	started := p.attemptStarted(of)
	started.At = p.addTurn(id, "", started, started.Attempt-1, waited)
	if of.one.Sends != "" && failure == nil { // how it ends is said from outside
		p.addEvent(id, "", started)
		p.calls[of.one.callOf()].began = started.At
		p.addAwaits(id, started, event.GetEventTime().AsTime())
		return nil
	}
	end := attemptEnded(started, event.GetEventTime().AsTime(), failure)
	if of.started != nil {
		end.Duration = end.At.Sub(started.At).Seconds()
		if n := int(of.started.GetActivityTaskStartedEventAttributes().GetAttempt()); n > 1 {
			end.Deliveries = n
		}
	}
	p.addEvent(id, "", started)
	p.addEvent(id, "", end)
	p.calls[of.one.callOf()].failure = failure
	switch {
	case of.one.Place != "" && failure == nil:
		end.Event, end.Duration = SinkCompleted, 0
		p.addEvent(id, "", end)
	case playbook.IsNoticePlace(of.one.Place):
		end.Event, end.Duration = SinkFailed, 0
		p.unsent = append(p.unsent, failedNotice{call: of.one.callOf(), by: event.GetEventId(), event: end})
	}
	return nil
}

// attemptFailure returns how an attempt failed, nil if it succeeded; false for an attempt that was not made.
func (p *projector) attemptFailure(of *madeActivity, event *historypb.HistoryEvent) (*interpreter.ErrorObject, bool, error) {
	if recorded := failureOf(event); recorded != nil {
		if err := p.resolve(event); err != nil {
			return nil, false, fmt.Errorf("read how an attempt of %s ended: %w", p.workflowID, err)
		}
		return protocol.AttemptError(temporal.GetDefaultFailureConverter().FailureToError(recorded)), true, nil
	}
	if event.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED {
		return protocol.AttemptError(temporal.NewCanceledError()), of.started != nil, nil
	}
	return nil, !wasPutOff(event.GetActivityTaskCompletedEventAttributes().GetResult()), nil
}

// maxPutOff is more than the encoded result of a postponed attempt takes, in bytes. Larger results are not decoded to
// find out whether they are one, which would decode every page of a run.
const maxPutOff = 4 << 10

// wasPutOff reports whether a result says that the attempt was postponed and not made.
func wasPutOff(result *commonpb.Payloads) bool {
	if len(result.GetPayloads()) != 1 || len(result.GetPayloads()[0].GetData()) > maxPutOff {
		return false
	}
	var read struct {
		PutOff *interpreter.PutOff `json:"put_off"`
	}
	return converter.GetDefaultDataConverter().FromPayloads(result, &read) == nil && read.PutOff != nil
}

// attemptStarted returns the start event of an attempt, and makes it the last attempt of its call.
func (p *projector) attemptStarted(of *madeActivity) Event {
	in := of.one
	started := Event{
		Event: ActionStarted, Step: in.Step, Visit: in.Visit, Index: in.Index, Sink: in.Place, Attempt: in.Attempt, Page: in.Page,
	}
	if of.started != nil {
		started.At = of.started.GetEventTime().AsTime()
	}
	last := p.calls[in.callOf()]
	if last == nil {
		last = &lastAttempt{}
		p.calls[in.callOf()] = last
	}
	started.IsRetry = last.attempt > 0 && last.page == in.Page
	if of.settled != nil {
		started.By, started.Reason = of.settled.By, of.settled.Reason
	}
	last.attempt, last.page = in.Attempt, in.Page
	return started
}

// attemptEnded returns the end event of an attempt.
func attemptEnded(started Event, at time.Time, failure *interpreter.ErrorObject) Event {
	end := started
	end.At, end.Error, end.Event = at, failure, ActionCompleted
	end.IsRetry, end.By, end.Reason = false, "", ""
	if failure != nil {
		end.Event = ActionError
	}
	return end
}

func failureOf(event *historypb.HistoryEvent) *failurepb.Failure {
	return cmp.Or(event.GetActivityTaskFailedEventAttributes().GetFailure(), event.GetActivityTaskTimedOutEventAttributes().GetFailure())
}
