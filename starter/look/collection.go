package look

import (
	"context"
	"errors"
	"fmt"
	"time"

	"reprise/internal/base/connect"
	"reprise/internal/base/exitcode"
	"reprise/internal/observe/runs"
	"reprise/internal/observe/stats"
	"reprise/starter/cli"
	"reprise/starter/session"
)

const (
	// quietFor is how long runs are read before progress is shown.
	quietFor = 2 * time.Second
	// sayEvery is the interval of progress messages.
	sayEvery = 200 * time.Millisecond
)

// collection reads all events of runs and shows its progress.
type collection struct {
	session *session.Session
	into    *stats.Collector
	shown   progress
	said    time.Time
}

func newCollection(streams cli.Streams, s *session.Session, into *stats.Collector) *collection {
	return &collection{session: s, into: into, shown: newProgress(streams), said: time.Now().Add(quietFor - sayEvery)}
}

func (c *collection) closeProgress() { c.shown.close() }

// readRun reads the events of a run, without its child runs.
func (c *collection) readRun(ctx context.Context, run runs.Found, which string, see func(runs.Event)) (runs.EventsInfo, error) {
	c.into.BeginRun(run)
	return c.readEvents(ctx, run, which, see)
}

// childRuns reads the descendants of the runs that were read.
func (c *collection) childRuns(ctx context.Context) error {
	for number := 1; ; number++ {
		start, left, more := c.into.NextChild()
		if !more {
			return nil
		}
		run, err := c.session.Runs().FindChild(ctx, start)
		if err == nil {
			c.into.BeginChild(run)
			_, err = c.readEvents(ctx, run, fmt.Sprintf("child run %d of %d", number, number+left), nil)
		}
		if ctx.Err() != nil {
			return cli.WithStatus(exitcode.Interrupted, cli.ErrSaid)
		}
		switch {
		case err == nil:
		case errors.Is(err, runs.ErrNotFound) || connect.IsNotFound(err):
			c.into.CountUnread()
		default:
			return err
		}
	}
}

func (c *collection) readEvents(ctx context.Context, run runs.Found, which string, see func(runs.Event)) (runs.EventsInfo, error) {
	at := time.Now()
	summary, err := c.session.Runs().Events(ctx, run, runs.EventFilter{Attempts: true}, func(event runs.Event) error {
		if see != nil {
			see(event)
		}
		c.into.AddEvent(event)
		c.sayReading(run, which)
		return nil
	})
	if ctx.Err() != nil {
		return summary, cli.WithStatus(exitcode.Interrupted, cli.ErrSaid)
	}
	if err != nil {
		return summary, err
	}
	notes := summary.Notes
	if !run.Ended() {
		notes = append(notes, "still open, so these are the figures so far")
	}
	c.into.EndRun(at, notes...)
	c.into.AddCost(summary.Cost)
	return summary, nil
}

func (c *collection) sayReading(run runs.Found, which string) {
	if time.Since(c.said) < sayEvery {
		return
	}
	c.said = time.Now()
	seen, ended := c.into.SeenCounts()
	c.shown.showLines([]line{{key: "read", text: fmt.Sprintf(
		"reading %s (%s): %d events, %d iterations and steps", run.WorkflowID, which, seen, ended)}})
}
