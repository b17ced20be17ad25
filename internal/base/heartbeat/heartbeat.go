// Package heartbeat shows Temporal that an activity is alive.
package heartbeat

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"reprise/interpreter"
)

const (
	// Default is the time between two heartbeats unless the operator configures another. Heartbeats also let an
	// activity learn that its workflow was cancelled.
	Default = interpreter.DefaultHeartbeat
	// Longest is the longest interval that an operator may configure: a lost worker is then noticed after five
	// minutes, and a cancelled attempt ends up to a minute late.
	Longest = time.Minute
)

// Interval returns the time between two heartbeats of an activity: a fraction of its heartbeat timeout, so that a few
// may be lost. It is Default if the activity has no heartbeat timeout, and outside of activities.
func Interval(ctx context.Context) time.Duration {
	if !activity.IsActivity(ctx) {
		return Default
	}
	if limit := activity.GetInfo(ctx).HeartbeatTimeout; limit > 0 {
		return max(limit/interpreter.MissedHeartbeats, time.Millisecond)
	}
	return Default
}

// ProgressInterval returns the time between two heartbeats with progress, which people watch: ProgressOf the Interval.
func ProgressInterval(ctx context.Context) time.Duration { return ProgressOf(Interval(ctx)) }

// ProgressOf returns the time between two heartbeats with progress of an activity whose other heartbeats are an
// interval apart: a second, or the interval if the operator made that longer than Default.
func ProgressOf(interval time.Duration) time.Duration {
	if interval > Default {
		return interval
	}
	return time.Second
}

// Ticker ticks every Interval; never if the activity has no heartbeat timeout.
func Ticker(ctx context.Context) (ticks <-chan time.Time, stop func()) {
	if activity.GetInfo(ctx).HeartbeatTimeout <= 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(Interval(ctx))
	return ticker.C, ticker.Stop
}

// StartSending sends heartbeats without details until it is stopped.
func StartSending(ctx context.Context) (stop func()) {
	ticks, stopTicks := Ticker(ctx)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-ticks:
				activity.RecordHeartbeat(ctx)
			case <-done:
				return
			}
		}
	}()
	return func() {
		stopTicks()
		close(done)
	}
}
