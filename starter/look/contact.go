package look

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/base/sleep"
	"reprise/internal/observe/ending"
)

const (
	// mostSilent is the number of unanswered polls in a row after which the server counts as lost; each takes up to twice
	// queryTimeout.
	mostSilent = 2
	// contactPatience is how long the server may be lost before the command stops following.
	contactPatience = 10 * time.Minute
	// retryFrom and retryUpTo are the shortest and the longest pause between polls of a lost server.
	retryFrom, retryUpTo = time.Second, 10 * time.Second
	// endPoll bounds one poll for the end of a run. A loaded server may drop the notification of the end, and would
	// then leave a poll unanswered for 20 s.
	endPoll = 5 * time.Second
)

// contact is what a follower knows about the server's availability. It is safe for concurrent use.
type contact struct {
	patience time.Duration // how long the server may be away

	mu         sync.Mutex
	lastAnswer time.Time // when it answered last
	silent     int       // polls in a row that it did not answer
}

func newContact(patience time.Duration) *contact {
	return &contact{patience: patience, lastAnswer: time.Now()}
}

// recordAnswer records a response and reports whether the server counted as lost before.
func (c *contact) recordAnswer() (back bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	back = c.silent >= mostSilent
	c.lastAnswer, c.silent = time.Now(), 0
	return back
}

// recordSilence records an unanswered poll and reports whether the server counts as lost from now on.
func (c *contact) recordSilence() (lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent++
	return c.silent == mostSilent
}

func (c *contact) isLost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silent >= mostSilent
}

// pollPause returns how long to wait before the next poll; 0 while the server responds.
func (c *contact) pollPause() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.silent == 0 {
		return 0
	}
	return min(retryFrom<<min(c.silent-1, 10), retryUpTo)
}

// isOver reports whether the server has been lost for longer than patience.
func (c *contact) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.silent >= mostSilent && time.Since(c.lastAnswer) > c.patience
}

// awaitOutcome waits for the end of a run, even if the server is unavailable at times.
func (c *contact) awaitOutcome(ctx context.Context, run client.WorkflowRun) outcome {
	for {
		poll, cancel := context.WithTimeout(ctx, endPoll)
		result, err := ending.WaitForResult(poll, run)
		expired := poll.Err() != nil
		cancel()
		switch {
		case err == nil || !connect.IsUnreachable(err):
			return outcome{result: result, err: err}
		case c.isOver():
			return outcome{err: fmt.Errorf("the server was unreachable for more than %s: %w", c.patience, err)}
		case ctx.Err() != nil || !expired && sleep.For(ctx, retryFrom) != nil:
			return outcome{err: err}
		}
	}
}
