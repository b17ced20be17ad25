package look

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/starter/session"
)

// Pace is how often a followed run is polled. Each poll is a query to the run and one to each of its open loops,
// which Temporal Cloud bills as actions. Pauses grow with the time that the run has been followed.
type Pace struct {
	First   time.Duration // before the first poll
	Least   time.Duration // the shortest pause between two polls
	Longest time.Duration // the longest pause, but for polls that take long themselves
}

var (
	// localPace is for a server on this machine, which bills nothing.
	localPace = Pace{First: 250 * time.Millisecond, Least: 500 * time.Millisecond, Longest: 15 * time.Second}
	// terminalPace is for a person at a terminal.
	terminalPace = Pace{First: 250 * time.Millisecond, Least: 500 * time.Millisecond, Longest: 2 * time.Second}
	// logPace is for a log that nobody watches: two polls in the first 20 s.
	logPace = Pace{First: time.Second, Least: 10 * time.Second, Longest: 10 * time.Second}
)

// PaceOf returns the pace for the server of a session. watched is set if the output is a terminal.
func PaceOf(s *session.Session, watched bool) Pace {
	switch {
	case s.Server != nil || connect.IsLocal(s.Address):
		return localPace
	case watched:
		return terminalPace
	}
	return logPace
}

// Pause returns how long to wait before the next poll: a quarter of followed, the time that the run has been
// followed, within the bounds of the pace. took is the duration of the last poll: polls of a large loop are slow, and
// the pause grows with them so that polls never are most of the load.
func (p Pace) Pause(followed, took time.Duration) time.Duration {
	const part, load = 4, 4
	return max(p.Least, min(followed/part, p.Longest), load*took)
}

// checkServer checks whether the server responds, without a query to the run. connect.IsUnreachable of the error
// reports that it does not.
func checkServer(ctx context.Context, c client.Client) error {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	_, err := c.CheckHealth(ctx, &client.CheckHealthRequest{})
	return err
}
