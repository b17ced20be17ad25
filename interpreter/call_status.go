package interpreter

import (
	"time"
)

// Await notes that the call waits until a time, or for nil that it does not.
func (s *CallStatus) Await(wait *Wait, until time.Time) {
	s.Status, s.Reason, s.Waiting, s.NextRetryAt, s.MaxAttempts = Running, "", "", time.Time{}, 0
	if wait == nil {
		return
	}
	s.Status, s.Reason, s.Waiting, s.MaxAttempts = wait.Reason.Status(), wait.Reason, wait.Summary, wait.Most
	switch wait.Reason {
	case ReasonSlot, ReasonAnswer, ReasonPaused, ReasonPerson: // nobody knows when it ends
	default:
		s.NextRetryAt = until
	}
}

// CallStatus is the status of a call that has ended with the result.
func (r CallResult) CallStatus() CallStatus {
	return CallStatus{Status: r.Ended(), Attempts: r.Meta.Attempts, Pages: r.Meta.Pages, Error: r.Error, SinkErrors: r.SinkErrors}
}

// Ended is the status of what has ended with the result.
func (r CallResult) Ended() Status {
	switch {
	case r.Status == Partial:
		return Partial
	case !r.Failed():
		return Completed
	case r.Error.Kind == KindCancelled:
		return Cancelled
	}
	return Failed
}
