package call

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/await"
	"reprise/interpreter/call/request"
	"reprise/interpreter/playbook"
)

// This file shows the progress of a call to its host and to people. Nothing in it changes the call.

// View shows the progress of a call to its host. It is read-only, and invalid once the call changes.
type View struct {
	reader

	Begun     bool // whether anything of the call has happened
	StartedAt time.Time
	// Attempts counts the attempts of the call, RequestAttempts those of its current request. Attempt is the number
	// of the current attempt, otherwise of the last one.
	Attempts, RequestAttempts, Attempt int
	// Pages counts the fetched pages, Page is the number of the current one.
	Pages, Page int
	Written     int // number of finished sinks
	Noted       LedgerUse
	// Recalls says that the ledgers' entries of the call must be read before it continues.
	Recalls bool
	// Stopped says that the call was interrupted, for example by a cancel, and that a later run may continue it.
	Stopped bool
	Request request.Request // the current one
	// Failure is the failure of the last attempt, or of a poll that waits for people. Last is the failure of the
	// last attempt only, and Refused the failure that a policy made of its response. Each is nil if there is none.
	Failure, Last, Refused *interpreter.ErrorObject
	// OthersWait is the number of seconds that all attempts under the same rate limit must wait, as a policy has
	// read from the last outcome; nil for none.
	OthersWait *float64
	// Awaited is the attempt that people or another system must answer, Answer an answer that is not applied yet,
	// and Reported the latest progress. Each is nil if there is none.
	Awaited  *await.AnswerWait
	Answer   *interpreter.Answer
	Reported *interpreter.ReportedProgress
}

// View returns the current progress of the call.
func (c *Call) View() View {
	s, head := &c.state, c.state.nextTodo()
	view := View{
		reader: c.newReader(), Begun: s.hasBegun(),
		StartedAt: s.StartedAt, Attempts: s.Attempts, RequestAttempts: s.RequestAttempts, Attempt: s.Attempts,
		Pages: s.Successes, Page: s.currentPage(&c.config), Written: s.Written, Noted: s.Noted, Recalls: s.Recalls, Stopped: c.stopped != nil,
		Request: s.Request, Failure: s.LastFailure(), Last: s.Last.Error, Refused: c.refused, OthersWait: c.othersWait,
		Awaited: head.Await, Answer: s.Answer, Reported: s.Reported,
	}
	if !view.Begun || head.Attempt != nil || head.Await != nil {
		view.Attempt++
	}
	return view
}

// HasAnswer reports whether the current attempt has an answer.
func (v View) HasAnswer() bool { return v.Answer != nil }

// Finished reports whether the call has ended.
func (c *Call) Finished() bool { return c.state.nextTodo().End != nil }

// Result returns the result of the call, nil while unknown. A due sink may still change it.
func (c *Call) Result() *interpreter.CallResult { return c.state.lastTodo().End }

// ToolTraits returns the traits of the call's tool; the default ones if its name is unknown.
func (v View) ToolTraits() playbook.Traits { return v.requests.ToolTraits(v.state.StartedAt) }

// Status returns the status of the call. wait is what the call, or its sink, waits for in its host, nil for
// nothing; until is the end of that wait.
func (v View) Status(wait *interpreter.Wait, until time.Time) interpreter.CallStatus {
	status := interpreter.CallStatus{Attempts: v.state.Attempts, Pages: v.state.Successes, Error: v.state.LastFailure()}
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
	status.RecordWait(wait, until)
	status.SetWaitStart(status.Error)
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

// Incremental describes how far the call has read and moved the state of its step; nil if it has claimed none.
func (v View) Incremental() *interpreter.CallIncremental {
	if v.state.Watermark == nil {
		return nil
	}
	return v.state.Watermark.DescribeState(v.config.incrementalSection())
}

// Rows counts what the call has done to data so far; nil if nothing was counted.
func (v View) Rows() *interpreter.Rows { return v.state.Rows }

// AwaitedDetails describes the attempt of the call that awaits an answer, nil for none.
func (v View) AwaitedDetails() *interpreter.AwaitedDetails {
	awaited := v.state.nextTodo().Await
	if awaited == nil {
		return nil
	}
	return v.state.Answers.DescribeAwaited(v.Attempt, awaited, v.peopleQuestion())
}

// TelemetryFacts returns what identifies the call in metrics and spans.
func (v View) TelemetryFacts() Facts {
	facts := Facts{
		Playbook: v.config.Run.Playbook, Step: v.config.Step.Name, Visit: v.config.Visit, Index: v.config.Index, Tool: v.requests.ToolName(v.state.StartedAt),
	}
	if sink := v.config.Sink; sink != nil {
		facts.Place, facts.Page = sink.Place, sink.Page
	}
	return facts
}

// FailedAttempt describes the last attempt if it failed and something was decided about it; nil if it succeeded,
// its failure became a success, the call waits for a slot or an answer, or the attempt was not made because the run
// is paused.
func (v View) FailedAttempt() *FailedAttempt {
	failure, head, hold := v.state.Last.Error, v.state.nextTodo(), v.state.currentHold()
	if failure == nil || v.state.Turn != nil || head.Await != nil || hold != nil && !hold.Exhausted {
		return nil
	}
	failed := &FailedAttempt{
		Where: v.config.CallPlace(), Step: v.config.Step.Name, Visit: v.config.Visit, Index: v.config.Index,
		Error: failure, Ended: v.state.lastTodo().End != nil,
	}
	if v.config.Sink != nil {
		failed.Sink = v.config.Sink.Place
	}
	if failed.Ended || v.state.RequestAttempts > 0 {
		failed.OperationKey = v.requests.OperationKey(v.requestMoment())
	}
	if !failed.Ended {
		failed.Retry = max(v.state.RequestAttempts, 1) // a restart has reset the count
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
