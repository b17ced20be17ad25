// Package keeper has the workflows that outlive runs: rate limits, queues of concurrency keys, states, partitions,
// trees of runs, logins, mailboxes. Each keeps one thing for later runs.
// Each thing has the same name in three places: its rules are in package interpreter, its workflow is here, and
// its activities, if any, are in activities/keeper.
package keeper

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/gate"
)

// service is a workflow that stays open for later runs, and continues as new when its history gets long.
type service interface {
	// isOver reports whether the workflow ends because nobody needs it any more.
	isOver(ctx workflow.Context) bool
	// isLong reports whether the history is so long that the workflow continues as new.
	isLong(ctx workflow.Context) bool
	// actWhenDue does what is due, and starts the timer of the next wait.
	actWhenDue(ctx workflow.Context)
	// isDue reports whether the wait is over.
	isDue(ctx workflow.Context) bool
	// afterWait is called after each wait.
	afterWait(ctx workflow.Context)
	// continueAsNew returns the error with which the workflow continues as new with its state, or a failure if the state is
	// too large.
	continueAsNew(ctx workflow.Context) (failure *interpreter.ErrorObject, next error)
}

// serveUntilOver runs a service until it is over. A service whose state is too large to continue as new stays in
// its history.
func serveUntilOver(ctx workflow.Context, s service) error {
	stays := false
	for !s.isOver(ctx) {
		if !stays && s.isLong(ctx) {
			if err := awaitHandlers(ctx); err != nil {
				return err
			}
			failure, next := s.continueAsNew(ctx)
			if failure == nil {
				return next
			}
			stays = true
			gate.Logger(ctx).Error("what is kept does not continue as new", "error", failure.Message)
		}
		s.actWhenDue(ctx)
		err := workflow.Await(ctx, func() bool { return s.isDue(ctx) || !stays && s.isLong(ctx) })
		if s.afterWait(ctx); err != nil {
			return err
		}
	}
	return awaitHandlers(ctx)
}

// awaitHandlers waits until all received updates are answered.
func awaitHandlers(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// endless implements the methods of a service that never ends, and acts only on request.
type endless struct {
	// changed says that the details do not show the latest state.
	changed bool
	// describe writes the state into the details that Temporal's UI shows.
	describe func(ctx workflow.Context)
}

func newEndless(describe func(workflow.Context)) endless {
	return endless{changed: true, describe: describe}
}

func (e *endless) isOver(workflow.Context) bool { return false }

func (e *endless) isLong(ctx workflow.Context) bool { return gate.HistoryIsLong(ctx) }

func (e *endless) actWhenDue(ctx workflow.Context) {
	if e.changed {
		e.changed = false
		e.describe(ctx)
	}
}

func (e *endless) isDue(workflow.Context) bool { return e.changed }

func (e *endless) afterWait(workflow.Context) {}
