package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/workflows"
)

// source is a history whose events are told. No history of a run has more than a
// few thousand, so one is read as a whole.
type source struct {
	workflowID, runID string
	workflow          string // its type
	step              string // "" for the run
	visit             int
	first             bool         // of its chain
	only              map[int]bool // iterations that are asked for, nil for all
}

// teller turns one history into events.
type teller struct {
	*Reader
	source
	h      *history
	ask    Ask
	events []Event
	below  []opening // histories to be told too
	made   map[int64]*made
	ended  map[int64]bool // activities
	calls  map[call]*lastMade
	visits map[string]int // of steps, the last that was seen
	// unsent are the notices whose last attempt has failed and is not made again as
	// far as is known; decided is the last event by which a workflow has decided.
	unsent  []unsent
	decided int64
	indexes []int             // of an iteration workflow
	runs    map[int64]*played // of other playbooks, by the event that asked for them
	limits  map[string]string // timers that bound them, with what these are called
	late    map[string]bool   // those that did not end in time
	given   map[string]bool   // those that the workflow has cancelled, by their IDs
	// stirred is when something last happened that the workflow had to decide about.
	stirred time.Time
	// cancelled is why the run was to be cancelled, nil where nobody asked for it.
	cancelled *historypb.WorkflowExecutionCancelRequestedEventAttributes
	queued    *Queue // nil while the run does not wait for its turn
}

// opening is a history below another, or the next of its chain.
type opening struct {
	at time.Time
	source
}

// call tells the calls within a history apart.
type call struct {
	step  string
	visit int
	index int    // -1 without a loop
	sink  string // its place
}

// lastMade is the attempt that a call made last.
type lastMade struct {
	attempt, page int
	failure       *interpreter.ErrorObject
	began         time.Time // of one that is answered from outside
	// waits says that the call waits for its next attempt, and settled is what people
	// have decided about that; nil for nothing.
	waits   bool
	settled *interpreter.Settlement
}

// unsent is a notice that failed, and the event that said so.
type unsent struct {
	call  call
	by    int64
	event Event
}

// made is an activity.
type made struct {
	scheduled time.Time // when its workflow asked for it; no delivery has begun before
	id        string
	one       attemptInput            // of a tool
	many      *interpreter.DriveInput // of the one that hosts calls
	input     *commonpb.Payloads      // of the same
	started   *historypb.HistoryEvent // nil until it has ended
	settled   *interpreter.Settlement // by which people have let it begin, nil for none
}

// began is when the activity's first delivery may have begun: history has the start of the
// last one alone, which takes over what others have done.
func (m *made) began() time.Time {
	if m.started.GetActivityTaskStartedEventAttributes().GetAttempt() > 1 {
		return m.scheduled
	}
	return m.started.GetEventTime().AsTime()
}

// attemptInput is what events need of a ToolInput.
type attemptInput struct {
	Step    string `json:"step"`
	Visit   int    `json:"visit"`
	Index   *int   `json:"index"`
	Page    int    `json:"page"`
	Attempt int    `json:"attempt"`
	Place   string `json:"place"`
	Sends   string `json:"sends"`
}

