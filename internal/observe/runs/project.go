package runs

import (
	"fmt"
	"slices"
	"time"

	historypb "go.temporal.io/api/history/v1"

	"reprise/internal/observe/cost"
	"reprise/internal/observe/histories"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/protocol"
)

// source identifies the history of one workflow run. No history of a run has more than a few thousand events, so each
// is read as a whole.
type source struct {
	workflowID, runID string
	workflow          string // its type
	step              string // "" for the run
	visit             int
	first             bool         // of its chain
	only              map[int]bool // iterations that are requested, nil for all
}

// link is another history to read from a time on: that of a child, or the next of a chain.
type link struct {
	at time.Time
	source
}

// projector converts one history to events of the run. It reads no clock and does no I/O.
type projector struct {
	values
	source
	h      *history
	filter EventFilter
	events []Event
	links  []link
	cost   cost.Cost // of the whole history, whatever the filter
	made   map[int64]*madeActivity
	ended  map[int64]bool // activities
	calls  map[callID]*lastAttempt
	visits map[string]int // of steps, the last that was seen
	// unsent lists the notices whose last attempt failed and, as far as known, is not repeated; decided is the event
	// ID of the workflow's last decision.
	unsent  []failedNotice
	decided int64
	indexes []int                  // of an iteration workflow
	runs    map[int64]*playbookRun // of other playbooks, by the event that initiated them
	limits  map[string]limit       // what timers bound, by their IDs
	late    map[limit]bool         // what did not end in time
	// cancelling are the IDs of the child runs that the workflow has cancelled.
	cancelling map[string]bool
	// lastInput is when something last happened that the workflow had to react to.
	lastInput time.Time
	// cancelled is the request to cancel the run; nil if there was none.
	cancelled *historypb.WorkflowExecutionCancelRequestedEventAttributes
	queued    *QueuePosition // nil while the run does not wait for its turn
}

// callID identifies a call within a history.
type callID struct {
	step  string
	visit int
	index int    // -1 without a loop
	sink  string // its place
}

// limit identifies an attempt whose time is bounded by a timer.
type limit struct {
	callID
	attempt int
}

// lastAttempt is the last attempt of a call.
type lastAttempt struct {
	attempt, page int
	failure       *interpreter.ErrorObject
	// began is when an attempt that is answered from outside began, and awaited since when it has awaited its answer.
	began, awaited time.Time
	// waits is set if the call waits for its next attempt, and settled is what people decided about that; nil if
	// nothing.
	waits   bool
	settled *interpreter.Settlement
}

func indexOr(index *int) int {
	if index == nil {
		return -1
	}
	return *index
}

// projectHistory converts a history to the events of the run, in order, and links to further histories. filter
// selects the events.
func projectHistory(from source, recorded []*historypb.HistoryEvent, filter EventFilter, values values) (*projector, error) {
	p := &projector{
		values: values, source: from, h: newHistory(from.workflowID, from.runID, recorded), filter: filter, cost: cost.OfHistory(recorded),
		made: map[int64]*madeActivity{}, ended: map[int64]bool{},
		calls: map[callID]*lastAttempt{}, visits: map[string]int{}, runs: map[int64]*playbookRun{},
		limits: map[string]limit{}, late: map[limit]bool{}, cancelling: map[string]bool{},
	}
	if err := p.readBegin(recorded); err != nil {
		return nil, err
	}
	for _, event := range recorded {
		if err := p.applyEvent(event); err != nil {
			return nil, err
		}
	}
	last := recorded[len(recorded)-1]
	if err := p.failedNotices(last); err != nil {
		return nil, err
	}
	if err := p.addChildren(); err != nil {
		return nil, err
	}
	if p.h.nextRunID != "" {
		next := from
		next.runID, next.first = p.h.nextRunID, false
		p.links = append(p.links, link{at: last.GetEventTime().AsTime(), source: next})
	}
	return p, nil
}

// sortedEvents returns the requested events, by time.
func (p *projector) sortedEvents() []Event {
	events := slices.DeleteFunc(p.events, func(event Event) bool {
		return p.only != nil && (event.Index == nil || !p.only[*event.Index])
	})
	slices.SortStableFunc(events, func(x, y Event) int { return x.At.Compare(y.At) })
	return events
}

// isOpen reports whether the history may still grow.
func (p *projector) isOpen() bool { return !p.h.isClosed() && p.h.nextRunID == "" }

// addEvent adds an event of the run. by is the history event that caused it, and which distinguishes several events of one
// cause.
func (p *projector) addEvent(by int64, which string, event Event) {
	if event.Step == "" {
		event.Page, event.PageTo = 0, 0 // of a notice of the run: it counts what was reported
	}
	event.key = fmt.Sprintf("%s/%d/%s/%s", p.runID, by, event.Event, which)
	p.events = append(p.events, event)
}

