package sqltool

import (
	"context"
	"math/rand/v2"
	"time"

	"reprise/internal/base/sleep"
)

// How often a write is made again that another one was in the way of, and how long it waits before the first time and at most.
const (
	// mostCollisions bounds how often a write is repeated after a collision with another
	// writer. Without it, two writers that always collide would block their workers; with it,
	// the attempt fails and its policy decides.
	mostCollisions = 5
	collisionWait  = 50 * time.Millisecond
	longestWait    = time.Second
)

// RetryCollisions makes a write, and repeats it up to mostCollisions times while it collides with other writers. The
// policies of its sink do not see these failures.
func RetryCollisions[R any](ctx context.Context, write func() (R, error), collides func(error) bool) (R, error) {
	result, err := write()
	for made := range mostCollisions {
		most := min(collisionWait<<made, longestWait)
		if !collides(err) || sleep.For(ctx, most/2+rand.N(most/2)) != nil {
			break
		}
		result, err = write()
	}
	return result, err
}
