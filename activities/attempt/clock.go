package attempt

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// Clock returns the server's time. A call continues in activities and in its workflow, and on
// several workers, so it measures time by one clock: that of this machine may be wrong, or be
// adjusted.
type Clock struct {
	server, here time.Time
	skipped      func() time.Time // the clock of Host, nil on a server
}

// NewClock returns the clock of an activity, right after its delivery.
func NewClock(ctx context.Context) Clock {
	if now := WorkerOf(ctx).Now; now != nil {
		return Clock{skipped: now}
	}
	c := Clock{here: time.Now()}
	if activity.IsActivity(ctx) {
		c.server = activity.GetInfo(ctx).StartedTime
	}
	if c.server.IsZero() {
		c.server = c.here
	}
	return c
}

// Now returns the time.
func (c Clock) Now() time.Time {
	if c.skipped != nil {
		return c.skipped().UTC()
	}
	return c.server.Add(time.Since(c.here)).UTC()
}
