package attempt

import (
	"context"
	"log/slog"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/ratelimit"
)

// Deliver is where delivery n begins, with the state that those before it have left, of a
// request that was not lost before.
func Deliver(before DeliveryState, n int, tells bool) (DeliveryState, bool) {
	w := before.nextDelivery(n, tells)
	return w, w.IsExhausted(0)
}

// FirstTurn is when the first turn of a lease is by the clock of this machine.
func FirstTurn(lease ratelimit.Lease, asked, answered time.Time) time.Time {
	return firstTurn(lease, asked, answered)
}

// Gate is what attempts pass before they begin.
type Gate struct{ gate *pauseGate }

// NewGate is a gate that asks describe about runs.
func NewGate(describe func(context.Context, string) (interpreter.Control, error)) Gate {
	g := newGate(slog.New(slog.DiscardHandler))
	g.controls.read = describe
	return Gate{g}
}

// Control is what the gate knows of a run.
func (g Gate) Control(ctx context.Context, workflowID string, version int) interpreter.Control {
	return g.gate.controlOf(ctx, workflowID, version)
}
