package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// clock has the time of the server. A call that continues now in an activity
// and now in its workflow, or on another worker, measures its times by one clock:
// that of this machine may be another one, and may be put forward or back.
type clock struct {
	server, here time.Time
	skipped      func() time.Time // that of Host, nil on a server
}

// newClock is the clock of an activity, right after its delivery.
func newClock(ctx context.Context) clock {
	if now := hostOf(ctx).Now; now != nil {
		return clock{skipped: now}
	}
	c := clock{here: time.Now()}
	if activity.IsActivity(ctx) {
		c.server = activity.GetInfo(ctx).StartedTime
	}
	if c.server.IsZero() {
		c.server = c.here
	}
	return c
}

func (c clock) now() time.Time {
	if c.skipped != nil {
		return c.skipped().UTC()
	}
	return c.server.Add(time.Since(c.here)).UTC()
}
