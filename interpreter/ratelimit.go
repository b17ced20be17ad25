package interpreter

import (
	"net/url"
	"time"

	"reprise/interpreter/expression"
)

// Names of the workflow that shares a rate limit between workers.
const (
	RateLimitWorkflow = "RateLimitWorkflow"
	LeaseUpdate       = "lease"
)

// RateLimit is a limit on how often attempts may be sent; kept in workflow
// history.
type RateLimit struct {
	Key        string  `json:"key"`
	Requests   int     `json:"requests"`
	PerSeconds float64 `json:"per_seconds"`
}

// Interval is the time between two attempts: they are spaced evenly, because a
// burst at the start of a window is what makes APIs answer 429.
func (l RateLimit) Interval() time.Duration {
	return (l.Per() + l.Margin()) / time.Duration(max(l.Requests, 1))
}

// Per is the time of the limit.
func (l RateLimit) Per() time.Duration { return asWait(l.PerSeconds) }

// Margin is how much longer than Per Requests intervals take. Attempts are sent
// late and take their time on the way, each a different one, and one refused
// request costs everyone the time that the other side then asks for. Up to
// Margin they may differ, and no window holds more than the limit: 100 ms, or
// 4 % of a long time, or 10 % of a short one.
func (l RateLimit) Margin() time.Duration {
	const usual = 100 * time.Millisecond
	return min(max(l.Per()/25, usual), l.Per()/10)
}

// Slack is how late a turn may be used: a part of Margin, the rest of which is
// for the way to the other side.
func (l RateLimit) Slack() time.Duration { return max(l.Margin()/4, minSlack) }

// minSlack is what a timer needs: limits of a short time are kept less exactly.
const minSlack = 5 * time.Millisecond

// LeaseRequest asks for the next turns under a limit; kept in workflow history.
type LeaseRequest struct {
	Limit RateLimit `json:"limit"`
	Count int       `json:"count"`
	// PauseSeconds says that the other side asked for patience: nobody sends
	// until it is over.
	PauseSeconds float64 `json:"pause_seconds,omitempty"`
	// AfterSeconds is how soon the holder can use a turn: earlier ones are of no
	// use to it.
	AfterSeconds float64 `json:"after_seconds,omitempty"`
	// WithinSeconds bounds how far ahead the turns may be. What is leased is
	// gone, and a holder that dies wastes no more than that. 0 is no bound; it
	// stands in histories of before.
	WithinSeconds float64 `json:"within_seconds,omitempty"`
}

// Lease grants turns: the first after Delay, the others an interval apart. Kept
// in workflow history.
type Lease struct {
	DelaySeconds    float64 `json:"delay_seconds"`
	IntervalSeconds float64 `json:"interval_seconds"`
	// Turns is how many; nil is all that were asked for. With none, Delay is the
	// time until there will be one.
	Turns *int `json:"turns,omitempty"`
	// At is the time of the first turn, by the clock of the workflow; zero in
	// leases of before.
	At time.Time `json:"at,omitzero"`
}

// Delay is how long the holder waits before its first turn.
func (l Lease) Delay() time.Duration { return time.Duration(l.DelaySeconds * float64(time.Second)) }

// Interval is the time between the turns of the lease.
func (l Lease) Interval() time.Duration {
	return time.Duration(l.IntervalSeconds * float64(time.Second))
}

// Limiter hands out turns. It knows no clock: its decisions follow from the
// times it is given. Kept in workflow history.
type Limiter struct {
	Next time.Time `json:"next,omitzero"` // when the next turn may be taken
}

// Lease hands out turns behind those handed out before.
func (l *Limiter) Lease(request LeaseRequest, now time.Time) Lease {
	if soonest := now.Add(asWait(max(request.PauseSeconds, request.AfterSeconds))); l.Next.Before(soonest) {
		l.Next = soonest
	}
	interval := request.Limit.Interval()
	first, turns := l.Next, request.Count
	lease := Lease{DelaySeconds: first.Sub(now).Seconds(), IntervalSeconds: interval.Seconds()}
	if request.WithinSeconds > 0 {
		turns = turnsWithin(now.Add(asWait(request.WithinSeconds)).Sub(first), interval, request.Count)
		lease.Turns, lease.At = &turns, first
	}
	l.Next = first.Add(time.Duration(turns) * interval)
	return lease
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

// rateLimit notes the step's limit in the input of an attempt.
func (c *Call) rateLimit(input *ToolInput, renderer renderer) error {
	limit := c.action.RateLimit
	if limit == nil {
		return nil
	}
	key := defaultLimitKey(input)
	if limit.Key != nil {
		value, err := limit.Key.RenderPresent(renderer.scope, renderer.budget)
		if err != nil {
			return err
		}
		key = expression.Text(value)
	}
	input.RateLimit = &RateLimit{Key: key, Requests: limit.Requests, PerSeconds: limit.Per.Seconds()}
	return nil
}

// defaultLimitKey is the host that a request goes to, else the tool.
func defaultLimitKey(input *ToolInput) string {
	if address, err := url.Parse(expression.Text(input.Fields[fieldURL].Data)); err == nil && address.Host != "" {
		return address.Host
	}
	return input.Tool + "/" + input.Auth
}
