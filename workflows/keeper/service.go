// Package keeper has the workflows that belong to no run and outlive them: rate limits, queues of concurrency keys,
// states, partitions, the trees of runs, logins, mailboxes. Each keeps one thing for runs to come.
//
// A thing has one name: its rules are in interpreter, its workflow is here, and its activities are in activities/keeper, where it has any.
package keeper

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/workflows/gate"
)

// service is a workflow that stays open for later runs, and continues as new when its history gets long.
type service interface {
	// isOver reports whether the workflow ends: nobody needs what it keeps.
	isOver(ctx workflow.Context) bool
	// isLong reports whether the history has the length at which the workflow continues as new.
	isLong(ctx workflow.Context) bool
	// act does what is due, and starts the timers of the wait that follows.
	act(ctx workflow.Context)
	// isDue ends the wait.
	isDue(ctx workflow.Context) bool
	// woke is called after each wait.
	woke(ctx workflow.Context)
	// next returns the error with which the workflow continues as new with its state, or the reason why it
	// cannot.
	next(ctx workflow.Context) (failure *interpreter.ErrorObject, next error)
}

// serveUntilOver keeps a service open until it is over. One that keeps too much for another history stays in this one.
func serveUntilOver(ctx workflow.Context, s service) error {
	stays := false
	for !s.isOver(ctx) {
		if !stays && s.isLong(ctx) {
			if err := awaitHandlers(ctx); err != nil {
				return err
			}
			failure, next := s.next(ctx)
			if failure == nil {
				return next
			}
			stays = true
			gate.Logger(ctx).Error("what is kept does not continue as new", "error", failure.Message)
		}
		s.act(ctx)
		err := workflow.Await(ctx, func() bool { return s.isDue(ctx) || !stays && s.isLong(ctx) })
		if s.woke(ctx); err != nil {
			return err
		}
	}
	return awaitHandlers(ctx)
}

// awaitHandlers waits until all updates that have come are answered.
func awaitHandlers(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// endless is the part of a service that never ends, and acts only where it is asked to.
type endless struct {
	// changed says that what is kept has changed since its description was written.
	changed bool
	// describe writes what is kept into the details that Temporal's UI shows.
	describe func(ctx workflow.Context)
}

func newEndless(describe func(workflow.Context)) endless {
	return endless{changed: true, describe: describe}
}

func (e *endless) isOver(workflow.Context) bool { return false }

func (e *endless) isLong(ctx workflow.Context) bool { return gate.HistoryIsLong(ctx) }

func (e *endless) act(ctx workflow.Context) {
	if e.changed {
		e.changed = false
		e.describe(ctx)
	}
}

func (e *endless) isDue(workflow.Context) bool { return e.changed }

func (e *endless) woke(workflow.Context) {}
