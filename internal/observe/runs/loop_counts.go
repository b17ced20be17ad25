package runs

import (
	"cmp"
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// setPace computes the pace of a loop and its remaining time.
func (c *Counts) setPace(from, to time.Time) {
	c.PerSecond, c.Left = 0, 0
	if took := to.Sub(from).Seconds(); took > 0 && c.CountDone() > 0 && c.Unknown == 0 {
		c.PerSecond = float64(c.CountDone()) / took
		c.Left = float64(c.Running+c.Waiting+c.Pending) / c.PerSecond
	}
	if c.Open {
		c.Left = 0 // nobody knows how many there are
	}
}

// summarizeLoop sets what holds a running loop whose iterations were counted.
func (s *Step) summarizeLoop(now time.Time) {
	c := s.Loop
	c.setPace(s.StartedAt, now)
	if wait := s.NextRetryAt.Sub(now).Seconds(); c.Waiting > 0 && c.Left > 0 {
		c.Left = max(c.Left, wait) // all that wait do so until then
	}
	s.setHeldBy()
	if c.Asks || s.HeldBy == HeldByPause || s.HeldBy == HeldByPerson || s.HeldBy == HeldByAnswer {
		c.Left = 0 // people decide
	}
	if s.HeldBy == HeldByPause {
		s.restLoop()
	}
}

// restLoop adjusts the counts of a paused loop: it has no pace, and running iterations that were not queried count as
// waiting.
func (s *Step) restLoop() {
	c := s.Loop
	c.PerSecond = 0
	if !s.counted {
		c.Waiting, c.Running = c.Waiting+c.Running, 0
	}
}

// setHeldBy sets what holds a loop whose iterations were counted.
func (s *Step) setHeldBy() {
	if s.Status == interpreter.Paused {
		return
	}
	s.Status, s.HeldBy, s.Waiting, s.Since = interpreter.Running, "", "", time.Time{}
	switch c := s.Loop; {
	case c.Running == 0 && c.Waiting > 0 && c.Waiting == s.turns:
		s.Status, s.HeldBy, s.Waiting = interpreter.ReasonTurn.Status(), HeldByRateLimit, "all that run wait for the rate limit"
	case c.Running == 0 && c.Waiting > 0 && c.Waiting == s.keepers:
		s.Status, s.HeldBy, s.Since = interpreter.RetryPending, HeldByState, s.waitingSince
	case c.Running == 0 && c.Waiting > 0:
		s.Status, s.HeldBy, s.Since = interpreter.RetryPending, HeldByWait, s.waitingSince
		if s.NextRetryAt.IsZero() && s.keepers == 0 {
			s.HeldBy = HeldByPerson
		}
	case c.Awaiting > 0 && c.Awaiting == c.Running:
		s.Status, s.HeldBy, s.Since = interpreter.Awaiting, HeldByAnswer, s.awaitingSince
	case c.Awaiting > 0 || c.Asks && c.Running > 0 && !s.counted:
		s.Status, s.Since = interpreter.Awaiting, s.awaitingSince
	case c.Pending > 0:
		s.HeldBy = HeldByWindow
		s.Waiting = fmt.Sprintf("%d iterations wait for a slot in the loop's window", c.Pending)
		if c.Pending == 1 {
			s.Waiting = "an iteration waits for a slot in the loop's window"
		}
	}
}

// recountLoop counts the running iterations of a loop from the answers of all its open children; iterations without
// an answer count as running.
func (s *Step) recountLoop(answers []protocol.Iterations) {
	c, counted := s.Loop, Counts{}
	s.turns, s.keepers = 0, 0
	s.counted, s.waitingSince, s.awaitingSince = true, time.Time{}, time.Time{}
	waiting := 0
	s.groupWaits(answers)
	for _, answer := range answers {
		for _, iteration := range answer.Iterations {
			counted.countIteration(iteration)
			if iteration.Awaits != nil {
				s.awaitingSince = interpreter.EarlierTime(s.awaitingSince, iteration.Awaits.Since)
			}
			switch {
			case iteration.Reason == interpreter.ReasonTurn:
				s.turns++
			case iteration.Status.LoopTally() != interpreter.TallyWaiting:
				continue
			}
			if iteration.Reason == interpreter.ReasonKeeper {
				s.keepers++
			}
			if waiting++; waiting == 1 {
				s.waitingSince = iteration.Since
			}
			s.waitingSince = latestKnown(s.waitingSince, iteration.Since)
			s.NextRetryAt = interpreter.EarlierTime(s.NextRetryAt, iteration.NextRetryAt)
			s.Error = cmp.Or(iteration.Error, s.Error)
		}
	}
	c.Success, c.Failed = s.ended.Success+counted.Success, s.ended.Failed+counted.Failed
	c.Waiting, c.Awaiting, c.Cancelled = counted.Waiting, counted.Awaiting, counted.Cancelled
	c.Running = max(0, s.active-counted.CountDone()-counted.Cancelled-counted.Waiting-counted.Pending)
	if c.Pending = max(0, c.Total-c.CountDone()-c.Cancelled-c.Running-c.Waiting); s.silent {
		c.Unknown, c.Pending = c.Pending, 0
	}
}

// countIteration counts an iteration by its status.
func (c *Counts) countIteration(iteration protocol.IterationRecord) {
	if iteration.Awaits != nil {
		c.Awaiting++
	}
	switch iteration.Status.LoopTally() {
	case interpreter.TallySuccess:
		c.Success++
	case interpreter.TallyFailed:
		c.Failed++
	case interpreter.TallyCancelled:
		c.Cancelled++
	case interpreter.TallyWaiting:
		c.Waiting++
	case interpreter.TallyPending:
		c.Pending++
	default:
		if iteration.Reason == interpreter.ReasonTurn {
			c.Waiting++
		}
	}
}
