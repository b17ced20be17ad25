package activities

import (
	"context"
	"log/slog"
	"time"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/ratelimit"
)

// MaskFor resolves a connection as an attempt does and gives what masks its
// secrets.
func MaskFor(ctx context.Context, res Resources, connection string) (context.Context, func(string) string) {
	res = res.withDefaults()

	ctx, secrets := tool.WithSecrets(ctx, res.Secrets)
	if _, err := res.forTools().Connection(ctx, connection); err != nil {
		panic(err)
	}
	return ctx, secrets.Text
}

// DeliveryState is what heartbeats leave of the deliveries of an activity.
type DeliveryState = deliveryState

// Deliver is where delivery n begins, with the state that those before it have left, of a
// request that was not lost before.
func Deliver(before DeliveryState, n int, tells bool) (DeliveryState, bool) {
	w := before.next(n, tells)
	return w, w.spent(0)
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
	return g.gate.control(ctx, workflowID, version)
}

// KeepsLedger reports whether a tool is a ledger.
func (c *Catalogue) KeepsLedger(name string) bool {
	_, keeps := c.tools[name].(tool.Ledger)
	return keeps
}

// StateAfter is State so long after the activity was scheduled.
func (c *Catalogue) StateAfter(ctx context.Context, waited time.Duration, in interpreter.StateInput) (interpreter.StateOutput, error) {
	return c.stateAfter(ctx, waited, in)
}
