package await

import (
	"time"

	"reprise/interpreter"
)

// AnswerWait is an attempt that a person or another system has to answer. It is kept with the state of a call.
type AnswerWait struct {
	Since time.Time `json:"since"`
	// Until is the deadline, zero for none; progress extends it.
	Until time.Time `json:"until,omitzero"`
	// Limit is how long the answer may take from Since and from each report of progress; 0 is
	// no limit.
	Limit time.Duration `json:"limit,omitempty"`
}

// NewAnswerWait returns an attempt that is awaited from now on; a limit of 0 means no deadline.
func NewAnswerWait(now time.Time, limit time.Duration) *AnswerWait {
	awaited := AnswerWait{Since: now, Limit: limit}
	return awaited.extendTime(now)
}

// extendTime returns the attempt with a deadline one full Limit from now.
func (a AnswerWait) extendTime(now time.Time) *AnswerWait {
	if a.Limit > 0 {
		a.Until = now.Add(a.Limit)
	}
	return &a
}

// DescribeWait describes the awaited attempt as the wait that lists and timers show.
func (a AnswerWait) DescribeWait(reported *interpreter.ReportedProgress) interpreter.Wait {
	summary := "awaits an answer"
	if !a.Until.IsZero() {
		summary += " until " + a.Until.UTC().Format(time.RFC3339)
	}
	if reported != nil {
		summary += ": " + reported.String()
	}
	return interpreter.Wait{Reason: interpreter.ReasonAnswer, Summary: summary}
}
