package call

import (
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/call/watermark"
)

// This file applies reports of the host to the Todo of a call. An outcome replaces Todo (decide.go), finished work
// is removed from its head, and a failed sink leaves only the dead letter and the end.

// ApplyOutcome applies the outcome of an attempt and decides what follows.
func (c *Call) ApplyOutcome(outcome interpreter.Outcome, now time.Time) {
	c.refused, c.othersWait = nil, nil
	if outcome.PutOff != nil {
		c.putOff(*outcome.PutOff, now)
		return
	}
	c.state.Turn = nil
	c.warnOf(outcome.Meta.Notes)
	c.noted, outcome.Meta.Notes = len(outcome.Meta.Notes) > 0, nil
	if c.requests.ToolTraits(c.state.StartedAt).Awaits && c.state.nextTodo().Attempt != nil && (!outcome.Failed() || c.state.Answer != nil) {
		c.awaitAnswer(outcome, now)
		return
	}
	c.decideAttempt(outcome, now)
}

// EndWait reports that the wait is over, or that a person has released the call.
func (c *Call) EndWait() { c.state.dropHead() }

// WaitedUntil reports that the call has waited at another host, for a wait that ends at due. The call waits for the
// rest of it.
func (c *Call) WaitedUntil(due, now time.Time) {
	left := due.Sub(now)
	if left <= 0 {
		c.EndWait()
		return
	}
	rest := *c.state.nextTodo().Wait
	rest.Delay, rest.Rest = left, true
	c.state.requestAgain(&rest)
}

// CalledBack reports that the rate limit has a slot for the call earlier than promised. It returns false if the
// call does not wait for a slot.
func (c *Call) CalledBack() bool {
	if wait := c.state.nextTodo().Wait; wait == nil || wait.Reason != interpreter.ReasonTurn || c.state.Turn == nil {
		return false
	}
	turn := *c.state.Turn
	turn.Called = true
	c.state.Turn = &turn
	return true
}

// Hold stops the call before its next attempt because a person paused it, until Settle, or until the run is
// resumed.
func (c *Call) Hold(hold interpreter.Hold) {
	c.state.Todo = []Todo{{Hold: &hold}, {Attempt: &PendingAttempt{}}}
}

// HoldRecorded records that the history has a marker of the hold.
func (c *Call) HoldRecorded() { c.state.currentHold().Recorded = true }

// Settle applies a person's decision about a call that is held or waits for a retry: skip makes it fail, anything
// else makes the next attempt now, with the counts of the policies reset.
func (c *Call) Settle(settlement interpreter.Settlement, now time.Time) {
	if settlement.Skip {
		c.skipCall(settlement, now)
		return
	}
	if hold := c.state.currentHold(); hold != nil && hold.Exhausted {
		c.state.Counters.ResetSettled(c.state.Last.Policy, hold.Failure != nil)
	}
	c.state.dropHead()
}

// StoreSink stores the state of the due sink's call, so that another host can continue it.
func (c *Call) StoreSink(sink *Call) {
	pending := *c.state.nextTodo().Sink
	pending.State = &sink.state
	c.state.Todo = slices.Concat([]Todo{{Sink: &pending}}, c.state.Todo[1:])
}

// SinkDone applies the result of the sink's call. The first failed sink fails the call, and the remaining sinks are
// not written; a call that had failed before keeps its own error.
func (c *Call) SinkDone(result interpreter.CallResult, now time.Time) {
	if result.Failed() && result.Error.Kind == interpreter.KindCancelled {
		c.saveStopped()
	}
	done := c.state.nextTodo().Sink.Choice
	written := c.newReader().sinkWrite(done)
	c.state.dropHead()
	c.state.addWarnings(result.Warnings...)
	c.state.Rows = c.state.Rows.Plus(result.Meta.Rows)
	if result.Failed() {
		c.sinkFailed(done, result.Error, now)
		c.state.endAfterSinks(&c.config, now)
		return
	}
	c.state.Written++
	c.state.LeftOut = c.state.LeftOut.Plus(result.Meta.LeftOut)
	if written != nil {
		c.state.Watermark = c.state.Watermark.AfterMove(written.Move)
		if written.Move != nil {
			c.state.dropHead() // the write has included the move after it
		}
	}
	if done.Page {
		c.state.continueAfterPage()
	}
	c.state.endAfterSinks(&c.config, now)
}

// sinkFailed keeps only the dead letter and the end in Todo. A page that its sink could not write is not part of
// the result.
func (c *Call) sinkFailed(failed sink.Choice, cause *interpreter.ErrorObject, now time.Time) {
	failure, before := sink.FailedSinkError(c.config.SinkOf(failed), cause), c.Result()
	if before != nil && before.Failed() {
		c.state.addWarnings(failure.Message)
		c.state.Todo = slices.DeleteFunc(slices.Clone(c.state.Todo), func(todo Todo) bool {
			return todo.Sink != nil && !todo.Sink.DeadLetter
		})
		if failure.Kind == interpreter.KindCancelled {
			return
		}
		result := *c.Result()
		result.SinkErrors = append(slices.Clip(result.SinkErrors), failure.BriefError())
		c.state.replaceLast(Todo{End: &result})
		return
	}
	c.failCall(failure, now)
	if before == nil {
		return
	}
	result := *c.Result()
	result.Warnings = before.Warnings
	if !failed.Page || failed.Do != "" {
		result.Data = before.Data // the collected data stays in the result, as it does for loops
		result.Meta.Truncated = before.Meta.Truncated
	}
	c.state.replaceLast(Todo{End: &result})
}

// StateAnswered applies the result of the due claim, move or begin of reading.
func (c *Call) StateAnswered(output interpreter.StateOutput, now time.Time) {
	pending := *c.state.nextTodo().State
	if pending.Begins {
		c.beginRequest(now)
		return
	}
	if pending.Move != nil {
		c.state.Watermark = c.state.Watermark.AfterMove(pending.Move)
		c.state.dropHead()
		c.state.continueAfterPage()
		c.state.endAfterSinks(&c.config, now)
		return
	}
	if refused := output.Claimed.Refused; refused != nil {
		c.failCall(watermark.StateError(refused.Type, c.config.CallPlace()+": "+refused.Message), now)
		return
	}
	claimed, err := c.keeps.NewWatermark(pending, c.newReader().ledgerKey(), output.Claimed, now)
	if err != nil {
		c.failBy(c.config.CallPlace(), err, now)
		return
	}
	c.state.Watermark = claimed
	if claimed.Slice != nil && claimed.Slice.Empty() {
		c.endsEmpty(now)
		return
	}
	c.beginRequest(now)
}

// StateFailed ends the call because its state could not be claimed or moved, or because a sink's table could not
// record the begin of reading.
func (c *Call) StateFailed(failure interpreter.ErrorObject, now time.Time) {
	switch {
	case failure.Kind == interpreter.KindCancelled:
	case c.state.nextTodo().State.Begins:
		failure.Kind = interpreter.KindSink
	default:
		failure.Kind = interpreter.KindIncremental
	}
	failure.Message = c.config.CallPlace() + ": " + failure.Message
	c.failCall(&failure, now)
}

// RemoveElements returns, and removes, what the pages have contributed since the last call of RemoveElements. It
// serves the source of a loop, whose pages become elements.
func (c *Call) RemoveElements() []any { return c.state.Pages.RemoveCollected() }

// Warn adds a warning to the result of the call.
func (c *Call) Warn(warning string) { c.state.addWarnings(warning) }
