package activities

import (
	"context"
	"errors"
	"maps"

	"go.temporal.io/sdk/activity"

	"reprise/activities/keeper"
	"reprise/interpreter"
)

// Services are the activities that reach the workflows which outlive runs, by name.
func (c *Catalogue) Services() map[string]any {
	all, known := keeper.Queues(), newRecent(isCancelled)
	cancelled := func(ctx context.Context, run string) bool {
		answer, _ := known.of(ctx, run, func(bool) bool { return true }) // without an answer what was read last counts
		return answer
	}
	for _, more := range []map[string]any{keeper.Trees(c.gate.hold, cancelled), keeper.Partitions(c.states, stateError), keeper.Mailboxes()} {
		maps.Copy(all, more)
	}
	return all
}

// hold is that of an attempt to start a run, which passes the gate of all attempts; nil
// where nothing holds it.
func (g *pauseGate) hold(ctx context.Context, attempt interpreter.PausedBy) (*interpreter.Hold, error) {
	_, err := g.pass(ctx, holding{run: attempt.Run, version: attempt.Version, step: attempt.Step, above: attempt.Parents})
	if off, ok := errors.AsType[*putOffError](err); ok {
		return off.until.Hold, nil
	}
	return nil, err
}

// isCancelled reports whether a run was cancelled, as the server knows at once,
// whatever waits for a worker.
func isCancelled(ctx context.Context, id string) (bool, error) {
	description, err := activity.GetClient(ctx).DescribeWorkflowExecution(ctx, id, "")
	return description.GetWorkflowExtendedInfo().GetCancelRequested(), err
}
