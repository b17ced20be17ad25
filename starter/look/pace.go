package look

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/starter/session"
)

// Pace is how often a run is polled while it is followed. Each poll is a query to the run, and another one to each
// of its open loops; Temporal Cloud bills them as actions. The pauses grow with the time for which the run was followed.
type Pace struct {
	First   time.Duration // before the first poll
	Least   time.Duration // the shortest pause between two polls
	Longest time.Duration // the longest pause, but for polls that take long themselves
}

var (
	// localPace is for a server of this machine, which nobody bills.
	localPace = Pace{First: 250 * time.Millisecond, Least: 500 * time.Millisecond, Longest: 15 * time.Second}
	// terminalPace is for a person who watches.
	terminalPace = Pace{First: 250 * time.Millisecond, Least: 500 * time.Millisecond, Longest: 2 * time.Second}
	// logPace is for a log that nobody watches: two polls in the first 20 s.
	logPace = Pace{First: time.Second, Least: 10 * time.Second, Longest: 10 * time.Second}
)

// PaceOf returns how often a run on the server of a session is polled; watched says that a terminal shows it.
func PaceOf(s *session.Session, watched bool) Pace {
	switch {
	case s.Server != nil || connect.IsLocal(s.Address):
		return localPace
	case watched:
		return terminalPace
	}
	return logPace
}

// Pause returns how long to wait before the next poll of a run that was followed for some time; the last poll took that
// long. A pause is a quarter of that time, within the bounds of the pace. A poll of a large loop may take long; the
// pauses grow with it, so that polls never are most of the load.
func (p Pace) Pause(followed, took time.Duration) time.Duration {
	const part, load = 4, 4
	return max(p.Least, min(followed/part, p.Longest), load*took)
}

// checkServer reports whether the server responds, without a query to the run: connect.IsUnreachable of the error says
// that it does not.
func checkServer(ctx context.Context, c client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	_, err := c.CheckHealth(ctx, &client.CheckHealthRequest{})
	return err
}
