package workflows

import (
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// endless is the part of a workflow that keeps something for runs to come, and never ends.
type endless struct {
	changed bool // since the details were written
	stays   bool // in this history: what is kept is too large for another one
}

// renewed is what such a workflow keeps.
type renewed interface {
	// describe writes it into the details that Temporal's UI shows.
	describe(ctx workflow.Context)
	// next returns the error with which the workflow continues as new with it, or why it cannot.
	next(ctx workflow.Context) (failure *interpreter.ErrorObject, next error)
}

// serve shows what is kept as it changes, and continues as new where the history gets long.
func (e *endless) serve(ctx workflow.Context, k renewed) error {
	k.describe(ctx)
	for {
		if err := workflow.Await(ctx, func() bool { return e.changed || !e.stays && historyIsLong(ctx) }); err != nil {
			return err
		}
		if e.changed {
			e.changed = false
			k.describe(ctx)
			continue
		}
		if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
			return err
		}
		if next := e.continueAsNew(ctx, k); next != nil {
			return next
		}
	}
}

// continueAsNew returns the error with which the workflow continues as new. It is nil where what is
// kept is too large for that: it stays where it is.
func (e *endless) continueAsNew(ctx workflow.Context, k renewed) error {
	failure, next := k.next(ctx)
	if failure != nil {
		e.stays = true
		logger(ctx).Error("what is kept does not continue as new", "error", failure.Message)
		return nil
	}
	return next
}