// tell reads a history and gives its events in their order, and what goes on in
// others.
func (r *Reader) tell(ctx context.Context, from source, ask Ask) (*teller, error) {
	t := &teller{
		Reader: r, source: from, ask: ask, made: map[int64]*made{}, ended: map[int64]bool{},
		calls: map[call]*lastMade{}, visits: map[string]int{}, runs: map[int64]*played{},
		limits: map[string]string{}, late: map[string]bool{}, given: map[string]bool{},
	}
	var events []*historypb.HistoryEvent
	var err error
	t.h, err = r.readEach(ctx, from.workflowID, from.runID, func(event *historypb.HistoryEvent) { events = append(events, event) })
	if err != nil {
		return nil, err
	}
	if err := t.begin(ctx, events[0]); err != nil {
		return nil, err
	}
	for _, event := range events {
		if err := t.take(ctx, event); err != nil {
			return nil, err
		}
	}
	if err := t.failedNotices(ctx, events[len(events)-1]); err != nil {
		return nil, err
	}
	if err := t.children(ctx); err != nil {
		return nil, err
	}
	if err := t.pending(ctx); err != nil {
		return nil, err
	}
	if t.h.nextRunID != "" {
		next := from
		next.runID, next.first = t.h.nextRunID, false
		t.below = append(t.below, opening{at: events[len(events)-1].GetEventTime().AsTime(), source: next})
	}
	t.events = slices.DeleteFunc(t.events, func(event Event) bool {
		return t.only != nil && (event.Index == nil || !t.only[*event.Index])
	})
	slices.SortStableFunc(t.events, func(x, y Event) int { return x.At.Compare(y.At) })
	return t, nil
}

// goesOn reports whether more may happen in the history.
func (t *teller) goesOn() bool { return !t.h.closed() && t.h.nextRunID == "" }

// add notes an event; told by which event of the history, and which of those.
func (t *teller) add(by int64, which string, event Event) {
	if event.Step == "" {
		event.Page, event.PageTo = 0, 0 // of a notice of the run: it counts what was told
	}
	event.key = fmt.Sprintf("%s/%d/%s/%s", t.runID, by, event.Event, which)
	t.events = append(t.events, event)
}

// begin reads what calls bring along into this history.
func (t *teller) begin(ctx context.Context, first *historypb.HistoryEvent) error {
	switch t.workflow {
	case workflows.PlaybookWorkflowName:
		t.queued = queueOf(first.GetWorkflowExecutionStartedEventAttributes().GetMemo())
		if t.first {
			t.add(first.GetEventId(), "", Event{Event: ExecutionStarted, At: first.GetEventTime().AsTime()})
			return nil
		}
		untold, err := t.untold(ctx, t.h.input)
		if err != nil {
			return err
		}
		for _, notice := range untold {
			if state := notice.Call.State; state != nil {
				t.calls[call{index: -1, sink: notice.Place}] = &lastMade{attempt: state.Attempts, page: notice.Number, failure: state.Last.Error}
			}
		}
	case workflows.IterationWorkflowName:
		var input workflows.IterationInput
		if err := t.decode(ctx, t.workflowID, t.h.input, &input); err != nil {
			return err
		}
		for _, carried := range input.Calls {
			t.indexes = append(t.indexes, *carried.Index)
			t.carried(carried)
		}
	case workflows.CallWorkflowName:
		var input workflows.CallInput
		if err := t.decode(ctx, t.workflowID, t.h.input, &input); err != nil {
			return err
		}
		t.carried(input.Call)
	}
	return nil
}

// carried notes how far a call had come before.
func (t *teller) carried(carried interpreter.Carried) {
	state := carried.State
	if state == nil || state.Attempts == 0 {
		return
	}
	last := &lastMade{attempt: state.Attempts, failure: state.Last.Error}
	if state.RequestAttempts > 0 {
		last.page = state.Successes + 1
	}
	if len(state.Todo) > 0 {
		hold := state.Todo[0].Hold
		last.waits = hold != nil && hold.Exhausted // told in the history before
	}
	t.calls[call{t.step, t.visit, indexOr(carried.Index), ""}] = last
}

func indexOr(index *int) int {
	if index == nil {
		return -1
	}
	return *index
}

