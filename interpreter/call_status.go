package interpreter

import "time"

// CallStatus is the status of a call, as queries carry it to whoever shows it. As part of a
// StepRecord kept in workflow history.
type CallStatus struct {
	Status Status `json:"status"`
	// Reason is why it waits, "" where it does not; Waiting says it in words, and NextRetryAt is
	// until when, zero where that is unknown.
	Reason Reason `json:"reason,omitempty"`
	// Since is when it began to wait, zero where it does not, or that is not known here.
	Since       time.Time `json:"since,omitzero"`
	Attempts    int       `json:"attempts"` // made; while it runs, with the one that is being made
	Pages       int       `json:"pages"`
	NextRetryAt time.Time `json:"next_retry_at,omitzero"`
	Waiting     string    `json:"waiting,omitempty"`
	// Cause is the cause of the Wait.
	Cause string `json:"cause,omitempty"`
	// Phrase is Waiting in pieces, nil where that says no time.
	Phrase *WaitPhrase `json:"phrase,omitempty"`
	// MaxAttempts is how many attempts a request gets that keeps failing; 0 where that is not
	// known, and of a call that has ended.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// Awaits is the attempt that a person or another system answers, nil for none.
	Awaits *AwaitedDetails `json:"awaits,omitempty"`
	// Child is the workflow ID of the run of another playbook that it has started last.
	Child string `json:"child,omitempty"`
	// Error is the last one: of the attempt before, where the call has not ended.
	Error *ErrorObject `json:"error,omitempty"`
	// Cut says why a successful call lacks pages, nil if it lacks none; a loop has one of its own.
	Cut *ErrorObject `json:"cut,omitempty"`
	// SinkErrors are the errors of CallResult.
	SinkErrors []ErrorObject `json:"sink_errors,omitempty"`
}

// Await notes that the call waits until a time, or for nil that it does not.
func (s *CallStatus) Await(wait *Wait, until time.Time) {
	s.Status, s.Reason, s.Waiting, s.Cause, s.Phrase, s.NextRetryAt, s.Since, s.MaxAttempts = Running, "", "", "", nil, time.Time{}, time.Time{}, 0
	if wait == nil {
		return
	}
	s.Status, s.Reason, s.Waiting, s.Cause, s.Phrase, s.MaxAttempts = wait.Reason.Status(), wait.Reason, wait.Summary, wait.Cause, wait.Phrase, wait.Most
	if wait.Reason.IsTimed() {
		s.NextRetryAt = until
		if !wait.Rest && !until.IsZero() {
			s.Since = until.Add(-wait.Delay)
		}
	}
}

// After completes since when it waits by the failure that it waits after, nil for none.
func (s *CallStatus) After(last *ErrorObject) {
	if s.Since.IsZero() && s.Reason.AfterFailure() && last != nil {
		s.Since = last.At
	}
}

// CallStatus is the status of a call that has ended with the result.
func (r CallResult) CallStatus() CallStatus {
	status := CallStatus{Status: r.Ended(), Attempts: r.Meta.Attempts, Pages: r.Meta.Pages, Error: r.Error, SinkErrors: r.SinkErrors}
	if r.Cut != nil && r.Cut.Index == nil && !r.Failed() {
		status.Cut = &r.Cut.Error
	}
	return status
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
