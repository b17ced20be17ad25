package ratelimit

import (
	"time"
)

// Names of the workflow that shares a rate limit between workers, and of its update.
const (
	WorkflowName = "RateLimitWorkflow"
	LeaseUpdate  = "lease"
)

// Limit is a limit on how often attempts may be sent; kept in workflow
// history.
type Limit struct {
	Key string `json:"key"`
	// Playbook is the playbook that the key belongs to; "" for a key that playbooks share.
	Playbook   string  `json:"playbook,omitempty"`
	Requests   int     `json:"requests"`
	PerSeconds float64 `json:"per_seconds"`
}

// Interval returns the time between two attempts. They are spaced evenly, because a burst at the start of a window
// is what makes APIs return 429.
func (l Limit) Interval() time.Duration {
	return (l.Period() + l.Margin()) / time.Duration(max(l.Requests, 1))
}

// Period returns the period of the limit.
func (l Limit) Period() time.Duration { return ToDuration(l.PerSeconds) }

// Margin returns how much longer than Period the intervals of Requests attempts are together. Attempts are sent late
// and take time on the way, each a different one, and a single rejected request costs all attempts the wait that
// the server then requests. As long as these times differ by no more than Margin, no window exceeds the limit: 100
// ms, 4 % of a long period, or 10 % of a short one.
func (l Limit) Margin() time.Duration {
	const usual = 100 * time.Millisecond
	return min(max(l.Period()/25, usual), l.Period()/10)
}

// SlotTolerance returns how late a slot may be used: a part of Margin, the rest of which covers the way to the server.
func (l Limit) SlotTolerance() time.Duration { return max(l.Margin()/4, minSlack) }

// minSlack is the precision of timers, so limits with short periods are observed less exactly.
const minSlack = 5 * time.Millisecond

// LeaseRequest requests the next slots under a limit; kept in workflow history.
type LeaseRequest struct {
	Limit Limit `json:"limit"`
	Count int   `json:"count"`
	// PauseSeconds is how long no attempt may be sent because the server requested a wait; long waits are capped.
	PauseSeconds float64 `json:"pause_seconds,omitempty"`
	// AskedSeconds is the whole wait that the server requested, if PauseSeconds is capped.
	AskedSeconds float64 `json:"asked_seconds,omitempty"`
	// AfterSeconds is the earliest time at which the requester can use a slot.
	AfterSeconds float64 `json:"after_seconds,omitempty"`
	// WithinSeconds bounds how far in the future leased slots may be, because a holder that dies wastes its slots.
	// 0 means no bound; it occurs only in older histories.
	WithinSeconds float64 `json:"within_seconds,omitempty"`
	// Promises says that the worker understands promises: an attempt that gets no slot now is promised a time. The
	// Count attempts of the request are in this order: Due attempts whose promised time has come, attempts whose
	// promised time is in the future, and Fresh attempts without a promise.
	Promises bool `json:"promises,omitempty"`
	Due      int  `json:"due,omitempty"`
	Fresh    int  `json:"fresh,omitempty"`
}

// Lease grants slots: the first after Delay, the others at intervals. Kept in workflow history.
type Lease struct {
	DelaySeconds    float64 `json:"delay_seconds"`
	IntervalSeconds float64 `json:"interval_seconds"`
	// Turns is the number of granted slots; nil means as many as requested. If it is 0, DelaySeconds is the time
	// until the next free slot.
	Turns *int `json:"turns,omitempty"`
	// At is the time of the first slot, by the clock of the workflow. Leases in older histories do not have it.
	At time.Time `json:"at,omitzero"`
	// Promised is the number of attempts beyond Turns that were promised a time: the first one Promise, the others
	// at intervals after it.
	Promised int       `json:"promised,omitempty"`
	Promise  time.Time `json:"promise,omitzero"`
}

// Reservation is the position of an attempt that waits elsewhere for its slot under a rate limit. Its times are by
// the clock of the server. Kept in workflow history.
type Reservation struct {
	At       time.Time `json:"at"`              // when it comes back
	Promised time.Time `json:"promised"`        // time of the promised slot
	Since    time.Time `json:"since"`           // when it first requested a slot: the attempt that has waited longest goes first
	Tries    int       `json:"tries,omitempty"` // how often it came for its slot and there was none
	// Called says that the limiter has called it back for a free slot.
	Called bool `json:"called,omitempty"`
}

