package attempt

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// Clock has the time of the server. A call that continues now in an activity
// and now in its workflow, or on another worker, measures its times by one clock:
// the clock of this machine may show another time, and may be put forward or back.
type Clock struct {
	server, here time.Time
	skipped      func() time.Time // the clock of Host, nil on a server
}

// NewClock is the clock of an activity, right after its delivery.
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

// Now is the time.
func (c Clock) Now() time.Time {
	if c.skipped != nil {
		return c.skipped().UTC()
	}
	return c.server.Add(time.Since(c.here)).UTC()
}
