// Package keeper has the activities that reach the workflows that outlive runs: rate limits, queues, states,
// partitions, trees, logins, mailboxes. It does not know tools or attempts: package activities passes in what it
// needs of these.
//
// Each service has one name in three places: its rules are in interpreter, its workflow in workflows/keeper, and its
// activities here.
package keeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/activities/tool"
	"reprise/internal/base/connect"
	"reprise/internal/base/sleep"
)

// lasting describes a workflow that outlives runs and is started by the first update that one of them
// sends.
type lasting struct {
	name, id, summary string
	query             string // gives what the next one begins with
	priority          int
}

// mostSummary bounds the summary of a workflow, in bytes: Temporal refuses to start one with
// more than 400.
const mostSummary = 300

// updateLasting sends an update to a workflow that keeps a K. If none is running, because the last one
// was ended from outside, it starts one with the state of the last one. It fails if that cannot be
// queried: otherwise the state would be lost.
func updateLasting[K any](ctx context.Context, w lasting, update client.UpdateWorkflowOptions, result any) error {
	c := activity.GetClient(ctx)
	update.WorkflowID = w.id
	err := connect.SendUpdate(ctx, c, update, result)
	if !connect.IsNotFound(err) {
		return err
	}
	var last K
	answer, err := c.QueryWorkflow(ctx, w.id, "", w.query)
	if err == nil {
		err = answer.Get(&last)
	}
	if err != nil && !connect.IsNotFound(err) {
		return fmt.Errorf("the workflow %s was ended from outside, and its data cannot be queried: %w", w.id, err)
	}
	return connect.UpdateWithStart(ctx, c, update, result, client.StartWorkflowOptions{
		TaskQueue: activity.GetInfo(ctx).TaskQueue, Priority: temporal.Priority{PriorityKey: w.priority},
		StaticSummary: tool.CutText(w.summary, mostSummary),
	}, w.name, last)
}

var errStopped = errors.New("the worker is stopping; another worker continues")

// waitFor waits. The error comes from ctx, or says that the worker stops.
func waitFor(ctx context.Context, d time.Duration) error {
	return sleep.UnlessStopped(ctx, d, activity.GetWorkerStopChannel(ctx), errStopped)
}
