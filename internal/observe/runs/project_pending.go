package runs

import (
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// addPending adds the running attempts, for which the history has no event yet.
func (p *projector) addPending(activities []*workflowpb.PendingActivityInfo) {
	for _, activity := range activities {
		if activity.GetState() != enumspb.PENDING_ACTIVITY_STATE_STARTED {
			continue
		}
		for id, of := range p.made {
			switch {
			case of.id != activity.GetActivityId() || p.ended[id]:
			case of.many != nil:
				p.pendingHost(id, of, activity)
			default:
				p.pendingAttempt(id, of, activity)
			}
		}
	}
}

func (p *projector) pendingAttempt(id int64, of *madeActivity, activity *workflowpb.PendingActivityInfo) {
	started := p.attemptStarted(of)
	started.At = activity.GetLastStartedTime().AsTime()
	if of.one.RateLimit != nil && !hasBegun(activity.GetHeartbeatDetails()) {
		started = beforeTurn(started)
	}
	p.addEvent(id, "", started)
}

// beforeTurn returns the wait of an attempt that has not begun for its turn.
func beforeTurn(started Event) Event {
	started.Event, started.Reason = StepRetry, string(interpreter.ReasonTurn)
	started.Attempt, started.IsRetry = started.Attempt-1, false
	return started
}

// hostHeartbeat is the content of heartbeats of an activity that hosts calls.
type hostHeartbeat struct {
	Calls []*call.Driven `json:"calls"`
	Doing []call.Doing   `json:"doing"`
	// Step is the progress of a step's call; nil for calls of a loop.
	Step *interpreter.HostedStep `json:"step"`
}

// pendingHost adds what an activity that hosts calls has done and is doing, from its last heartbeat. It adds nothing
// when following a run: the activity's end reports the same attempts grouped differently.
func (p *projector) pendingHost(id int64, of *madeActivity, activity *workflowpb.PendingActivityInfo) {
	var read hostHeartbeat
	if p.filter.Follow || len(activity.GetHeartbeatDetails().GetPayloads()) == 0 ||
		p.decodeInput(p.workflowID, activity.GetHeartbeatDetails(), &read) != nil {
		return
	}
	now := activity.GetLastHeartbeatTime()
	begun := *of
	begun.started = &historypb.HistoryEvent{EventTime: activity.GetLastStartedTime()}
	if activity.GetAttempt() > 1 { // it has taken over what others have done
		begun.started.EventTime = timestamppb.New(of.scheduled)
	}
	for _, doing := range read.Doing {
		if doing.Call < len(read.Calls) && len(doing.Made) > 0 {
			read.Calls[doing.Call] = nil // it is behind
		}
	}
	for i, driven := range read.Calls {
		if driven != nil && i < len(of.many.Calls) {
			p.hostedCall(id, now.AsTime(), &begun, of.many.Calls[i], *driven)
		}
	}
	for _, doing := range read.Doing {
		if doing.Call < len(of.many.Calls) {
			p.addDoing(id, &begun, doing, now.AsTime())
		}
	}
}

// addDoing adds the attempts of a hosted call that is making another one.
func (p *projector) addDoing(id int64, of *madeActivity, doing call.Doing, now time.Time) {
	in := attemptInput{
		Step: of.many.Task.Step, Visit: of.many.Task.Visit, Index: of.many.Calls[doing.Call].Index,
		Attempt: doing.Attempt, Page: doing.Page,
	}
	which := fmt.Sprint(indexOr(in.Index))
	if len(doing.Made) > 0 {
		first := Event{Step: in.Step, Visit: in.Visit, Index: in.Index, At: of.beganAt()}
		p.addAttempts(id, which, first, doing.Made, now)
		last := doing.Made[len(doing.Made)-1]
		p.calls[in.callOf()] = &lastAttempt{attempt: max(last.Attempt, last.AttemptTo), page: max(last.Page, last.PageTo), failure: last.Error}
	}
	started := p.attemptStarted(&madeActivity{one: in})
	if started.At = doing.Since; doing.Turn {
		started = beforeTurn(started)
	}
	p.addEvent(id, "doing/"+which, started)
}
