package runs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// hostEnded adds what an activity that hosts calls did: for each call, one pair of events for consecutive successful
// attempts, and one for each failed attempt.
func (p *projector) hostEnded(id int64, event *historypb.HistoryEvent) error {
	of, output := p.made[id], call.DriveOutput{}
	if err := p.resolve(event); err != nil {
		return fmt.Errorf("read what an activity of %s did: %w", p.workflowID, err)
	}
	var payloads *commonpb.Payloads
	switch {
	case event.GetActivityTaskCompletedEventAttributes() != nil:
		payloads = event.GetActivityTaskCompletedEventAttributes().GetResult()
	case event.GetActivityTaskCanceledEventAttributes() != nil:
		cancelled := event.GetActivityTaskCanceledEventAttributes()
		if cancelled.GetStartedEventId() <= 0 { // no worker had it, so the details are the server's own
			return nil
		}
		payloads = cancelled.GetDetails()
	default:
		if !decodeFailure(failureOf(event), &output) {
			return nil // it reported nothing; its calls are made one at a time
		}
	}
	if len(payloads.GetPayloads()) > 0 {
		if err := converter.GetDefaultDataConverter().FromPayloads(payloads, &output); err != nil {
			return fmt.Errorf("decode what an activity of %s did: %w", p.workflowID, err)
		}
	}
	for i, driven := range output.Calls {
		if i == len(of.many.Calls) {
			break
		}
		p.hostedCall(id, event.GetEventTime().AsTime(), of, of.many.Calls[i], driven)
	}
	return nil
}

// hostedCall adds the events of one hosted call.
func (p *projector) hostedCall(id int64, ended time.Time, of *madeActivity, snapshot call.Snapshot, driven call.Driven) {
	var before call.State
	if snapshot.State != nil {
		before = *snapshot.State
	}
	after, failure := reachedState(driven)
	task, which := of.many.Task, fmt.Sprint(indexOr(snapshot.Index))
	event := Event{Step: task.Step, Visit: task.Visit, Index: snapshot.Index, At: ended}
	if of.started != nil {
		event.At = of.beganAt()
	}
	p.addUnwritten(id, which, event, driven.Unwritten, ended)
	attempted := event.At
	if after.Attempts > before.Attempts {
		made, failure := attemptsMade(before, after, driven, failure, ended)
		// The state may be one page behind the last attempt; then the sinks of that page come first.
		event.IsRetry = before.RequestAttempts > 0 && before.Last.Error != nil
		event.Ended = endOfCall(snapshot, driven)
		attempted = p.addAttempts(id, which, event, made, ended)
		p.calls[callID{task.Step, task.Visit, indexOr(snapshot.Index), ""}] = &lastAttempt{
			attempt: after.Attempts, page: after.Successes + 1, failure: failure,
		}
	}
	if after.Written > before.Written {
		event.Event, event.At, event.IsRetry = SinkCompleted, writtenAt(attempted, driven, ended), false
		event.Page, event.PageTo = pagesWritten(before, after, driven)
		event.Ended = endOfCall(snapshot, driven)
		p.addEvent(id, which, event)
	}
}

// endOfCall returns how the call of an iteration ended in an activity; "" if it continues, or is no iteration's.
func endOfCall(snapshot call.Snapshot, driven call.Driven) interpreter.Status {
	if driven.Result == nil || snapshot.Index == nil {
		return ""
	}
	return driven.Result.FinalStatus()
}

// attemptsMade returns the attempts that a hosted call has made after the state before, and the failure of the last
// attempt. failure is the failure with which the call ended or waits. It is more complete than the failures that
// attempts record, but it may belong to a request after a successful attempt.
func attemptsMade(
	before, after call.State, driven call.Driven, failure *interpreter.ErrorObject, ended time.Time,
) (call.Stretches, *interpreter.ErrorObject) {
	if !driven.Made.Cover(before.Attempts+1, after.Attempts) {
		return attemptsBetween(before, after, failure, driven.Result, ended), failure
	}
	made := slices.Clone(driven.Made)
	switch last := &made[len(made)-1]; {
	case last.Error == nil:
		return made, nil
	case failure == nil:
	case failure.Kind != last.Error.Kind:
		failure = last.Error
	default:
		last.Error = failure
	}
	return made, failure
}

// addUnwritten adds the failed attempts of a hosted call's sinks, starting at the time of first. Each becomes the
// last attempt of its sink.
func (p *projector) addUnwritten(id int64, which string, first Event, failed call.Stretches, ended time.Time) {
	event, at := first, first.At
	for i, stretch := range failed {
		event.Sink, event.IsRetry = stretch.Place, stretch.Attempt > 1
		event.Attempt, event.AttemptTo, event.Page = stretch.Attempt, stretch.AttemptTo, stretch.Page
		event.At = clampTime(at, stretch.Began, ended)
		event.At = p.addTurn(id, fmt.Sprintf("%s/%s/%d", which, stretch.Place, i), event, stretch.Attempt-1, stretch.Turn)
		at = clampTime(event.At, stretch.Ended, ended)
		p.addPair(id, fmt.Sprintf("%s/%s/%d", which, stretch.Place, i), event, at, stretch.Error)
		p.calls[callID{event.Step, event.Visit, indexOr(event.Index), stretch.Place}] = &lastAttempt{
			attempt: max(stretch.Attempt, stretch.AttemptTo), page: stretch.Page, failure: stretch.Error,
		}
	}
}

