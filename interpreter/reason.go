package interpreter

import (
	"time"
)

// Reason is why a call waits, as events and summaries name it.
type Reason string

// The reasons of a wait; each has a row in the table below.
const (
	ReasonFailure     Reason = "failure"
	ReasonRateLimited Reason = "rate_limited"
	ReasonPoll        Reason = "poll"
	ReasonPage        Reason = "page"
	ReasonTurn        Reason = "turn" // under a rate limit
	ReasonPaused      Reason = "paused"
	ReasonPerson      Reason = "person" // a person decides
	ReasonAnswer      Reason = "answer" // of the current attempt
	ReasonSlot        Reason = "slot"   // in the window of its loop
	ReasonState       Reason = "state"  // another visit has the state of the step
)

// reasons is the table: the status of what waits for a reason, whether the wait is one
// before an attempt, which is an event of the run, whether it is known when it ends, and
// whether it follows a failure, which is shown with it.
var reasons = []struct {
	reason                Reason
	status                Status
	event, timed, failure bool
}{
	{reason: ReasonFailure, status: RetryPending, event: true, timed: true, failure: true},
	{reason: ReasonRateLimited, status: RetryPending, event: true, timed: true, failure: true},
	{reason: ReasonPoll, status: RetryPending, event: true, timed: true},
	{reason: ReasonPage, status: RetryPending, event: true, timed: true},
	{reason: ReasonTurn, status: Running, event: true, timed: true},
	{reason: ReasonPerson, status: RetryPending, event: true, failure: true},
	{reason: ReasonPaused, status: Paused},
	{reason: ReasonAnswer, status: Awaiting},
	{reason: ReasonSlot, status: Pending},
	{reason: ReasonState, status: Pending},
}

// Status is that of what waits for the reason.
func (r Reason) Status() Status {
	for _, row := range reasons {
		if row.reason == r {
			return row.status
		}
	}
	return Running
}

// Known reports whether the reason has a row.
func (r Reason) Known() bool {
	for _, row := range reasons {
		if row.reason == r {
			return true
		}
	}
	return false
}

// Timed reports whether it is known when a wait for the reason ends.
func (r Reason) Timed() bool {
	for _, row := range reasons {
		if row.reason == r {
			return row.timed
		}
	}
	return true
}

// AfterFailure reports whether a wait for the reason follows a failure.
func (r Reason) AfterFailure() bool {
	for _, row := range reasons {
		if row.reason == r {
			return row.failure
		}
	}
	return false
}

// WaitReasons are those of waits before attempts.
func WaitReasons() []Reason {
	var of []Reason
	for _, row := range reasons {
		if row.event {
			of = append(of, row.reason)
		}
	}
	return of
}

// Wait is a pause before the next attempt; kept with call.State.
type Wait struct {
	Delay   time.Duration `json:"delay"`
	Reason  Reason        `json:"reason"`
	Summary string        `json:"summary"`
	// Most is how many attempts, polls or restarts its policy gives, 0 where it bounds none.
	Most int `json:"most,omitempty"`
	// Rest says that it began elsewhere, and this is what is left of it.
	Rest bool `json:"rest,omitempty"`
}

// Sooner is the earlier of two times; zero, for unknown, is later than any.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