// lastOf returns the last event of a kind that was added for a call; nil if there is none.
func (p *projector) lastOf(kind string, call callID) *Event {
	for i := len(p.events) - 1; i >= 0; i-- {
		if event := &p.events[i]; event.Event == kind && event.callOf() == call {
			return event
		}
	}
	return nil
}

// callOf returns the ID of the call that the event is about.
func (e *Event) callOf() callID { return callID{e.Step, e.Visit, indexOr(e.Index), e.Sink} }

// readBegin reads what calls and steps bring into this history from earlier ones.
func (p *projector) readBegin(recorded []*historypb.HistoryEvent) error {
	first := recorded[0]
	switch p.workflow {
	case protocol.PlaybookWorkflowName:
		p.queued = queueOf(first.GetWorkflowExecutionStartedEventAttributes().GetMemo())
		if p.first {
			started := first.GetWorkflowExecutionStartedEventAttributes()
			said := startedBy(started.GetMemo(), started.GetSearchAttributes().GetIndexedFields())
			p.addEvent(first.GetEventId(), "", Event{Event: ExecutionStarted, At: first.GetEventTime().AsTime(), By: said.By, Reason: said.Reason})
			return nil
		}
		notices, err := p.pendingNotices(p.h.input)
		if err != nil {
			return err
		}
		for _, notice := range notices {
			if state := notice.Call.State; state != nil {
				p.calls[callID{index: -1, sink: notice.Place}] = &lastAttempt{attempt: state.Attempts, page: notice.Number, failure: state.Last.Error}
			}
		}
	case protocol.CallsWorkflowName:
		var input protocol.CallsInput
		if err := p.decodeInput(p.workflowID, p.h.input, &input); err != nil {
			return err
		}
		for _, snapshot := range input.Calls {
			if snapshot.Index != nil {
				p.indexes = append(p.indexes, *snapshot.Index)
			}
			p.restoreCall(snapshot)
		}
	}
	return nil
}

// restoreCall records the earlier progress of a call.
func (p *projector) restoreCall(snapshot call.Snapshot) {
	state := snapshot.State
	if state == nil || state.Attempts == 0 {
		return
	}
	last := &lastAttempt{attempt: state.Attempts, failure: state.Last.Error}
	if state.RequestAttempts > 0 {
		last.page = state.Successes + 1
	}
	if len(state.Todo) > 0 {
		hold := state.Todo[0].Hold
		last.waits = hold != nil && hold.Exhausted // an event of the history before
	}
	p.calls[callID{p.step, p.visit, indexOr(snapshot.Index), ""}] = last
}

// applyEvent converts a history event to events of the run.
func (p *projector) applyEvent(event *historypb.HistoryEvent) error {
	for _, one := range []func(*historypb.HistoryEvent) (bool, error){
		p.playbookEvent, p.activityEvent, p.taskEvent, p.waitEvent, p.recordSettled,
	} {
		if applied, err := one(event); applied || err != nil {
			return err
		}
	}
	if p.workflow == protocol.PlaybookWorkflowName {
		return p.runEvent(event)
	}
	return nil
}

// activityEvent applies an event of an activity. It returns false for other events.
func (p *projector) activityEvent(event *historypb.HistoryEvent) (bool, error) {
	if event.GetActivityTaskScheduledEventAttributes() != nil {
		return true, p.activityScheduled(event)
	}
	if started := event.GetActivityTaskStartedEventAttributes(); started != nil {
		if of := p.made[started.GetScheduledEventId()]; of != nil {
			of.started = event
		}
		return true, nil
	}
	if id := histories.EndedActivity(event); id != 0 && p.made[id] != nil {
		p.ended[id] = true
		return true, p.activityEnded(id, event)
	}
	return false, nil
}

// taskEvent records when the workflow decided, and since when it had to. It returns false for other events.
func (p *projector) taskEvent(event *historypb.HistoryEvent) (bool, error) {
	switch {
	case event.GetWorkflowTaskCompletedEventAttributes() != nil:
		p.decided = event.GetEventId()
	case event.GetWorkflowTaskScheduledEventAttributes() != nil:
		p.lastInput = event.GetEventTime().AsTime()
	default:
		return false, nil
	}
	return true, nil
}

// waitEvent applies timers and markers. It returns false for other events.
func (p *projector) waitEvent(event *historypb.HistoryEvent) (bool, error) {
	switch {
	case event.GetTimerStartedEventAttributes() != nil:
		p.addTimer(event)
	case event.GetMarkerRecordedEventAttributes() != nil:
		p.applyMarker(event)
	default:
		return false, nil
	}
	return true, nil
}
