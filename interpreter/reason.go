package interpreter

import (
	"slices"
	"time"

	"reprise/interpreter/lists"
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
	ReasonKeeper      Reason = "keeper" // what keeps the state of the step is out of reach
)

// reasonInfo is all that is to know of a reason.
type reasonInfo struct {
	reason                Reason
	status                Status
	event, timed, failure bool
}

// reasons is the table of reasons to wait: the status, whether the wait is one before an
// attempt, which is an event of the run, whether its end is known, and whether it follows a
// failure, which is shown with it.
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

// infoOf returns the row of the reason; false if it has none and is treated like one that ends
// by itself.
func (r Reason) infoOf() (reasonInfo, bool) {
	i := slices.IndexFunc(reasons, func(row reasonInfo) bool { return row.reason == r })
	if i < 0 {
		return reasonInfo{reason: r, status: Running, timed: true}, false
	}
	return reasons[i], true
}

// Status is the status of what waits for the reason.
func (r Reason) Status() Status {
	info, _ := r.infoOf()
	return info.status
}

// IsKnown reports whether the reason has a row.
func (r Reason) IsKnown() bool {
	_, known := r.infoOf()
	return known
}

// IsTimed reports whether it is known when a wait for the reason ends.
func (r Reason) IsTimed() bool {
	info, _ := r.infoOf()
	return info.timed
}

// AfterFailure reports whether a wait for the reason follows a failure.
func (r Reason) AfterFailure() bool {
	info, _ := r.infoOf()
	return info.failure
}

// Reasons are all reasons to wait.
func Reasons() []Reason {
	return lists.Map(reasons, func(row reasonInfo) Reason { return row.reason })
}

// WaitReasons are the reasons of waits before attempts.
func WaitReasons() []Reason {
	return slices.DeleteFunc(Reasons(), func(reason Reason) bool {
		info, _ := reason.infoOf()
		return !info.event
	})
}

// Wait is a pause before the next attempt; kept with call.State.
type Wait struct {
	Delay   time.Duration `json:"delay"`
	Reason  Reason        `json:"reason"`
	Summary string        `json:"summary"`
	// Cause is why a state is out of reach, as calls that wait for others have it too; "" of other
	// waits.
	Cause string `json:"cause,omitempty"`
	// Phrase is the summary in pieces, nil where that says no time.
	Phrase *WaitPhrase `json:"phrase,omitempty"`
	// Most is how many attempts, polls or restarts its policy gives, 0 where it bounds none.
	Most int `json:"most,omitempty"`
	// Rest is set if the wait began in another history or activity, and this is the rest of it.
	Rest bool `json:"rest,omitempty"`
}

// WaitPhrase describes a wait before an attempt in pieces, so that it can be composed with another
// name or time without parsing.
type WaitPhrase struct {
	What string `json:"what"`          // follows the wait: "attempt 2 of 5"
	Why  string `json:"why,omitempty"` // ": HTTP 503"
}

// PhraseOf is the phrase with the name of the call and how long it waits: "fetch: attempt 2 of 5 after 1s: HTTP 503".
func (p *WaitPhrase) PhraseOf(name string, delay time.Duration) string {
	return name + ": " + p.What + " after " + delay.Round(time.Millisecond).String() + p.Why
}

// PhraseUntil is the phrase with a text that says when the wait is over, and without a name.
func (p *WaitPhrase) PhraseUntil(when string) string { return p.What + " " + when + p.Why }

// PhrasedWait is a wait whose summary says the name of its call and how long it waits.
func PhrasedWait(name string, delay time.Duration, reason Reason, phrase WaitPhrase) *Wait {
	return &Wait{Delay: delay, Reason: reason, Summary: phrase.PhraseOf(name, delay), Phrase: &phrase}
}

// EarlierTime is the earlier of two times; zero, for unknown, is later than any.
func EarlierTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
