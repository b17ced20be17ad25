// Package heartbeat shows Temporal that an activity is alive.
package heartbeat

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// Longest is the longest time between two heartbeats. With a heartbeat an activity also
// learns that its workflow was cancelled.
const Longest = 2 * time.Second

// Ticker ticks three times per heartbeat timeout of the activity and at least every 2
// s; never where the activity has no heartbeat timeout.
func Ticker(ctx context.Context) (ticks <-chan time.Time, stop func()) {
	limit := activity.GetInfo(ctx).HeartbeatTimeout
	if limit <= 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(max(min(limit/3, Longest), time.Millisecond))
	return ticker.C, ticker.Stop
}

// Keep sends heartbeats without details until it is stopped.
func Keep(ctx context.Context) (stop func()) {
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