// take turns an event of the history into those of the run.
func (t *teller) take(ctx context.Context, event *historypb.HistoryEvent) error {
	if of, err := t.plays(ctx, event); of || err != nil {
		return err
	}
	if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
		return t.scheduled(ctx, event)
	}
	if started := event.GetActivityTaskStartedEventAttributes(); started != nil {
		if of := t.made[started.GetScheduledEventId()]; of != nil {
			of.started = event
		}
		return nil
	}
	if event.GetWorkflowTaskCompletedEventAttributes() != nil {
		t.decided = event.GetEventId()
		return nil
	}
	if timer := event.GetTimerStartedEventAttributes(); timer != nil {
		t.timer(event)
		return nil
	}
	if event.GetWorkflowTaskScheduledEventAttributes() != nil {
		t.stirred = event.GetEventTime().AsTime()
		return nil
	}
	if marker := event.GetMarkerRecordedEventAttributes(); marker != nil {
		t.marked(event)
		return nil
	}
	if of, err := t.settles(ctx, event); of || err != nil {
		return err
	}
	if written := event.GetWorkflowPropertiesModifiedEventAttributes(); written != nil {
		t.queues(event, written.GetUpsertedMemo())
		return nil
	}
	if cancelled := event.GetWorkflowExecutionCancelRequestedEventAttributes(); cancelled != nil {
		t.cancelled = cancelled
		return nil
	}
	if id := endedActivity(event); id != 0 && t.made[id] != nil {
		t.ended[id] = true
		return t.activity(ctx, id, event)
	}
	if t.workflow == workflows.PlaybookWorkflowName {
		return t.closed(ctx, event)
	}
	return nil
}

// endedActivity is the event that scheduled the activity whose end an event is; 0
// for other events.
func endedActivity(event *historypb.HistoryEvent) int64 {
	for _, attributes := range []interface{ GetScheduledEventId() int64 }{
		event.GetActivityTaskCompletedEventAttributes(), event.GetActivityTaskFailedEventAttributes(),
		event.GetActivityTaskTimedOutEventAttributes(), event.GetActivityTaskCanceledEventAttributes(),
	} {
		if id := attributes.GetScheduledEventId(); id != 0 { // nil attributes give 0
			return id
		}
	}
	return 0
}

func (t *teller) scheduled(ctx context.Context, event *historypb.HistoryEvent) error {
	attributes := event.GetActivityTaskScheduledEventAttributes()
	if interpreter.IsServiceActivity(attributes.GetActivityType().GetName()) {
		return nil
	}
	of := &made{id: attributes.GetActivityId(), scheduled: event.GetEventTime().AsTime()}
	if attributes.GetActivityType().GetName() == interpreter.DriveActivity {
		of.many, of.input = &interpreter.DriveInput{}, attributes.GetInput()
		if err := t.decode(ctx, t.workflowID, attributes.GetInput(), of.many); err != nil {
			return err
		}
		t.visits[of.many.Task.Step] = of.many.Task.Visit
		for _, carried := range of.many.Calls {
			t.begins(call{of.many.Task.Step, of.many.Task.Visit, indexOr(carried.Index), ""})
		}
	} else {
		if err := t.decode(ctx, t.workflowID, attributes.GetInput(), &of.one); err != nil {
			return err
		}
		t.visits[of.one.Step] = of.one.Visit
		of.settled = t.begins(of.one.call())
		if of.one.Attempt > 1 {
			t.goesOnWith(of.one.call())
		}
	}
	t.made[event.GetEventId()] = of
	return nil
}

// activity tells an attempt, or those of calls that were hosted together.
func (t *teller) activity(ctx context.Context, id int64, event *historypb.HistoryEvent) error {
	of := t.made[id]
	if of.many != nil {
		return t.hosted(ctx, id, event)
	}
	failure, wasMade, err := t.attemptFailure(ctx, of, event)
	if err != nil || !wasMade {
		return err
	}
	if of.one.Sends != "" && of.one.Sends != "on_start" {
		return nil // it tells of the end of an attempt
	}
	started := t.attemptStarted(of)
	if of.one.Sends != "" && failure == nil { // how it ends is said from outside
		t.add(id, "", started)
		t.calls[of.one.call()].began = started.At
		return nil
	}
	end := started
	end.At, end.Error, end.Event = event.GetEventTime().AsTime(), failure, ActionCompleted
	end.IsRetry, end.By, end.Reason = false, "", ""
	if failure != nil {
		end.Event = ActionError
	}
	if of.started != nil {
		end.Duration = end.At.Sub(started.At).Seconds()
		if n := int(of.started.GetActivityTaskStartedEventAttributes().GetAttempt()); n > 1 {
			end.Deliveries = n
		}
	}
	t.add(id, "", started)
	t.add(id, "", end)
	t.calls[of.one.call()].failure = failure
	switch {
	case of.one.Place != "" && failure == nil:
		end.Event, end.Duration = SinkCompleted, 0
		t.add(id, "", end)
	case playbook.OfNotice(of.one.Place):
		end.Event, end.Duration = SinkFailed, 0
		t.unsent = append(t.unsent, unsent{call: of.one.call(), by: event.GetEventId(), event: end})
	}
	return nil
}