// addAttempts adds attempts of a call, starting at the time of first, and returns when the last one ended.
func (p *projector) addAttempts(id int64, which string, first Event, made call.Stretches, ended time.Time) time.Time {
	event, at := first, first.At
	for i, stretch := range made {
		event.Attempt, event.AttemptTo, event.Page, event.PageTo = stretch.Attempt, stretch.AttemptTo, stretch.Page, stretch.PageTo
		if event.PageTo == event.Page && event.AttemptTo == 0 {
			event.PageTo = 0
		}
		if event.Ended = first.Ended; i < len(made)-1 {
			event.Ended = ""
		}
		event.At = clampTime(at, stretch.Began, ended)
		event.At = p.addTurn(id, fmt.Sprintf("%s/%d", which, i), event, stretch.Attempt-1, stretch.Turn)
		at = clampTime(event.At, stretch.Ended, ended)
		p.addPair(id, fmt.Sprintf("%s/%d", which, i), event, at, stretch.Error)
		event.IsRetry = i+1 < len(made) && made[i+1].Page == max(stretch.Page, stretch.PageTo)
	}
	return at
}

// attemptsBetween returns the attempts of a call between two states, as far as these show them: the successful ones
// together, and the last one if it failed. A result has their times; without one they are assumed to last until the
// end.
func attemptsBetween(
	before, after call.State, failure *interpreter.ErrorObject, result *interpreter.CallResult, ended time.Time,
) call.Stretches {
	var made call.Stretches
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
		well := call.Stretch{Attempt: first, Page: before.Successes + 1, Began: began, Ended: ended}
		if last > first {
			well.AttemptTo, well.PageTo = last, max(after.Successes, well.Page)
		}
		made = append(made, well)
		began = ended // when the next began is not kept
	}
	if failure != nil {
		made = append(made, call.Stretch{
			Attempt: after.Attempts, Page: cmp.Or(failure.Page, after.Successes+1), Began: began, Ended: ended, Error: failure,
		})
	}
	return made
}

// clampTime limits a time to an interval; an unknown time becomes the beginning.
func clampTime(from, at, to time.Time) time.Time {
	switch {
	case at.Before(from):
		return from
	case at.After(to):
		return to
	}
	return at
}

// writtenAt returns when the sinks of a hosted call ended, as far as known.
func writtenAt(attempted time.Time, driven call.Driven, ended time.Time) time.Time {
	if driven.Result != nil {
		return clampTime(attempted, driven.Result.Meta.EndedAt, ended)
	}
	return ended
}

// pagesWritten returns the first and last page that the sinks of a hosted call have written; last is 0 if it is the
// first. Pages whose sinks are still to run, or have failed, do not count.
func pagesWritten(before, after call.State, driven call.Driven) (first, last int) {
	left, result := driven.Outcome, driven.Result
	first, last = before.Successes+1, after.Successes
	if pageIsDue(before) {
		first--
	}
	refused := result != nil && result.Failed() && result.Error.Kind == interpreter.KindSink
	if left != nil && left.PutOff == nil && !left.Failed() || pageIsDue(after) || refused {
		last--
	}
	if last <= first { // sinks of the result are those of the last page
		return max(min(first, last), 1), 0
	}
	return first, last
}

func pageIsDue(state call.State) bool {
	return len(state.Todo) > 0 && state.Todo[0].Sink != nil && state.Todo[0].Sink.Page
}

// reachedState returns the state that a hosted call reached, and the failure of its last attempt; nil if that
// succeeded.
func reachedState(driven call.Driven) (after call.State, failure *interpreter.ErrorObject) {
	switch {
	case driven.Result != nil:
		after.Attempts, after.Successes, after.Written = driven.Result.Meta.Attempts, driven.Result.Meta.Pages, driven.Written
		failure = driven.Result.Error
	case driven.State != nil:
		after, failure = *driven.State, driven.State.Last.Error
	}
	if outcome := driven.Outcome; outcome != nil && outcome.PutOff == nil {
		after.Attempts++
		if outcome.Err == nil {
			after.Successes++
			return after, nil
		}
		final := *outcome.Err
		final.Attempt = after.Attempts
		return after, &final
	}
	if failure != nil && (failure.Attempt != after.Attempts || behindSuccess(failure, after.Successes)) {
		failure = nil
	}
	return after, failure
}

// behindSuccess reports whether the call failed after its last attempt had succeeded. A failed attempt would belong
// to the page after the given number of successes.
func behindSuccess(failure *interpreter.ErrorObject, successes int) bool {
	return slices.Contains(behindAttempts, failure.Kind) || failure.Page > 0 && failure.Page <= successes
}

// behindAttempts are the kinds of failures that occur after a successful last attempt.
var behindAttempts = []interpreter.Kind{interpreter.KindSink, interpreter.KindExhausted, interpreter.KindRepeat}

// addPair adds the start and the end of attempts.
func (p *projector) addPair(id int64, which string, event Event, ended time.Time, failure *interpreter.ErrorObject) {
	event.Event = ActionStarted
	p.addEvent(id, which, event)
	end := attemptEnded(event, ended, failure)
	end.Duration = ended.Sub(event.At).Seconds()
	p.addEvent(id, which, end)
}
