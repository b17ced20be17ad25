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

// paceMargin keeps attempts a little further apart than the limit allows: they
// arrive with jitter, and one refused request costs everyone the time that the
// other side then asks for.
const paceMargin = 1.04

// Interval is the time between two attempts: they are spaced evenly, because a
// burst at the start of a window is what makes APIs answer 429.
func (l RateLimit) Interval() time.Duration {
	return time.Duration(l.PerSeconds / float64(max(l.Requests, 1)) * paceMargin * float64(time.Second))
}

// LeaseRequest asks for the next turns under a limit; kept in workflow history.
type LeaseRequest struct {
	Limit RateLimit `json:"limit"`
	Count int       `json:"count"`
	// PauseSeconds says that the other side asked for patience: nobody sends
	// until it is over.
	PauseSeconds float64 `json:"pause_seconds,omitempty"`
}

// Lease grants Count turns: the first after Delay, the others an interval
// apart. Kept in workflow history.
type Lease struct {
	DelaySeconds    float64 `json:"delay_seconds"`
	IntervalSeconds float64 `json:"interval_seconds"`
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
	if pause := now.Add(asWait(request.PauseSeconds)); l.Next.Before(pause) {
		l.Next = pause
	}
	interval := request.Limit.Interval()
	first := l.Next
	l.Next = l.Next.Add(time.Duration(request.Count) * interval)
	return Lease{DelaySeconds: first.Sub(now).Seconds(), IntervalSeconds: interval.Seconds()}
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
