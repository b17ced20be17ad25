package attempt

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/ratelimit"
)

// Worker is what a worker provides to its activities.
type Worker struct {
	// Client sends heartbeats that have to arrive before the attempt continues.
	Client client.Client
	// StopGrace is how long a running attempt may continue once the worker stops.
	StopGrace time.Duration
	// Slots is how many activities the worker runs at once; 0 is unbounded.
	Slots int
	// The rest is of hosts on which time is skipped; nil on a worker.

	// Now is the time.
	Now func() time.Time
	// Turns gives attempts their turns under rate limits.
	Turns Turns
	// Observer is shown what calls decide in activities. Their waits have no jitter then.
	Observer func(ctx context.Context) call.Observer
}

// Turns gives attempts their turns where they cannot wait, since no time passes, as in tests
// of playbooks. It is safe for concurrent use.
type Turns interface {
	// ReserveTurn returns the turn for which the attempt has to come back, nil if it may be made
	// now.
	ReserveTurn(limit ratelimit.Limit, in interpreter.ToolInput) *ratelimit.Reservation
	// PauseAttempts pauses all attempts under a limit for a time.
	PauseAttempts(limit ratelimit.Limit, wait time.Duration)
}

type workerKey struct{}

// WithWorker makes the context that a worker gives to its activities. Without it
// the SDK sends the heartbeats, and gathers them, and an attempt is cut
// when its worker stops.
func WithWorker(ctx context.Context, host Worker) context.Context {
	return context.WithValue(ctx, workerKey{}, host)
}

// WorkerOf returns the Worker of the activity of ctx; the zero value outside of one.
func WorkerOf(ctx context.Context) Worker {
	host, _ := ctx.Value(workerKey{}).(Worker)
	return host
}
