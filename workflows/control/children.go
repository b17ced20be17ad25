package control

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// SteerChild adds a child to which requests of people are passed on (gate.SteeredChildren).
func (c *Controls) SteerChild(to gate.Recipient) *gate.SteeredChild {
	added := &gate.SteeredChild{Recipient: to}
	c.Children = append(c.Children, added)
	return added
}

// AcceptedUpdates returns the number of updates that this history has accepted.
func (c *Controls) AcceptedUpdates() int { return c.Updates }

// StopSteering stops signals to a child (gate.SteeredChildren).
func (c *Controls) StopSteering(child *gate.SteeredChild) {
	child.Ended = true
	delete(c.Reports, child.ID)
	c.Children = slices.DeleteFunc(c.Children, func(other *gate.SteeredChild) bool { return other == child })
}

// SignalChild passes a steering on to the child with an ID, unless it has ended.
func (c *Controls) SignalChild(ctx workflow.Context, id string, steering protocol.Steering) {
	if at := slices.IndexFunc(c.Children, func(child *gate.SteeredChild) bool { return child.ID == id }); at >= 0 {
		c.Children[at].SignalChild(ctx, steering)
	}
}
