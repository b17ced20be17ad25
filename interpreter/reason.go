package interpreter

import (
	"slices"
	"time"

	"reprise/interpreter/lists"
)

// Reason is the reason of a call's wait, as named in events and summaries.
type Reason string

// The reasons of a wait; each has a row in the table below.
const (
	ReasonFailure     Reason = "failure"
	ReasonRateLimited Reason = "rate_limited"
	ReasonPoll        Reason = "poll"
	ReasonPage        Reason = "page"
	ReasonTurn        Reason = "turn" // a slot under a rate limit
	ReasonPaused      Reason = "paused"
	ReasonPerson      Reason = "person" // a person must decide
	ReasonAnswer      Reason = "answer" // an answer to the current attempt
	ReasonSlot        Reason = "slot"   // a slot in the window of its loop
	ReasonState       Reason = "state"  // another visit has the state of the step
	ReasonKeeper      Reason = "keeper" // the store of the step's state cannot be reached
)

// reasonInfo has the properties of a reason.
type reasonInfo struct {
	reason                Reason
	status                Status
	event, timed, failure bool
}

// reasons has for each reason: the status of what waits; whether the wait precedes an attempt, and is therefore an
// event of the run; whether its end is known; and whether it follows a failure, which is then shown with it.
var reasons = []reasonInfo{
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
	{reason: ReasonKeeper, status: RetryPending},
}

// infoOf returns the row of the reason. For an unknown reason it returns false, and a row for a wait that ends by
// itself.
func (r Reason) infoOf() (reasonInfo, bool) {
	i := slices.IndexFunc(reasons, func(row reasonInfo) bool { return row.reason == r })
	if i < 0 {
		return reasonInfo{reason: r, status: Running, timed: true}, false
	}
	return reasons[i], true
}

// Status returns the status of something that waits for the reason.
func (r Reason) Status() Status {
	info, _ := r.infoOf()
	return info.status
}

// IsKnown reports whether the reason has a row.
func (r Reason) IsKnown() bool {
	_, known := r.infoOf()
	return known
}

// IsTimed reports whether the end of a wait for the reason is known.
func (r Reason) IsTimed() bool {
	info, _ := r.infoOf()
	return info.timed
}

// AfterFailure reports whether a wait for the reason follows a failure.
func (r Reason) AfterFailure() bool {
	info, _ := r.infoOf()
	return info.failure
}

// Reasons returns all reasons.
func Reasons() []Reason {
	return lists.Map(reasons, func(row reasonInfo) Reason { return row.reason })
}

// WaitReasons returns the reasons of waits before attempts.
func WaitReasons() []Reason {
	return slices.DeleteFunc(Reasons(), func(reason Reason) bool {
		info, _ := reason.infoOf()
		return !info.event
	})
}

// Wait is a wait of a call; kept with call.State.
type Wait struct {
	Delay   time.Duration `json:"delay"`
	Reason  Reason        `json:"reason"`
	Summary string        `json:"summary"` // the wait in words
	// Cause is why the store of a state cannot be reached, for display also by calls that wait behind this one; ""
	// for other waits.
	Cause string `json:"cause,omitempty"`
	// Phrase has the parts of the summary; nil if it contains no time.
	Phrase *WaitPhrase `json:"phrase,omitempty"`
	// Most is the number of attempts, polls or restarts that the policy allows, 0 for no bound.
	Most int `json:"most,omitempty"`
	// Rest is set if this is the remainder of a wait that began in another history or activity.
	Rest bool `json:"rest,omitempty"`
}

// WaitPhrase has the parts of a description of a wait before an attempt, so that it can be composed with another
// name or time without parsing.
type WaitPhrase struct {
	What string `json:"what"`          // follows the wait: "attempt 2 of 5"
	Why  string `json:"why,omitempty"` // ": HTTP 503"
}

// PhraseOf returns the description with the name of the call and the duration: "fetch: attempt 2 of 5 after 1s:
// HTTP 503".
func (p *WaitPhrase) PhraseOf(name string, delay time.Duration) string {
	return name + ": " + p.What + " after " + delay.Round(time.Millisecond).String() + p.Why
}

// PhraseUntil returns the description without a name, and with a text for the end of the wait.
func (p *WaitPhrase) PhraseUntil(when string) string { return p.What + " " + when + p.Why }

// PhrasedWait returns a wait whose summary has the name of the call and the duration.
func PhrasedWait(name string, delay time.Duration, reason Reason, phrase WaitPhrase) *Wait {
	return &Wait{Delay: delay, Reason: reason, Summary: phrase.PhraseOf(name, delay), Phrase: &phrase}
}

// EarlierTime returns the earlier of two times; the zero time, for unknown, counts as later than any.
func EarlierTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
