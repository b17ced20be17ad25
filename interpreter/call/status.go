package call

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/interpreter/call/request"
	"reprise/interpreter/playbook"
)

// This file says how far a call has come, to its host and to people. None of it changes the call.

// View is how far a call has come, for its host.
type View struct {
	StartedAt time.Time
	// Attempts are those that were made of the call, RequestAttempts of its request. Attempt is the number of
	// the current attempt, else of the last one.
	Attempts, RequestAttempts, Attempt int
	// Pages are those that were fetched, Page is the number of the current one.
	Pages, Page int
	Written     int // sinks that are done
	Noted       Noted
	// Recalls says that what ledgers hold of the call has to be read before it continues.
	Recalls bool
	// Stopped says that the call has ended in a way in which it may be continued.
	Stopped bool
	Request request.Request // the one at hand
	// Failure is that of the last attempt, or of a poll that waits for people; nil for none.
	// Last is that of the last attempt alone, and Refused the one that a policy has made of its answer.
	Failure, Last, Refused *interpreter.ErrorObject
	// Awaited is the attempt that others answer, Answer what they have said that is not applied yet, and
	// Reported how far it has come; nil for none.
	Awaited  *await.Awaited
	Answer   *interpreter.Answer
	Reported *interpreter.Reported
}

// View is how far the call has come.
func (c *Call) View() View {
	s, head := &c.state, c.state.head()
	view := View{
		StartedAt: s.StartedAt, Attempts: s.Attempts, RequestAttempts: s.RequestAttempts, Attempt: s.Attempts,
		Pages: s.Successes, Page: s.page(&c.config), Written: s.Written, Noted: s.Noted, Recalls: s.Recalls, Stopped: c.stopped != nil,
		Request: s.Request, Failure: s.Failure(), Last: s.Last.Error, Refused: c.refused,
		Awaited: head.Await, Answer: s.Answer, Reported: s.Reported,
	}
	if !c.Begun() || head.Attempt != nil || head.Await != nil {
		view.Attempt++
	}
	return view
}

// HasAnswer reports whether the current attempt has its answer.
func (v View) HasAnswer() bool { return v.Answer != nil }

// Begun reports whether anything of the call has happened.
func (c *Call) Begun() bool { return len(c.state.Todo) > 0 }

// Finished reports whether the call has ended.
func (c *Call) Finished() bool { return c.state.head().End != nil }

// Result is what the call ends with, nil where that is not known yet. A sink that
// is due may still change it.
func (c *Call) Result() *interpreter.CallResult { return c.state.last().End }

// Traits are those of the call's tool, the usual ones where it cannot be known.
func (c *Call) Traits() playbook.Traits { return c.requests.Traits(c.state.StartedAt) }

// Status is that of the call. wait is what its host has it, or a sink of it, wait for, nil for
// nothing, and until is when that is over.
func (c *Call) Status(wait *interpreter.Wait, until time.Time) interpreter.CallStatus {
	status := interpreter.CallStatus{Attempts: c.state.Attempts, Pages: c.state.Successes, Error: c.state.Failure()}
	if wait == nil {
		wait = c.state.wait()
	}
	switch end := c.state.head().End; {
	case end != nil:
		return end.CallStatus()
	case wait == nil && !c.Begun():
		status.Status = interpreter.Pending
		return status
	}
	status.Await(wait, until)
	status.After(status.Error)
	if awaited := c.AwaitedDetails(); awaited != nil {
		status.Awaits, status.Attempts = awaited, c.View().Attempt
		if status.Status == interpreter.Running {
			status.Status = interpreter.Awaiting
		}
	}
	if wait == nil {
		status.Attempts = c.View().Attempt
	}
	return status
}

// AwaitedDetails is the attempt of the call that awaits its answer, nil for none.
func (c *Call) AwaitedDetails() *interpreter.AwaitedDetails {
	awaited := c.state.head().Await
	if awaited == nil {
		return nil
	}
	return c.state.Answers.Details(c.View().Attempt, awaited, c.question())
}

// Facts identify a call in metrics and spans: its playbook, step and iteration.
func (c *Call) Facts() Facts {
	facts := Facts{
		Playbook: c.config.Run.Playbook, Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index, Tool: c.requests.Tool(c.state.StartedAt),
	}
	if sink := c.config.Sink; sink != nil {
		facts.Place, facts.Page = sink.Place, sink.Page
	}
	return facts
}

// FailedAttempt is what was decided about the last attempt; nil where that
// succeeded, where its failure was made a success, where it waits for its turn or
// its answer, and where it was not made because the run is paused.
func (c *Call) FailedAttempt() *FailedAttempt {
	failure, head, hold := c.state.Last.Error, c.state.head(), c.state.held()
	if failure == nil || c.state.Turn != nil || head.Await != nil || hold != nil && !hold.Exhausted {
		return nil
	}
	failed := &FailedAttempt{
		Where: c.config.Where(), Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index,
		Error: failure, Ended: c.Result() != nil,
	}
	if c.config.Sink != nil {
		failed.Sink = c.config.Sink.Place
	}
	if failed.Ended || c.state.RequestAttempts > 0 {
		failed.OperationKey = c.requests.OperationKey(c.moment())
	}
	if !failed.Ended {
		failed.Retry = max(c.state.RequestAttempts, 1) // a restart has begun to count again
	}
	switch {
	case failed.Ended:
	case head.Wait != nil:
		failed.Next = head.Wait.Summary
	case hold != nil:
		failed.Next = "people decide"
	default:
		failed.Next = "another attempt at once"
	}
	return failed
}
