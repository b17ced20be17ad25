package call

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/source"
)

// Stretch describes attempts that an activity made for a call: one that failed, or consecutive ones that succeeded.
// Kept in workflow history, for display; it decides nothing.
type Stretch struct {
	Attempt int `json:"attempt"`
	Page    int `json:"page"`
	// AttemptTo and PageTo are the last attempt and page, 0 if the stretch has only one.
	AttemptTo int    `json:"attempt_to,omitempty"`
	PageTo    int    `json:"page_to,omitempty"`
	Place     string `json:"place,omitempty"` // place of the sink that the attempt belongs to, "" for none
	// Turn is the part of the time, in seconds, in which the attempts waited for a slot under a rate limit.
	Turn  float64                  `json:"turn,omitempty"`
	Began time.Time                `json:"began"`
	Ended time.Time                `json:"ended"`
	Error *interpreter.ErrorObject `json:"error,omitempty"` // without the contents of responses
}

// lastAttempt returns the number of the last attempt.
func (s *Stretch) lastAttempt() int { return max(s.Attempt, s.AttemptTo) }

// Stretches are the attempts of a call, in order.
type Stretches []Stretch

// Bounds that keep the histories of calls with many pages small.
const (
	// mostStretches bounds the stretches of one call; the last one then covers all further attempts. They are in
	// heartbeats and queries, and a call may make thousands of attempts. stretchMessage bounds their error
	// messages, in characters.
	mostStretches  = 40
	stretchMessage = 200
)

// WithAttempt returns s with an attempt added, without changing s. turn is the number of seconds that it waited for a slot
// under a rate limit, and failure is nil if it succeeded.
func (s Stretches) WithAttempt(in interpreter.ToolInput, began, ended time.Time, failure *interpreter.ErrorObject, turn float64) Stretches {
	stretch := Stretch{Attempt: in.Attempt, Page: in.Page, Place: in.Place, Began: began, Ended: ended, Turn: turn}
	if failure != nil {
		stretch.Error = &interpreter.ErrorObject{
			Kind: failure.Kind, Class: failure.Class, Status: failure.Status, Type: failure.Type, RetryAfter: failure.RetryAfter,
			Message: source.CutText(failure.Message, stretchMessage), Attempt: in.Attempt, Page: in.Page,
		}
	}
	follows := func(last Stretch) bool { // true for the next attempt of a page whose response a policy refused
		return failure == nil && last.Error == nil && in.Page > max(last.Page, last.PageTo)
	}
	if n := len(s); n > 0 && (follows(s[n-1]) || n == mostStretches) {
		last := s[n-1]
		last.AttemptTo, last.PageTo, last.Ended, last.Error = in.Attempt, max(in.Page, last.Page), ended, stretch.Error
		last.Turn += turn
		return append(s[:n-1:n-1], last) // a heartbeat may be reading s
	}
	return append(s, stretch)
}

// Cover reports whether these are all attempts of a call from first to last.
func (s Stretches) Cover(first, last int) bool {
	if len(s) == 0 || s[0].Attempt != first || s[len(s)-1].lastAttempt() != last {
		return false
	}
	for i := 1; i < len(s); i++ {
		if s[i].Attempt != s[i-1].lastAttempt()+1 {
			return false
		}
	}
	return true
}

// ImpliedBy reports whether the failure that a call ended with, nil for none, already shows all of these attempts:
// one stretch without waits for a slot, which failed with it or succeeded before it.
func (s Stretches) ImpliedBy(failure *interpreter.ErrorObject) bool {
	switch {
	case len(s) == 0:
		return true
	case len(s) > 1 || s[0].Turn > 0:
		return false
	case s[0].Error != nil:
		return failure != nil && failure.Kind == s[0].Error.Kind
	}
	return failure == nil || failure.Page > 0 && failure.Page <= max(s[0].Page, s[0].PageTo)
}
