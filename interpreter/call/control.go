package call

import (
	"time"

	"reprise/interpreter"
)

// Failure is that of the last attempt, or of a poll that waits for people; nil for
// none.
func (s *State) Failure() *interpreter.ErrorObject {
	if hold := s.head().Hold; hold != nil && hold.Failure != nil {
		return hold.Failure
	}
	return s.Last.Error
}

// Hold keeps the call from its next attempt until people resume it.
func (c *Call) Hold(hold interpreter.Hold) {
	c.state.Todo = []Todo{{Hold: &hold}, {Attempt: &PendingAttempt{}}}
}

// HoldRecorded notes that the history has a mark of the hold.
func (c *Call) HoldRecorded() { c.state.held().Recorded = true }

// Released reports that the call is held no more.
func (c *Call) Released() { c.state.Todo = c.state.Todo[1:] }

// Settle applies what people have decided about the call, which waits or is held.
func (c *Call) Settle(settlement interpreter.Settlement, now time.Time) {
	if settlement.Skip {
		c.skip(settlement, now)
		return
	}
	if hold := c.state.held(); hold != nil && hold.Exhausted {
		c.state.Counters.Settled(c.state.Last.Policy, hold.Failure != nil)
	}
	c.state.Todo = c.state.Todo[1:]
}

// skip ends the call as failed. The failure is the one that it waited for, if there
// was one.
func (c *Call) skip(settlement interpreter.Settlement, now time.Time) {
	said := settlement.SkipText()
	failure := interpreter.ErrorObject{Kind: interpreter.KindExplicit, Class: interpreter.ClassFinal, Message: c.config.where() + ": " + said, Attempt: c.state.Attempts, Page: c.page()}
	if last := c.state.Failure(); last != nil {
		failure = *last
		failure.Message += " (" + said + ")"
	}
	if hold := c.state.held(); hold != nil && hold.Failure != nil {
		failure.Body = c.lastAnswer()
	}
	c.state.Last.Error = &failure
	c.end(c.failure(failure, now))
}