// attemptFailure is how an attempt failed, nil where it did not. It is false for an
// attempt that was not made.
func (t *teller) attemptFailure(ctx context.Context, of *made, event *historypb.HistoryEvent) (*interpreter.ErrorObject, bool, error) {
	if told := failureOf(event); told != nil {
		if err := t.Store.Resolve(ctx, event); err != nil {
			return nil, false, fmt.Errorf("read how an attempt of %s ended: %w", t.workflowID, err)
		}
		failure := workflows.AttemptError(temporal.GetDefaultFailureConverter().FailureToError(told))
		return failure, !failure.PutOff(), nil
	}
	if event.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED {
		return workflows.AttemptError(temporal.NewCanceledError()), of.started != nil, nil
	}
	return nil, true, nil
}

// goesOnWith says that a notice that failed is made again.
func (t *teller) goesOnWith(notice call) {
	for i, failed := range slices.Backward(t.unsent) {
		if failed.call == notice {
			t.unsent = slices.Delete(t.unsent, i, i+1)
			return
		}
	}
}

// untold are the notices of a run that goes on with an input.
func (t *teller) untold(ctx context.Context, input *commonpb.Payloads) ([]workflows.Untold, error) {
	var goesOn struct {
		State struct {
			Untold []workflows.Untold `json:"untold"`
		} `json:"state"`
	}
	err := t.decode(ctx, t.workflowID, input, &goesOn)
	return goesOn.State.Untold, err
}

// failedNotices tells of the notices that were not sent. No step fails with them, so
// nothing else tells it. last is the last event of the history.
func (t *teller) failedNotices(ctx context.Context, last *historypb.HistoryEvent) error {
	if goesOn := last.GetWorkflowExecutionContinuedAsNewEventAttributes(); goesOn != nil && len(t.unsent) > 0 {
		untold, err := t.untold(ctx, goesOn.GetInput())
		if err != nil {
			return err
		}
		for _, notice := range untold {
			t.goesOnWith(call{index: -1, sink: notice.Place})
		}
	}
	for _, failed := range t.unsent {
		if failed.by < t.decided {
			t.add(failed.by, "", failed.event)
		}
	}
	return nil
}

func (in attemptInput) call() call { return call{in.Step, in.Visit, indexOr(in.Index), in.Place} }

// attemptStarted is the start of an attempt, which becomes its call's last.
func (t *teller) attemptStarted(of *made) Event {
	in := of.one
	started := Event{
		Event: ActionStarted, Step: in.Step, Visit: in.Visit, Index: in.Index, Sink: in.Place, Attempt: in.Attempt, Page: in.Page,
	}
	if of.started != nil {
		started.At = of.started.GetEventTime().AsTime()
	}
	last := t.calls[in.call()]
	if last == nil {
		last = &lastMade{}
		t.calls[in.call()] = last
	}
	started.IsRetry = last.attempt > 0 && last.page == in.Page
	if of.settled != nil {
		started.By, started.Reason = of.settled.By, of.settled.Reason
	}
	last.attempt, last.page = in.Attempt, in.Page
	return started
}

