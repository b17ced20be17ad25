package activities

import (
	"context"
	"maps"

	"go.temporal.io/sdk/client"

	"reprise/activities/hosting"
	"reprise/activities/keeper"
)

// ServiceActivities are the activities that reach the workflows which outlive runs, by name.
func (c *Catalogue) ServiceActivities() map[string]any {
	all := keeper.QueueActivities()
	for _, more := range []map[string]any{
		keeper.TreeActivities(c.Attempts.Hold, c.Attempts.RunCancelled), keeper.PartitionActivities(c.States.Groups, hosting.StateError), keeper.MailboxActivities(), c.res.logins.Activities(),
	} {
		maps.Copy(all, more)
	}
	return all
}

// ReportTokens reports the tokens that an earlier worker of a namespace has left in the spool, until ctx ends. The error
// says that the spool cannot be read.
func (c *Catalogue) ReportTokens(ctx context.Context, to client.Client, namespace string) error {
	return c.res.logins.Spool.Recover(ctx, to, namespace)
}
