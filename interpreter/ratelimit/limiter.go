package ratelimit

import (
	"time"
)

// Names of the workflow that shares a rate limit between workers.
const (
	WorkflowName = "RateLimitWorkflow"
	LeaseUpdate  = "lease"
)

// Limit is a limit on how often attempts may be sent; kept in workflow
// history.
type Limit struct {
	Key string `json:"key"`
	// Playbook is the playbook that the key belongs to; "" is a key that playbooks share.
	Playbook   string  `json:"playbook,omitempty"`
	Requests   int     `json:"requests"`
	PerSeconds float64 `json:"per_seconds"`
}

// Interval is the time between two attempts: they are spaced evenly, because a
// burst at the start of a window is what makes APIs answer 429.
func (l Limit) Interval() time.Duration {
	return (l.Per() + l.Margin()) / time.Duration(max(l.Requests, 1))
}

// Per is the time of the limit.
func (l Limit) Per() time.Duration { return ToDuration(l.PerSeconds) }

// Margin is how much longer than Per Requests intervals take. Attempts are sent
// late and take their time on the way, each a different one, and one refused
// request costs everyone the time that the other side then asks for. Up to
// Margin they may differ, and no window holds more than the limit: 100 ms, or
// 4 % of a long time, or 10 % of a short one.
func (l Limit) Margin() time.Duration {
	const usual = 100 * time.Millisecond
	return min(max(l.Per()/25, usual), l.Per()/10)
}

// Slack is how late a turn may be used: a part of Margin, the rest of which covers the way to
// the server.
func (l Limit) Slack() time.Duration { return max(l.Margin()/4, minSlack) }

// minSlack is the precision of timers: limits of a short time are kept less exactly.
const minSlack = 5 * time.Millisecond

// LeaseRequest asks for the next turns under a limit; kept in workflow history.
type LeaseRequest struct {
	Limit Limit `json:"limit"`
	Count int   `json:"count"`
	// PauseSeconds says that the other side asked for patience: nobody sends
	// until it is over.
	PauseSeconds float64 `json:"pause_seconds,omitempty"`
	// AskedSeconds is the pause that the server requested, if it is longer than anybody else
	// has to wait.
	AskedSeconds float64 `json:"asked_seconds,omitempty"`
	// AfterSeconds is how soon the holder can use a turn: earlier ones are of no
	// use to it.
	AfterSeconds float64 `json:"after_seconds,omitempty"`
	// WithinSeconds bounds how far ahead leased turns may be, because a holder that dies wastes
	// its turns. 0 is no bound; only older histories have it.
	WithinSeconds float64 `json:"within_seconds,omitempty"`
	// Promises says that the worker understands promises: an attempt that gets no turn now is promised a time. The
	// Count attempts of the request come in this order: Due attempts whose promised time has come, those whose
	// promised time lies ahead, and Fresh attempts that were promised nothing yet.
	Promises bool `json:"promises,omitempty"`
	Due      int  `json:"due,omitempty"`
	Fresh    int  `json:"fresh,omitempty"`
}

// Lease grants turns: the first after Delay, the others an interval apart. Kept
// in workflow history.
type Lease struct {
	DelaySeconds    float64 `json:"delay_seconds"`
	IntervalSeconds float64 `json:"interval_seconds"`
	// Turns is the number of requests that may be made; nil means as many as were requested. If
	// it is 0, DelaySeconds is the time until one may be made.
	Turns *int `json:"turns,omitempty"`
	// At is when the first request may be made, by the clock of the workflow. Older leases in
	// histories do not have it.
	At time.Time `json:"at,omitzero"`
	// Promised is how many requests beyond Turns were promised a time: the first one Promise,
	// the others at intervals after it.
	Promised int       `json:"promised,omitempty"`
	Promise  time.Time `json:"promise,omitzero"`
}

// Reservation is the position of an attempt that has released its slot to wait for its
// turn under a rate limit. Its times are by the clock of the server. Kept in
// workflow history.
type Reservation struct {
	At       time.Time `json:"at"`              // when it comes back
	Promised time.Time `json:"promised"`        // when its turn is to be
	Since    time.Time `json:"since"`           // when it asked first: who has waited longest goes first
	Tries    int       `json:"tries,omitempty"` // how often it came for its turn and there was none
	// Called says that the limiter has called it back for a turn that is free.
	Called bool `json:"called,omitempty"`
}

// Delay is how long the holder waits before its first turn.
func (l Lease) Delay() time.Duration { return time.Duration(l.DelaySeconds * float64(time.Second)) }

// Interval is the time between the turns of the lease.
func (l Lease) Interval() time.Duration {
	return time.Duration(l.IntervalSeconds * float64(time.Second))
}

// Limiter gives turns. It knows no clock: its decisions follow from the
// times it is given. Kept in workflow history.
type Limiter struct {
	Next time.Time `json:"next,omitzero"` // when the next turn may be taken
	// Promised is the end of the turns that are promised to those who wait
	// elsewhere, and come back for them.
	Promised time.Time `json:"promised,omitzero"`
	// Asked is until when the other side has asked for patience, where that was more
	// than anybody else had to wait for. Until then it is not heard again: who is
	// asked for as much waits alone.
	Asked time.Time `json:"asked,omitzero"`
	// Away lists attempts that have given up their slots, by promised time.
	Away []Away `json:"away,omitempty"`
	// Called is when somebody was called back last, and Filled until when there are
	// enough of them for all turns; zero where nobody was missing.
	Called time.Time `json:"called,omitzero"`
	Filled time.Time `json:"filled,omitzero"`
	// Every is the time between turns, as the last lease says.
	Every time.Duration `json:"every,omitempty"`
}

// turnGrace is how long a turn stays reserved for those that it was promised to. If none of
// them has come by then, all are considered gone.
const turnGrace = 5 * time.Second

// Lease grants the next free turns. A promise does not reserve a turn, which would be lost if
// nobody came: it says when to come back, and later requests get no turns before that time.
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
		turns = turnsWithin(now.Add(ToDuration(request.WithinSeconds)).Sub(first), interval, request.Count)
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

// pauseTime is how long nobody sends, as a request says.
func (l *Limiter) pauseTime(request LeaseRequest, now time.Time) time.Duration {
	if request.AskedSeconds > request.PauseSeconds {
		if l.Asked.After(now) {
			return 0
		}
		l.Asked = now.Add(ToDuration(request.AskedSeconds))
	}
	return ToDuration(request.PauseSeconds)
}

// promiseTurns promises turns to those of the last in line who have none: to all of
// the rest where the promises of before are void.
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

// turnsWithin is how many of count turns lie in a time that begins with one.
func turnsWithin(room, interval time.Duration, count int) int {
	switch {
	case room < 0:
		return 0
	case interval <= 0:
		return count
	}
	return min(count, int(min(room/interval, time.Duration(count)))+1)
}
