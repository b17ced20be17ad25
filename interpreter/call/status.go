package call

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/interpreter/call/request"
	"reprise/interpreter/playbook"
)

// This file shows a call's progress to its host and to people. Nothing in it changes the call.

// View shows the progress of a call to its host. It is read-only, and invalid once the call changes.
type View struct {
	reader

	Begun     bool // whether anything of the call has happened
	StartedAt time.Time
	// Attempts are the attempts that were made of the call, RequestAttempts of its request. Attempt is the number of
	// the current attempt, else of the last one.
	Attempts, RequestAttempts, Attempt int
	// Pages are the pages that were fetched, Page is the number of the current one.
	Pages, Page int
	Written     int // sinks that are done
	Noted       Noted
	// Recalls says that the ledgers' entries of the call have to be read before it continues.
	Recalls bool
	// Stopped says that the call was cut off, by a cancel for example, and a later run may continue it.
	Stopped bool
	Request request.Request // the one at hand
	// Failure is the failure of the last attempt, or of a poll that waits for people; nil for none.
	// Last is the failure of the last attempt alone, and Refused the failure that a policy has made of its answer.
	Failure, Last, Refused *interpreter.ErrorObject
	// OthersWait is how many seconds the attempts under the same rate limit wait, because a policy has read
	// that in the last outcome; nil for none.
	OthersWait *float64
	// Awaited is the attempt that people or another system answer. Answer is their answer while it is not applied yet, and
	// Reported the progress that they have reported. Each is nil if there is none.
	Awaited  *await.Awaited
	Answer   *interpreter.Answer
	Reported *interpreter.ReportedProgress
}

// View returns a View of the call.
func (c *Call) View() View {
	s, head := &c.state, c.state.nextTodo()
	view := View{
		reader: c.newReader(), Begun: s.hasBegun(),
		StartedAt: s.StartedAt, Attempts: s.Attempts, RequestAttempts: s.RequestAttempts, Attempt: s.Attempts,
		Pages: s.Successes, Page: s.currentPage(&c.config), Written: s.Written, Noted: s.Noted, Recalls: s.Recalls, Stopped: c.stopped != nil,
		Request: s.Request, Failure: s.Failure(), Last: s.Last.Error, Refused: c.refused, OthersWait: c.othersWait,
		Awaited: head.Await, Answer: s.Answer, Reported: s.Reported,
	}
	if !view.Begun || head.Attempt != nil || head.Await != nil {
		view.Attempt++
	}
	return view
}

// HasAnswer reports whether the current attempt has its answer.
func (v View) HasAnswer() bool { return v.Answer != nil }

// Finished reports whether the call has ended.
func (c *Call) Finished() bool { return c.state.nextTodo().End != nil }

// Result is what the call ends with, nil if not known yet. A due sink may still change it.
func (c *Call) Result() *interpreter.CallResult { return c.state.lastTodo().End }

// Traits are the traits of the call's tool, the usual ones where it cannot be known.
func (v View) Traits() playbook.Traits { return v.requests.Traits(v.state.StartedAt) }

// Status is the status of the call. wait is what the call, or its sink, waits for in its host, nil for nothing; until is when that
// wait is over.
func (v View) Status(wait *interpreter.Wait, until time.Time) interpreter.CallStatus {
	status := interpreter.CallStatus{Attempts: v.state.Attempts, Pages: v.state.Successes, Error: v.state.Failure()}
	if wait == nil {
		wait = v.state.pendingWait()
	}
	switch end := v.state.nextTodo().End; {
	case end != nil:
		return end.CallStatus()
	case wait == nil && !v.Begun:
		status.Status = interpreter.Pending
		return status
	}
	status.Await(wait, until)
	status.After(status.Error)
	if awaited := v.AwaitedDetails(); awaited != nil {
		status.Awaits, status.Attempts = awaited, v.Attempt
		if status.Status == interpreter.Running {
			status.Status = interpreter.Awaiting
		}
	}
	if wait == nil {
		status.Attempts = v.Attempt
	}
	return status
}

// Incremental is how far the call has read and moved the state of its step, nil for one that has claimed none.
func (v View) Incremental() *interpreter.CallIncremental {
	if v.state.Watermark == nil {
		return nil
	}
	return v.state.Watermark.Shown(v.config.incrementalSection())
}

// Rows is what the call has done to data so far; nil if nothing was counted.
func (v View) Rows() *interpreter.Rows { return v.state.Rows }

// AwaitedDetails is the attempt of the call that awaits its answer, nil for none.
func (v View) AwaitedDetails() *interpreter.AwaitedDetails {
	awaited := v.state.nextTodo().Await
	if awaited == nil {
		return nil
	}
	return v.state.Answers.Details(v.Attempt, awaited, v.peopleQuestion())
}

// Facts identify a call in metrics and spans: its playbook, step and iteration.
func (v View) Facts() Facts {
	facts := Facts{
		Playbook: v.config.Run.Playbook, Step: v.config.Step.Name, Visit: v.config.Visit, Index: v.config.Index, Tool: v.requests.Tool(v.state.StartedAt),
	}
	if sink := v.config.Sink; sink != nil {
		facts.Place, facts.Page = sink.Place, sink.Page
	}
	return facts
}

// FailedAttempt is the decision about the last attempt; nil if it succeeded, its failure became
// a success, it waits for its turn or answer, or it was not made because the run is paused.
func (v View) FailedAttempt() *FailedAttempt {
	failure, head, hold := v.state.Last.Error, v.state.nextTodo(), v.state.heldBy()
	if failure == nil || v.state.Turn != nil || head.Await != nil || hold != nil && !hold.Exhausted {
		return nil
	}
	failed := &FailedAttempt{
		Where: v.config.Where(), Step: v.config.Step.Name, Visit: v.config.Visit, Index: v.config.Index,
		Error: failure, Ended: v.state.lastTodo().End != nil,
	}
	if v.config.Sink != nil {
		failed.Sink = v.config.Sink.Place
	}
	if failed.Ended || v.state.RequestAttempts > 0 {
		failed.OperationKey = v.requests.OperationKey(v.requestMoment())
	}
	if !failed.Ended {
		failed.Retry = max(v.state.RequestAttempts, 1) // a restart has begun to count again
	}
	switch {
	case failed.Ended:
	case head.Wait != nil:
		failed.Next = head.Wait.Summary
	case hold != nil:
		failed.Next = "people decide"
	default:
		failed.Next = "another attempt immediately"
	}
	return failed
}