// marked tells what a workflow has noted in its history.
func (t *teller) marked(event *historypb.HistoryEvent) {
	data := event.GetMarkerRecordedEventAttributes().GetDetails()["data"]
	if len(data.GetPayloads()) == 0 {
		return // of the SDK
	}
	var asked workflows.AskMark
	if converter.GetDefaultDataConverter().FromPayloads(data, &asked) == nil && asked.Key != "" {
		t.asked(event, asked)
		return
	}
	var held workflows.HoldMark
	if converter.GetDefaultDataConverter().FromPayloads(data, &held) == nil && held.Held != "" {
		t.held(event, held)
	}
}

// asked tells an attempt that is answered from outside: where it began without
// sending anything, and how it ended.
func (t *teller) asked(event *historypb.HistoryEvent, mark workflows.AskMark) {
	of := &made{one: attemptInput{Step: mark.Step, Visit: mark.Visit, Index: mark.Index, Page: mark.Page, Attempt: mark.Attempt}}
	t.visits[mark.Step] = mark.Visit
	at, id := event.GetEventTime().AsTime(), event.GetEventId()
	if !mark.Over {
		of.settled = t.begins(of.one.call())
		started := t.attemptStarted(of)
		started.At = at
		t.add(id, "", started)
		t.calls[of.one.call()].began = at
		return
	}
	last := t.calls[of.one.call()]
	if last == nil || last.attempt != mark.Attempt { // it began in a history before
		t.attemptStarted(of)
		last = t.calls[of.one.call()]
	}
	last.failure = mark.Error
	if !t.stirred.Before(last.began) { // the answer, or the end of its time: what follows is decided after it
		at = t.stirred
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
	t.add(id, "", end)
}

func failureOf(event *historypb.HistoryEvent) *failurepb.Failure {
	return cmp.Or(event.GetActivityTaskFailedEventAttributes().GetFailure(), event.GetActivityTaskTimedOutEventAttributes().GetFailure())
}

// hosted tells what an activity did that hosts calls: of each one pair for attempts that
// succeeded one after the other, and one for each that failed.
func (t *teller) hosted(ctx context.Context, id int64, event *historypb.HistoryEvent) error {
	of, output := t.made[id], interpreter.DriveOutput{}
	if err := t.Store.Resolve(ctx, event); err != nil {
		return fmt.Errorf("read what an activity of %s did: %w", t.workflowID, err)
	}
	var payloads *commonpb.Payloads
	switch {
	case event.GetActivityTaskCompletedEventAttributes() != nil:
		payloads = event.GetActivityTaskCompletedEventAttributes().GetResult()
	case event.GetActivityTaskCanceledEventAttributes() != nil:
		payloads = event.GetActivityTaskCanceledEventAttributes().GetDetails()
	default:
		if !failed(failureOf(event), &output) {
			return nil // it told nothing; its calls are made one at a time
		}
	}
	if len(payloads.GetPayloads()) > 0 {
		if err := converter.GetDefaultDataConverter().FromPayloads(payloads, &output); err != nil {
			return fmt.Errorf("decode what an activity of %s did: %w", t.workflowID, err)
		}
	}
	sinks := sync.OnceValues(func() (bool, error) { return t.hasSinks(ctx, of) })
	for i, driven := range output.Calls {
		if i == len(of.many.Calls) {
			break
		}
		if err := t.driven(id, event.GetEventTime().AsTime(), of, of.many.Calls[i], driven, sinks); err != nil {
			return err
		}
	}
	return nil
}

// driven tells what became of one hosted call; sinks says whether its step has some,
// which may have to be read from a payload store.
func (t *teller) driven(
	id int64, ended time.Time, of *made, carried interpreter.Carried, driven interpreter.Driven, sinks func() (bool, error),
) error {
	var before interpreter.CallState
	if carried.State != nil {
		before = *carried.State
	}
	after, failure := reached(before, driven)
	task, which := of.many.Task, fmt.Sprint(indexOr(carried.Index))
	event := Event{Step: task.Step, Visit: task.Visit, Index: carried.Index, At: ended}
	if of.started != nil {
		event.At = of.began()
	}
	t.unwritten(id, which, event, driven.Unwritten, ended)
	if after.Attempts <= before.Attempts {
		return nil
	}
	made := driven.Made
	if !made.Cover(before.Attempts+1, after.Attempts) {
		made = stretches(before, after, failure, driven.Result, ended)
	} else if failure != nil {
		made = append(made[:len(made)-1:len(made)-1], made[len(made)-1])
		made[len(made)-1].Error = failure // it has all of it
	}
	// A page may be behind the last attempt, and what comes first is the next.
	event.IsRetry = before.RequestAttempts > 0 && before.Last.Error != nil
	attempted := t.stretches(id, which, event, made, ended)
	if after.Written > before.Written {
		has, err := sinks()
		if err != nil {
			return err
		}
		if has {
			event.Event, event.At, event.Attempt, event.AttemptTo, event.IsRetry = SinkCompleted, writtenAt(attempted, driven, ended), 0, 0, false
			event.Page, event.PageTo = pagesWritten(before, after, driven.Outcome)
			t.add(id, which, event)
		}
	}
	t.calls[call{task.Step, task.Visit, indexOr(carried.Index), ""}] = &lastMade{
		attempt: after.Attempts, page: after.Successes + 1, failure: failure,
	}
	return nil
}

// unwritten adds the attempts of a hosted call's sinks that failed, which were made from the
// time of first on.
func (t *teller) unwritten(id int64, which string, first Event, failed interpreter.Stretches, ended time.Time) {
	event, at := first, first.At
	for i, stretch := range failed {
		event.Sink, event.IsRetry = stretch.Place, stretch.Attempt > 1
		event.Attempt, event.AttemptTo, event.Page = stretch.Attempt, stretch.AttemptTo, stretch.Page
		event.At = between(at, stretch.Began, ended)
		at = between(event.At, stretch.Ended, ended)
		t.pair(id, fmt.Sprintf("%s/%s/%d", which, stretch.Place, i), event, at, stretch.Error)
	}
}

// stretches tells attempts of a call, from the time of first on, and gives when the last
// ended.
func (t *teller) stretches(id int64, which string, first Event, made interpreter.Stretches, ended time.Time) time.Time {
	event, at := first, first.At
	for i, stretch := range made {
		event.Attempt, event.AttemptTo, event.Page, event.PageTo = stretch.Attempt, stretch.AttemptTo, stretch.Page, stretch.PageTo
		if event.PageTo == event.Page && event.AttemptTo == 0 {
			event.PageTo = 0
		}
		event.At = between(at, stretch.Began, ended)
		at = between(event.At, stretch.Ended, ended)
		t.pair(id, fmt.Sprintf("%s/%d", which, i), event, at, stretch.Error)
		event.IsRetry = stretch.Error != nil && i+1 < len(made) && made[i+1].Page == stretch.Page
	}
	return at
}

// stretches are the attempts of a call between two states, as far as these tell: those
// that succeeded together, and the last where that failed. A result tells when, else
// they went on to the end.
func stretches(
	before, after interpreter.CallState, failure *interpreter.ErrorObject, result *interpreter.CallResult, ended time.Time,
) interpreter.Stretches {
	var made interpreter.Stretches
	var began time.Time
	first, last := before.Attempts+1, after.Attempts
	if result != nil && !result.Meta.EndedAt.IsZero() {
		began, ended = result.Meta.StartedAt, result.Meta.EndedAt
	}
	if failure != nil {
		last--
		if !failure.At.IsZero() {
			ended = failure.At
		}
	}
	if first <= last {
		well := interpreter.Stretch{Attempt: first, Page: before.Successes + 1, Began: began, Ended: ended}
		if last > first {
			well.AttemptTo, well.PageTo = last, max(after.Successes, well.Page)
		}
		made = append(made, well)
		began = ended // when the next began is not kept
	}
	if failure != nil {
		made = append(made, interpreter.Stretch{
			Attempt: after.Attempts, Page: cmp.Or(failure.Page, after.Successes+1), Began: began, Ended: ended, Error: failure,
		})
	}
	return made
}

// between is a time within others; what is not known is the first of them where
// something begins, and so is what lies before it.
func between(from, at, to time.Time) time.Time {
	switch {
	case at.Before(from):
		return from
	case at.After(to):
		return to
	}
	return at
}

// writtenAt is when the sinks of a hosted call were done, as far as that is known.
func writtenAt(attempted time.Time, driven interpreter.Driven, ended time.Time) time.Time {
	if driven.Result != nil {
		return between(attempted, driven.Result.Meta.EndedAt, ended)
	}
	return ended
}

// pagesWritten are the first and the last page, 0 where that is the first, that the
// sinks of a hosted call have taken. One whose sink is still to do, such as what the
// call has left to its workflow to decide about, is not among them.
func pagesWritten(before, after interpreter.CallState, left *interpreter.Outcome) (first, last int) {
	first, last = before.Successes+1, after.Successes
	if pageIsDue(before) {
		first--
	}
	if left != nil && !left.PutOff() && !left.Failed() || pageIsDue(after) {
		last--
	}
	if last <= first {
		return first, 0
	}
	return first, last
}

func pageIsDue(state interpreter.CallState) bool {
	return len(state.Todo) > 0 && state.Todo[0].Sink != nil && state.Todo[0].Sink.Page
}

// reached is how far a hosted call has come, and the failure of its last attempt,
// nil where that succeeded.
func reached(before interpreter.CallState, driven interpreter.Driven) (after interpreter.CallState, failure *interpreter.ErrorObject) {
	switch {
	case driven.Result != nil:
		after.Attempts, after.Successes, after.Written = driven.Result.Meta.Attempts, driven.Result.Meta.Pages, before.Written
		failure = driven.Result.Error
		if !driven.Result.Failed() {
			after.Written++
			failure = nil
		}
	case driven.State != nil:
		after, failure = *driven.State, driven.State.Last.Error
	}
	if outcome := driven.Outcome; outcome != nil && !outcome.PutOff() {
		after.Attempts++
		if outcome.Err == nil {
			after.Successes++
			return after, nil
		}
		told := *outcome.Err
		told.Attempt = after.Attempts
		return after, &told
	}
	if failure != nil && (failure.Attempt != after.Attempts || failure.Kind == interpreter.KindSink) {
		failure = nil
	}
	return after, failure
}

// hasSinks reports whether anything of the step of hosted calls is written away.
func (t *teller) hasSinks(ctx context.Context, of *made) (bool, error) {
	var known converter.RawValue // of.many
	var script interpreter.Script
	if err := t.decode(ctx, t.workflowID, of.input, &known, &script); err != nil {
		return false, err
	}
	_, step, err := of.many.Task.With(script).Load()
	if err != nil {
		return false, nil // it has not begun
	}
	sinks := step.Sink != nil && step.Loop == nil || step.Loop != nil && step.Loop.Sink != nil
	for _, policy := range step.Retry {
		sinks = sinks || policy.Then.Sink != nil || policy.Then.PerIteration != nil
	}
	return sinks, nil
}

// pair adds the start and the end of attempts.
func (t *teller) pair(id int64, which string, event Event, ended time.Time, failure *interpreter.ErrorObject) {
	event.Event = ActionStarted
	t.add(id, which, event)
	event.Duration = ended.Sub(event.At).Seconds()
	event.Event, event.At, event.IsRetry, event.Error = ActionCompleted, ended, false, failure
	if failure != nil {
		event.Event = ActionError
	}
	t.add(id, which, event)
}
