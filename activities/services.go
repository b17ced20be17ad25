package activities

import (
	"maps"

	"reprise/activities/hosting"
	"reprise/activities/keeper"
)

// Services are the activities that reach the workflows which outlive runs, by name.
func (c *Catalogue) Services() map[string]any {
	all := keeper.Queues()
	for _, more := range []map[string]any{
		keeper.Trees(c.Attempts.Hold, c.Attempts.RunCancelled), keeper.Partitions(c.States.Groups, hosting.StateError), keeper.Mailboxes(),
	} {
		maps.Copy(all, more)
	}
	return all
}
