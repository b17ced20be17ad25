package runs

import (
	"cmp"
	"fmt"
	"time"

	"reprise/interpreter"
	"reprise/workflows"
)

// pace says how fast a loop is.
func (c *Counts) pace(from, to time.Time) {
	if took := to.Sub(from).Seconds(); took > 0 && c.Done() > 0 {
		c.PerSecond = float64(c.Done()) / took
		c.Left = float64(c.Running+c.Waiting+c.Pending) / c.PerSecond
	}
}

// summarize sets what holds a running loop that was counted.
func (s *Step) summarize(now time.Time) {
	c := s.Loop
	c.pace(s.StartedAt, now)
	if wait := s.NextRetryAt.Sub(now).Seconds(); c.Waiting > 0 && c.Left > 0 {
		c.Left = max(c.Left, wait) // all that wait do so until then
	}
	s.setHeldBy()
	if c.Asks || s.HeldBy == HeldByPause || s.HeldBy == HeldByPerson || s.HeldBy == HeldByAnswer {
		c.Left = 0 // people decide
	}
	if s.HeldBy == HeldByPause {
		s.rest()
	}
}

// rest is a loop that is paused: it has no pace, and what its iterations do that were
// not asked is to wait.
func (s *Step) rest() {
	c := s.Loop
	c.PerSecond = 0
	if !s.counted {
		c.Waiting, c.Running = c.Waiting+c.Running, 0
	}
}

// setHeldBy says what holds a loop whose iterations were counted.
func (s *Step) setHeldBy() {
	if s.Status == interpreter.Paused {
		return
	}
	s.Status, s.HeldBy, s.Waiting = interpreter.Running, "", ""
	switch c := s.Loop; {
	case c.Running == 0 && c.Waiting > 0 && c.Waiting == s.turns:
		s.HeldBy, s.Waiting = HeldByRateLimit, "all that run wait for their turns"
	case c.Running == 0 && c.Waiting > 0:
		s.Status, s.HeldBy = interpreter.RetryPending, HeldByWait
		if s.NextRetryAt.IsZero() {
			s.HeldBy = HeldByPerson
		}
	case c.Awaiting > 0 && c.Awaiting == c.Running:
		s.HeldBy = HeldByAnswer
	case c.Pending > 0:
		s.HeldBy = HeldByWindow
		s.Waiting = fmt.Sprintf("%d iterations wait for a slot in the loop's window", c.Pending)
		if c.Pending == 1 {
			s.Waiting = "an iteration waits for a slot in the loop's window"
		}
	}
}

// recount counts the iterations of a loop that were under way by what all of its open
// children answered; of one that gave no answer they run.
func (s *Step) recount(answers []workflows.Iterations) {
	c, counted := s.Loop, Counts{}
	s.turns = 0
	s.counted = true
	s.groupWaits(answers)
	for _, answer := range answers {
		for _, iteration := range answer.Iterations {
			counted.count(iteration)
			switch {
			case iteration.Reason == interpreter.ReasonTurn:
				s.turns++
			case iteration.Status.Tally() != interpreter.TallyWaiting:
				continue
			}
			s.NextRetryAt = sooner(s.NextRetryAt, iteration.NextRetryAt)
			s.Error = cmp.Or(iteration.Error, s.Error)
		}
	}
	c.Success, c.Failed = s.ended.Success+counted.Success, s.ended.Failed+counted.Failed
	c.Waiting, c.Awaiting, c.Cancelled = counted.Waiting, counted.Awaiting, counted.Cancelled
	c.Running = max(0, s.active-counted.Done()-counted.Cancelled-counted.Waiting-counted.Pending)
	c.Pending = max(0, c.Total-c.Done()-c.Cancelled-c.Running-c.Waiting)
}

// count counts an iteration by its state.
func (c *Counts) count(iteration workflows.IterationRecord) {
	if iteration.Awaits != nil {
		c.Awaiting++
	}
	switch iteration.Status.Tally() {
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
