package activities

import (
	"context"
	"math/rand/v2"
	"time"

	"go.temporal.io/sdk/client"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/ratelimit"
)

// Host is what a worker lends to its activities.
type Host struct {
	// Client sends heartbeats that have to arrive before the attempt continues.
	Client client.Client
	// StopGrace is how long what acts may continue once the worker stops.
	StopGrace time.Duration
	// Slots is how many activities the worker runs at once; 0 is no bound.
	Slots int
	// The rest is of hosts on which time is skipped; nil on a worker.

	// Now is the time.
	Now func() time.Time
	// Turns gives attempts their turns under rate limits.
	Turns Turns
	// Observer is shown what calls decide in activities. Their waits have no jitter then.
	Observer func(ctx context.Context) call.Observer
}

// Turns gives attempts their turns under rate limits, where no time passes in which they
// could wait. It is safe for concurrent use.
type Turns interface {
	// Turn is the one that an attempt comes back for, nil where it may be made now.
	Turn(limit ratelimit.Limit, in interpreter.ToolInput) *ratelimit.Reservation
	// Pause pauses all attempts under a limit for a time.
	Pause(limit ratelimit.Limit, wait time.Duration)
}

// random is what hosted calls draw from, and observer what they are shown to.
func (h Host) random(ctx context.Context) (random func() float64, observer call.Observer) {
	if h.Observer == nil {
		return rand.Float64, nil
	}
	return nil, h.Observer(ctx)
}

type hostKey struct{}

// WithHost makes the context that a worker gives to its activities. Without it
// heartbeats are those of the SDK, which gathers them, and an attempt is cut
// when its worker stops.
func WithHost(ctx context.Context, host Host) context.Context {
	return context.WithValue(ctx, hostKey{}, host)
}

// ClientOf is the client of the worker that performs an activity, nil for none.
func ClientOf(ctx context.Context) client.Client { return hostOf(ctx).Client }

func hostOf(ctx context.Context) Host {
	host, _ := ctx.Value(hostKey{}).(Host)
	return host
}
