package call

import (
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/sink"
	"reprise/interpreter/call/watermark"
)

// This file applies what the host reports to what a call has still to do. An outcome
// replaces Todo (decide.go), what is done drops its head, and a sink that failed cuts it to
// the dead letter and the end.

// Attempted applies the outcome of an attempt and decides what follows.
func (c *Call) Attempted(outcome interpreter.Outcome, now time.Time) {
	c.refused, c.othersWait = nil, nil
	if outcome.PutOff != nil {
		c.putOff(*outcome.PutOff, now)
		return
	}
	c.state.Turn = nil
	c.warnOf(outcome.Meta.Notes)
	outcome.Meta.Notes = nil
	if c.requests.Traits(c.state.StartedAt).Awaits && c.state.nextTodo().Attempt != nil && (!outcome.Failed() || c.state.Answer != nil) {
		c.awaitAnswer(outcome, now)
		return
	}
	c.decideAttempt(outcome, now)
}

// Waited reports that the wait is over, or that people have released the call.
func (c *Call) Waited() { c.state.dropHead() }

// WaitedUntil reports that the call has waited elsewhere, for a time that was to
// end at due. The call waits for the rest of it.
func (c *Call) WaitedUntil(due, now time.Time) {
	left := due.Sub(now)
	if left <= 0 {
		c.Waited()
		return
	}
	rest := *c.state.nextTodo().Wait
	rest.Delay, rest.Rest = left, true
	c.state.requestAgain(&rest)
}

// CalledBack reports that the rate limit has a turn for the call earlier than promised. It returns false if the call does not wait
// for a turn.
func (c *Call) CalledBack() bool {
	if wait := c.state.nextTodo().Wait; wait == nil || wait.Reason != interpreter.ReasonTurn || c.state.Turn == nil {
		return false
	}
	turn := *c.state.Turn
	turn.Called = true
	c.state.Turn = &turn
	return true
}

// Hold stops the call before its next attempt until Settle, or a resume of the run: a person paused it.
func (c *Call) Hold(hold interpreter.Hold) {
	c.state.Todo = []Todo{{Hold: &hold}, {Attempt: &PendingAttempt{}}}
}

// HoldRecorded reports that the history has a mark of the hold.
func (c *Call) HoldRecorded() { c.state.heldBy().Recorded = true }

// Settle applies the decision of a person about the call, which waits for a retry or is held: skip fails it, else the next
// attempt is made now with the policies' counts anew.
func (c *Call) Settle(settlement interpreter.Settlement, now time.Time) {
	if settlement.Skip {
		c.skipCall(settlement, now)
		return
	}
	if hold := c.state.heldBy(); hold != nil && hold.Exhausted {
		c.state.Counters.ResetSettled(c.state.Last.Policy, hold.Failure != nil)
	}
	c.state.dropHead()
}

// SinkLeft records how far the due sink's call has come, for another host to continue it.
func (c *Call) SinkLeft(sink *Call) {
	pending := *c.state.nextTodo().Sink
	pending.State = &sink.state
	c.state.Todo = slices.Concat([]Todo{{Sink: &pending}}, c.state.Todo[1:])
}

// SinkDone applies the result of the sink's call. The first sink that fails ends
// the rest and fails the call; a call that had failed already keeps its own
// error.
func (c *Call) SinkDone(result interpreter.CallResult, now time.Time) {
	if result.Failed() && result.Error.Kind == interpreter.KindCancelled {
		c.keepStopped()
	}
	done := c.state.nextTodo().Sink.Choice
	written := c.newReader().sinkWrite(done)
	c.state.dropHead()
	c.state.addWarnings(result.Warnings...)
	c.state.Rows = c.state.Rows.Plus(result.Meta.Rows)
	if result.Failed() {
		c.sinkFailed(done, result.Error, now)
		c.state.endsBehindSinks(&c.config, now)
		return
	}
	c.state.Written++
	c.state.LeftOut = c.state.LeftOut.Plus(result.Meta.LeftOut)
	if written != nil {
		c.state.Watermark = c.state.Watermark.Moved(written.Move)
		if written.Move != nil {
			c.state.dropHead() // the write has made the move behind it
		}
	}
	if done.Page {
		c.state.behindPage()
	}
	c.state.endsBehindSinks(&c.config, now)
}

// sinkFailed leaves nothing to do but the dead letter and the end. What a page's
// sink could not write is no result.
func (c *Call) sinkFailed(failed sink.Choice, cause *interpreter.ErrorObject, now time.Time) {
	failure, before := sink.Error(c.config.Chosen(failed), cause), c.Result()
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
		result.Data = before.Data // the data of the call stays, as the data of loops does
	}
	c.state.replaceLast(Todo{End: &result})
}

// StateAnswered applies the result of the claim, the move or the beginning that was due.
func (c *Call) StateAnswered(output interpreter.StateOutput, now time.Time) {
	pending := *c.state.nextTodo().State
	if pending.Begins {
		c.beginRequest(now)
		return
	}
	if pending.Move != nil {
		c.state.Watermark = c.state.Watermark.Moved(pending.Move)
		c.state.dropHead()
		c.state.behindPage()
		c.state.endsBehindSinks(&c.config, now)
		return
	}
	if refused := output.Claimed.Refused; refused != nil {
		c.failCall(watermark.Failure(refused.Type, c.config.Where()+": "+refused.Message), now)
		return
	}
	claimed, err := c.keeps.Claimed(pending, c.newReader().ledgerKey(), output.Claimed, now)
	if err != nil {
		c.failBy(c.config.Where(), err, now)
		return
	}
	c.state.Watermark = claimed
	if claimed.Slice != nil && claimed.Slice.Empty() {
		c.endsEmpty(now)
		return
	}
	c.beginRequest(now)
}

// StateFailed ends the call: its state cannot be claimed or moved, or the table of a sink not be read beside others.
func (c *Call) StateFailed(failure interpreter.ErrorObject, now time.Time) {
	switch {
	case failure.Kind == interpreter.KindCancelled:
	case c.state.nextTodo().State.Begins:
		failure.Kind = interpreter.KindSink
	default:
		failure.Kind = interpreter.KindIncremental
	}
	failure.Message = c.config.Where() + ": " + failure.Message
	c.failCall(&failure, now)
}

// RemoveElements returns what the pages have contributed since the last time. The call keeps nothing of it: it is the source of a
// loop, and its pages are elements.
func (c *Call) RemoveElements() []any { return c.state.Pages.RemoveCollected() }

// Warn adds a warning to the result of the call.
func (c *Call) Warn(warning string) { c.state.addWarnings(warning) }
