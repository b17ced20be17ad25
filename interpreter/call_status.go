package interpreter

import "time"

// CallStatus is the status of a call, as queries return it. As part of a StepRecord kept in workflow history.
type CallStatus struct {
	Status Status `json:"status"`
	// Reason is why the call waits, "" if it does not; Waiting describes the wait in words, and NextRetryAt is its
	// end, zero if unknown.
	Reason Reason `json:"reason,omitempty"`
	// Since is when the wait began; zero without a wait, or if that is unknown.
	Since       time.Time `json:"since,omitzero"`
	Attempts    int       `json:"attempts"` // attempts made, including a running one
	Pages       int       `json:"pages"`
	NextRetryAt time.Time `json:"next_retry_at,omitzero"`
	Waiting     string    `json:"waiting,omitempty"`
	// Cause is the cause of the Wait.
	Cause string `json:"cause,omitempty"`
	// Phrase has the parts of Waiting; nil if it contains no time.
	Phrase *WaitPhrase `json:"phrase,omitempty"`
	// MaxAttempts is the number of attempts that a failing request gets; 0 if unknown, and for a call that has
	// ended.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// Awaits describes the attempt that a person or another system must answer, nil for none.
	Awaits *AwaitedDetails `json:"awaits,omitempty"`
	// Child is the workflow ID of the last run of another playbook that the call started.
	Child string `json:"child,omitempty"`
	// Error is the last error: of the previous attempt, if the call has not ended.
	Error *ErrorObject `json:"error,omitempty"`
	// Cut says why a successful call lacks pages, nil if it has all; a loop has Cut in its own result.
	Cut *ErrorObject `json:"cut,omitempty"`
	// SinkErrors are those of CallResult.
	SinkErrors []ErrorObject `json:"sink_errors,omitempty"`
}

// RecordWait records that the call waits until a time; a nil wait records that it does not.
func (s *CallStatus) RecordWait(wait *Wait, until time.Time) {
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

// SetWaitStart sets since when the call waits, if that is unknown, to the end of the failed attempt; last is nil for none.
func (s *CallStatus) SetWaitStart(last *ErrorObject) {
	if s.Since.IsZero() && s.Reason.AfterFailure() && last != nil {
		s.Since = last.At
	}
}

// CallStatus returns the status of a call that has ended with the result.
func (r CallResult) CallStatus() CallStatus {
	status := CallStatus{Status: r.FinalStatus(), Attempts: r.Meta.Attempts, Pages: r.Meta.Pages, Error: r.Error, SinkErrors: r.SinkErrors}
	if r.Cut != nil && r.Cut.Index == nil && !r.Failed() {
		status.Cut = &r.Cut.Error
	}
	return status
}

// FinalStatus returns the status of a step or iteration that has ended with the result.
func (r CallResult) FinalStatus() Status {
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