// Delay returns how long the holder waits before its first slot.
func (l Lease) Delay() time.Duration { return time.Duration(l.DelaySeconds * float64(time.Second)) }

// Interval returns the time between the slots of the lease.
func (l Lease) Interval() time.Duration {
	return time.Duration(l.IntervalSeconds * float64(time.Second))
}

// Limiter grants slots. It has no clock: its decisions depend only on the times passed to it. Kept in workflow
// history.
type Limiter struct {
	Next time.Time `json:"next,omitzero"` // time of the next free slot
	// Promised is the end of the slots promised to attempts that wait elsewhere.
	Promised time.Time `json:"promised,omitzero"`
	// Asked is the end of the last AskedSeconds. Until then, further capped pauses are ignored, and the attempt that got
	// such a response waits alone.
	Asked time.Time `json:"asked,omitzero"`
	// Away lists attempts that wait elsewhere, by promised time.
	Away []Away `json:"away,omitempty"`
	// Called is when attempts were last called back, and Filled until when there are enough of them for all slots;
	// zero if none were missing.
	Called time.Time `json:"called,omitzero"`
	Filled time.Time `json:"filled,omitzero"`
	// Every is the interval between slots in the last lease.
	Every time.Duration `json:"every,omitempty"`
}

// turnGrace is how long a slot stays reserved for the attempts with promises. If none of them has come by then, all
// are considered gone.
const turnGrace = 5 * time.Second

// Lease grants the next free slots, or promises some. A promise reserves no slot, because the slot would be lost if
// the requester did not come back. It says when to come back, and later requests get no slots before that time.
func (l *Limiter) Lease(request LeaseRequest, now time.Time) Lease {
	abandoned := !l.Next.Add(turnGrace).After(now)
	if soonest := now.Add(max(l.pauseTime(request, now), ToDuration(request.AfterSeconds))); l.Next.Before(soonest) {
		l.Next = soonest
	}
	interval := request.Limit.Interval()
	l.Every = interval
	first, turns := l.Next, request.Count
	lease := Lease{DelaySeconds: first.Sub(now).Seconds(), IntervalSeconds: interval.Seconds()}
	if request.WithinSeconds > 0 {
		turns = slotsWithin(now.Add(ToDuration(request.WithinSeconds)).Sub(first), interval, request.Count)
		lease.Turns, lease.At = &turns, first
	}
	if abandoned {
		l.Promised = time.Time{}
	}
	if due := min(turns, request.Due); request.Promises && l.Promised.After(first.Add(time.Duration(due)*interval)) {
		turns = due
	}
	l.Next = first.Add(time.Duration(turns) * interval)
	if request.Promises {
		l.promiseTurns(&lease, request, request.Count-max(turns, request.Due), abandoned)
	}
	return lease
}

// pauseTime returns how long no attempt may be sent, according to a request.
func (l *Limiter) pauseTime(request LeaseRequest, now time.Time) time.Duration {
	if request.AskedSeconds > request.PauseSeconds {
		if l.Asked.After(now) {
			return 0
		}
		l.Asked = now.Add(ToDuration(request.AskedSeconds))
	}
	return ToDuration(request.PauseSeconds)
}

// promiseTurns promises times to the last attempts of a request, which have none; to all rest attempts if earlier
// promises are void.
func (l *Limiter) promiseTurns(lease *Lease, request LeaseRequest, rest int, void bool) {
	if !void {
		rest = min(rest, request.Fresh)
	}
	if rest <= 0 {
		return
	}
	from := l.Next
	if l.Promised.After(from) {
		from = l.Promised
	}
	lease.Promised, lease.Promise = rest, from
	l.Promised = from.Add(time.Duration(rest) * request.Limit.Interval())
}

// slotsWithin returns how many of count slots fit into a period that begins with one.
func slotsWithin(room, interval time.Duration, count int) int {
	switch {
	case room < 0:
		return 0
	case interval <= 0:
		return count
	}
	return min(count, int(min(room/interval, time.Duration(count)))+1)
}
