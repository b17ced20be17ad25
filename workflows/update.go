package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// updateGate has updates wait that arrive before the workflow can check them. They may come with its
// first task, or while it validates its input, and the SDK refuses an update that has no handler
// as soon as nothing else can run: so a workflow sets all handlers before it waits for anything.
type updateGate struct {
	opened  bool
	refusal error // of all updates; nil for none
	waiting int
}

// pass returns once the gate is open, also after a cancel.
func (g *updateGate) pass(ctx workflow.Context) {
	g.waiting++
	defer func() { g.waiting-- }()
	awaitDespiteCancel(ctx, func() bool { return g.opened })
}

// open lets updates pass, and returns once those that wait have been handled.
func (g *updateGate) open(ctx workflow.Context) {
	g.opened = true
	awaitDespiteCancel(ctx, func() bool { return g.waiting == 0 })
}

// awaitDespiteCancel waits for a condition also where the workflow is cancelled: it becomes true soon.
func awaitDespiteCancel(ctx workflow.Context, condition func() bool) {
	disconnected, _ := workflow.NewDisconnectedContext(ctx)
	_ = workflow.Await(disconnected, condition) // its error is that of a cancel
}

// refuseUpdates refuses all updates of a run that does not begin, with the reason.
func (c *controls) refuseUpdates(ctx workflow.Context, reason error) {
	message := "the run has ended before it began: " + AttemptError(reason).Message
	c.commands.refusal = errors.New(message)
	c.answers.refusal = answerError(&interpreter.AnswerError{Type: interpreter.AnswerUnknown, Message: message})
	c.commands.open(ctx)
	c.answers.open(ctx)
}

// onUpdate has the workflow accept an update once its gate is open, unless check refuses it, and
// counts it.
func onUpdate[In, Out any](
	ctx workflow.Context, c *controls, g *updateGate, name string, check func(In) error, do func(workflow.Context, In) (Out, error),
) error {
	validate := func(in In) error {
		if !g.opened {
			return nil // the handler checks it when it can
		}
		if g.refusal != nil {
			return g.refusal
		}
		return check(in)
	}
	handle := func(ctx workflow.Context, in In) (out Out, err error) {
		c.updates++
		if !g.opened {
			g.pass(ctx)
			if err := validate(in); err != nil {
				return out, err
			}
		}
		return do(ctx, in)
	}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, name, handle, workflow.UpdateHandlerOptions{Validator: validate}); err != nil {
		return fmt.Errorf("set update handler %s: %w", name, err)
	}
	return nil
}
