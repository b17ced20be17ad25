package activities

import (
	"context"
	"maps"

	"go.temporal.io/sdk/client"

	"reprise/activities/hosting"
	"reprise/activities/keeper"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/call"
)

// ServiceActivities returns the activities that no call makes, by name: they plan, check the sinks of an open run,
// and reach the workflows which outlive runs. CheckRun, which a run begins with, is not one of them: who hosts a worker
// adds to it.
func ServiceActivities(c *Catalogue) map[string]any {
	all := map[string]any{
		interpreter.PlanActivity: func(ctx context.Context, in call.PlanInput) (interpreter.PlanAnswer, error) {
			return planPlaybook(ctx, c, in)
		},
		interpreter.SinksActivity: func(ctx context.Context, sinks []interpreter.SinkConnection) (interpreter.SinkCheck, error) {
			return checkSinks(tool.ForNoPlaybook(ctx), c, sinks), nil // their attempts check the playbook
		},
	}
	for _, more := range []map[string]any{
		keeper.QueueActivities(), keeper.TreeActivities(c.Attempts.FindHold, c.Attempts.RunCancelled), keeper.PartitionActivities(c.States.Groups, hosting.StateError), keeper.MailboxActivities(), c.res.logins.Activities(),
	} {
		maps.Copy(all, more)
	}
	return all
}

// ReportTokens reports the tokens that an earlier worker of a namespace has left in the spool, until ctx ends. The error
// says that the spool cannot be read.
func ReportTokens(ctx context.Context, c *Catalogue, to client.Client, namespace string) error {
	return c.res.logins.Spool.RecoverTokens(ctx, to, namespace)
}
